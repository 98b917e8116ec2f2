"""Each row of a growing trace is handed out once, whatever is merged meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.format.segments import Segment, live_segments
from tracekit.trace.reading.files import SegmentFile, Vouched
from tracekit.trace.stores.rotated import new_trace_path
from tracekit.trace.writing.writer import TraceWriter
from tracekit.watch import follow
from tracekit.watch.follow import Follower


def pod(number: int) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "uid": f"u{number}", "resourceVersion": str(number)},
    }


def grow(writer: TraceWriter, numbers: range) -> None:
    for number in numbers:
        writer.append("pods", "ADDED", number * 1000, pod(number))
    writer.flush()


def names(follower: Follower) -> list[str]:
    table = follower.poll()
    return [] if table is None else table["name"].to_pylist()


@pytest.mark.parametrize("plain", [False, True])
def test_rows_come_once_and_in_order(tmp_path: Path, plain: bool) -> None:
    with TraceWriter(tmp_path / "t", TraceHeader(), plain=plain) as writer:
        follower = Follower(tmp_path / "t")
        assert names(follower) == []
        seen: list[str] = []
        for start in range(0, 100, 5):
            grow(writer, range(start, start + 5))
            if start % 2:
                writer.compact()
            if start % 15 == 0:
                seen += names(follower)
        seen += names(follower)
    assert seen == [f"p{n}" for n in range(100)]
    assert follower.poll() is None
    assert follower.lost_rows == 0


def test_rows_that_are_lost_are_waited_for_and_then_told(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t", TraceHeader())
    follower = Follower(tmp_path / "t")
    grow(writer, range(5))
    assert len(names(follower)) == 5
    grow(writer, range(5, 10))
    grow(writer, range(10, 15))
    live_segments(tmp_path / "t")[1].path.unlink()
    polls = [names(follower) for _ in range(8)]
    assert [n for poll in polls for n in poll] == [f"p{n}" for n in range(10, 15)]
    assert polls[0] == []
    assert follower.lost_rows == 5
    writer.close()


def test_the_newest_trace_of_a_folder_is_followed(tmp_path: Path) -> None:
    first, second = (new_trace_path(tmp_path, hour * 3600 * 10**9) for hour in (1, 2))
    with TraceWriter(first, TraceHeader()) as writer:
        grow(writer, range(3))
    follower = Follower(tmp_path)
    assert names(follower) == ["p0", "p1", "p2"]
    assert not follower.rotated()
    with TraceWriter(second, TraceHeader()) as writer:
        grow(writer, range(3, 5))
    assert follower.rotated()
    assert names(follower) == ["p3", "p4"]


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match="is not a trace, nor a folder of traces"):
        Follower(tmp_path)


def test_only_the_files_of_the_next_rows_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Segment] = []

    class Counted(SegmentFile):
        def __init__(self, segment: Segment, vouched: Vouched | None = None) -> None:
            opened.append(segment)
            super().__init__(segment, vouched)

    monkeypatch.setattr(follow, "SegmentFile", Counted)
    monkeypatch.setattr(follow, "_ROWS_MAX", 10)
    with TraceWriter(tmp_path / "t", TraceHeader()) as writer:
        for start in range(0, 60, 4):
            grow(writer, range(start, start + 4))
        follower = Follower(tmp_path / "t")
        polls = [names(follower) for _ in range(7)]
        assert [n for poll in polls for n in poll] == [f"p{n}" for n in range(60)]
        assert len(opened) <= 15 + len(polls)  # each once, but for those that a poll ends in


def test_without_their_text_rows_have_that_of_notes(tmp_path: Path) -> None:
    """It is most of a trace; a note of the clock is nothing but its text."""
    with TraceWriter(tmp_path / "t", TraceHeader()) as writer:
        grow(writer, range(3))
        writer.append("clocks", "NOTE", 3000, {"clock": {"step_ns": 7}})
        grow(writer, range(4, 6))
    rows = Follower(tmp_path / "t", columns=("seq", "type", "stream")).poll()
    whole = Follower(tmp_path / "t").poll()
    assert rows is not None
    assert whole is not None
    assert rows["seq"].equals(whole["seq"])
    texts = [
        text if kind == "NOTE" else None
        for text, kind in zip(whole["raw"].to_pylist(), whole["type"].to_pylist(), strict=True)
    ]
    assert rows["raw"].to_pylist() == texts
    assert len({*texts}) == 2
