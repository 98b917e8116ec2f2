"""From revisions to writes: what somebody did to a Job and its pods, and when."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.objects import LONG_AGO_NS, job, pod
from tracekit.base.kube.views import JobView, PodView
from tracekit.check.replay.history import (
    EventRow,
    Evidence,
    History,
    Revision,
    WriteKind,
    build_history,
)

NOTHING = cast("Evidence", None)
COUNTER = itertools.count(1)


def revision(rv: int, kind: str, view: Any, seq: int | None = None) -> Revision[Any]:
    return Revision(
        rv, rv * 1000, next(COUNTER) if seq is None else seq, kind, replace(view, rv=rv), NOTHING
    )


def history(jobs: Sequence[Revision[JobView]], pods: Sequence[Revision[PodView]] = ()) -> History:
    return build_history("default", "demo", jobs, pods, ())


def writes(found: History) -> list[tuple[int, str, str]]:
    return [(write.rv, write.kind.value, write.uid) for write in found.writes]


JOB = job()
MINE = pod("a")
FREE = pod("a", owner=None, finalizer=False)
OF_ANOTHER = pod("a", owner="another-uid")
BARE = pod("a", finalizer=False)
DYING = pod("a", deleted_ns=LONG_AGO_NS)
DYING_BARE = pod("a", deleted_ns=LONG_AGO_NS, finalizer=False)

POD_CASES: dict[str, tuple[list[tuple[str, PodView]], list[str]]] = {
    # types and states of one pod -> kinds of the writes
    "listed": ([("LIST", MINE)], []),
    "created": ([("ADDED", MINE)], ["pod-create"]),
    "created by another job": ([("ADDED", OF_ANOTHER)], []),
    "created as an orphan": ([("ADDED", FREE)], []),
    "its status changes": (
        [("LIST", MINE), ("MODIFIED", replace(MINE, phase="Failed"))],
        [],
    ),
    "deleted with grace": ([("LIST", MINE), ("MODIFIED", DYING)], ["pod-delete"]),
    "deleted with grace, then gone": (
        [("LIST", BARE), ("MODIFIED", DYING_BARE), ("DELETED", DYING_BARE)],
        ["pod-delete"],
    ),
    "deleted at once": ([("LIST", BARE), ("DELETED", BARE)], ["pod-delete"]),
    "loses its finalizer": ([("LIST", MINE), ("MODIFIED", BARE)], ["finalizer-removal"]),
    "loses its finalizer, then is deleted": (
        [("LIST", MINE), ("MODIFIED", BARE), ("DELETED", BARE)],
        ["finalizer-removal", "pod-delete"],
    ),
    "deleted, then released: gone with the finalizer": (
        [("LIST", MINE), ("MODIFIED", DYING), ("DELETED", DYING)],
        ["pod-delete", "finalizer-removal"],
    ),
    "adopted": ([("LIST", FREE), ("MODIFIED", MINE)], ["pod-adopt"]),
    "released, finalizer and all": ([("LIST", MINE), ("MODIFIED", FREE)], ["pod-release"]),
    "of another job all the time": (
        [("LIST", OF_ANOTHER), ("MODIFIED", replace(OF_ANOTHER, deleted_ns=1))],
        [],
    ),
}


@pytest.mark.parametrize(("states", "kinds"), POD_CASES.values(), ids=POD_CASES.keys())
def test_writes_to_a_pod(states: list[tuple[str, PodView]], kinds: list[str]) -> None:
    revisions = [revision(10 + number, kind, view) for number, (kind, view) in enumerate(states)]
    found = history([revision(1, "LIST", JOB)], revisions)
    assert [kind for _, kind, _ in writes(found)] == kinds


def test_one_revision_may_be_two_writes() -> None:
    found = history(
        [revision(1, "LIST", JOB)],
        [revision(2, "LIST", MINE), revision(3, "DELETED", MINE)],
    )
    assert writes(found) == [(3, "finalizer-removal", "a"), (3, "pod-delete", "a")]


def test_a_status_update_is_a_change_of_the_status_and_of_nothing_else() -> None:
    changed = replace(JOB, status=replace(JOB.status, active=1))
    relabelled = replace(changed, labels={"x": "y"})
    found = history(
        [
            revision(1, "ADDED", JOB),
            revision(2, "MODIFIED", changed),
            revision(3, "MODIFIED", relabelled),
        ]
    )
    assert writes(found) == [(2, "status-update", "job-uid")]


def test_a_name_that_was_used_twice_has_the_pods_of_both_jobs() -> None:
    second = replace(JOB, uid="second-uid")
    found = history(
        [revision(1, "ADDED", JOB), revision(3, "DELETED", JOB), revision(4, "ADDED", second)],
        [revision(2, "ADDED", MINE), revision(5, "ADDED", pod("b", owner="second-uid"))],
    )
    assert writes(found) == [(2, "pod-create", "a"), (5, "pod-create", "b")]
    assert found.jobs[2].previous is None, "another uid is another object"


def test_repetitions_are_dropped() -> None:
    repeated = [
        revision(1, "LIST", MINE),
        revision(1, "ADDED", MINE),
        revision(2, "MODIFIED", BARE),
        revision(2, "MODIFIED", BARE),
        revision(2, "LIST", BARE),
    ]
    found = history([revision(1, "LIST", JOB)], repeated)
    assert [(r.rv, r.type) for r in found.pods] == [(1, "LIST"), (2, "MODIFIED")]


def test_nothing_follows_a_deletion() -> None:
    given_pods = [
        revision(1, "ADDED", MINE),
        revision(2, "DELETED", MINE),
        revision(3, "MODIFIED", MINE),
    ]
    found = history([revision(1, "LIST", JOB)], given_pods)
    assert [r.rv for r in found.pods] == [1, 2]


def test_positions_and_bounds() -> None:
    found = history(
        [revision(10, "ADDED", JOB), revision(20, "MODIFIED", replace(JOB, labels={"x": "y"}))],
        [revision(12, "ADDED", MINE), revision(15, "MODIFIED", BARE)],
    )
    assert [r.position for r in found.jobs] == [0, 1]
    before = [(rv, found.job_before(rv)) for rv in (10, 11, 20, 21)]
    assert [(rv, None if r is None else r.rv) for rv, r in before] == [
        (10, None),
        (11, 10),
        (20, 10),
        (21, 20),
    ]
    assert [found.pods_below(rv) for rv in (12, 13, 16)] == [0, 1, 2]
    assert found.key == "default/demo"


def test_events_keep_the_order_in_which_they_arrived() -> None:
    def event(seq: int, rv: int) -> EventRow:
        return EventRow(
            seq,
            seq,
            "ADDED",
            f"e{seq}",
            f"u{seq}",
            rv,
            "job-uid",
            1,
            "Normal",
            "R",
            "m",
            1,
            "job-controller",
        )

    found = build_history("default", "demo", [], [], [event(3, 1), event(1, 9), event(2, 5)])
    assert [row.seq for row in found.events] == [1, 2, 3]


LIFE = [
    revision(2, "ADDED", MINE, seq=1),
    revision(4, "MODIFIED", replace(MINE, phase="Succeeded"), seq=2),
    revision(6, "MODIFIED", replace(BARE, phase="Succeeded"), seq=3),
    revision(7, "ADDED", pod("b"), seq=4),
    revision(9, "MODIFIED", pod("b", deleted_ns=LONG_AGO_NS), seq=5),
    revision(11, "DELETED", pod("b", deleted_ns=LONG_AGO_NS), seq=6),
]


@given(st.permutations(LIFE))
def test_the_order_of_arrival_does_not_matter(given_pods: list[Revision[PodView]]) -> None:
    fresh = [replace(r, previous=None, position=0) for r in given_pods]
    found = history([revision(1, "LIST", JOB, seq=0)], fresh)
    assert writes(found) == [
        (2, "pod-create", "a"),
        (6, "finalizer-removal", "a"),
        (7, "pod-create", "b"),
        (9, "pod-delete", "b"),
        (11, "finalizer-removal", "b"),
    ]
    assert [write.index for write in found.writes] == list(range(5))
    assert {write.kind for write in found.writes} <= set(WriteKind)
