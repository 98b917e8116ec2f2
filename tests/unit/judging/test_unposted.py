"""What Events tell of those that were not posted yet when the record ended."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tracekit.check.replay.run_context import Outage
from tracekit.judge.run_context import TOLD, EventTimes

S = 10**9
END_NS = 100 * S


def told(*events: tuple[int, int], row_type: str = "ADDED") -> EventTimes:
    """Events that were handed over and received at these times."""
    rows = [
        dict.fromkeys(TOLD)
        | {"seq": seq, "type": row_type, "recv_ns": recv_ns, "last_ns": last_ns, "count": 1}
        for seq, (last_ns, recv_ns) in enumerate(events)
    ]
    times = EventTimes()
    schema = {"message": pa.string(), "reason": pa.string()}
    times.add(
        pa.table({name: pa.array([r[name] for r in rows], schema.get(name)) for name in TOLD})
    )
    return times


@pytest.mark.parametrize(
    ("last", "behind"),
    [((95, 96), False), ((95, 97), False), ((90, 99), True)],
    ids=["at once", "times count in whole seconds", "late"],
)
def test_events_wait_where_the_last_came_later_than_the_fastest(
    last: tuple[int, int], behind: bool
) -> None:
    handed, received = last
    times = told((10 * S, 11 * S), (handed * S, received * S))
    (end,) = times.unposted((), END_NS)
    assert (end.from_ns, end.until_ns, end.behind) == (handed * S, END_NS, behind)


def test_clocks_that_differ_make_no_event_late() -> None:
    (end,) = told((10 * S, 40 * S), (60 * S, 90 * S)).unposted((), END_NS)
    assert not end.behind


def test_events_that_were_listed_tell_nothing_of_who_waits() -> None:
    (end,) = told((10 * S, 60 * S), row_type="LIST").unposted((), END_NS)
    assert (end.from_ns, end.behind) == (10 * S, False)


def test_what_waited_when_the_process_died_is_lost() -> None:
    restart = Outage(50 * S, 52 * S, "another leads")
    times = told((10 * S, 11 * S), (30 * S, 49 * S), (60 * S, 61 * S))
    died, end = times.unposted((restart,), END_NS)
    assert (died.from_ns, died.behind, end.behind) == (30 * S, True, False)
