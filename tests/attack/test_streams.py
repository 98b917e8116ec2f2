"""What a command is begun with instead of stdin, stdout and stderr: nothing, or a disk that is full.

docs/trust.md: a trace is evidence, and no answer is another one because nobody can be told.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack.forge import honest
from tests.record.kills import ROOT

VERBS = (
    ("replay", "TRACE", "--diff"),
    ("sql", "TRACE", "FROM observations", "-o", "parquet"),
    ("export", "TRACE", "--format", "jsonl", "-o", "/dev/stdout", "--force"),
    pytest.param(("report", "TRACE", "-o", "/dev/stdout", "--force"), marks=pytest.mark.full),
    ("info", "NONE"),
    ("jobs", "--help"),
)


def run(words: tuple[str, ...], streams: str, trace: Path) -> tuple[int, bytes, str]:
    """The status, what is on stdout and what on stderr."""
    code = "from tracekit.cli.main import main; main()"
    named = {"TRACE": str(trace), "NONE": str(trace / "none")}
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-c", code]
        + [named.get(word, word) for word in words],
        cwd=ROOT, capture_output=True, check=False, timeout=120,
        env={**os.environ, "TRACEKIT_CACHE_DIR": str(trace.parent / "cache")},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr.decode()


def content(trace: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in trace.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return honest(tmp_path_factory.mktemp("streams") / "trace")


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_closed_stream_is_no_file_of_the_trace(words: tuple[str, ...], trace: Path) -> None:
    """`report -o /dev/stdout >&-` wrote its page over a segment, which had got the number 1."""
    before = content(trace)
    status, out, said = run(words, "</dev/null", trace)
    assert run(words, ">&-", trace) == (status, b"", said)
    assert run(words, "<&- 2>&-", trace) == (status, out, "")
    assert content(trace) == before


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_full_disk_is_no_divergence(words: tuple[str, ...], trace: Path) -> None:
    """A note that could not be written was exit status 1; an answer that cannot is one sentence."""
    status, out, _ = run(words, "", trace)
    assert run(words, "2>/dev/full", trace) == (status, out, "")
    status, out, said = run(words, ">/dev/full", trace)
    assert (status, out) == (2, b"")
    where = "/dev/stdout" if "/dev/stdout" in words else "stdout"
    refused = f"tracekit: {where} cannot be written (No space left" if "NONE" not in words else ""
    assert said.splitlines()[-1].startswith(refused or "tracekit: ")
    assert "Traceback" not in said
