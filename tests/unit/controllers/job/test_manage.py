"""Creating and deleting pods: slow start, quotas, expectations, who goes first.

Upstream: pkg/controller/job/job_controller.go:manageJob; job_controller_test.go:
TestSyncJobExpectations, TestGetPodCreationInfoForIndependentIndexes, and the rows with podLimit.
"""

from __future__ import annotations

import pytest

from tests.support.fake_api import Bench, FakeApi
from tests.support.objects import (
    LONG_AGO_NS,
    at,
    container,
    indexed_pods,
    job,
    pod,
    pods,
    rules,
)
from tracekit.ports.actions import Outcome
from tracekit.ports.job.backoff import BackoffRecord
from tracekit.ports.job.context import Choices
from tracekit.ports.job.memory import JobMemory, PodExpectations

SLOW_START: dict[str, tuple[int, int | None, list[int], int, int]] = {
    # wanted, creations that the quota allows -> batches, active, creations still expected
    "one pod": (1, None, [1], 1, 1),
    "three pods": (3, None, [1, 2], 3, 3),
    "ten pods": (10, None, [1, 2, 4, 3], 10, 10),
    "500 pods": (500, None, [1, 2, 4, 8, 16, 32, 64, 128, 245], 500, 500),
    "no pod is allowed": (10, 0, [1], 0, 0),
    "two are allowed: the second batch fails": (10, 2, [1, 2], 2, 2),
    "three are allowed: the third batch fails": (10, 3, [1, 2, 4], 3, 3),
    "nine are allowed: the last batch fails": (10, 9, [1, 2, 4, 3], 9, 9),
}


@pytest.mark.parametrize(
    ("wanted", "limit", "batches", "active", "expected"), SLOW_START.values(), ids=SLOW_START.keys()
)
def test_slow_start(
    wanted: int, limit: int | None, batches: list[int], active: int, expected: int
) -> None:
    bench = Bench.of(
        job(parallelism=wanted, completions=wanted), rules(), api=FakeApi(create_limit=limit)
    )
    result = bench.sync()
    assert bench.api.batches == batches
    assert bench.status.active == active
    assert bench.memory.expectations == PodExpectations(expected, 0, bench.now_ns)
    assert result.error is (limit is not None)


def test_a_terminating_namespace_is_no_error_and_pods_count_as_created() -> None:
    bench = Bench.of(
        job(parallelism=3, completions=3),
        rules(),
        api=FakeApi(create_limit=0, create_answer=Outcome.NAMESPACE_TERMINATING),
    )
    assert not bench.sync().error
    assert bench.api.batches == [1, 2]
    assert bench.status.active == 3
    assert bench.memory.expectations == PodExpectations(3, 0, bench.now_ns)


@pytest.mark.parametrize("answer", [Outcome.REFUSED, Outcome.TIMEOUT, Outcome.CONFLICT])
def test_any_other_refusal_is_an_error(answer: Outcome) -> None:
    bench = Bench.of(job(), rules(), api=FakeApi(create_limit=0, create_answer=answer))
    assert bench.sync().error


def test_after_a_partial_refusal_the_rest_is_created_by_the_retry() -> None:
    """1. three of ten are created, 2. the informer shows them, 3. the retry creates the others."""
    bench = Bench.of(job(parallelism=10, completions=10), rules(), api=FakeApi(create_limit=3))
    assert bench.sync().error
    bench.see_status()
    bench.see_pods()
    assert bench.memory.satisfied(bench.now_ns)

    bench.api.create_limit = None
    assert not bench.sync().error
    assert bench.status.active == 10


def test_creations_are_expected_until_the_informer_shows_them() -> None:
    bench = Bench.of(job(parallelism=2, completions=2), rules())
    bench.sync()
    bench.see_status()
    bench.sync()
    assert len(bench.api.created) == 2, "the cache is behind: nothing is created twice"
    assert bench.status.active == 0, "active pods are those of the cache"

    bench.see_status()
    bench.see_pods()
    bench.sync()
    assert len(bench.api.created) == 2
    assert bench.status.active == 2


