"""The controller's memory of one key, and what the pod informer's handlers do to it.

Upstream: pkg/controller/controller_utils_test.go:TestControllerExpectations,
pkg/controller/job/tracking_utils_test.go:TestUIDTrackingExpectations,
job_controller_test.go: TestFinalizersRemovedExpectations.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fake_api import FakeApi
from tests.support.handlers import pod_observed
from tests.support.objects import LONG_AGO_NS, at, job, pod
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.base.kube.views import PodView
from tracekit.ports.job.backoff import BackoffRecord
from tracekit.ports.job.context import Choices, SyncClock
from tracekit.ports.job.memory import JobMemory, PodExpectations
from tracekit.ports.job.sync import sync_job
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

RULES = JobRules.of(Era.resolve("v1.36.3"))


def test_without_expectations_all_is_satisfied() -> None:
    assert JobMemory().satisfied(at(0))


def test_observations_without_expectations_leave_nothing_behind() -> None:
    memory = JobMemory()
    memory.creation_observed()
    memory.deletion_observed()
    memory.finalizer_removal_observed("a")
    assert memory == JobMemory()


def test_creations_are_satisfied_one_by_one() -> None:
    memory = JobMemory()
    memory.expect_creations(2, at(0))
    memory.creation_observed()
    assert not memory.satisfied(at(0))
    memory.creation_observed()
    assert memory.satisfied(at(0))


def test_more_observations_than_expected_stay_satisfied() -> None:
    memory = JobMemory()
    memory.expect_deletions(1, at(0))
    memory.deletion_observed()
    memory.deletion_observed()
    assert memory.satisfied(at(0))
    assert memory.expectations == PodExpectations(0, -1, at(0))


def test_a_new_expectation_replaces_the_old_one() -> None:
    memory = JobMemory()
    memory.expect_creations(5, at(0))
    memory.expect_deletions(1, at(1))
    assert memory.expectations == PodExpectations(0, 1, at(1))


def test_deletions_do_not_satisfy_creations() -> None:
    memory = JobMemory()
    memory.expect_creations(1, at(0))
    memory.deletion_observed()
    assert not memory.satisfied(at(0))


@pytest.mark.parametrize(("seconds", "satisfied"), [(299, False), (300, False), (300.5, True)])
def test_expectations_expire_after_five_minutes(seconds: float, satisfied: bool) -> None:
    memory = JobMemory()
    memory.expect_creations(1, at(0))
    assert memory.satisfied(at(seconds)) is satisfied


def test_a_copy_is_of_its_own() -> None:
    memory = JobMemory(finalizers=frozenset({"a"}), backoff=BackoffRecord(1, at(0)))
    memory.expect_creations(1, at(0))
    other = memory.copy()
    other.creation_observed()
    other.finalizer_removal_observed("a")
    other.forget_key()
    assert memory.expectations == PodExpectations(1, 0, at(0))
    assert memory.finalizers == {"a"}
    assert memory.backoff == BackoffRecord(1, at(0))


@given(st.integers(0, 20), st.integers(0, 30))
def test_satisfied_means_nothing_is_outstanding(expected: int, seen: int) -> None:
    memory = JobMemory()
    memory.expect_creations(expected, at(0))
    for _ in range(seen):
        memory.creation_observed()
    assert memory.satisfied(at(1)) is (seen >= expected)


def memory_that_waits() -> JobMemory:
    return JobMemory(PodExpectations(3, 3, at(0)), finalizers=frozenset({"pod-a", "pod-b"}))


MINE = pod("pod-a")
BARE = pod("pod-a", finalizer=False)
DYING = pod("pod-a", deleted_ns=LONG_AGO_NS)
DYING_BARE = pod("pod-a", finalizer=False, deleted_ns=LONG_AGO_NS)
ORPHAN = pod("pod-a", owner=None)
ORPHAN_BARE = pod("pod-a", owner=None, finalizer=False)
STRANGE = pod("pod-a", owner="another-job")
STRANGE_BARE = pod("pod-a", owner="another-job", finalizer=False)

DELTAS: dict[str, tuple[PodView | None, PodView, bool, tuple[int, int, bool]]] = {
    # old, new, final deletion -> creations and deletions still expected, finalizer still expected
    "a pod is added": (None, MINE, False, (2, 3, True)),
    "a pod is added without its finalizer": (None, BARE, False, (2, 3, True)),
    "a pod is added that is being deleted": (None, DYING, False, (3, 2, True)),
    "a pod of another job is added": (None, STRANGE, False, (3, 3, True)),
    "an orphan is added": (None, ORPHAN, False, (3, 3, True)),
    "a pod changes": (MINE, MINE, False, (3, 3, True)),
    "a pod loses its finalizer": (MINE, BARE, False, (3, 3, False)),
    "a pod that lost its finalizer before changes": (BARE, BARE, False, (3, 3, False)),
    "a pod is marked as deleted": (MINE, DYING, False, (3, 2, True)),
    "a deleted pod changes: every update counts": (DYING, DYING, False, (3, 2, True)),
    "a deleted pod loses its finalizer": (DYING, DYING_BARE, False, (3, 2, False)),
    "a pod goes": (MINE, MINE, True, (3, 2, False)),
    "a deleted pod goes": (DYING, DYING, True, (3, 2, False)),
    "a pod of another job goes": (STRANGE, STRANGE, True, (3, 3, True)),
    "an orphan goes": (ORPHAN, ORPHAN, True, (3, 3, True)),
    "a pod is released": (MINE, ORPHAN_BARE, False, (3, 3, False)),
    "a pod is released and keeps the finalizer": (MINE, ORPHAN, False, (3, 3, True)),
    "a pod changes hands": (MINE, STRANGE_BARE, False, (3, 3, False)),
    "a pod is adopted": (ORPHAN_BARE, MINE, False, (3, 3, True)),
    "a pod of another job loses its finalizer": (STRANGE, STRANGE_BARE, False, (3, 3, True)),
}


@pytest.mark.parametrize(("old", "new", "deleted", "expected"), DELTAS.values(), ids=DELTAS.keys())
def test_handlers(
    old: PodView | None, new: PodView, deleted: bool, expected: tuple[int, int, bool]
) -> None:
    memory = memory_that_waits()
    pod_observed(memory, old, new, job(), RULES, deleted=deleted)
    row = memory.expectations
    assert row is not None
    assert (row.creations, row.deletions, "pod-a" in memory.finalizers) == expected
    assert "pod-b" in memory.finalizers


def test_what_the_handlers_tell_while_the_pods_are_listed_is_not_seen() -> None:
    """Upstream: syncJob asks its expectations, and clones expectedRmFinalizers, before it lists."""
    ended = pod("ended", "Failed")
    memory = JobMemory(finalizers=frozenset({ended.uid}))
    memory.expect_creations(1, at(0))

    def listed() -> Iterator[PodView]:
        memory.finalizer_removal_observed(ended.uid)
        memory.creation_observed()
        yield ended

    api = FakeApi(pods={ended.name: ended})
    demo = job(status={"startTime": format_rfc3339(LONG_AGO_NS), "active": 1, "failed": 1})
    sync_job(demo, listed(), memory, api, clock=SyncClock(at(0)), rules=RULES, choices=Choices())
    assert not api.created, "a pod more than are wanted"
    assert [status.failed for status in api.puts] == [1], "counted twice"
    assert memory.satisfied(at(0))
