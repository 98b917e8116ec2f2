"""Rows that a trace has lost, as what they are for a reader: a gap of every stream.

A recorder's own gap ends with a list of what lives; where a file is gone no list follows, so what
was deleted, created or changed in it stays unknown for as long as the object lives. `LostTime` says
which objects lived into a gap of that kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from tracekit.trace.format.model import RowType
from tracekit.trace.format.rows import MEMORY_SCHEMA
from tracekit.trace.format.segments import Segment
from tracekit.trace.reading.files import conform
from tracekit.trace.reading.in_memory import RowsInMemory
from tracekit.trace.reading.snapshot import Loss, Snapshot
from tracekit.verdict import Judgement, Verdict

_SEEN = ("seq", "uid", "namespace", "name", "type", "recv_ns")


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


#### What of it concerns an object ####


class _Reader(Protocol):
    @property
    def losses(self) -> list[Loss]: ...

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]: ...


class _Life(Struct, frozen=True):
    first_seq: int
    first_type: str
    deleted_seq: int | None


class LostTime:
    """Which objects of a trace lived while rows of it were lost."""

    def __init__(self, reader: _Reader) -> None:
        self._losses = reader.losses
        self._lives: dict[str, _Life] = {}
        #: Uids that went by a namespace and name, one after the other.
        self._named: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        #: For each loss, the latest receive time before it.
        self._from_ns = [-1] * len(self._losses)
        if not self._losses:
            return
        for table in reader.batches(_SEEN):
            self._note(table)

    def _note(self, table: pa.Table) -> None:
        for row in table.to_pylist():
            seq, uid, kind = row["seq"], row["uid"], row["type"]
            for number, loss in enumerate(self._losses):
                if seq < loss.first and row["recv_ns"] is not None:
                    self._from_ns[number] = max(self._from_ns[number], row["recv_ns"])
            if uid is None:
                continue
            self._named[row["namespace"] or "", row["name"] or ""].add(uid)
            known = self._lives.get(uid)
            gone = seq if kind == RowType.DELETED else known.deleted_seq if known else None
            if known is None or seq < known.first_seq:
                self._lives[uid] = _Life(seq, kind, gone)
            elif gone != known.deleted_seq:
                self._lives[uid] = _Life(known.first_seq, known.first_type, gone)

    def hiding(self, judgement: Judgement) -> Loss | None:
        """The loss that may hold what would make another judgement of this one."""
        where = judgement.object
        uids = {where.uid} | self._named.get((where.namespace, judgement.subject), set())
        # What was not seen may as well lie in a loss after it was owed.
        owed = judgement.verdict in (Verdict.MISSING, Verdict.LATE)
        for loss, from_ns in zip(self._losses, self._from_ns, strict=True):
            if (owed or judgement.time_ns >= from_ns) and any(
                self._lived_into(uid, loss) for uid in uids
            ):
                return loss
        return None

    def _lived_into(self, uid: str, loss: Loss) -> bool:
        life = self._lives.get(uid)
        if life is None:
            return True
        if life.first_seq > loss.last:
            return life.first_type != RowType.ADDED
        return life.deleted_seq is None or life.deleted_seq > loss.last
