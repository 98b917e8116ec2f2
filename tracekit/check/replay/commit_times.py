"""When revisions were committed, and how far the recorder's clock was off, as the record proves.

A receive time is an upper bound of a commit, by the recorder's clock, and nothing else. But the
revisions of one store are totally ordered, and most objects carry times that an API server set
while it handled the write, before the commit. So in the order of revisions:

    hi(rv) = min over rv' >= rv of received(rv')        the recorder's clock
    lo(rv) = max over rv' <= rv of server_time(rv')     an API server's clock, in whole seconds

Everything is judged on one clock: that of the controller manager, where it renewed a Lease, else
the API server's. How far the recorder's is ahead of it is proven from one side, since nothing comes
before it was written; the other side is an assumption: that something came promptly.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.replay.clock_notes import ClockNote, Dated, dated, linked, steps
from tracekit.check.replay.instants import JudgedNs, RecordedNs, ServerNs
from tracekit.check.replay.other_clocks import (
    KUBELET,
    MANAGER,
    STATUSES,
    TELLING_NS,
    OtherClock,
    WrittenTimes,
    least,
)
from tracekit.check.replay.recorder_clock import (
    BY_DATES,
    BY_LEASE,
    BY_SERVERS,
    BY_STATUSES,
    BY_STEP,
    BY_USER,
    Epoch,
    RecorderClock,
)
from tracekit.check.replay.servers_apart import servers_apart_ns

#: A row counts as late from then on: streams come side by side.
LATE_NS: Final = NS_PER_S
#: From then on the times around it are known less closely.
_TOLD_NS: Final = LATE_NS // 2
#: A stream that was late twice within so long may have been late between. A choice: rows come
#: seconds apart where little happens, and tell nothing of the time between. With more, more of what
#: hangs on times is unknowable; with less, a stream may seem prompt that only showed nothing.
_NEAR_NS: Final = 10 * NS_PER_S
#: What one clock goes back by at least, if it was set: streams of one recorder interleave.
_SET_BACK_NS: Final = NS_PER_S // 10
#: What it goes ahead by at least, if it was set. A choice, above what API servers of one cluster
#: and streams that are late differ by: a smaller step is told by the recorder's own notes alone.
_SET_AHEAD_NS: Final = 5 * NS_PER_S
#: So many rows after it agree that it was set back.
_AGREEING: Final = 3
#: An API server's times are whole seconds.
_UNIT_NS: Final = NS_PER_S
#: From the time that a request sets to its commit, as far as other times do not tell otherwise. A
#: choice: a request that took longer dates what came late too early by the rest, never what was
#: prompt (`hi` bounds it). No record has both times of one write.
HANDLING_NS: Final = NS_PER_S // 4
#: From the time in a renewed Lease to its commit. A choice, as above, and a unit more: the manager
#: sets it before it sends, and a busy machine may take a second for that.
_RENEWING_NS: Final = _UNIT_NS + HANDLING_NS
#: So many dated rows, or renewals of a Lease, tell how far a clock is off.
_DATED_MIN: Final = 8
_RENEWALS_MIN: Final = 3
#: Clocks of API servers that differ by more tell nothing.
_SKEW_MAX_NS: Final = 600 * NS_PER_S


#: So wide is the envelope of what came late, where the API server's times tell of it: what is less
#: late is not told, their unit, and a request's handling.
WIDTH_NS: Final = LATE_NS + _UNIT_NS + HANDLING_NS


class Timed(Struct, frozen=True):
    """What a record tells of its times."""

    clock: RecorderClock = RecorderClock()
    #: By resourceVersion, when that was written at the latest which its stream showed late.
    written_ns: dict[int, JudgedNs] = {}
    #: Times in which a stream was late, in order and apart: there a write's time is known to within
    #: `WIDTH_NS`.
    late: tuple[tuple[JudgedNs, JudgedNs], ...] = ()
    #: How far API servers' clocks are behind the one that is judged on; None: nothing tells.
    servers_behind_ns: int | None = None
    #: Those of kubelets and of controller managers.
    others: tuple[OtherClock, ...] = ()
    #: By epoch, what the Dates of answers say of the recorder's clock and the API server's.
    dated: tuple[Dated | None, ...] = ()


class Arrival(NamedTuple):
    """One row of a store, as it came."""

    seq: int
    rv: int
    recv_ns: RecordedNs
    stream: str
    watched: bool  # else it was listed
    server_ns: ServerNs = ServerNs(0)  # the newest time in it that an API server set; 0: none
    own: bool = False  # whether this write set it: the object had an older one, or is new
    created_ns: ServerNs = ServerNs(0)  # of an object that it shows for the first time
    renewed_ns: int = 0  # the controller manager's own time in its Lease
    writer: str = ""  # whose clock another time is of: the Lease's holder, the pod's node
    written_ns: int = 0  # that time, if this row shows it first


@dataclass
class Arrivals:
    """The rows of one store in order of arrival, some 60 bytes for each."""

    seq: array[int] = field(default_factory=lambda: array("q"))
    rv: array[int] = field(default_factory=lambda: array("q"))
    recv_ns: array[int] = field(default_factory=lambda: array("q"))
    server_ns: array[int] = field(default_factory=lambda: array("q"))
    created_ns: array[int] = field(default_factory=lambda: array("q"))
    renewed_ns: array[int] = field(default_factory=lambda: array("q"))
    stream: array[int] = field(default_factory=lambda: array("b"))
    watched: bytearray = field(default_factory=bytearray)
    own: bytearray = field(default_factory=bytearray)
    #: Whether each contradicts all around it.
    contradicting: bytearray = field(default_factory=bytearray)
    others: WrittenTimes = field(default_factory=WrittenTimes)
    streams: list[str] = field(default_factory=list)
    #: What the recorder noted of its own clock, in order.
    notes: list[ClockNote] = field(default_factory=list)
    #: Since when each stream was watched: what came unseen before is no lag.
    listed: list[tuple[int, str, RecordedNs]] = field(default_factory=list)

    def add(self, row: Arrival) -> None:
        """Take in one row."""
        columns: Any = ((value,) for value in row)
        self.extend(*columns)

    def extend(
        self,
        seq: Sequence[int],
        rv: Sequence[int],
        recv_ns: Sequence[int],
        stream: Sequence[str],
        watched: Sequence[bool],
        server_ns: Sequence[int],
        own: Sequence[int],
        created_ns: Sequence[int],
        renewed_ns: Sequence[int],
        writer: Sequence[str],
        written_ns: Sequence[int],
    ) -> None:
        """Take in rows; the columns are the fields of `Arrival`."""
        others = zip(watched, renewed_ns, stream, writer, written_ns, strict=True)
        for row, (was_watched, is_lease, of, name, at_ns) in enumerate(others, len(self)):
            if at_ns and was_watched:
                kind = MANAGER if is_lease else STATUSES if of == "jobs" else KUBELET
                self.others.add(row, kind, name, at_ns)
        self.streams += [name for name in dict.fromkeys(stream) if name not in self.streams]
        numbers = {name: number for number, name in enumerate(self.streams)}
        self.seq.extend(seq)
        self.rv.extend(rv)
        self.recv_ns.extend(recv_ns)
        self.server_ns.extend(map(max, server_ns, created_ns))
        self.created_ns.extend(created_ns)
        self.renewed_ns.extend(renewed_ns)
        self.stream.extend(map(numbers.__getitem__, stream))
        self.watched.extend(watched)
        self.own.extend(bool(o) or at_ns > 0 for o, at_ns in zip(own, created_ns, strict=True))
        self.contradicting.extend(bytes(len(seq)))

    def interrupted(self, seq: int, stream: str, until_ns: RecordedNs) -> None:
        """A gap of a stream, and when it ended by the recorder's clock."""
        self.listed.append((seq, stream, until_ns))

    def __len__(self) -> int:
        return len(self.rv)


