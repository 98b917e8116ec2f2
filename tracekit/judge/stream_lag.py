"""How far one stream of a record was behind the others, as the order of revisions tells.

All kinds share one etcd, so that what has a lower resourceVersion was written before. Where a watch
shows a pod after another one has shown a newer Job, the pod had been written by then: its row came
late, by so much. That needs no clock but the recorder's own, and no time that an object carries.

Only what comes in the order of its own stream is late: that one row lies behind newer ones of its
stream is no lag of a watch.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.trace.format.model import STATE_TYPES, RowType
from tracekit.trace.reading.reader import TraceReader

#: Less is nothing to tell of: streams come side by side.
LATE_NS: Final = NS_PER_S
#: So finely times are compared at first.
_TICKS: Final = 4
_TICK_NS: Final = LATE_NS // _TICKS
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
            for recv_ns, rv, stream, kind, told_ns, gap_until_ns in zip(*columns, strict=True):
                if kind == RowType.GAP:
                    self._watched_ns[stream] = gap_until_ns or 0
                elif rv is not None and recv_ns is not None:
                    if kind == RowType.LIST:
                        self._watched_ns[stream] = recv_ns
                    elif told_ns is None:  # else the source is no watch, and tells more
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


def written_ns_of(reader: TraceReader) -> Mapping[int, int]:
    """When that was written which its stream showed late, by resourceVersion.

    Ticks are compared first: a record whose streams keep up is not looked at row by row.
    """
    lag = StreamLag()
    for from_ns, until_ns in _suspect(reader):
        found = list(reader.batches(COLUMNS, streams=STREAMS, from_ns=from_ns, until_ns=until_ns))
        if found:
            last = max(pc.max(rows["seq"]).as_py() for rows in found)
            gaps = reader.batches(COLUMNS, streams=STREAMS, types=[RowType.GAP], last_seq=last)
            lag.feed(pa.concat_tables([*gaps, *found]))
    return lag.written_ns


def _suspect(reader: TraceReader) -> Iterator[tuple[int, int]]:
    """Times in which a stream may have been late, from when what came late may have been written.

    In order, and none of which touches another.
    """
    ticks, oldest, newest = _by_tick(reader)
    begun, reached = array("q"), array("q")  # when the newest revision of all came
    from_tick = until_tick = -1
    for tick, old, new in zip(ticks, oldest, newest, strict=True):
        if not reached or new > reached[-1]:
            begun.append(tick)
            reached.append(new)
        position = bisect_right(reached, old)
        if position == len(begun) or tick - begun[position] < _TICKS:
            continue
        written_tick = begun[position]
        if from_tick >= 0 and written_tick > until_tick:
            yield from_tick * _TICK_NS, (until_tick + 1) * _TICK_NS
            from_tick = -1
        from_tick = written_tick if from_tick < 0 else min(from_tick, written_tick)
        until_tick = tick
    if from_tick >= 0:
        yield from_tick * _TICK_NS, (until_tick + 1) * _TICK_NS


def _by_tick(reader: TraceReader) -> tuple[array[int], array[int], array[int]]:
    """The ticks in which something came, with the oldest and the newest revision of each."""
    found = []
    for rows in reader.batches(("recv_ns", "rv"), streams=STREAMS, types=sorted(STATE_TYPES)):
        tick = pc.divide(rows["recv_ns"], _TICK_NS)
        each = pa.table({"tick": tick, "old": rows["rv"], "new": rows["rv"]})
        found.append(each.group_by("tick").aggregate([("old", "min"), ("new", "max")]))
    ticks, oldest, newest = array("q"), array("q"), array("q")
    if found:
        aggregates = [("old_min", "min"), ("new_max", "max")]
        each = pa.concat_tables(found).group_by("tick").aggregate(aggregates)
        each = each.drop_null().sort_by("tick")
        for values, name in ((ticks, "tick"), (oldest, "old_min_min"), (newest, "new_max_max")):
            for chunk in each[name].chunks:
                values.extend(chunk.to_pylist())
    return ticks, oldest, newest


def _is_in(column: Any, values: Iterable[str]) -> Any:
    return pc.is_in(column.cast(pa.string()), value_set=pa.array([str(value) for value in values]))
