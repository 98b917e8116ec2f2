"""What a record proves of its times: receive times from above, API servers' times from below."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.base.kube.timestamps import NS_PER_S as S
from tracekit.check.replay.clock_notes import ClockNote, Dated, linked
from tracekit.check.replay.commit_times import WIDTH_NS, Arrival, Arrivals, Timed, timed
from tracekit.check.replay.instants import ServerNs

BEGIN_NS = 1_700_000_000 * S
STREAMS = ("jobs", "pods")
PROMPT_NS = S // 1000


def _cut(at_ns: int) -> int:
    return at_ns - at_ns % S


def _record(
    commits_ns: Sequence[int], *, late_ns: Sequence[int] = (), leases: bool = True
) -> list[Arrival]:
    """Pods, one for each commit, and a Lease every 2 s; `late_ns`: of each pod."""
    found = []
    for number, at_ns in enumerate(commits_ns):
        late = late_ns[number] if late_ns else 0
        row = Arrival(
            0,
            0,
            at_ns + PROMPT_NS + late,
            "pods",
            watched=True,
            server_ns=_cut(at_ns),
            created_ns=_cut(at_ns),
        )
        found.append((at_ns, row))
    if leases:
        for at_ns in range(BEGIN_NS, max(commits_ns) + 2 * S, 2 * S):
            found.append(
                (
                    at_ns,
                    Arrival(
                        0,
                        0,
                        at_ns + PROMPT_NS,
                        "leases",
                        watched=True,
                        server_ns=_cut(at_ns),
                        own=True,
                        renewed_ns=at_ns,
                    ),
                )
            )
    ordered = [row._replace(rv=rv) for rv, (_, row) in enumerate(sorted(found), 1)]
    newest, held = 0, []
    for row in ordered:  # a stream keeps its own order
        newest = max(newest, row.recv_ns) if row.stream == "pods" else newest
        held.append(row._replace(recv_ns=newest) if row.stream == "pods" else row)
    return held


def _timed(rows: Sequence[Arrival], *, offset_ns: int = 0, ahead_ns: int | None = None) -> Timed:
    arrivals = Arrivals()
    for seq, row in enumerate(sorted(rows, key=lambda row: row.recv_ns)):
        arrivals.add(row._replace(seq=seq, recv_ns=row.recv_ns + offset_ns))
    return timed(arrivals, STREAMS, ahead_ns)


EVERY_SECOND = [BEGIN_NS + number * S + 17 * number for number in range(40)]
EVERY_HALF_SECOND = [BEGIN_NS + number * S // 2 + 17_000_000 * number for number in range(80)]
times = st.lists(st.integers(0, 60 * S), min_size=10, max_size=60, unique=True).map(
    lambda offsets: [BEGIN_NS + each for each in sorted(offsets)]
)


@given(times, st.integers(-300 * S, 300 * S), st.booleans())
def test_a_constant_offset_changes_nothing_on_the_judged_clock(
    commits_ns: list[int], offset_ns: int, leases: bool
) -> None:
    rows = _record(commits_ns, leases=leases)
    right, off = _timed(rows), _timed(rows, offset_ns=offset_ns)
    assert off.written_ns == right.written_ns
    assert off.late == right.late
    for row in rows:
        assert off.clock.judged_ns(row.recv_ns + offset_ns) == right.clock.judged_ns(row.recv_ns)


@given(times, st.data())
def test_what_comes_late_was_written_between_its_bounds(
    commits_ns: list[int], data: st.DataObject
) -> None:
    """Never before its commit by more than the clocks are known, never after it came."""
    late = data.draw(
        st.lists(st.integers(0, 60 * S), min_size=len(commits_ns), max_size=len(commits_ns))
    )
    rows = _record(commits_ns, late_ns=late)
    found = _timed(rows)
    pods = [row for row in rows if row.stream == "pods"]
    for at_ns, row in zip(commits_ns, pods, strict=True):
        written_ns = found.written_ns.get(row.rv)
        if written_ns is not None:
            assert written_ns <= found.clock.judged_ns(row.recv_ns)
            assert written_ns >= found.clock.judged_ns(at_ns) - S


@given(times)
def test_where_every_stream_is_prompt_nothing_is_late(commits_ns: list[int]) -> None:
    assert _timed(_record(commits_ns)).written_ns == {}


def test_the_managers_lease_tells_the_offset_to_the_millisecond() -> None:
    epoch = _timed(_record(EVERY_SECOND), offset_ns=-3 * S // 10).clock.epochs[0]
    assert epoch.ahead_ns == -3 * S // 10 + PROMPT_NS
    assert epoch.evidence == "the controller manager's Lease"


def test_without_leases_the_api_servers_times_tell() -> None:
    epoch = _timed(_record(EVERY_SECOND, leases=False), offset_ns=5 * S).clock.epochs[0]
    assert abs(epoch.ahead_ns - 5 * S) < S // 20
    assert epoch.evidence == "the API server's times"


def test_few_rows_tell_only_that_a_clock_is_behind() -> None:
    few = _record(EVERY_SECOND[:3], leases=False)
    assert _timed(few, offset_ns=9 * S).clock.is_right
    assert _timed(few, offset_ns=-9 * S).clock.epochs[0].ahead_ns < -8 * S


def test_what_somebody_knows_is_taken() -> None:
    epoch = _timed(_record(EVERY_SECOND), ahead_ns=7 * S).clock.epochs[0]
    assert (epoch.ahead_ns, epoch.evidence) == (7 * S, "--clock-offset")


def _set_at(rows: Sequence[Arrival], first: int, by_ns: int) -> Arrivals:
    """The same rows by a clock that was set ahead by so much before one of them; below 0: back."""
    arrivals = Arrivals()
    for seq, row in enumerate(rows):
        off_ns = by_ns if seq >= first else 0
        arrivals.add(row._replace(seq=seq, recv_ns=row.recv_ns + off_ns))
    return arrivals


def test_a_clock_that_is_set_back_begins_an_epoch() -> None:
    rows = _record(EVERY_SECOND)
    middle = len(rows) // 2
    clock = timed(_set_at(rows, middle, -10 * S), STREAMS).clock
    assert [epoch.from_seq for epoch in clock.epochs] == [0, middle]
    assert [epoch.ahead_ns for epoch in clock.epochs] == [PROMPT_NS, PROMPT_NS - 10 * S]
    assert not clock.may_be_late  # time does not run back where streams are late


def test_what_somebody_knows_is_of_the_beginning_where_a_clock_was_set() -> None:
    rows = _record(EVERY_SECOND)
    middle = len(rows) // 2
    found = timed(_set_at(rows, middle, -10 * S), STREAMS, 7 * S)
    assert [epoch.ahead_ns for epoch in found.clock.epochs] == [7 * S, -3 * S]
    assert found.servers_behind_ns is not None
    assert abs(found.servers_behind_ns + 7 * S) < S // 10


def test_a_clock_that_is_set_ahead_begins_an_epoch() -> None:
    rows = _record(EVERY_SECOND)
    middle = len(rows) // 2
    found = timed(_set_at(rows, middle, 10 * S), STREAMS)
    assert [epoch.from_seq for epoch in found.clock.epochs] == [0, middle]
    assert [epoch.ahead_ns for epoch in found.clock.epochs] == [PROMPT_NS, PROMPT_NS + 10 * S]
    assert found.written_ns == {}
    assert found.clock.may_be_late


def test_one_stream_that_is_late_to_the_end_is_no_clock_that_was_set() -> None:
    late = [0 if number < 20 else 10 * S for number in range(40)]
    found = _timed(_record(EVERY_SECOND, late_ns=late))
    assert len(found.clock.epochs) == 1
    assert found.written_ns


def test_a_row_that_contradicts_all_around_it_dates_no_other() -> None:
    rows = _record(EVERY_SECOND)
    early = next(n for n, row in enumerate(rows) if row.stream == "pods" and n > 20)
    rows[early] = rows[early]._replace(recv_ns=rows[early].recv_ns - 5 * S)
    found = _timed(rows)
    assert found.clock.epochs == _timed(_record(EVERY_SECOND)).clock.epochs
    assert found.written_ns == {}


def test_all_streams_that_stand_still_are_dated_by_the_api_server() -> None:
    """No stream is ahead of another: only the objects' own times tell."""
    until_ns = BEGIN_NS + 30 * S
    rows = [
        row._replace(recv_ns=until_ns) if until_ns - 8 * S <= row.recv_ns < until_ns else row
        for row in _record(EVERY_SECOND)
    ]
    found = _timed(rows)
    for row in rows:
        if row.stream == "pods" and row.recv_ns == until_ns and row.created_ns <= until_ns - 4 * S:
            assert row.created_ns <= found.written_ns[row.rv] <= row.created_ns + WIDTH_NS
    assert len(found.late) == 1


