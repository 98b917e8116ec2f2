"""The prompt of `tracekit sql`, driven through a pipe instead of a terminal."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tests.sql.test_session import HOSTILE, write_jobs
from tracekit.cli.sql_prompt import Prompt, SqlCompleter, prompt
from tracekit.report.rows import fitting_columns
from tracekit.sql.catalog import views
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


@pytest.mark.parametrize("word", ["exit", "quit;", "EXIT", "\\q", ".quit"])
def test_the_words_that_leave(session, word: str) -> None:
    answering = Prompt(session, "table")
    answering.answer(word)
    assert answering.left


def test_the_format_is_told_and_a_wrong_one_suggests(session, capsys) -> None:
    answering = Prompt(session, "table")
    answering.answer(".output")
    answering.answer(".output jsn")
    out, err = capsys.readouterr()
    assert out == "table; .output FORMAT takes table, line, csv, json, jsonl or markdown\n"
    assert "did you mean json" in err


def test_what_is_longer_than_the_screen_goes_through_the_pager(
    session, capsys, monkeypatch
) -> None:
    paged: list[str] = []
    monkeypatch.setattr("click.echo_via_pager", paged.append)
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_: os.terminal_size((80, 24)))
    answering = Prompt(session, "csv")
    answering.answer(".pager on")
    answering.answer("SELECT 1 AS one")
    assert capsys.readouterr().out == "one\n1\n"
    answering.answer("SELECT * FROM range(50)")
    assert paged[0].splitlines() == ["range", *map(str, range(50))]
    answering.answer(".pager off")
    answering.answer("SELECT * FROM range(50)")
    assert len(paged) == 1


def test_describe_and_show_tables_tell_what_things_mean(session) -> None:
    for view in views():
        rows = session.table(f"DESCRIBE {view.name}").to_pylist() if view.public else []
        assert [row["comment"] for row in rows] == [c.meaning for c in view.columns if view.public]
    tables = session.table("SHOW TABLES;").to_pylist()
    assert {row["name"]: row["comment"] for row in tables} == {
        view.name: view.text for view in views() if view.public
    }
    assert session.table("DESCRIBE SELECT 1 AS x").to_pylist()[0]["column_name"] == "x"


@pytest.mark.parametrize(
    ("rows", "width", "shown"),
    [
        ({"trace": ["t"], "job": ["a"]}, 80, ["trace", "job"]),
        ({"trace": ["t"], "job": ["a"]}, 12, ["job"]),
        ({"trace": ["t", "u"], "x": ["1", "2"], "job": ["a", "b"]}, 24, ["job", "trace"]),
        (
            {"job_uid": ["u" * 20], "reason": ["r" * 30], "outcome": ["o"]},
            45,
            ["outcome", "reason"],
        ),
        ({"empty": [None] * 2, "message": ["m"] * 2, "job": ["j"] * 2}, 22, ["job", "message"]),
        ({"message": ["m" * 200]}, 10, ["message"]),
    ],
)
def test_a_narrow_terminal_shows_what_is_looked_for(rows, width: int, shown: list[str]) -> None:
    assert fitting_columns(pa.table(rows), width) == shown


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path, capsys) -> None:
    Prompt(Session([write_jobs(tmp_path / "h", HOSTILE)]), "table").answer("SELECT job FROM jobs")
    assert "\x1b" not in capsys.readouterr().out
