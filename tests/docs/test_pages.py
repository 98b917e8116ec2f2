"""The generated pages say what the code does."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from tests.support.traces import ROOT
from tracekit.cli.main import cli

MINE = ("sql", "jobs", "explain", "report", "export", "completion")


def test_the_pages_are_what_the_code_says() -> None:
    # In a process of its own: click keeps the help option of a command's first use.
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), (
        "run: python docs/generate.py"
    )


@pytest.mark.parametrize("verb", MINE)
def test_every_option_is_explained(verb: str) -> None:
    command = cli.get_command(click.Context(cli), verb)
    assert command.help
    for param in command.params:
        assert isinstance(param, click.Argument) or param.help, param.name
