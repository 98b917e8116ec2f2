"""What a record tells while it grows: of its times, and of the time in which its Jobs live.

The same as of a whole trace, of the rows so far. Of its times only the latest rows are asked again;
what older ones told stands, as nothing that comes later makes a clock less far off than they prove.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from tracekit.base.coverage import Coverage
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.replay.commit_times import Timed
from tracekit.check.replay.instants import JudgedNs, RecordedNs
from tracekit.check.replay.other_clocks import OtherClock
from tracekit.check.replay.recorder_clock import Epoch
from tracekit.check.replay.reported_events import COMPONENT
from tracekit.check.replay.run_context import Outage, RunContext
from tracekit.judge.clocks import TELLING, table_on_clock, timed_of
from tracekit.judge.run_context import EventTimes, run_context_of
from tracekit.trace.format.model import CLOCKS, STATE_TYPES, TraceHeader
from tracekit.trace.reading.coverage import SeenRows
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.table_reader import in_file_order, read_held

#: After so many renewals that did not come nobody may hold the Lease any more.
_SUSPECT_NS: Final = 10 * NS_PER_S
#: Rows are asked for their times so long: streams may be late by a minute, and what tells of a
#: clock (renewals, Dates) comes several times meanwhile.
_ASKED_NS: Final = 180 * NS_PER_S


class GrowingTimes:
    """What the rows of a growing record prove of their times so far."""

    def __init__(self) -> None:
        self._rows: list[pa.Table] = []
        self._has_new_rows = False
        self._known = Timed()

    def feed(self, rows: pa.Table) -> None:
        """Take in rows with all columns, in order of arrival; each only once."""
        telling = rows.filter(_is_in(rows["stream"], TELLING))
        if telling.num_rows:
            self._rows.append(_without_text(telling))
            self._has_new_rows = True

    def of(self, header: TraceHeader) -> Timed:
        """What they prove by now."""
        if self._has_new_rows:
            self._has_new_rows = False
            table = pa.concat_tables(self._rows).unify_dictionaries()
            reader = read_held(in_file_order(table), replace(header, sealed_from=0), Path("record"))
            self._known = gone_on(self._known, timed_of(reader), *_begin(table, self._known))
            self._rows = [self._latest(table)]
        return self._known

    def forget(self, before_ns: JudgedNs) -> None:
        """Let go of what was late before that time."""
        self._known = replace(
            self._known,
            written_ns={rv: ns for rv, ns in self._known.written_ns.items() if ns >= before_ns},
            late=tuple(span for span in self._known.late if span[1] >= before_ns),
        )

    def _latest(self, table: pa.Table) -> pa.Table:
        """Those rows that are asked again."""
        times = table_on_clock(table.select(["seq", "recv_ns"]), self._known.clock)["recv_ns"]
        since_ns = (pc.max(times).as_py() or 0) - _ASKED_NS
        return table.filter(pc.fill_null(pc.greater_equal(times, since_ns), fill_value=True))


def _begin(table: pa.Table, known: Timed) -> tuple[int, int]:
    """The first row of some, and its time on the clock that is judged on."""
    first = table.select(["seq", "recv_ns"]).filter(pc.is_valid(table["recv_ns"])).slice(0, 1)
    if not first.num_rows:
        return 0, 0
    judged = table_on_clock(first, known.clock)
    return judged["seq"][0].as_py(), judged["recv_ns"][0].as_py()


def gone_on(before: Timed, later: Timed, from_seq: int, from_ns: int) -> Timed:
    """What rows prove of which the later ones were asked alone, from that row and time on."""
    if not before.clock.epochs:
        return later
    if not later.clock.epochs:
        return before
    clock = replace(
        later.clock,
        epochs=tuple(_epochs(before.clock.epochs, later.clock.epochs, from_seq)),
        servers_apart_ns=max(before.clock.servers_apart_ns, later.clock.servers_apart_ns),
        may_be_late=before.clock.may_be_late or later.clock.may_be_late,
    )
    older = {rv: at_ns for rv, at_ns in before.written_ns.items() if at_ns < from_ns}
    late = [span for span in before.late if span[0] < from_ns]
    behind_ns = [ns for ns in (before.servers_behind_ns, later.servers_behind_ns) if ns is not None]
    return Timed(
        clock,
        {**older, **later.written_ns},
        tuple(_apart([*late, *later.late])),
        min(behind_ns, default=None),
        tuple(_others(before.others, later.others)),
    )


def _epochs(before: tuple[Epoch, ...], later: tuple[Epoch, ...], from_seq: int) -> Iterator[Epoch]:
    """Those of before, the last of them gone on, and the new ones."""
    own = [epoch for epoch in before if epoch.from_seq <= from_seq] or [before[0]]
    known = {epoch.from_seq: epoch for epoch in before}
    yield from own[:-1]
    yield own[-1].gone_on(later[0])
    for epoch in later[1:]:
        same = known.get(epoch.from_seq)
        yield epoch if same is None else same.gone_on(epoch)


def _apart(
    spans: Iterable[tuple[JudgedNs, JudgedNs]],
) -> Iterator[tuple[JudgedNs, JudgedNs]]:
    """Times in order and apart."""
    current: tuple[JudgedNs, JudgedNs] | None = None
    for from_ns, until_ns in sorted(spans):
        if current is None or from_ns > current[1]:
            if current is not None:
                yield current
            current = (from_ns, until_ns)
        else:
            current = (current[0], max(current[1], until_ns))
    if current is not None:
        yield current


def _others(before: Iterable[OtherClock], later: Iterable[OtherClock]) -> Iterator[OtherClock]:
    """Each is ahead by the most that its times have proved."""
    known = {(other.kind, other.name): other for other in before}
    for other in later:
        older = known.pop((other.kind, other.name), other)
        yield replace(other, from_ns=older.from_ns, ahead_ns=max(older.ahead_ns, other.ahead_ns))
    yield from known.values()


def _without_text(table: pa.Table) -> pa.Table:
    """Rows without the objects' text; what the recorder noted of its clock is nothing else."""
    place = table.schema.get_field_index("raw")
    of = table.schema.field(place)
    texts = pc.if_else(_is_in(table["stream"], [CLOCKS]), table[place], pa.scalar(None, of.type))
    return table.set_column(place, of, texts)


