"""`tracekit compact`: in place and as a copy, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.answers import run
from tests.unit.trace.test_reader import SAMPLE, write
from tracekit.trace.format.schema import NAMES, SCHEMA
from tracekit.trace.reading.reader import TraceReader


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    write(tmp_path / "t", SAMPLE, segment_rows=3)
    return tmp_path / "t"


def rows(path: Path):
    return TraceReader(path).table(NAMES).cast(SCHEMA)


def test_in_place(trace: Path) -> None:
    before = rows(trace)
    code, out, err = run("compact", str(trace))
    assert (code, out) == (0, "")
    assert err.startswith(f"{trace}: {before.num_rows} rows, ")
    assert rows(trace).equals(before)
    assert run("info", str(trace), "--verify")[0] == 0
    assert len(TraceReader(trace).segments) == 1


def test_as_a_copy_and_back(trace: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in trace.rglob("*") if path.is_file()}
    wanted = rows(trace)
    small, wide = tmp_path / "small", tmp_path / "wide"
    assert run("compact", str(trace), "-o", str(small))[0] == 0
    assert run("compact", str(small), "-o", str(wide), "--wide")[0] == 0
    assert {path.name: path.read_bytes() for path in trace.rglob("*") if path.is_file()} == before
    assert rows(small).equals(wanted)
    assert rows(wide).equals(wanted)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "is not a trace"),
        (("t", "-o", "t"), "exists"),
        (("s3://bucket/t",), "name a copy with -o"),
    ],
)
def test_what_it_refuses(trace: Path, monkeypatch: pytest.MonkeyPatch, words, said: str) -> None:
    monkeypatch.chdir(trace.parent)
    code, out, err = run("compact", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
