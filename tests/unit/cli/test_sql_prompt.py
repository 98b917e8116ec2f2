"""The prompt of `tracekit sql`, driven through a pipe instead of a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tests.sql.test_session import HOSTILE, write_jobs
from tracekit.cli.sql_prompt import Prompt, SqlCompleter, prompt
from tracekit.sql.session import Session


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Session([write_jobs(tmp_path / "t", "first", "second")])


def completions(text: str) -> list[str]:
    found = SqlCompleter().get_completions(Document(text, len(text)), CompleteEvent())
    return [completion.text for completion in found]


def test_a_query_over_several_lines_runs_at_its_semicolon(session, capsys, tmp_path: Path) -> None:
    with create_pipe_input() as keys:
        keys.send_text("SELECT job\nFROM jobs ORDER BY job;\n.quit\n")
        prompt(session, "csv", terminal_input=keys, terminal_output=DummyOutput())
    assert capsys.readouterr().out == "job\nfirst\nsecond\n"
    assert "FROM jobs" in (tmp_path / "state/tracekit/sql_history").read_text()


def test_errors_do_not_end_the_prompt(session, capsys) -> None:
    with create_pipe_input() as keys:
        keys.send_text("SELECT * FROM jbos;\n.vews\nSELECT 5 AS five;\n\x04")
        prompt(session, "csv", terminal_input=keys, terminal_output=DummyOutput())
    out, err = capsys.readouterr()
    assert "five" in out
    assert "did you mean jobs?" in err
    assert "did you mean .views?" in err


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT * FROM jo", "jobs"),
        ("SELECT j.job FROM jobs j WHERE backo", "backoff_s"),
        ("SELECT jobs.dur", "duration_s"),
        ("FROM time", "timeline("),
        ("sel", "SELECT"),
        (".ex", ".examples"),
        (".example slow", "slowest-jobs"),
        (".views att", "attempts"),
    ],
)
def test_completion(text: str, wanted: str) -> None:
    assert wanted in completions(text)


def test_columns_of_the_named_view_come_alone() -> None:
    found = completions("SELECT re FROM leaders WHERE re")
    assert "renewals" in found
    assert "restarts" not in found


@pytest.mark.parametrize(
    "command", [".help", ".views", ".views jobs", ".macros", ".examples", ".example failed-jobs"]
)
def test_commands_print(session, capsys, command: str) -> None:
    Prompt(session, "table").answer(command)
    assert capsys.readouterr().out


def test_the_output_format_can_be_changed(session, capsys) -> None:
    answering = Prompt(session, "table")
    answering.answer(".output jsonl")
    answering.answer("SELECT 1 AS one")
    assert capsys.readouterr().out == '{"one":1}\n'


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path, capsys) -> None:
    Prompt(Session([write_jobs(tmp_path / "h", HOSTILE)]), "table").answer("SELECT job FROM jobs")
    assert "\x1b" not in capsys.readouterr().out
