"""Any reader at any moment of a recording and its compaction: an answer, no row lost or twice.

The compaction is stopped at each step it takes on the disk, and a reader looks just then; and the
other way round: a compaction runs between any two steps of a reader.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.watchlog import pod
from tracekit.sql.session import Session
from tracekit.trace.format import opening, segments
from tracekit.trace.reading import snapshot
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.compact import Compactor
from tracekit.trace.writing.writer import TraceWriter

FLUSHES, ROWS = 12, 3
TOTAL = FLUSHES * ROWS


@pytest.fixture
def live(tmp_path: Path):
    """A trace that is being recorded: many small segments, its writer still there."""
    writer = TraceWriter(tmp_path / "t", plain=True)
    for flush in range(FLUSHES):
        for row in range(ROWS):
            seq = flush * ROWS + row
            writer.append("pods", "ADDED", seq, pod(f"pod-{seq}", seq + 1))
        writer.flush()
    yield SimpleNamespace(path=tmp_path / "t", writer=writer)
    writer.abandon()


def positions(reader: TraceReader) -> list[int]:
    return reader.table(("seq",))["seq"].to_pylist()


def grouped(reader: TraceReader) -> list[int]:
    return sorted(s for group in reader.groups(("seq",)) for s in group.rows["seq"].to_pylist())


def asked(path: Path) -> list[tuple[int, int]]:
    return Session([path]).sql("SELECT count(*), count(DISTINCT seq) FROM observations").fetchall()


def test_a_reader_at_every_step_of_a_compaction(live, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def looking(original):
        def call(*args, **kwargs):
            nonlocal looks
            looks += 1
            assert positions(TraceReader(live.path)) == list(range(TOTAL))
            if looks % 16 == 0:
                assert asked(live.path) == [(TOTAL, TOTAL)]
            return original(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", looking(Path.unlink))
        patch.setattr(Path, "replace", looking(Path.replace))
        Compactor(live.path).finish()
    assert looks > FLUSHES
    assert asked(live.path) == [(TOTAL, TOTAL)]


@pytest.mark.parametrize("step", [1, 4, 9, 17])
def test_a_compaction_at_every_step_of_a_reader(
    live, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Opening a file or listing the folder is a step; the compaction comes before one of them."""
    steps = 0
    original = os.open

    def opening_one(*args, **kwargs):
        nonlocal steps
        steps += 1
        if steps == step:
            with monkeypatch.context() as inner:
                inner.setattr(os, "open", original)
                Compactor(live.path, rows_max=30).finish()
        return original(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opening_one)
        reader = TraceReader(live.path)
    assert steps >= step
    assert positions(reader) == grouped(reader) == list(range(TOTAL))
    assert reader.problems == []


def test_a_listing_that_a_merge_falls_into_loses_nothing(
    live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """readdir may give neither the file that was just merged nor the one it was merged into."""
    honest = opening.names_inside
    calls = 0

    def torn(trace: Path, *folder: str) -> list[str]:
        nonlocal calls
        calls += 1
        names = sorted(honest(trace, *folder))
        return names[:5] + names[8:] if calls == 1 else names

    monkeypatch.setattr(segments, "names_inside", torn)
    assert positions(TraceReader(live.path)) == list(range(TOTAL))
    assert calls > 1


def test_an_open_session_and_an_open_reader_outlive_a_compaction(live) -> None:
    session, reader = Session([live.path]), TraceReader(live.path)
    live.writer.append("pods", "ADDED", 9_999, pod("late", 9_999))
    live.writer.flush()
    Compactor(live.path).finish()
    query = "SELECT count(*), count(DISTINCT seq) FROM observations"
    assert session.sql(query).fetchall() == [(TOTAL, TOTAL)]
    assert positions(reader) == grouped(reader) == list(range(TOTAL))
    assert asked(live.path) == [(TOTAL + 1, TOTAL + 1)]


def test_a_trace_that_never_stands_still_is_told_so(live, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(snapshot, "SegmentFile", never)
    monkeypatch.setattr(snapshot, "_TRIES", 5)
    with pytest.raises(snapshot.TraceFormatError, match="changes too fast"):
        TraceReader(live.path)
