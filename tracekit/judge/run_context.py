"""What a trace as a whole tells a replay: its end, its gaps, the controller manager's restarts."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.base.coverage import Coverage
from tracekit.base.kube.events import COMBINED, MAX_QUEUED, REFUSED_CALLS
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE, CONTROLLER_MANAGER_LEASE_NAMESPACE
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.replay.commit_times import Timed
from tracekit.check.replay.instants import RecordedNs
from tracekit.check.replay.other_clocks import KUBELET, TELLING_NS
from tracekit.check.replay.recorder_clock import RecorderClock
from tracekit.check.replay.reported_events import COMPONENT
from tracekit.check.replay.run_context import Outage, Refusing, RunContext, Unposted
from tracekit.judge.clocks import AT_A_TIME, coverage_on_clock, table_on_clock, timed_of
from tracekit.judge.fact_cache import cached_coverage, cached_fact
from tracekit.judge.holes import holes_of, is_whole, not_seen
from tracekit.trace.format.model import RECEIVED_BEFORE_NS, RowType, StreamSummary
from tracekit.trace.reading.coverage import coverage_of
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.throttle import throttle_of

#: Renewals come every --leader-elect-retry-period (2 s); a longer pause may be a change of leader.
_RETRY_NS = 3 * NS_PER_S
_REFUSED = 400
#: What of an Event is looked at.
TOLD = ("seq", "type", "recv_ns", "last_ns", "count", "reason", "message", "namespace")
_FULL = f"{MAX_QUEUED:,} Events waited to be posted: those that came then were dropped"
#: How the API server says that a webhook or an admission policy refused, or could not be asked.
_BY_ADMISSION = ("admission webhook", "failed calling webhook", "ValidatingAdmissionPolicy")
#: What a header says where not all keys of the controllers were recorded.
_PARTIAL = ("namespaces", "selector", "left_out")


def end_of(streams: Iterable[StreamSummary]) -> int:
    """When the last row of a trace was received, in ns; 0 without rows."""
    return max((stream.last_ns for stream in streams if stream.last_ns is not None), default=0)


def whole_context(reader: TraceReader) -> RunContext:
    """What a trace as a whole tells, with its times; kept on this machine once it was read."""

    def made() -> RunContext:
        return run_context_of(reader, timed_of(reader), cached_coverage(reader))

    return cached_fact(reader.snapshot, "run-context", RunContext, made)


def run_context_of(
    reader: TraceReader, times: Timed | None = None, coverage: Coverage | None = None
) -> RunContext:
    """Read the time bounds, the leases, the coverage and the gaps of a trace.

    `times`: what its rows prove of its times; None: the recorder's clock is taken as it is.
    `coverage`: that of the record, where it has more rows than the reader.
    """
    times = times or Timed()
    clock, behind_ns = times.clock, times.servers_behind_ns or 0
    streams = reader.streams()
    coverage = coverage_on_clock(coverage_of(reader) if coverage is None else coverage, clock)
    recorded_gaps = (
        Outage(
            clock.judged_ns(RecordedNs(gap.from_ns)) if gap.from_ns else 0,
            clock.judged_ns(RecordedNs(gap.until_ns)) if gap.until_ns else 1 << 62,
            f"gap in {gap.stream}: {gap.reason}",
            gap.stream or "",
        )
        for gap in reader.gaps()
    )
    gaps = (*recorded_gaps, *holes_of(coverage))
    end_ns = clock.end_ns(RecordedNs(end_of(streams)))
    restarts = (*_restarts(reader, end_ns, clock), *_successions(reader))
    reported = EventTimes()
    for rows in reader.batches((*TOLD, "component"), streams=["events"]):
        events = table_on_clock(rows, clock)
        reported.add(events.filter(pc.equal(events["component"], COMPONENT)))
    missing = not_seen(coverage) | not_recorded(reader.header.streams)
    partial = any(reader.header.scope.get(part) for part in _PARTIAL)
    return RunContext(
        end_ns,
        restarts,
        gaps,
        _namespaces_ending(reader),
        missing,
        reported.refusing,
        reported.unposted(restarts, end_ns),
        str(reader.header.scope.get("times") or ""),
        str(reader.header.scope.get("unlisted") or ""),
        # Silence is proof of idleness only of a process that is known to have lived.
        whole=not partial and is_whole(coverage),
        quiet=_quiet(reader.header.scope.get("quiet"), clock),
        throttle=throttle_of(reader.header.controller_flags),
        seen_rv={stream.stream: stream.last_rv or 0 for stream in streams},
        written_ns=times.written_ns,
        late=times.late,
        clock=clock,
        kubelets_ahead_ns={
            other.name: other.ahead_ns
            for other in times.others
            if other.kind == KUBELET and abs(other.ahead_ns) > TELLING_NS
        },
        servers_behind_ns=behind_ns if abs(behind_ns) > TELLING_NS else 0,
        coverage=coverage,
    )


def _quiet(reported: Any, clock: RecorderClock) -> dict[str, tuple[tuple[int, int], ...]]:
    """Times that a header tells of each controller, in order; what is no time is left out."""
    return {
        str(controller): tuple(
            sorted(
                (clock.judged_ns(pair[0]), clock.judged_ns(pair[1]))
                for pair in (pairs if isinstance(pairs, list) else ())
                if isinstance(pair, list) and [type(at) for at in pair] == [int, int]
            )
        )
        for controller, pairs in (
            reported if isinstance(reported, dict) else {"job": reported}
        ).items()
    }


def not_recorded(streams: Mapping[str, Any]) -> dict[str, str]:
    """Streams of which a trace says that it does not have them, and why."""
    return {
        name: str(about.get("reason") or "not recorded")
        for name, about in streams.items()
        if isinstance(about, Mapping) and about.get("recorded") is False
    }


def _successions(reader: TraceReader) -> tuple[Outage, ...]:
    """Times between the last renewal of one leader and the Event that another tells itself by.

    For logs that name the requests for the lease and the Event, without their bodies.
    """
    rows = reader.table(
        ("recv_ns", "stream", "name", "verb", "code"),
        streams=["leases", "events"],
        types=[RowType.CALL],
        namespace=CONTROLLER_MANAGER_LEASE_NAMESPACE,
    ).to_pylist()
    found: list[Outage] = []
    renewed_ns: int | None = None
    since_ns: int | None = None  # when the renewals were last interrupted
    for row in sorted(rows, key=lambda row: row["recv_ns"]):
        at_ns, name = row["recv_ns"], row["name"] or ""
        if (row["code"] or 0) >= _REFUSED:
            continue
        if row["stream"] == "leases" and name == CONTROLLER_MANAGER_LEASE:
            if renewed_ns is not None and at_ns - renewed_ns > _RETRY_NS:
                since_ns = renewed_ns
            renewed_ns = at_ns
        elif (
            row["verb"] == "create"
            and name.startswith(f"{CONTROLLER_MANAGER_LEASE}.")
            and since_ns is not None
        ):
            why = "the controller manager's lease was not renewed, then one said that it leads"
            found.append(Outage(since_ns, at_ns, why))
            since_ns = None
    return tuple(found)


def _restarts(reader: TraceReader, end_ns: int, clock: RecorderClock) -> tuple[Outage, ...]:
    """Times in which the lease of the controller manager changed hands, or ran out at the end."""
    columns = ("seq", "recv_ns", "name", "holder", "rv", "lease_duration_s")
    leases = reader.table(columns, streams=["leases"], namespace=CONTROLLER_MANAGER_LEASE_NAMESPACE)
    leases = table_on_clock(leases, clock)
    rows = leases.filter(pc.equal(leases["name"], CONTROLLER_MANAGER_LEASE)).to_pylist()
    found: list[Outage] = []
    before: dict[str, object] | None = None
    for row in rows:
        if not row["holder"] or row["recv_ns"] is None:
            continue
        if before is not None and before["rv"] == row["rv"]:
            continue  # listed again, not renewed
        if before is not None and before["holder"] != row["holder"]:
            found.append(
                Outage(
                    int(str(before["recv_ns"])),
                    row["recv_ns"],
                    f"the controller manager {before['holder']} was followed by {row['holder']}",
                    until_rv=row["rv"] or 0,
                )
            )
        before = row
    # After a gap the lease was listed, so that only one without an end leaves it open.
    lost = any(gap.stream == "leases" and gap.until_ns is None for gap in reader.gaps())
    if before is not None and not lost:
        renewed_ns, holder = int(str(before["recv_ns"])), before["holder"]
        lasts_ns = int(str(before["lease_duration_s"] or 0)) * NS_PER_S
        if lasts_ns and end_ns - renewed_ns > lasts_ns:
            why = f"the controller manager {holder} did not renew its lease any more"
            found.append(Outage(renewed_ns, end_ns, why))
    return tuple(found)


def _renewals(reader: TraceReader) -> Iterator[dict[str, Any]]:
    """The revisions of the controller manager's lease, in order of arrival."""
    columns = ("seq", "recv_ns", "name", "holder", "rv", "lease_duration_s")
    own = [
        leases.filter(pc.equal(leases["name"], CONTROLLER_MANAGER_LEASE))
        for leases in reader.batches(
            columns, streams=["leases"], namespace=CONTROLLER_MANAGER_LEASE_NAMESPACE
        )
    ]
    if own:
        for some in pa.concat_tables(own).sort_by("seq").to_batches(AT_A_TIME):
            yield from some.to_pylist()


