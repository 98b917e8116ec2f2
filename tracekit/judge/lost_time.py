"""Which objects lived while rows of a trace were lost: what is said of these is unknowable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa
from msgspec import Struct

from tracekit.check.verdict import Judgement, Verdict
from tracekit.trace.format.model import RowType
from tracekit.trace.reading.snapshot import Loss

_SEEN = ("seq", "uid", "namespace", "name", "type", "recv_ns")


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
        self._lifetimes: dict[str, _Life] = {}
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
            known = self._lifetimes.get(uid)
            gone = seq if kind == RowType.DELETED else known.deleted_seq if known else None
            if known is None or seq < known.first_seq:
                self._lifetimes[uid] = _Life(seq, kind, gone)
            elif gone != known.deleted_seq:
                self._lifetimes[uid] = _Life(known.first_seq, known.first_type, gone)

    def hiding(self, judgement: Judgement) -> Loss | None:
        """The loss that may hold what would make another judgement of this one."""
        where = judgement.object
        uids = {where.uid} | self._named.get((where.namespace, judgement.subject), set())
        # What was not seen may as well lie in a loss after it was owed.
        pending = judgement.verdict in (Verdict.MISSING, Verdict.LATE)
        for loss, from_ns in zip(self._losses, self._from_ns, strict=True):
            if (pending or judgement.time_ns >= from_ns) and any(
                self._lived_into(uid, loss) for uid in uids
            ):
                return loss
        return None

    def _lived_into(self, uid: str, loss: Loss) -> bool:
        life = self._lifetimes.get(uid)
        if life is None:
            return True
        if life.first_seq > loss.last:
            return life.first_type != RowType.ADDED
        return life.deleted_seq is None or life.deleted_seq > loss.last
