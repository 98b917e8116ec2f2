"""Counting finished pods once: uncounted lists, finalizers, counters, and the caps.

Upstream: pkg/controller/job/job_controller_test.go: TestTrackJobStatusAndRemoveFinalizers,
TestGetNewFinshedPods; here every case goes through a whole sync.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.fake_api import Bench, FakeApi
from tests.support.objects import LONG_AGO_NS, at, job, pod, pods, rules
from tracekit.base.kube.views import JobStatus, PodView
from tracekit.ports.actions import Outcome
from tracekit.ports.job.backoff import BackoffRecord
from tracekit.ports.job.memory import JobMemory


def uncounted(
    done: Sequence[str] = (), broken: Sequence[str] = (), **counters: Any
) -> dict[str, Any]:
    return {
        **counters,
        "uncountedTerminatedPods": {"succeeded": list(done), "failed": list(broken)},
    }


def put(status: JobStatus) -> tuple[set[str], set[str], int, int]:
    """Of a status that was written: uncounted succeeded and failed, counted succeeded and failed."""
    return (
        set(status.uncounted_succeeded),
        set(status.uncounted_failed),
        status.succeeded,
        status.failed,
    )


@dataclass(frozen=True)
class Case:
    job: Mapping[str, Any]
    pods: Sequence[PodView]
    puts: Sequence[tuple[set[str], set[str], int, int]]
    removed: int
    finalizers: frozenset[str] = frozenset()  # removals that were sent before
    api: Mapping[str, Any] = field(default_factory=dict)
    error: bool = False


BUSY = {"parallelism": 2, "completions": 1000}  # never complete, and the running pods suffice
A_FEW = [
    pod("a", "Succeeded"),
    pod("b", "Failed"),
    pod("c", "Succeeded", deleted_ns=LONG_AGO_NS),
    pod("d", "Failed", deleted_ns=LONG_AGO_NS),
    pod("e", "Pending", deleted_ns=LONG_AGO_NS),
    *pods(2),
]

CASES: dict[str, Case] = {
    "finished and deleted pods are noted, released, counted": Case(
        BUSY, A_FEW, [({"a", "c"}, {"b", "d", "e"}, 0, 0), (set(), set(), 2, 3)], 5
    ),
    "pods noted earlier: those without finalizer are counted first": Case(
        {**BUSY, "status": uncounted(["a", "e"], ["b", "f"], active=1, succeeded=2, failed=3)},
        [
            *pods(2),
            pod("e", "Succeeded", finalizer=False),
            pod("g", "Failed", finalizer=False),
            pod("h", "Pending", finalizer=False, deleted_ns=LONG_AGO_NS),
            pod("a", "Succeeded"),
            pod("b", "Failed"),
            pod("c", "Succeeded"),
            pod("d", "Failed"),
        ],
        [({"a", "c"}, {"b", "d"}, 3, 4), (set(), set(), 5, 6)],
        4,
    ),
    "removals that were sent and not seen yet count as done": Case(
        {**BUSY, "status": uncounted(["a", "g"], ["b", "h"], succeeded=2, failed=3)},
        [
            *pods(2),
            *(pod(name, "Succeeded") for name in "aceg"),
            *(pod(name, "Failed") for name in "bdfh"),
        ],
        [({"a", "e"}, {"b", "f"}, 3, 4), (set(), set(), 5, 6)],
        4,
        finalizers=frozenset("cdgh"),
    ),
    "a status that cannot be written keeps every finalizer": Case(
        BUSY,
        [*pods(2), pod("a", "Succeeded"), pod("b", "Failed")],
        [({"a"}, {"b"}, 0, 0)],
        0,
        api={"put_answers": [Outcome.CONFLICT]},
        error=True,
    ),
    "no finalizer can be removed: nothing is counted": Case(
        BUSY,
        [*pods(2), pod("a", "Succeeded"), pod("b", "Failed")],
        [({"a"}, {"b"}, 0, 0)],
        2,
        api={"patch_answers": {"a": Outcome.REFUSED, "b": Outcome.TIMEOUT}},
        error=True,
    ),
    "no finalizer can be removed: what was gone before is counted": Case(
        {**BUSY, "status": uncounted(["a"], ["b"])},
        [
            *pods(2),
            pod("a", "Succeeded", finalizer=False),
            pod("c", "Succeeded"),
            pod("d", "Failed"),
        ],
        [({"c"}, {"d"}, 1, 1)],
        2,
        api={"patch_answers": {"c": Outcome.REFUSED, "d": Outcome.REFUSED}},
        error=True,
    ),
    "one finalizer cannot be removed: the other pod is counted": Case(
        BUSY,
        [*pods(2), pod("a", "Succeeded"), pod("b", "Failed")],
        [({"a"}, {"b"}, 0, 0), ({"a"}, set(), 0, 1)],
        2,
        api={"patch_answers": {"a": Outcome.REFUSED}},
        error=True,
    ),
    "a pod that is gone when its finalizer shall go is counted": Case(
        BUSY,
        [*pods(2), pod("a", "Succeeded"), pod("b", "Failed")],
        [({"a"}, {"b"}, 0, 0), (set(), set(), 1, 1)],
        2,
        api={"patch_answers": {"a": Outcome.NOT_FOUND}},
    ),
    "500 pods are noted at most; one noted before counts among them": Case(
        {**BUSY, "status": uncounted(broken=["gone", "late"])},
        [*pods(2), *pods(500, "Succeeded"), pod("late", "Failed")],
        [
            ({f"succeeded-{n}" for n in range(499)}, {"late"}, 0, 1),
            (set(), {"late"}, 499, 1),
        ],
        499,
    ),
    "a pod noted as failed that turns out succeeded stays failed": Case(
        {**BUSY, "status": uncounted(broken=["a", "b"])},
        [*pods(2), pod("a", "Failed"), pod("b", "Succeeded")],
        # The first sum takes it for both; only what is in the lists is written.
        [(set(), {"a", "b"}, 0, 0), (set(), set(), 0, 2)],
        2,
    ),
    "a job that is being deleted releases running pods without counting them": Case(
        {**BUSY, "deleted": True},
        [pod("a", "Succeeded"), pod("b", "Failed"), pod("c", "Running")],
        [({"a"}, {"b"}, 0, 0), (set(), set(), 1, 1)],
        3,
    ),
}


@pytest.mark.parametrize("version", ["v1.28.15", "v1.36.3"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_counting(case: Case, version: str) -> None:
    bench = Bench.of(
        job(**case.job),
        rules(version),
        case.pods,
        memory=JobMemory(finalizers=case.finalizers),
        api=FakeApi(**case.api),
    )
    result = bench.sync()
    assert [put(status) for status in bench.api.puts] == list(case.puts)
    assert len(bench.api.finalizers_removed) == case.removed
    assert result.error is case.error


def test_a_sync_that_changes_nothing_writes_nothing() -> None:
    bench = Bench.of(job(**BUSY), rules(), pods(2))
    bench.sync()
    bench.see_status()
    before = len(bench.api.puts)
    bench.sync()
    assert len(bench.api.puts) == before == 1
    assert bench.api.finalizers_removed == []


def test_pods_without_a_finalizer_that_no_list_names_were_counted_long_ago() -> None:
    status = {"succeeded": 7, "failed": 3, "active": 2, "ready": 0, "terminating": 0}
    given = [pod("a", "Succeeded", finalizer=False), pod("b", "Failed", finalizer=False)]
    bench = Bench.of(job(**BUSY, status=status), rules(), [*pods(2), *given])
    bench.sync()
    # The start time is new, and that alone is no reason to write.
    assert bench.api.log == []


def test_status_first_finalizers_second_counters_third() -> None:
    bench = Bench.of(job(**BUSY), rules(), [*pods(2), pod("a", "Succeeded"), pod("b", "Failed")])
    bench.sync()
    assert bench.api.log == ["put", "finalizer", "finalizer", "put"]


def test_pods_are_deleted_before_the_status_tells_it() -> None:
    bench = Bench.of(job(parallelism=1, completions=5), rules(), [*pods(2), pod("a", "Succeeded")])
    bench.sync()
    assert bench.api.log == ["finalizer", "delete", "put", "finalizer", "put"]


def test_removals_are_expected_until_the_informer_shows_them() -> None:
    bench = Bench.of(job(**BUSY), rules(), [*pods(2), pod("a", "Succeeded")])
    bench.sync()
    assert bench.memory.finalizers == {"a"}
    bench.see_status()

    # The cache still shows the finalizer: the pod is not counted again.
    bench.sync()
    assert (bench.status.succeeded, bench.api.finalizers_removed) == (1, ["a"])

    bench.see_pods()
    assert bench.memory.finalizers == frozenset()


def test_a_removal_that_failed_is_not_expected() -> None:
    bench = Bench.of(
        job(**BUSY),
        rules(),
        [*pods(2), pod("a", "Succeeded"), pod("b", "Succeeded")],
        api=FakeApi(patch_answers={"a": Outcome.REFUSED}),
    )
    bench.sync()
    assert bench.memory.finalizers == {"b"}


def test_two_syncs_count_more_pods_than_one_may_note() -> None:
    bench = Bench.of(job(**BUSY), rules(), [*pods(2), *pods(700, "Succeeded")])
    bench.sync()
    assert bench.status.succeeded == 500
    bench.see_status()
    bench.see_pods()
    bench.sync()
    assert bench.status.succeeded == 700
    assert len(set(bench.api.finalizers_removed)) == 700


def test_a_capped_sync_does_not_finish_the_job() -> None:
    bench = Bench.of(job(completions=600, parallelism=600), rules(), pods(600, "Succeeded"))
    bench.sync()
    assert [c.type for c in bench.status.conditions] == ["SuccessCriteriaMet"]
    bench.see_status()
    bench.see_pods()
    bench.sync()
    assert [c.type for c in bench.status.conditions] == ["SuccessCriteriaMet", "Complete"]
    assert bench.status.succeeded == 600


def test_the_back_off_record_is_kept_once_the_status_is_written() -> None:
    failed = pod("a", "Failed")
    bench = Bench.of(job(**BUSY), rules(), [*pods(2), failed])
    bench.sync()
    assert bench.memory.backoff == BackoffRecord(1, LONG_AGO_NS)


def test_a_failure_is_added_to_the_record_once() -> None:
    bench = Bench.of(
        job(**BUSY),
        rules(),
        [*pods(2), pod("a", "Failed")],
        memory=JobMemory(backoff=BackoffRecord(2, at(-5000))),
    )
    bench.sync()
    bench.see_status()
    bench.see_pods()
    bench.sync()
    assert bench.memory.backoff == BackoffRecord(3, LONG_AGO_NS)


INDEXED_CASES: dict[str, tuple[dict[str, Any], list[PodView], list[tuple[str, int, int]], int]] = {
    # (completedIndexes, succeeded, failed) of each status that is written
    "new successes": (
        {"completions": 6},
        [
            pod("a", "Succeeded", index=1),
            pod("b", "Succeeded", index=3),
            pod("c", "Succeeded", index=3),
            pod("d", index=5),
            pod("e", index=0),
            pod("f", "Succeeded"),
        ],
        [("1,3", 2, 0)],
        4,
    ),
    "new failures": (
        {"completions": 6},
        [
            pod("a", "Failed", index=1),
            pod("b", "Failed", index=3),
            pod("c", "Failed", index=3),
            pod("d", index=5),
            pod("e", index=0),
            pod("f", "Failed"),
        ],
        [("", 0, 0), ("", 0, 3)],
        4,
    ),
    "counted ones and new ones": (
        {
            "completions": 7,
            "status": {"completedIndexes": "0-2,4,6,7", "succeeded": 6, "failed": 2},
        },
        [
            pod("x", "Succeeded", index=0, finalizer=False),
            pod("y", "Failed", index=1, finalizer=False),
            pod("z", "Succeeded", index=1),
            pod("w", "Succeeded", index=3),
            pod("a", "Failed", index=2),
            pod("b", "Failed", index=5),
            pod("c", index=5),
        ],
        [("0-4,6", 6, 2), ("0-4,6", 6, 4)],
        4,
    ),
    "a success in range, one beyond forgotten": (
        {"completions": 2, "status": {"completedIndexes": "3", "succeeded": 1, "active": 1}},
        [pod("a", index=0), pod("b", "Succeeded", index=1)],
        [("1", 1, 0)],
        1,
    ),
}


@pytest.mark.parametrize(
    ("given", "found", "expected", "removed"), INDEXED_CASES.values(), ids=INDEXED_CASES.keys()
)
def test_counting_by_index(
    given: dict[str, Any], found: list[PodView], expected: list[tuple[str, int, int]], removed: int
) -> None:
    bench = Bench.of(job(parallelism=2, indexed=True, **given), rules(), found)
    bench.sync()
    seen = [(s.completed_indexes, s.succeeded, s.failed) for s in bench.api.puts]
    assert seen == expected
    assert len(bench.api.finalizers_removed) == removed


def test_an_index_of_two_successes_is_counted_once_across_syncs() -> None:
    """1. index 0 succeeds and is counted, 2. its twin succeeds too: released, not counted."""
    bench = Bench.of(
        job(parallelism=2, completions=3, indexed=True),
        rules(),
        [pod("a", "Succeeded", index=0), pod("b", index=1), pod("c", index=2)],
    )
    bench.sync()
    bench.see_status()
    bench.see_pods()
    bench.api.pods["d"] = pod("d", "Succeeded", index=0)
    bench.see_pods()
    bench.sync()
    assert bench.api.finalizers_removed == ["a", "d"]
    assert (bench.status.succeeded, bench.status.completed_indexes) == (1, "0")