class EventTimes:
    """What the Job controller's Events tell of the time, in few bytes for each."""

    def __init__(self) -> None:
        #: Namespaces in which admission refuses writes: where the first such Event is, its words.
        self._refusing: dict[str, tuple[int, str]] = {}
        self._refused_ns: dict[str, int] = {}  # when the last of these came
        self._recv_ns, self._last_ns = array("q"), array("q")
        self._listed = array("b")  # whether those were: posted long before they were received
        self._others_ns = array("q")  # when those were received that do not tell when handed over

    def add(self, events: pa.Table) -> None:
        """Take in Events of the Job controller, with the columns of `TOLD`.

        Where it is not known when one was received, nothing of the time follows from it.
        """
        messages = pc.fill_null(events["message"].cast(pa.string()), "")
        refused = pc.is_in(events["reason"], value_set=pa.array(REFUSED_CALLS, pa.string()))
        for namespace, seq, recv_ns, message in zip(
            *(events[name].filter(refused).to_pylist() for name in ("namespace", "seq", "recv_ns")),
            messages.filter(refused).to_pylist(),
            strict=True,
        ):
            if any(part in message for part in _BY_ADMISSION):
                reported = (seq, f"admission refuses writes here ({message[:120]})")
                self._refusing[namespace] = min(reported, self._refusing.get(namespace, reported))
                last_ns = RECEIVED_BEFORE_NS if recv_ns is None else recv_ns
                self._refused_ns[namespace] = max(last_ns, self._refused_ns.get(namespace, 0))
        timed = pc.is_valid(events["recv_ns"])
        events, messages = events.filter(timed), messages.filter(timed)
        once = pc.fill_null(pc.equal(events["count"], 1), fill_value=False)
        whole = pc.invert(pc.starts_with(messages, COMBINED))
        posted = pc.and_(pc.and_(once, whole), pc.is_valid(events["last_ns"]))
        self._recv_ns.extend(events["recv_ns"].filter(posted).to_pylist())
        self._last_ns.extend(events["last_ns"].filter(posted).to_pylist())
        listed = pc.equal(events["type"].cast(pa.string()), RowType.LIST.value)
        self._listed.extend(listed.filter(posted).cast(pa.int8()).to_pylist())
        self._others_ns.extend(events["recv_ns"].filter(pc.invert(posted)).to_pylist())

    def on_clock(self, clock: RecorderClock) -> EventTimes:
        """The same with receive times on the clock that is judged on."""
        if clock.is_right:
            return self
        made = EventTimes()
        made._refusing, made._last_ns = self._refusing, self._last_ns
        made._refused_ns = {
            namespace: clock.judged_ns(RecordedNs(at_ns))
            for namespace, at_ns in self._refused_ns.items()
        }
        made._listed = self._listed
        made._recv_ns = array("q", map(clock.judged_ns, map(RecordedNs, self._recv_ns)))
        made._others_ns = array("q", map(clock.judged_ns, map(RecordedNs, self._others_ns)))
        return made

    @property
    def refusing(self) -> dict[str, Refusing]:
        """Namespaces in which admission refuses writes."""
        return {
            namespace: Refusing(why, self._refused_ns[namespace])
            for namespace, (_, why) in self._refusing.items()
        }

    def forget(self, before_ns: int) -> None:
        """Let go of what was received before; of it only the latest Event is remembered."""
        posted = self._posted()
        old = max((one for one in posted if one[0] < before_ns), key=itemgetter(1), default=None)
        kept = [*([old] if old else []), *(one for one in posted if one[0] >= before_ns)]
        self._recv_ns = array("q", (at_ns for at_ns, _, _ in kept))
        self._last_ns = array("q", (last_ns for _, last_ns, _ in kept))
        self._listed = array("b", (listed for _, _, listed in kept))
        self._others_ns = array("q", (at_ns for at_ns in self._others_ns if at_ns >= before_ns))

    def _posted(self) -> list[tuple[int, int, int]]:
        """When each was received and handed over, and whether it was listed; by arrival."""
        return sorted(zip(self._recv_ns, self._last_ns, self._listed, strict=True))

    def unposted(self, restarts: Collection[Outage], end_ns: int) -> tuple[Unposted, ...]:
        """Times from the last Event that a process of the controller posted to its end.

        One goroutine posts them in the order in which they were handed to it: what it was given
        after the last one that came through may have died with it. Counted and combined ones carry
        the time at which they were posted, and tell nothing. What was given after a process was
        seen to lead for the last time may be its successor's. How late Events are is told beside
        the fastest, so that nothing hangs on the clocks; their times count in whole seconds.
        """
        found: list[Unposted] = []
        begun_ns = 0
        posted = self._posted()
        took_ns = [at_ns - last_ns for at_ns, last_ns, listed in posted if not listed]
        fastest_ns = min(took_ns, default=0)
        for latest_ns, at_ns, why in (
            *((r.from_ns, r.until_ns, f"{r.why}: its last Events may be lost") for r in restarts),
            (end_ns, end_ns, "the record ends: its last Events may not have been posted yet"),
        ):
            first = bisect_left(posted, (begun_ns,))
            until = bisect_left(posted, (at_ns + 1,))
            own = [event for event in posted[first:until] if event[1] <= latest_ns]
            from_ns = max((last_ns for _, last_ns, _ in own), default=begun_ns)
            late_ns = own[-1][0] - own[-1][1] - fastest_ns if own and not own[-1][2] else 0
            found.append(Unposted(from_ns, at_ns, why, behind=late_ns > NS_PER_S))
            begun_ns = at_ns
        return (*found, *self._full())

    def _full(self) -> Iterator[Unposted]:
        """Times in which so many Events waited to be posted that others were dropped.

        Events are posted in the order in which they were handed over. One that does not tell when
        that was came after the one posted before it; one that is older than what had been posted
        was posted long before, and is only listed again. Those that the spam filter drops are not
        in a record, and not counted here.
        """
        given, gone = array("q"), array("q")  # when Events were handed over, and posted
        known_ns = 0
        for recv_ns, batch in groupby(self._by_arrival(), key=itemgetter(0)):
            handed = [known_ns if last_ns is None else last_ns for _, last_ns in batch]
            for given_ns in handed:
                if given_ns >= known_ns - NS_PER_S:  # they count in whole seconds
                    given.append(given_ns)
                    gone.append(recv_ns)
            known_ns = max(known_ns, *handed)
        changes = merge(
            ((at_ns, 1) for (at_ns,) in _in_order(_numbers(given))), ((at_ns, -1) for at_ns in gone)
        )
        waiting, since_ns, until_ns = 0, None, 0
        for at_ns, change in changes:
            if waiting >= MAX_QUEUED:
                until_ns = at_ns
            elif since_ns is not None and at_ns > until_ns + NS_PER_S:
                yield Unposted(since_ns, until_ns, _FULL, behind=True)
                since_ns = None
            waiting += change
            if waiting >= MAX_QUEUED and since_ns is None:
                since_ns = at_ns
        if since_ns is not None:
            yield Unposted(since_ns, until_ns, _FULL, behind=True)

    def _by_arrival(self) -> Iterator[tuple[int, int | None]]:
        """When each Event was received, in order, and when it was handed over, if it tells."""
        unknown = pa.nulls(len(self._others_ns), pa.int64())
        return _in_order(
            pa.concat_arrays([_numbers(self._recv_ns), _numbers(self._others_ns)]),
            pa.concat_arrays([_numbers(self._last_ns), unknown]),
        )


def _numbers(values: array[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def _in_order(*columns: pa.Array) -> Iterator[tuple[Any, ...]]:
    """The rows of some columns by the first, of which so many are Python objects at a time."""
    names = [str(number) for number in range(len(columns))]
    for some in pa.table([*columns], names=names).sort_by("0").to_batches(AT_A_TIME):
        yield from zip(*(column.to_pylist() for column in some.columns), strict=True)


def _namespaces_ending(reader: TraceReader) -> dict[str, int]:
    """Namespaces that were being deleted, with the revision that first shows it."""
    rows = reader.table(("name", "rv", "deleted_ns"), streams=["namespaces"]).to_pylist()
    found: dict[str, int] = {}
    for row in rows:
        if row["deleted_ns"] is not None and row["rv"] is not None and row["name"] is not None:
            found[row["name"]] = min(row["rv"], found.get(row["name"], row["rv"]))
    return found
