"""How commands end: with which status, whatever happens to their output or their files."""

from __future__ import annotations

import importlib.util
import inspect
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.sql.conftest import trace_path  # noqa: F401 - a fixture
from tests.support.command_tree import options
from tests.support.traces import ROOT
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture
from tracekit.cli.cron import cron
from tracekit.cli.main import READER_GONE, VERBS, cli, main
from tracekit.cli.usage import LazyGroup

NAME = "v1.36.3-restart"
#: Longer than any path may be, and than any name in a directory.
LONG = "x" * 5000
#: More than a pipe holds in every format, Parquet packed small included.
MANY = "SELECT md5(random()::VARCHAR) AS a, random() AS b FROM range(20000)"


def piped(words: list[str], *, wait: bool) -> tuple[int, bytes]:
    """The status and stderr of a command whose reader takes a byte, or nothing, and goes."""
    code = "from tracekit.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    if wait:
        process.stdout.read(1)
    process.stdout.close()
    said = process.stderr.read()
    return process.wait(), said


@pytest.mark.parametrize(
    "words",
    [
        *(["sql", MANY, "-o", kind] for kind in ("table", "csv", "jsonl", "json", "parquet")),
        ["replay", "-o", "jsonl"],
        ["replay", "--diff", "-o", "wide"],
        ["export", "--format", "csv"],
        ["export", "--format", "perfetto"],
        ["report", "-o", "-"],
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_a_reader_that_goes_is_neither_a_divergence_nor_an_error(
    words: list[str],
    trace_path,  # noqa: F811
) -> None:
    status, said = piped([words[0], str(trace_path(NAME)), *words[1:]], wait=True)
    assert (status, said) == (READER_GONE, b"")


@pytest.mark.parametrize("words", [["--help"], ["versions"], ["sql", "--examples"]])
def test_a_reader_that_never_reads(words: list[str]) -> None:
    assert piped(words, wait=False) == (READER_GONE, b"")


@pytest.mark.parametrize(
    "words",
    [
        ["info", LONG],
        ["replay", LONG],
        ["jobs", LONG],
        ["explain", LONG, "a/b"],
        ["sql", LONG, "SELECT 1"],
        ["sql", "TRACE", "SELECT 1", "-f", LONG],
        ["report", "TRACE", "-o", LONG],
        ["export", "TRACE", "--format", "csv", "-o", LONG],
        ["import", "watch", LONG, "-o", "OUT"],
        ["import", "watch", os.devnull, "-o", LONG],
        ["redact", "TRACE", "-o", LONG],
        ["record", "-o", LONG, "--kubeconfig", LONG],
    ],
    ids=lambda words: " ".join(word if word != LONG else "LONG" for word in words),
)
def test_a_name_that_no_file_can_have_is_one_sentence(
    words: list[str],
    run,  # noqa: F811
    trace_path,  # noqa: F811
    tmp_path: Path,
) -> None:
    places = {"TRACE": trace_path(NAME), "OUT": tmp_path / "out"}
    code, out, err = run(*(places.get(word, word) for word in words))
    assert (code, out) == (2, "")
    assert err.startswith("tracekit: ")
    assert "Traceback" not in err


WRITTEN = [
    pytest.param(option, id=f"{words} {option.opts[-1]}")
    for words, option in options()
    if option.opts[-1] in ("--output", "--report", "--write-baseline")
    and not isinstance(option.type, click.Choice)
    and words != "record"  # which does write there
]


@pytest.mark.parametrize("option", WRITTEN)
def test_what_is_written_lies_on_this_machine(option: click.Option) -> None:
    """As a path, a URL would name a folder `s3:`."""
    with pytest.raises(click.BadParameter, match="copy it from there"):
        option.type.convert("s3://fleet/run", option, None)
    assert str(option.type.convert("fleet/run", option, None)) == "fleet/run"


def test_all_verbs_that_write_are_among_them() -> None:
    assert {str(param.id).split()[0] for param in WRITTEN} == {
        "compact", "demo", "diagnose", "export", "import", "merge", "minimise", "redact",
        "report", "simulate", "upgrade", "whatif",
    }  # fmt: skip


@pytest.mark.parametrize("length", [200, 245, 260, 4096, 100_000])
def test_a_query_may_be_as_long_as_it_likes(
    length: int,
    run,  # noqa: F811
    trace_path,  # noqa: F811
) -> None:
    query = f"SELECT length('{'x' * length}') AS n"
    assert run("sql", trace_path(NAME), query, "-o", "csv")[:2] == (0, f"n\n{length}\n")


def test_without_posix_one_sentence_says_where_to_run_it(run, monkeypatch) -> None:  # noqa: F811
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "fcntl" else find(name)
    )
    code, out, err = run("--version")
    assert (code, out) == (2, "")
    assert err == "tracekit: tracekit runs on Linux and macOS: on Windows run it under WSL\n"


def test_the_program_is_named_as_it_was_called(run, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/kubectl-tracekit"])
    assert 'unknown command "reply" for "kubectl tracekit"' in run("reply")[2]


@pytest.mark.parametrize("group", [cli, cron])
def test_a_verb_is_listed_by_how_its_help_begins(group: LazyGroup) -> None:
    for name, verb in group.verbs.items():
        command = group.get_command(click.Context(group), name)
        assert command is not None
        first = inspect.cleandoc(command.help or "").split("\n\n")[0]
        assert verb.about == " ".join(first.split()), name


def test_help_lists_each_verb_once_on_one_line_of_80_columns() -> None:
    with click.Context(
        cli, info_name="tracekit", terminal_width=80, max_content_width=80
    ) as context:
        lines = cli.get_help(context).splitlines()
    for name, verb in VERBS.items():
        assert [line.split() for line in lines if line.startswith(f"  {name} ")] == [
            [name, *verb.about.split()]
        ]


@pytest.mark.parametrize(
    "asked", ["cli.main(['--help'])", "cli.shell_complete(Context(cli), 're')"]
)
def test_to_list_the_verbs_none_is_imported(asked: str) -> None:
    code = (
        "import atexit, sys; from click import Context; from tracekit.cli.main import cli\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n" + asked
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {verb.place.split(":")[0] for verb in cli.verbs.values()} & {*done.stderr.split()}
    assert "tracekit.cli.main" in done.stderr.split()


def test_a_file_that_is_cut_is_no_ctrl_d(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Click takes every EOFError for one: the status was 130, and nothing was said."""

    def cut(*_: object) -> None:
        raise EOFError("marshal data too short")

    monkeypatch.setattr("tracekit.cli.usage.LazyGroup.get_command", cut)
    with pytest.raises(SystemExit) as ended:
        main(["info", "trace"])
    assert ended.value.code == 2
    assert "a file is cut off (marshal data too short)" in capsys.readouterr().err