def timed(rows: Arrivals, compared: Sequence[str], ahead_ns: int | None = None) -> Timed:
    """What the rows prove of the recorder's clock, and what came late of the compared streams.

    `ahead_ns`: how far the clock was ahead of the one that is judged on when the record began,
    where somebody knows. Where it was set meanwhile, the rows tell by how much.
    """
    noted = steps(rows.seq, rows.recv_ns, rows.notes)
    back = [*sorted({0, *_set_back(rows), *noted}), len(rows)]
    firsts = [
        first for each, end in pairwise(back) for first in (each, *_set_ahead(rows, each, end))
    ]
    parts = [(first, end) for first, end in pairwise([*firsts, len(rows)]) if first < end]
    of_servers = [_ahead_of_servers(rows, first, end) for first, end in parts]
    by_rv = sorted(range(len(rows)), key=rows.rv.__getitem__)
    in_parts = _in_parts(by_rv, [first for first, _ in parts])
    for order, api in zip(in_parts, of_servers, strict=True):
        _without_contradicting(rows, order, api)
    apart_ns = servers_apart_ns(by_rv, rows.server_ns, rows.created_ns)
    if apart_ns > _SKEW_MAX_NS:
        return Timed()
    epochs, api_ns = list[Epoch](), list[int | None]()
    statuses = rows.others.of(STATUSES)
    set_ns = [
        sum(note.step_ns for note in noted[first]) if first in noted else None for first, _ in parts
    ]
    answers = linked([_dated(rows, part, noted) for part in parts], set_ns[1:])
    for part, order, api, said, step_ns in zip(
        parts, in_parts, of_servers, answers, set_ns, strict=True
    ):
        own_ns = None if api is None else api + apart_ns
        if said is not None and not apart_ns:
            own_ns = said.nearest(own_ns)
        of = _Ahead(
            _ahead_of_manager(rows, order),
            own_ns,
            _ahead_by_statuses(rows, order, statuses),
            apart_ns,
            by_date=said is not None and not apart_ns,
        )
        before = epochs[-1] if epochs else None
        epochs.append(_epoch_of(rows, part, of, before, step_ns))
        api_ns.append(own_ns)
    if ahead_ns is not None:
        epochs = _said(epochs, ahead_ns)
    set_ahead = len(parts) > len(back) - 1
    clock = RecorderClock(tuple(epochs), apart_ns, may_be_late=set_ahead and None in answers)
    ahead_of = zip(api_ns, epochs, strict=True)
    behind_ns = min((ns - e.ahead_ns for ns, e in ahead_of if ns is not None), default=None)
    shown_ns = _on_clock(rows, clock)
    written_ns, spans = _late(rows, by_rv, clock, shown_ns, compared, behind_ns)
    others = tuple(rows.others.clocks(_committed(rows, by_rv, shown_ns)))
    return Timed(clock, written_ns, tuple(_merged(spans)), behind_ns, others, tuple(answers))