def test_deletions_are_expected_until_the_informer_shows_them() -> None:
    bench = Bench.of(job(parallelism=1, completions=5), rules(), pods(3, node="node-1"))
    bench.sync()
    assert bench.memory.expectations == PodExpectations(0, 2, bench.now_ns)
    bench.see_status()
    bench.sync()
    assert len(bench.api.deleted) == 2

    bench.see_pods()
    assert bench.memory.satisfied(bench.now_ns)


def test_a_refused_deletion_is_not_expected() -> None:
    bench = Bench.of(
        job(parallelism=0, completions=5),
        rules(),
        pods(3),
        api=FakeApi(
            delete_answers={"running-0": Outcome.REFUSED},
            patch_answers={"running-1": Outcome.REFUSED},
        ),
    )
    assert bench.sync().error
    assert bench.memory.expectations == PodExpectations(0, 1, bench.now_ns)
    assert bench.status.active == 2


def test_deletions_take_precedence_over_creations() -> None:
    """A repeated index and a missing one: the sync deletes, the next one creates."""
    bench = Bench.of(
        job(parallelism=3, completions=3, indexed=True),
        rules(),
        indexed_pods((0, "Running"), (0, "Pending"), (1, "Running")),
    )
    bench.sync()
    assert (bench.api.deleted, bench.api.created) == (["pod-1"], [])
    bench.see_status()
    bench.see_pods()
    bench.sync()
    assert [intent.completion_index for intent in bench.api.created] == [2]


def test_pods_without_a_finalizer_are_deleted_without_a_patch() -> None:
    bench = Bench.of(job(parallelism=0, completions=5), rules(), pods(2, finalizer=False))
    bench.sync()
    assert bench.api.log[:2] == ["delete", "delete"]
    assert bench.api.finalizers_removed == []


def test_among_equal_pods_the_choice_decides_who_goes() -> None:
    for chosen in ("running-0", "running-1", "running-2"):
        bench = Bench.of(
            job(parallelism=2, completions=5),
            rules(),
            pods(3),
            choices=Choices(pods=frozenset({chosen})),
        )
        bench.sync()
        assert bench.api.deleted == [chosen]


def test_a_choice_does_not_override_the_ranking() -> None:
    bench = Bench.of(
        job(parallelism=1, completions=5),
        rules(),
        [pod("bound", node="node-1"), pod("unbound", "Pending")],
        choices=Choices(pods=frozenset({"bound"})),
    )
    bench.sync()
    assert bench.api.deleted == ["unbound"]


BACKOFF: dict[str, tuple[BackoffRecord, bool, float | None]] = {
    "no failure": (BackoffRecord(), True, None),
    "the first failure holds for 10 s": (BackoffRecord(1, at(-4)), False, 6),
    "the second one for 20 s": (BackoffRecord(2, at(-4)), False, 16),
    "the third one for 40 s": (BackoffRecord(3, at(-4)), False, 36),
    "the seventh one for 10 min": (BackoffRecord(7, at(0)), False, 600),
    "the hundredth one for 10 min": (BackoffRecord(100, at(0)), False, 600),
    "over to the nanosecond": (BackoffRecord(1, at(-10)), True, None),
    "a failure that lies ahead of this clock": (BackoffRecord(1, at(3)), False, 13),
}


@pytest.mark.parametrize(("record", "creates", "wake_s"), BACKOFF.values(), ids=BACKOFF.keys())
def test_the_back_off_of_the_job_holds_creations_back(
    record: BackoffRecord, creates: bool, wake_s: float | None
) -> None:
    bench = Bench.of(job(), rules(), memory=JobMemory(backoff=record))
    result = bench.sync()
    assert bool(bench.api.created) is creates
    assert result.wake_after_ns == (None if wake_s is None else at(wake_s) - at(0))


def test_a_failure_of_this_sync_holds_creations_back_at_once() -> None:
    just_failed = pod(
        "a",
        "Failed",
        containers=[
            {
                "name": "main",
                "restartCount": 0,
                "state": {"terminated": {"exitCode": 1, "finishedAt": "2026-03-01T11:59:58Z"}},
            }
        ],
    )
    bench = Bench.of(job(parallelism=2, completions=4), rules(), [*pods(1), just_failed])
    assert bench.sync().wake_after_ns == 8_000_000_000
    assert bench.api.created == []
    assert bench.status.failed == 1