def test_a_pod_that_is_untouched_for_long_is_not_late() -> None:
    """A write without a time of its own: what its object tells was set long before."""
    rows = _record(EVERY_SECOND, leases=False)
    last = rows[-1]
    quiet = last._replace(rv=last.rv + 1, recv_ns=last.recv_ns + 20 * S, created_ns=0)
    later = last.recv_ns + 21 * S
    after = Arrival(
        0, last.rv + 2, later, "pods", watched=True, server_ns=_cut(later), created_ns=_cut(later)
    )
    assert _timed([*rows, quiet, after]).written_ns == {}


@pytest.mark.parametrize("ahead_s", [3, 20])
def test_api_servers_whose_clocks_differ_are_told_apart(ahead_s: int) -> None:
    rows = [
        row._replace(server_ns=row.server_ns + ahead_s * S, created_ns=row.created_ns + ahead_s * S)
        if row.rv % 3 == 0 and row.created_ns
        else row
        for row in _record(EVERY_SECOND)
    ]
    found = _timed(rows)
    assert abs(found.clock.servers_apart_ns - ahead_s * S) <= 3 * S
    assert found.written_ns == {}


def _slow(rows: Sequence[Arrival], took_s: int, *, every: int) -> list[Arrival]:
    """The same, where every so-many-th pod's creation took so long from its time to its commit."""
    return [
        row._replace(
            server_ns=ServerNs(row.server_ns - took_s * S),
            created_ns=ServerNs(row.created_ns - took_s * S),
        )
        if row.created_ns and row.rv % every == 0
        else row
        for row in rows
    ]