def _dated(
    rows: Arrivals, part: tuple[int, int], noted: Mapping[int, Sequence[ClockNote]]
) -> Dated | None:
    """What the Dates of answers tell of a part of the record.

    It begins with the note of a step, which its first row may be long after.
    """
    first, end = part
    from_seq = rows.seq[first] if first else 0
    until_seq = rows.seq[end] if end < len(rows) else 1 << 62
    if first in noted:
        from_seq = noted[first][-1].seq
    if end in noted:
        until_seq = noted[end][0].seq
    return dated(rows.notes, from_seq, until_seq)


def _said(epochs: Sequence[Epoch], ahead_ns: int) -> list[Epoch]:
    """The same, of which the first is as far ahead as somebody says."""
    off_ns = ahead_ns - epochs[0].ahead_ns if epochs else 0
    return [replace(epoch, ahead_ns=epoch.ahead_ns + off_ns, evidence=BY_USER) for epoch in epochs]


def _committed(rows: Arrivals, by_rv: Sequence[int], shown_ns: array[int]) -> array[int]:
    """By row, when it had been written at the latest; `shown_ns`: when it came."""
    result, contradicting = shown_ns[:], rows.contradicting
    hi_ns = 1 << 62
    for row in reversed(by_rv):
        if result[row] > hi_ns:
            result[row] = hi_ns
        elif not contradicting[row]:
            hi_ns = result[row]
    return result


def _in_parts(by_rv: Sequence[int], firsts: Sequence[int]) -> list[list[int]]:
    """The rows of each part, of which the first rows are given, by revision."""
    if len(firsts) == 1:
        return [[*by_rv]]
    found: list[list[int]] = [[] for _ in firsts]
    for row in by_rv:
        found[bisect_right(firsts, row) - 1].append(row)
    return found


