"""What tracekit answers of a trace, so that two answers can be compared, and how it refuses."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner

from tracekit.cli.main import main

#: One sentence for people, as every refusal is.
PREFIX = "tracekit: "


def run(*words: str) -> tuple[int, str, str]:
    """Run the command line as a user does: exit status, stdout, stderr."""
    runner = CliRunner()
    with runner.isolation() as (out, err, _):
        with pytest.raises(SystemExit) as ending, mock.patch.object(sys, "argv", ["tracekit"]):
            main(list(words))
        code = ending.value.code
        sys.stdout.flush()
        # Parquet is no text.
        streams = out.getvalue().decode(errors="surrogateescape"), err.getvalue().decode()
    return int(code or 0), *streams


def replayed(trace: Path) -> tuple[int, str, str]:
    """The verdicts of a trace."""
    return run("replay", str(trace), "--diff", "-o", "jsonl")


def is_refusal(answer: tuple[int, str, str]) -> bool:
    """Whether it is exit status 2 and one sentence, and nothing that looks like an answer."""
    code, out, err = answer
    lines = err.splitlines()
    return code == 2 and not out and len(lines) == 1 and lines[0].startswith(PREFIX)