def test_a_request_that_took_seconds_is_no_other_servers_clock() -> None:
    """It contradicts all that was written meanwhile, and is one row."""
    commits_ns = [BEGIN_NS + number * S // 10 for number in range(200)]
    found = _timed(_slow(_record(commits_ns, leases=False), 3, every=150))
    assert found.clock.servers_apart_ns == 0
    assert abs(found.clock.epochs[0].ahead_ns) < S // 20


def _with_statuses(rows: Sequence[Arrival], ahead_ns: int = 0) -> list[Arrival]:
    """The same, each pod followed by a status with a time of the manager's clock."""
    found = []
    for row in rows:
        found.append(row._replace(rv=2 * row.rv))
        at_ns = row.recv_ns + 20 * PROMPT_NS
        told = Arrival(
            0,
            2 * row.rv + 1,
            at_ns,
            "jobs",
            watched=True,
            written_ns=_cut(at_ns - 15 * PROMPT_NS + ahead_ns),
        )
        found.append(told)
    return found


@pytest.mark.parametrize("ahead_s", [-5, 0, 5])
def test_without_leases_statuses_tell_the_managers_clock(ahead_s: int) -> None:
    """Where many requests took seconds, API servers' times do not tell which clock is whose."""
    rows = _slow(_record(EVERY_HALF_SECOND, leases=False), 3, every=4)
    clock = _timed(_with_statuses(rows, ahead_s * S)).clock
    assert clock.servers_apart_ns >= 2 * S
    assert abs(clock.epochs[0].ahead_ns + ahead_s * S) < S // 10
    assert clock.epochs[0].evidence == "the times in statuses of Jobs"


def test_statuses_that_fit_the_api_servers_clock_change_nothing() -> None:
    rows = _record(EVERY_HALF_SECOND, leases=False)
    clock = _timed(_with_statuses(rows)).clock
    assert clock.epochs[0].evidence == "the API server's times"


def test_a_lone_time_of_a_client_is_dropped() -> None:
    rows = _record(EVERY_SECOND, leases=False)
    middle = len(rows) // 2
    rows[middle] = rows[middle]._replace(server_ns=rows[middle].server_ns + 3600 * S, created_ns=0)
    clock = _timed(rows).clock
    assert clock.servers_apart_ns == 0
    assert abs(clock.epochs[0].ahead_ns) < S // 20


def test_a_lease_whose_time_an_old_server_left_as_it_was_tells_nothing() -> None:
    """Up to 1.21 a managedFields entry keeps the time of its first write."""
    since_ns = ServerNs(BEGIN_NS - 7 * S)
    rows = [
        row._replace(server_ns=since_ns, own=False) if row.renewed_ns else row
        for row in _record([at_ns + 10 * S for at_ns in EVERY_SECOND])
    ]
    found = _timed(rows)
    assert found.servers_behind_ns is not None
    assert abs(found.servers_behind_ns) < S


def _renewing(late_ns: int, holders_ahead_ns: Sequence[int], since_s: int = 30) -> list[Arrival]:
    """Renewals by one manager after the other, late by so much from then on; one pod meanwhile."""
    rows = []
    for number in range(40):
        at_ns = BEGIN_NS + number * 2 * S
        holder = number * len(holders_ahead_ns) // 40
        renewed_ns = at_ns + holders_ahead_ns[holder]
        came_ns = at_ns + PROMPT_NS + (late_ns if number * 2 >= since_s else 0)
        lease = Arrival(0, 2 * number + 1, came_ns, "leases", watched=True, renewed_ns=renewed_ns)
        rows.append(lease._replace(writer=f"manager-{holder}", written_ns=renewed_ns))
    pod_ns = BEGIN_NS + 61 * S + PROMPT_NS + late_ns
    return [*rows, Arrival(0, 62, pod_ns, "pods", watched=True)]


def test_a_lease_tells_by_its_own_time_that_streams_came_late() -> None:
    """Up to 1.18 no managedFields do, and where little happens no newer row of another stream."""
    found = _timed(_renewing(4 * S, (0,)))
    [span] = found.late
    assert span[0] <= BEGIN_NS + 30 * S <= BEGIN_NS + 82 * S <= span[1]
    written_ns = found.written_ns[62]
    assert BEGIN_NS + 61 * S <= written_ns <= BEGIN_NS + 61 * S + WIDTH_NS


@pytest.mark.parametrize("late_ns", [0, S])
def test_renewals_that_take_a_second_are_not_late(late_ns: int) -> None:
    assert _timed(_renewing(late_ns, (0,))).late == ()


def test_managers_whose_clocks_differ_are_not_late() -> None:
    assert _timed(_renewing(0, (0, -5 * S))).late == ()


def test_a_lease_dates_nothing_where_a_clock_may_have_been_set() -> None:
    """Or all streams were late: by which clock its times lie among the others', nothing tells."""
    late = [0 if number < 20 else 10 * S for number in range(40)]
    rows = [
        row._replace(recv_ns=row.recv_ns + 10 * S) if row.renewed_ns else row
        for row in _record(EVERY_SECOND, late_ns=late)
    ]
    told = [
        row._replace(writer="manager", written_ns=row.renewed_ns) if row.renewed_ns else row
        for row in rows
    ]
    found = _timed(told)
    assert found.clock.may_be_late
    assert (found.written_ns, found.late) == (_timed(rows).written_ns, _timed(rows).late)


def _of_kubelets(commits_ns: Sequence[int], ahead_ns: Sequence[int]) -> Timed:
    """A record of pods that one kubelet after the other ended, each by a clock of its own."""
    arrivals = Arrivals()
    for seq, row in enumerate(_record(commits_ns)):
        node = seq % len(ahead_ns)
        ended_ns = _cut(row.recv_ns - PROMPT_NS + ahead_ns[node])
        told = row._replace(writer=f"node-{node}", written_ns=ended_ns)
        arrivals.add((row if row.renewed_ns else told)._replace(seq=seq))
    return timed(arrivals, STREAMS)


def test_each_kubelets_clock_is_told_by_the_times_that_it_writes() -> None:
    commits_ns = [BEGIN_NS + number * 13 * S // 10 for number in range(120)]
    off_ns = (0, -3 * S, 60 * S)
    found = {other.name: other for other in _of_kubelets(commits_ns, off_ns).others}
    for number, expected_ns in enumerate(off_ns):
        other = found[f"node-{number}"]
        assert (other.kind, other.times > 20) == ("kubelet", True)
        assert abs(other.ahead_ns - expected_ns) < S // 5


def _noted(*notes: ClockNote, offsets_s: tuple[int, int] = (0, 0)) -> Timed:
    """Few pods, of which no time tells; the second half came by a clock that had been set."""
    rows = _record(EVERY_SECOND, leases=False)
    arrivals = Arrivals(notes=list(notes))
    for seq, row in enumerate(rows):
        off_s = offsets_s[seq >= len(rows) // 2]
        unreported = row._replace(seq=2 * seq, server_ns=0, created_ns=0, own=False)
        arrivals.add(unreported._replace(recv_ns=row.recv_ns + off_s * S))
    return timed(arrivals, STREAMS)


def test_a_date_bounds_an_offset_from_both_sides() -> None:
    at_ns = EVERY_SECOND[3]
    answer = ClockNote(5, at_ns + 9 * S, at_ns + 9 * S - 10, _cut(at_ns))
    found = _noted(answer, offsets_s=(9, 9))
    [epoch], [dated] = found.clock.epochs, found.dated
    assert dated is not None
    assert dated.least_ns <= 9 * S <= dated.most_ns
    assert dated.least_ns <= epoch.ahead_ns <= dated.most_ns
    assert epoch.evidence == "the API server's times and Dates"


@pytest.mark.parametrize("by_s", [-20, -1, 1, 3, 60])
def test_a_step_that_was_noted_begins_an_epoch_where_nothing_else_tells_it(by_s: int) -> None:
    middle = len(EVERY_SECOND) // 2
    set_ns = EVERY_SECOND[middle - 1] + S // 2
    step = ClockNote(2 * middle - 1, set_ns + by_s * S, before_ns=set_ns - S // 5, step_ns=by_s * S)
    clock = _noted(step, offsets_s=(0, by_s)).clock
    assert [epoch.from_seq for epoch in clock.epochs] == [0, 2 * middle]
    first, second = clock.epochs
    assert second.ahead_ns - first.ahead_ns == by_s * S
    assert second.evidence == "when it was set"
    assert not clock.may_be_late


def test_rows_between_a_step_and_its_note_came_after_it() -> None:
    middle = len(EVERY_SECOND) // 2
    set_ns = EVERY_SECOND[middle] - 1000
    note = ClockNote(
        2 * middle + 1, set_ns + 3 * S + S // 10, before_ns=set_ns - S // 10, step_ns=3 * S
    )
    clock = _noted(note, offsets_s=(0, 3)).clock
    assert [epoch.from_seq for epoch in clock.epochs] == [0, 2 * middle]


def test_an_answer_tells_of_the_time_before_and_after_a_step_too() -> None:
    early, late = Dated(S, 3 * S, 2), Dated(14 * S, 18 * S, 1)
    assert linked([early, late], [14 * S]) == [Dated(S, 3 * S, 3), Dated(15 * S, 17 * S, 3)]
    assert linked([None, late], [14 * S]) == [Dated(0, 4 * S, 1), late]
    assert linked([early, None], [-9 * S]) == [early, Dated(-8 * S, -6 * S, 2)]
    assert linked([early, late], [None]) == [early, late]
    assert linked([early, late], [99 * S]) == [early, late]
    assert linked([], []) == []


def test_dates_that_contradict_each_other_tell_nothing() -> None:
    answers = [ClockNote(n, EVERY_SECOND[n], EVERY_SECOND[n], _cut(EVERY_SECOND[n]) - n * 9 * S)
               for n in (1, 3)]  # fmt: skip
    assert _noted(*answers).dated == (None,)


def test_a_time_that_contradicts_all_others_is_no_clocks() -> None:
    commits_ns = [BEGIN_NS + number * 13 * S // 10 for number in range(60)]
    rows = _record(commits_ns)
    arrivals = Arrivals()
    for seq, row in enumerate(rows):
        later_ns = 8 * S if seq == len(rows) // 2 else 0
        told = row._replace(writer="node", written_ns=_cut(row.recv_ns - PROMPT_NS + later_ns))
        arrivals.add((row if row.renewed_ns else told)._replace(seq=seq))
    [other] = timed(arrivals, STREAMS).others
    assert abs(other.ahead_ns) < S // 5


def test_few_times_tell_nothing_of_a_kubelets_clock() -> None:
    assert _of_kubelets(EVERY_SECOND[:7], (-3 * S,)).others == ()