def _without_contradicting(rows: Arrivals, order: Sequence[int], api_ns: int | None) -> None:
    """Note what came long before its own time, or that of an older revision.

    One of both contradicts all around it. `order`: the rows of one epoch by revision.
    """
    if api_ns is None:
        return
    newest_ns = 0
    recv_ns, servers_ns = rows.recv_ns, rows.server_ns
    for row in order:
        until_ns = recv_ns[row] - api_ns + _UNIT_NS
        server_ns = servers_ns[row]
        if server_ns > until_ns:
            servers_ns[row] = rows.created_ns[row] = 0
        elif newest_ns <= until_ns:
            newest_ns = max(newest_ns, server_ns)
            continue
        rows.contradicting[row] = 1


def _set_back(rows: Arrivals) -> Iterator[int]:
    """The rows from which on the recorder's clock had been set back.

    What follows was written later all the same: streams that are laid end to end are no clock's.
    """
    recv_ns = rows.recv_ns
    for row in range(1, len(rows)):
        before_ns = recv_ns[row - 1] - _SET_BACK_NS
        if recv_ns[row] < before_ns:
            after = slice(row, row + _AGREEING)
            if max(recv_ns[after]) < before_ns and max(rows.rv[after]) > rows.rv[row - 1]:
                yield row


def _set_ahead(rows: Arrivals, first: int, end: int) -> Iterator[int]:
    """The rows from which on the recorder's clock had been set ahead, between two others.

    All that came since is older than it was before, whatever stream it is of.
    """
    dated = [
        row for row in range(first, end)
        if rows.own[row] and rows.watched[row] and rows.server_ns[row]
    ]  # fmt: skip
    off_ns = [rows.recv_ns[row] - rows.server_ns[row] for row in dated]
    since = 0
    while len(dated) - since >= 2 * _DATED_MIN:
        limit_ns = min(off_ns[since:]) + _SET_AHEAD_NS
        before = max(at for at in range(since, len(dated)) if off_ns[at] < limit_ns)
        after = dated[before + 1 :]
        if len(after) < _DATED_MIN or len({rows.stream[row] for row in after}) == 1:
            return
        jump = range(dated[before] + 1, after[0] + 1)
        yield max(jump, key=lambda row: rows.recv_ns[row] - rows.recv_ns[row - 1])
        since = before + 1


def _epoch(rows: Arrivals, first: int, end: int, ahead_ns: int, evidence: str) -> Epoch:
    times = rows.recv_ns[first:end]
    span = RecordedNs(min(times)), RecordedNs(max(times))
    return Epoch(rows.seq[first], *span, ahead_ns, evidence)


class _Ahead(NamedTuple):
    """How far the recorder's clock was ahead of others in a part of the record."""

    of_manager_ns: int | None
    of_servers_ns: int | None  # of the one whose clock is farthest behind
    by_statuses_ns: int | None  # of the manager's, as these tell it
    apart_ns: int  # of the servers' clocks
    by_date: bool  # whether a Date tells it, too

    @property
    def differing_ns(self) -> int | None:
        """Of the manager's clock, where the statuses tell that it is not the API server's."""
        by_status_ns = self.by_statuses_ns
        if self.of_servers_ns is None or by_status_ns is None:
            return by_status_ns
        least_ns = self.of_servers_ns - self.apart_ns
        nearest_ns = min(max(by_status_ns, least_ns), self.of_servers_ns)
        known = self.apart_ns or abs(by_status_ns - nearest_ns) > TELLING_NS
        return by_status_ns if known else None


