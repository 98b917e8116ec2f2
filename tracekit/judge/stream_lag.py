"""How far one stream of a record was behind the others, as the order of revisions tells.

All kinds share one etcd, so that what has a lower resourceVersion was written before. Where a watch
shows a pod after another one has shown a newer Job, the pod had been written by then: its row came
late, by so much. That needs no clock but the recorder's own, and no time that an object carries.

Only what comes in the order of its own stream is late: that one row lies behind newer ones of its
stream is no lag of a watch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.check.replay.commit_times import LATE_NS
from tracekit.trace.format.model import STATE_TYPES, RowType

#: The streams whose revisions are compared.
STREAMS: Final = ("jobs", "pods", "cronjobs")
#: What of a row is looked at.
COLUMNS: Final = ("seq", "recv_ns", "rv", "stream", "type", "not_before_ns", "gap_until_ns")
#: Rows that are Python objects at a time, whatever is read of a record as a whole.
AT_A_TIME: Final = 10_000


class StreamLag:
    """When that was written which its stream showed late; rows come in order of arrival."""

    def __init__(self) -> None:
        #: By resourceVersion: when a newer revision of another stream had come.
        self.written_ns: dict[int, int] = {}
        #: When each newest revision of all streams came: both rise.
        self._recv_ns: list[int] = []
        self._rv: list[int] = []
        self._own: dict[str, int] = {}  # the newest of each stream
        self._watched_ns: dict[str, int] = {}  # since when: what came unseen before is no lag

    def feed(self, rows: pa.Table) -> None:
        """Take in rows with the columns of `COLUMNS`."""
        wanted = pc.and_(
            _is_in(rows["stream"], STREAMS), _is_in(rows["type"], [*STATE_TYPES, RowType.GAP])
        )
        kept = rows.select(list(COLUMNS)).filter(wanted).sort_by("seq")
        for some in kept.to_batches(AT_A_TIME):
            columns = (some.column(name).to_pylist() for name in COLUMNS[1:])
            for recv_ns, rv, stream, kind, reported_ns, gap_until_ns in zip(*columns, strict=True):
                if kind == RowType.GAP:
                    self._watched_ns[stream] = gap_until_ns or 0
                elif rv is not None and recv_ns is not None:
                    if kind == RowType.LIST:
                        self._watched_ns[stream] = recv_ns
                    elif reported_ns is None:  # else the source is no watch, and tells more
                        self._shown(recv_ns, rv, stream)
                    self._came(recv_ns, rv, stream)

    def _shown(self, recv_ns: int, rv: int, stream: str) -> None:
        """A watch showed something."""
        position = bisect_right(self._rv, rv)
        if position < len(self._rv) and rv > self._own.get(stream, 0):
            written_ns = max(self._recv_ns[position], self._watched_ns.get(stream, 0))
            if recv_ns - written_ns >= LATE_NS:
                self.written_ns[rv] = written_ns

    def _came(self, recv_ns: int, rv: int, stream: str) -> None:
        self._own[stream] = max(rv, self._own.get(stream, 0))
        if not self._rv or (rv > self._rv[-1] and recv_ns >= self._recv_ns[-1]):
            self._rv.append(rv)
            self._recv_ns.append(recv_ns)

    def forget(self, before_ns: int) -> None:
        """Let go of what was written before that time."""
        first = bisect_right(self._recv_ns, before_ns)
        del self._rv[: max(0, first - 1)], self._recv_ns[: max(0, first - 1)]
        self.written_ns = {rv: at for rv, at in self.written_ns.items() if at >= before_ns}


def _is_in(column: Any, values: Iterable[str]) -> Any:
    return pc.is_in(column.cast(pa.string()), value_set=pa.array([str(value) for value in values]))