def test_the_back_off_does_not_hold_deletions_back() -> None:
    bench = Bench.of(
        job(parallelism=1, completions=4),
        rules(),
        pods(2),
        memory=JobMemory(backoff=BackoffRecord(1, at(0))),
    )
    bench.sync()
    assert len(bench.api.deleted) == 1


@pytest.mark.parametrize(
    ("version", "active"),
    [
        pytest.param("v1.36.2", 0, id="1.36.2 tells 0 active pods while the back-off runs"),
        pytest.param("v1.36.3", 1, id="1.36.3 tells those that run"),
        pytest.param("v1.28.15", 0, id="1.28 tells 0"),
    ],
)
def test_active_pods_while_the_back_off_runs(version: str, active: int) -> None:
    bench = Bench.of(
        job(parallelism=2, completions=4),
        rules(version),
        pods(1),
        memory=JobMemory(backoff=BackoffRecord(1, at(-1))),
    )
    bench.sync()
    assert bench.status.active == active


def test_a_work_queue_job_with_a_success_starts_nothing_more() -> None:
    bench = Bench.of(
        job(parallelism=3, completions=None, status={"succeeded": 1}), rules(), pods(1)
    )
    bench.sync()
    assert bench.api.log == ["put"]
    assert bench.status.active == 1


def test_parallelism_scaled_down_spares_the_pod_that_is_ready() -> None:
    bench = Bench.of(
        job(parallelism=1, completions=5),
        rules(),
        [
            pod("warm", node="n", ready_since_ns=LONG_AGO_NS),
            pod("cold", node="n"),
            pod("new", "Pending"),
        ],
    )
    bench.sync()
    assert sorted(bench.api.deleted) == ["cold", "new"]


DYING = {"deleted_ns": at(-1), "grace_s": 30, "containers": [container()]}


@pytest.mark.parametrize(
    ("version", "last_failure_ns"),
    [("1.27.4", at(0)), ("1.27.5", at(-31)), ("1.28.0", at(-31))],
)
def test_a_pod_without_ended_containers_once_failed_in_the_moment_of_the_sync(
    version: str, last_failure_ns: int
) -> None:
    """Witnessed by traces/v1.27.4-churn606: replacements of deleted pods wait for 10 s there."""
    bench = Bench.of(job(), rules(version), [pod("a", "Running", **DYING)])
    bench.sync()
    assert bench.memory.backoff == BackoffRecord(1, last_failure_ns)
    replaced = bool(bench.api.batches)
    assert replaced is (last_failure_ns < at(-10))


IGNORE = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}}]}


@pytest.mark.parametrize(("version", "failures"), [("1.27.4", 0), ("1.27.5", 1), ("1.36.3", 1)])
def test_ignored_failures_count_for_the_back_off_from_1_27_5_on(
    version: str, failures: int
) -> None:
    """Unwitnessed: no trace of 1.27.0 to 1.27.4 has a pod failure policy."""
    ended = container(exit_code=3, finished_ns=at(-1))
    failed = pod("a", "Failed", containers=[ended])
    bench = Bench.of(job(podFailurePolicy=IGNORE), rules(version), [failed])
    bench.sync()
    assert bench.memory.backoff.failures_after_last_success == failures
    assert bench.status.failed == 0
    assert bool(bench.api.batches) is (failures == 0)


@pytest.mark.parametrize(("version", "seconds"), [("1.27.16", 0.25), ("1.28.0", 1)])
def test_the_timer_of_a_back_off_is_no_shorter_than_a_batch_from_1_28_on(
    version: str, seconds: float
) -> None:
    failed = pod("a", "Failed", containers=[container(exit_code=1, finished_ns=at(-9.75))])
    result = Bench.of(job(), rules(version), [failed]).sync()
    assert result.wake_after_ns == at(seconds) - at(0)