def _epoch_of(
    rows: Arrivals,
    part: tuple[int, int],
    of: _Ahead,
    before: Epoch | None,
    step_ns: int | None,
) -> Epoch:
    """How far the recorder's clock was ahead in a part of the record, by the best evidence.

    `step_ns`: how far it was set ahead when the part began, where the recorder noted that itself.
    """
    first, end = part
    if of.of_manager_ns is not None:
        return _epoch(rows, first, end, of.of_manager_ns, BY_LEASE)
    if of.differing_ns is not None:
        return _epoch(rows, first, end, of.differing_ns, BY_STATUSES)
    if of.of_servers_ns is not None:
        evidence = BY_DATES if of.by_date else BY_SERVERS
        return _epoch(rows, first, end, of.of_servers_ns, evidence)
    if before is not None:
        if step_ns is None:
            step_ns = rows.recv_ns[first] - rows.recv_ns[first - 1]
        return _epoch(rows, first, end, before.ahead_ns + step_ns, BY_STEP)
    return _epoch(rows, first, end, 0, "")


def _ahead_of_manager(rows: Arrivals, order: Sequence[int]) -> int | None:
    """So far ahead of the manager's clock: a Lease is written after the time that it holds.

    It had been written when anything newer came, however late its own stream is.
    """
    off_ns = list[int]()
    hi_ns = 1 << 62
    for row in reversed(order):
        if not rows.contradicting[row]:
            hi_ns = min(hi_ns, rows.recv_ns[row])
        if rows.renewed_ns[row] and rows.watched[row]:
            off_ns.append(hi_ns - rows.renewed_ns[row])
    return min(off_ns) if len(off_ns) >= _RENEWALS_MIN else None


def _ahead_by_statuses(
    rows: Arrivals, order: Sequence[int], statuses: Mapping[int, int]
) -> int | None:
    """So far ahead of the manager's clock, as the statuses of Jobs tell; None: too few do.

    `statuses`: by row, a time that its status showed first, in whole seconds.
    """
    off_ns = list[int]()
    hi_ns = 1 << 62
    for row in reversed(order):
        if not rows.contradicting[row]:
            hi_ns = min(hi_ns, rows.recv_ns[row])
        if row in statuses:
            off_ns.append(hi_ns - statuses[row])
    return least(off_ns) - _UNIT_NS // (len(off_ns) + 1) if len(off_ns) >= _DATED_MIN else None


def _ahead_of_servers(rows: Arrivals, first: int, end: int) -> int | None:
    """So far ahead of the API server's clock; None: too few rows tell.

    Times are cut to seconds: of many rows the least is near, of few it is taken in the middle. The
    manager's Lease, of which nobody doubts when it came, tells it to within a second. A creation
    sets all its times in one request: where they differ the row contradicts itself, and tells
    nothing.
    """
    dated, of_lease = list[int](), list[int]()
    newest_ns = 0
    recv_ns, servers_ns, watched = rows.recv_ns, rows.server_ns, rows.watched
    renewed_ns, own = rows.renewed_ns, rows.own
    for row in range(first, end):
        server_ns, created_ns = servers_ns[row], rows.created_ns[row]
        if not server_ns or not watched[row] or server_ns < newest_ns - _UNIT_NS:
            continue
        if created_ns and server_ns - created_ns > _UNIT_NS:
            continue
        newest_ns = max(newest_ns, server_ns)
        dated.append(recv_ns[row] - server_ns)
        if renewed_ns[row] and own[row]:  # older servers leave the time as it was
            of_lease.append(dated[-1])
    if not dated:
        return None
    least_ns = least(dated)
    if len(dated) < _DATED_MIN:
        return least_ns if least_ns < 0 else None
    least_ns -= _UNIT_NS // (len(dated) + 1)
    if len(of_lease) >= _RENEWALS_MIN:
        of_lease_ns = min(of_lease)
        least_ns = max(of_lease_ns - _UNIT_NS, min(least_ns, of_lease_ns))
    return least_ns


