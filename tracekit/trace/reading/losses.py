"""Rows that a trace has lost, as what they are for a reader: a gap of every stream.

A recorder's own gap ends with a list of what lives; where a file is gone no list follows, so what
was deleted, created or changed in it stays unknown for as long as the object lives
(`tracekit.judge.lost_time`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.trace.format.model import RowType
from tracekit.trace.format.rows import MEMORY_SCHEMA
from tracekit.trace.format.segments import Segment
from tracekit.trace.reading.files import conform
from tracekit.trace.reading.in_memory import RowsInMemory
from tracekit.trace.reading.snapshot import Loss, Snapshot


class LostFile(RowsInMemory):
    """Stands among the files of a trace for one that is lost: a GAP row for each stream."""


def lost_files(snapshot: Snapshot) -> list[LostFile]:
    """One for each loss of the trace, in order."""
    if not snapshot.losses:
        return []
    streams = _streams(snapshot)
    return [
        LostFile(
            Segment(loss.first, loss.last, snapshot.path),
            _gap_rows(loss, _around(snapshot, loss, streams)),
        )
        for loss in snapshot.losses
    ]


def _streams(snapshot: Snapshot) -> list[str]:
    found: set[str] = set()
    for file in snapshot.files:
        for group in range(file.row_groups):
            found |= set(pc.unique(file.read(group, ("stream",))["stream"]).to_pylist())
    return sorted(name for name in found if name)


@dataclass(slots=True)
class _Around:
    """What lies nearest to a loss in one stream."""

    stream: str
    last_rv: int | None = None
    next_rv: int | None = None
    from_ns: int | None = None
    until_ns: int | None = None


def _around(snapshot: Snapshot, loss: Loss, streams: Iterable[str]) -> list[_Around]:
    found = {name: _Around(name) for name in streams}
    before = [file for file in snapshot.files if file.segment.last < loss.first]
    after = [file for file in snapshot.files if file.segment.first > loss.last]
    for file in before[-1:]:
        latest = pc.max(pa.concat_tables(_all(file, ("recv_ns",)))["recv_ns"]).as_py()
        for around in found.values():
            around.from_ns = latest
    for file in after[:1]:
        earliest = pc.min(pa.concat_tables(_all(file, ("recv_ns",)))["recv_ns"]).as_py()
        for around in found.values():
            around.until_ns = earliest
    for files, pick, name in ((before, max, "last_rv"), (after, min, "next_rv")):
        for file in files:
            for table in _all(file, ("stream", "rv")):
                grouped = table.group_by("stream").aggregate([("rv", "min_max")])
                for row in grouped.to_pylist():
                    value = row["rv_min_max"]["max" if pick is max else "min"]
                    if row["stream"] and value is not None:
                        known = getattr(found[row["stream"]], name)
                        better = value if known is None else pick(known, value)
                        setattr(found[row["stream"]], name, better)
    return list(found.values())


def _all(file: Any, columns: Sequence[str]) -> list[pa.Table]:
    return [file.read(group, columns) for group in range(file.row_groups)]


def _gap_rows(loss: Loss, around: Iterable[_Around]) -> pa.Table:
    rows = [
        {
            "seq": loss.first,
            "stream": one.stream,
            "type": RowType.GAP.value,
            "recv_ns": one.until_ns if one.until_ns is not None else one.from_ns,
            "synthesized": False,
            "gap_reason": f"rows {loss.first} to {loss.last} of the trace are lost",
            "gap_last_rv": one.last_rv,
            "gap_next_rv": one.next_rv,
            "gap_from_ns": one.from_ns,
            "gap_until_ns": one.until_ns,
        }
        for one in around
    ]
    names = ["seq", "stream", "type", "recv_ns", "synthesized", "gap_reason"]
    names += ["gap_last_rv", "gap_next_rv", "gap_from_ns", "gap_until_ns"]
    schema = pa.schema([MEMORY_SCHEMA.field(name) for name in names])
    return conform(pa.Table.from_pylist(rows, schema), MEMORY_SCHEMA.names)
