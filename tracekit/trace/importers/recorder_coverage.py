"""When each of several recorders saw a stream, and what none of them saw.

Revisions order the rows of a stream, whoever received them. A recorder sees a stream from the
revision of a list on, up to the newest one that it was told before a gap or the end; where one
looked away and another did not, nothing is unknown, and the list that the first made is one that
nobody needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from tracekit.trace.format.model import RowType
from tracekit.trace.reading.reader import TraceReader

_WATCHED = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})
_COLUMNS = ("seq", "stream", "type", "rv", "recv_ns", "synthesized", "gap_reason")


@dataclass(slots=True)
class Sight:
    """A time in which one recorder saw one stream without a break."""

    source: int
    stream: str
    start_rv: int
    end_rv: int
    from_ns: int
    until_ns: int
    #: Rows of the list that it began with, both included; None where a watch simply went on.
    listed: tuple[int, int] | None
    #: The row after which it began: notes between it and the list tell of the break before.
    after_seq: int
    #: Why the recorder had not seen what was before, in its words; empty for its first.
    reason: str = ""


class Unseen(Struct, frozen=True):
    """Revisions of a stream that no recorder saw: between two sights, or after the last one."""

    before: Sight
    after: Sight | None
    reason: str


@dataclass(slots=True)
class Ending:
    """How one recorder's sight of a stream ended with its record."""

    sight: Sight | None
    #: The words of a gap that was still open; empty if the record just ends.
    reason: str


def sights_of(reader: TraceReader, source: int, shift_ns: int) -> tuple[list[Sight], list[Ending]]:
    """The sights of every stream of a trace, in order, and how each stream ended."""
    scans: dict[str, _Scan] = {}
    for table in _in_order(reader):
        for row in table:
            stream = row["stream"]
            if stream is not None:
                scan = scans.setdefault(stream, _Scan(source, stream, shift_ns))
                scan.take(row)
    found = [sight for name in sorted(scans) for sight in scans[name].sights]
    return found, [Ending(scans[name].last, scans[name].reason) for name in sorted(scans)]


def _in_order(reader: TraceReader) -> Iterable[list[dict[str, Any]]]:
    table = reader.table(_COLUMNS)
    return (batch.to_pylist() for batch in table.to_batches(8192))


class _Scan:
    """What a pass over one stream's rows has found so far."""

    def __init__(self, source: int, stream: str, shift_ns: int) -> None:
        self._source, self._stream, self._shift_ns = source, stream, shift_ns
        self.sights: list[Sight] = []
        self._open: Sight | None = None
        self._begin: int | None = None  # of the list that is being read
        self._last_seq = -1  # of the last row that was seen while nothing was broken
        self._just_listed = False
        self.reason = ""

    @property
    def last(self) -> Sight | None:
        return self.sights[-1] if self.sights else None

    def take(self, row: dict[str, object]) -> None:
        """Take the stream's next row."""
        kind, seq, rv = str(row["type"]), _int(row["seq"]), row["rv"]
        at_ns = _int(row["recv_ns"]) + self._shift_ns
        if kind == RowType.LIST_BEGIN:
            self._begin = seq
        elif kind == RowType.LIST_END:
            begin = seq if self._begin is None else self._begin
            self._start(_int(rv), at_ns, (begin, seq))
            self._begin = None
        elif kind == RowType.GAP:
            if self._just_listed and self.last is not None:
                self.last.reason = str(row["gap_reason"] or "")  # told after the list that ends it
            else:
                self._open, self.reason = None, str(row["gap_reason"] or "")
        elif kind in _WATCHED and rv is not None and not row["synthesized"]:
            if self._open is None:
                self._start(_int(rv), at_ns, None)
            assert self._open is not None  # noqa: S101 - it was just begun
            self._open.end_rv = max(self._open.end_rv, _int(rv))
            self._open.until_ns = max(self._open.until_ns, at_ns)
            self._last_seq = seq
        self._just_listed = kind == RowType.LIST_END

    def _start(self, rv: int, at_ns: int, listed: tuple[int, int] | None) -> None:
        self._open = Sight(
            self._source, self._stream, rv, rv, at_ns, at_ns, listed, self._last_seq, self.reason
        )
        self.sights.append(self._open)
        self.reason = ""
        if listed is not None:
            self._last_seq = listed[1]


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def joined(sights: Iterable[Sight], endings: Iterable[Ending]) -> tuple[list[Sight], list[Unseen]]:
    """The sights of one stream whose lists are needed, and what nobody saw."""
    ordered = sorted(sights, key=lambda s: (s.start_rv, s.source))
    needed: list[Sight] = []
    unseen: list[Unseen] = []
    reach: Sight | None = None
    for sight in ordered:
        if reach is None:
            needed.append(sight)
        elif sight.start_rv > reach.end_rv:
            needed.append(sight)
            unseen.append(Unseen(reach, sight, sight.reason or "no recorder saw it"))
        if reach is None or sight.end_rv > reach.end_rv:
            reach = sight
    # A break that lasted to the end of a record matters if nobody saw further.
    unseen += [
        Unseen(reach, None, ending.reason)
        for ending in endings
        if reach is not None and ending.reason and ending.sight is reach
    ]
    return needed, unseen