def _late(
    rows: Arrivals,
    by_rv: Sequence[int],
    clock: RecorderClock,
    shown_ns: Sequence[int],
    compared: Sequence[str],
    api_ns: int | None,
) -> tuple[dict[int, JudgedNs], list[tuple[JudgedNs, JudgedNs]]]:
    """By resourceVersion, when that was written which came at least `LATE_NS` later; from then on.

    `api_ns`: what to add to an API server's time to have it on the clock that is judged on.
    """
    watched, own, servers_ns = rows.watched, rows.own, rows.server_ns
    contradicting, apart_ns = rows.contradicting, clock.servers_apart_ns
    lo_ns = array("q", accumulate((servers_ns[row] - apart_ns for row in by_rv), max, initial=0))
    found: dict[int, JudgedNs] = {}
    spans: list[tuple[JudgedNs, JudgedNs]] = []
    watched_ns = _watched_since(rows, clock, shown_ns)
    in_order = _in_order(rows)
    # Which clock rows were shown by nothing tells where one may have been set, or streams late.
    renewed_ns = {} if clock.may_be_late else rows.others.placed(MANAGER, shown_ns)
    hi_ns = 1 << 62
    for place in range(len(by_rv) - 1, -1, -1):
        row = by_rv[place]
        row_ns = shown_ns[row]
        if row_ns < hi_ns and not contradicting[row]:
            hi_ns = row_ns
        if api_ns is not None and own[row] and watched[row] and servers_ns[row]:
            # A server whose clock is behind the others sets times that are too old by so much.
            set_ns = max(servers_ns[row] + apart_ns, lo_ns[place + 1])
            hi_ns = min(hi_ns, set_ns + _UNIT_NS + HANDLING_NS + api_ns)
        if row in renewed_ns:
            hi_ns = min(hi_ns, renewed_ns[row] + _RENEWING_NS)
        if row_ns - hi_ns < _TOLD_NS or not (watched[row] and in_order[row]):
            continue
        stream = rows.streams[rows.stream[row]]
        written_ns = JudgedNs(max(hi_ns, watched_ns[row]))
        if (stream in compared or row in renewed_ns) and row_ns - written_ns >= _TOLD_NS:
            until_ns = JudgedNs(row_ns + WIDTH_NS)
            spans.append((JudgedNs(written_ns - WIDTH_NS), until_ns))
            if stream in compared and row_ns - written_ns >= LATE_NS:
                found[rows.rv[row]] = written_ns
    return found, spans


def _merged(spans: list[tuple[JudgedNs, JudgedNs]]) -> Iterator[tuple[JudgedNs, JudgedNs]]:
    """The times that spans cover, in order and apart."""
    current: tuple[JudgedNs, JudgedNs] | None = None
    for from_ns, until_ns in sorted(spans):
        if current is not None and from_ns <= current[1] + _NEAR_NS:
            current = (current[0], max(current[1], until_ns))
            continue
        if current is not None:
            yield current
        current = (from_ns, until_ns)
    if current is not None:
        yield current


def _on_clock(rows: Arrivals, clock: RecorderClock) -> array[int]:
    """When each row came, on the clock that is judged on."""
    result, epochs = rows.recv_ns[:], clock.epochs
    firsts = [bisect_left(rows.seq, epoch.from_seq) if place else 0
              for place, epoch in enumerate(epochs)]  # fmt: skip
    for epoch, first, end in zip(epochs, firsts, [*firsts[1:], len(rows)], strict=bool(epochs)):
        if epoch.ahead_ns:
            result[first:end] = array("q", [ns - epoch.ahead_ns for ns in result[first:end]])
    return result


def _in_order(rows: Arrivals) -> bytearray:
    """Whether each row is the newest of its stream: one behind newer ones is no lag of a watch."""
    newest = dict.fromkeys(range(len(rows.streams)), 0)
    result = bytearray()
    for rv, stream in zip(rows.rv, rows.stream, strict=True):
        newer = rv > newest[stream]
        result.append(newer)
        if newer:
            newest[stream] = rv
    return result


def _watched_since(rows: Arrivals, clock: RecorderClock, shown_ns: Sequence[int]) -> array[int]:
    """Since when the stream of each row had been watched, on the clock that is judged on."""
    since = [0] * len(rows.streams)
    gaps = sorted(rows.listed)
    result, passed = array("q"), 0
    for row, seq in enumerate(rows.seq):
        while passed < len(gaps) and gaps[passed][0] < seq:
            _, stream, until_ns = gaps[passed]
            if stream in rows.streams:
                since[rows.streams.index(stream)] = clock.judged_ns(until_ns)
            passed += 1
        if not rows.watched[row]:
            since[rows.stream[row]] = shown_ns[row]
        result.append(since[rows.stream[row]])
    return result
