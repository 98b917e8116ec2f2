"""What every verb prints on a terminal of 80 columns: nothing wider that could fold, nothing cut."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from tests.sql.conftest import trace_path  # noqa: F401 - a fixture
from tests.support.traces import ROOT
from tracekit.cli.main import VERBS, main

NAME = "v1.36.3-restart"
COLUMNS = 80
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def on_a_terminal(words: list[str], folder: Path) -> list[str]:
    """The lines that a command prints on a terminal."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    environment.pop("COLUMNS", None)

    def run(terminal: int) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "tracekit", *words],
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
        )
        os.close(terminal)
        assert process.wait() in (0, 1)

    return shown(run)


def help_on_a_terminal(words: list[str]) -> list[str]:
    """The same of help, for which no new process is begun: it depends on the terminal alone."""

    def run(terminal: int) -> None:
        with (
            os.fdopen(terminal, "w", encoding="utf-8") as out,
            mock.patch.multiple(sys, stdout=out, __stdout__=out),
            mock.patch.dict(os.environ, {"TERM": "xterm", "COLUMNS": ""}),
            pytest.raises(SystemExit) as left,
        ):
            main(words)
        assert left.value.code == 0

    return shown(run)


def shown(run: Callable[[int], None]) -> list[str]:
    """The lines that come out of a terminal while something runs, which closes it."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, COLUMNS))
    found = bytearray()

    def read() -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(ours, 65536):
                found.extend(part)

    reading = threading.Thread(target=read)
    reading.start()
    run(theirs)
    reading.join()
    os.close(ours)
    return _STYLE.sub("", found.decode()).replace("\r\n", "\n").split("\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, trace_path) -> Path:  # noqa: F811
    place = tmp_path_factory.mktemp("width")
    (place / "run").symlink_to(trace_path(NAME))
    return place


SHOWN = [
    "info run",
    "jobs run",
    "jobs run -o wide",
    "replay run",
    "replay run --diff",
    "replay run --diff --kubernetes-version v1.28.15",
    "replay run --diff -o wide -n t-pod-killed",
    "diagnose run -v",
    "diagnose --list",
    "explain run t-pod-killed/victim -v",
    "explain run t-cronjobs/forbid",
    "timeline run --limit 60",
    "who run",
    "who run job-controller --limit 5",
    "compare run t-fixed-completions/three t-pod-killed/victim",
    "sql run -o line",
    "sql run",
    "versions",
    "versions v1.36.3",
    "versions v1.23.17 v1.24.17",
    "cron next @daily --time-zone America/Argentina/ComodRivadavia",
    "cron lint run",
    "demo",
    "--help",
    *(f"{verb} --help" for verb in VERBS),
]


@pytest.mark.parametrize("command", SHOWN)
def test_nothing_is_wider_than_the_terminal(command: str, folder: Path) -> None:
    words = command.split()
    if words[0] == "sql":
        words.insert(2, "SELECT * FROM attempts LIMIT 5")
    is_help = words[-1] == "--help"
    lines = help_on_a_terminal(words) if is_help else on_a_terminal(words, folder)
    assert len(lines) > 2
    # A word that is wider by itself cannot be folded without being cut for whoever copies it.
    wide = [line for line in lines if len(line) > COLUMNS and " " in line.strip()]
    assert not wide
    # DuckDB's own box cuts, and says what to do then; help has it for "and so on".
    if not is_help and (words[0] != "sql" or "line" in words):
        assert not [line for line in lines if "…" in line]


@pytest.mark.parametrize("rules", ["v1.36.3", "v1.28.15"], ids=["clean", "of another version"])
def test_the_verdict_is_summed_up_in_five_lines_at_most(folder: Path, rules: str) -> None:
    """The last of them is what was found, so that it is what stays in sight."""
    lines = on_a_terminal(["replay", "run", "--diff", "--kubernetes-version", rules], folder)
    while not lines[-1]:
        lines.pop()
    begin = max(number for number, line in enumerate(lines) if line.startswith(f"{rules}: "))
    said = lines[begin:]
    assert 3 <= len(said) <= 5
    assert not [line for line in said if not line or len(line) > COLUMNS]
    clean = rules == "v1.36.3"
    found = re.fullmatch(r"(\d+) divergences?: (.*)", said[-1])
    assert said[-1] == "no divergence" if clean else found is not None
    if found is not None:
        kinds = [int(part.split()[0]) for part in found[2].split(", ")]
        assert sum(kinds) == int(found[1])


@pytest.mark.full
def test_no_value_is_cut(folder: Path) -> None:
    """Whatever a pipe gets of a table, a terminal shows too, maybe on several lines."""
    for words in (["info", "run"], ["jobs", "run", "-o", "wide"], ["versions"]):
        piped = subprocess.run(
            [sys.executable, "-m", "tracekit", *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        shown = "".join("".join(on_a_terminal(words, folder)).split())
        missing = [word for word in piped.split() if word not in shown and word[0].islower()]
        assert len(missing) <= len(piped.split()) // 50, missing
