"""Colour and signs of life are for terminals alone."""

from __future__ import annotations

import io
import sys

import click
import pytest

from tracekit.cli.diagnose import coloured
from tracekit.cli.messages import waiting


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("severity", ["ERROR  ", "WARNING", "INFO   "])
def test_the_severity_is_in_colour(monkeypatch, severity: str) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    line = f"{severity} TK302  CronJob a/b: ERROR TK1 in a text"
    assert click.unstyle(coloured(line)) == line
    assert coloured(line).startswith("\x1b[")
    assert coloured(line).endswith("ERROR TK1 in a text")
    assert coloured(f"  {line}") == f"  {line}"
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured(line) == line


@pytest.mark.parametrize(("kind", "term", "shows"), [
    (_Terminal, "xterm", True), (_Terminal, "dumb", False), (io.StringIO, "xterm", False),
])  # fmt: skip
def test_a_terminal_sees_that_work_goes_on(monkeypatch, kind, term: str, shows: bool) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys, "stderr", err := kind())
    with waiting("Judging [bold]\x1b[2J"):
        pass
    assert ("Judging [bold]\\x1b[2J" in err.getvalue()) is shows
    assert bool(err.getvalue()) is shows
    assert "\x1b[2J" not in err.getvalue()