def _is_in(column: Any, values: Iterable[str]) -> Any:
    return pc.is_in(column.cast(pa.string()), value_set=pa.array(sorted(values), pa.string()))


class GrowingContext:
    """What the rows of a growing record tell so far of the time in which its Jobs live."""

    def __init__(self) -> None:
        self._event_times = EventTimes()
        self._seen_rv: dict[str, int] = {}
        self._covered = SeenRows()

    def feed(self, rows: pa.Table) -> None:
        """Take in rows with all columns, in order of arrival; each only once."""
        reported = rows.filter(pc.equal(rows["component"], COMPONENT))
        self._event_times.add(reported)
        self._covered.take(rows)
        latest = rows.group_by("stream").aggregate([("rv", "max")])
        for row in latest.to_pylist():
            rv = max(row["rv_max"] or 0, self._seen_rv.get(row["stream"] or "", 0))
            self._seen_rv[row["stream"] or ""] = rv

    def forget(self, before_ns: int) -> None:
        """Let go of what was before that time and tells nothing of the present."""
        self._event_times.forget(before_ns)

    def coverage(self, header: TraceHeader, end_ns: int) -> Coverage:
        """What the record covers so far, which goes on until then."""
        return self._covered.coverage(header, end_ns)

    def of(self, reader: TraceReader, end_ns: RecordedNs, times: Timed) -> RunContext:
        """The context, with the rows of a reader that concern the record as a whole.

        A lease that was not renewed for some periods has perhaps no holder any more: nothing
        follows from its silence, whether it has run out or not.
        """
        context = run_context_of(reader, times, self.coverage(reader.header, end_ns))
        restarts, until_ns = context.restarts, times.clock.end_ns(end_ns)
        renewed = _renewed_ns(reader)
        if renewed is not None and until_ns - times.clock.judged_ns(renewed) > _SUSPECT_NS:
            why = "the controller manager does not renew its lease"
            renewed_ns = times.clock.judged_ns(renewed)
            restarts = tuple(r for r in restarts if r.from_ns < renewed_ns)
            restarts = (*restarts, Outage(renewed_ns, until_ns, why))
        event_times = self._event_times.on_clock(times.clock)
        return replace(
            context,
            end_ns=until_ns,
            restarts=restarts,
            refusing=event_times.refusing,
            unposted=event_times.unposted(restarts, until_ns),
            seen_rv=dict(self._seen_rv),
        )


def _renewed_ns(reader: TraceReader) -> RecordedNs | None:
    """When the newest revision of the controller manager's lease was first received."""
    names = ("recv_ns", "name", "rv")
    rows = reader.table(names, streams=["leases"], types=sorted(STATE_TYPES)).to_pylist()
    rvs = [
        (row["rv"] or 0, -row["recv_ns"])
        for row in rows
        if row["name"] == CONTROLLER_MANAGER_LEASE and row["recv_ns"] is not None
    ]
    return RecordedNs(-max(rvs)[1]) if rvs else None
