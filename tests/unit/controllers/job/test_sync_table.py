"""What one sync does to pods and status, for Jobs of every shape, on four versions.

The cases are those of upstream's TestControllerSyncJob (pkg/controller/job/job_controller_test.go).
Each row holds on every version named in `on`; where versions differ, `by_version` says how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.fake_api import Bench, FakeApi
from tests.support.objects import (
    LONG_AGO_NS,
    at,
    condition,
    indexed_pods,
    job,
    pod,
    pods,
    ready_pods,
    rules,
)
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.base.kube.views import PodView
from tracekit.ports.actions import Outcome
from tracekit.ports.job.backoff import BackoffRecord
from tracekit.ports.job.memory import JobMemory, PodExpectations

OLD = "v1.28.15"  # no podReplacementPolicy, no interim condition but for pod failure policies
MODERN = ("v1.31.14", "v1.34.4", "v1.36.3")
EVERY = (OLD, *MODERN)


@dataclass(frozen=True)
class Case:
    """One Job, its pods, and what must come out; None means that the row does not care."""

    job: Mapping[str, Any] = field(default_factory=dict)
    pods: Sequence[PodView] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)
    api: Mapping[str, Any] = field(default_factory=dict)
    on: Sequence[str] = EVERY
    gates: Mapping[str, bool] = field(default_factory=dict)
    created: int = 0  # tries
    indexes: Sequence[int] | None = None
    deleted: int = 0
    patches: int = 0  # tries to take a finalizer away
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    completed: str = ""
    conditions: Sequence[tuple[str, str]] = ()  # (type, reason), all with status True
    terminating: int = 0
    error: bool = False
    by_version: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def want(self, version: str, name: str) -> Any:
        return self.by_version.get(version, {}).get(name, getattr(self, name))


WORK_QUEUE = {"completions": None}
EXPECTS_CREATION = {"expectations": PodExpectations(1, 0, at(-1))}
EXPECTS_DELETION = {"expectations": PodExpectations(0, 1, at(-1))}
COMPLETED = {
    OLD: {"conditions": [("Complete", "")]},
    **{
        version: {
            "conditions": [
                ("SuccessCriteriaMet", "CompletionsReached"),
                ("Complete", "CompletionsReached"),
            ]
        }
        for version in MODERN
    },
}
LIMIT = "BackoffLimitExceeded"
FAILED_AT_ONCE = {
    OLD: {"conditions": [("Failed", LIMIT)]},
    **{v: {"conditions": [("FailureTarget", LIMIT), ("Failed", LIMIT)]} for v in MODERN},
}
#: The pods that the sync deletes still terminate: from 1.31 on the terminal condition waits.
FAILED_WHEN_PODS_ARE_GONE = {
    OLD: {"conditions": [("Failed", LIMIT)], "terminating": None},
    **{v: {"conditions": [("FailureTarget", LIMIT)]} for v in MODERN},
}
#: Before 1.31 the status counts pods that this sync deleted neither as terminating nor as unready.
COUNTS_OF_OLD = {OLD: {"terminating": None}}

CASES: dict[str, Case] = {
    "a new job creates as many pods as its parallelism": Case(
        {"parallelism": 2, "completions": 5}, created=2, active=2
    ),
    "a new work queue job creates as many pods as its parallelism": Case(
        {"parallelism": 2, **WORK_QUEUE}, created=2, active=2
    ),
    "a job with fewer completions than parallelism creates one pod per completion": Case(
        {"parallelism": 5, "completions": 3}, created=3, active=3
    ),
    "a job with parallelism 0 creates nothing": Case({"parallelism": 0, "completions": 3}),
    "a job with 0 completions is complete at once": Case(
        {"parallelism": 2, "completions": 0}, by_version=COMPLETED
    ),
    "pending pods are active": Case(
        {"parallelism": 2, "completions": 5}, pods(2, "Pending"), active=2
    ),
    "pods of an unknown phase are active": Case(
        {"parallelism": 2, "completions": 5}, pods(2, "Unknown"), active=2
    ),
    "the right number of pods is left alone and the ready ones are counted": Case(
        {"parallelism": 3, "completions": 5}, [*ready_pods(2), *pods(1)], active=3, ready=2
    ),
    "a work queue job with the right number of pods is left alone": Case(
        {"parallelism": 2, **WORK_QUEUE}, pods(2), active=2
    ),
    "too few active pods beside a success: one is added, the success counted": Case(
        {"parallelism": 2, "completions": 5},
        [*pods(1), *pods(1, "Succeeded")],
        created=1,
        patches=1,
        active=2,
        succeeded=1,
    ),
    "too few active pods of a work queue job: one is added": Case(
        {"parallelism": 2, **WORK_QUEUE}, pods(1), created=1, active=2
    ),
    "too few active pods while the back-off runs: none is added": Case(
        memory={"backoff": BackoffRecord(1, at(-1))}
    ),
    "too few active pods when the back-off is over: one is added": Case(
        memory={"backoff": BackoffRecord(1, at(-10))}, created=1, active=1
    ),
    "too few active pods and no failure since the last success: one is added": Case(
        memory={"backoff": BackoffRecord(0, None)}, created=1, active=1
    ),
    "a refused creation is not counted as active and fails the sync": Case(
        {"parallelism": 2, "completions": 5},
        pods(1),
        api={"create_limit": 0},
        created=1,
        active=1,
        error=True,
    ),
    "a finalizer that cannot be removed leaves the success uncounted and fails the sync": Case(
        {"parallelism": 2, "completions": 5},
        [*pods(2), *pods(1, "Succeeded")],
        api={"patch_answers": {"succeeded-0": Outcome.REFUSED}},
        patches=1,
        active=2,
        error=True,
    ),
    "a finalizer that cannot be removed leaves the failure uncounted and fails the sync": Case(
        {"parallelism": 2, "completions": 5},
        [*pods(2), *pods(1, "Failed")],
        api={"patch_answers": {"failed-0": Outcome.TIMEOUT}},
        patches=1,
        active=2,
        error=True,
    ),
    "too many active pods: one is deleted": Case(
        {"parallelism": 2, "completions": 5},
        pods(3),
        deleted=1,
        patches=1,
        active=2,
        terminating=1,
        by_version=COUNTS_OF_OLD,
    ),
    "too many active pods and a refused deletion: the pod stays active, the sync fails": Case(
        {"parallelism": 2, "completions": 5},
        pods(3),
        api={"delete_answers": {f"running-{n}": Outcome.REFUSED for n in range(3)}},
        deleted=1,
        patches=1,
        active=3,
        error=True,
        by_version=COUNTS_OF_OLD,
    ),
    "too many active pods and a refused patch: no deletion is tried": Case(
        {"parallelism": 2, "completions": 5},
        pods(3),
        api={"patch_answers": {f"running-{n}": Outcome.REFUSED for n in range(3)}},
        patches=1,
        active=3,
        error=True,
        by_version=COUNTS_OF_OLD,
    ),
    "too many active pods and one that is gone already: the deletion counts as done": Case(
        {"parallelism": 2, "completions": 5},
        pods(3),
        api={"delete_answers": {f"running-{n}": Outcome.NOT_FOUND for n in range(3)}},
        deleted=1,
        patches=1,
        active=2,
        terminating=1,
        by_version=COUNTS_OF_OLD,
    ),
    "too many active pods, all ready: the deleted one is not counted as ready": Case(
        {"parallelism": 2, "completions": 5},
        ready_pods(3),
        deleted=1,
        patches=1,
        active=2,
        ready=2,
        terminating=1,
        by_version={OLD: {"ready": 3, "terminating": None}},
    ),
    "more active pods than parallelism: the rest is deleted": Case(
        {"parallelism": 2, "completions": 5},
        pods(10),
        deleted=8,
        patches=8,
        active=2,
        terminating=8,
        by_version=COUNTS_OF_OLD,
    ),
    "more active pods than completions that are left: the rest is deleted": Case(
        {"parallelism": 3, "completions": 4},
        [*pods(3), *pods(2, "Succeeded")],
        deleted=1,
        patches=3,
        active=2,
        succeeded=2,
        terminating=1,
        by_version=COUNTS_OF_OLD,
    ),
    "more than 500 active pods too many: 500 are deleted": Case(
        {"parallelism": 0, "completions": 600},
        pods(520),
        deleted=500,
        patches=500,
        active=20,
        terminating=500,
        by_version=COUNTS_OF_OLD,
    ),
    "more than 500 pods to create: 500 are created": Case(
        {"parallelism": 620, "completions": 620}, created=500, active=500
    ),
    "a success and a failure: both are counted, and the old failure holds nothing back": Case(
        {"parallelism": 2, "completions": 5},
        [*pods(1), *pods(1, "Succeeded"), *pods(1, "Failed")],
        created=1,
        patches=2,
        active=2,
        succeeded=1,
        failed=1,
    ),
    "a new failure long ago: it is counted and replaced": Case(
        {"parallelism": 2, "completions": 5},
        [*pods(1), *pods(1, "Failed")],
        created=1,
        patches=1,
        active=2,
        failed=1,
    ),
    "a failure that was counted before changes nothing": Case(
        {"status": {"active": 1, "failed": 1, "ready": 0, "terminating": 0}},
        pods(1),
        active=1,
        failed=1,  # 1.28 does not even write that it has no status.terminating
    ),
    "all completions reached: the job is complete": Case(
        {"parallelism": 2, "completions": 5},
        pods(5, "Succeeded"),
        patches=5,
        succeeded=5,
        by_version=COMPLETED,
    ),
    "a work queue job with a success waits for the pods that still run": Case(
        {"parallelism": 2, **WORK_QUEUE},
        [*pods(1), *pods(1, "Succeeded")],
        patches=1,
        active=1,
        succeeded=1,
    ),
    "a work queue job whose pods all succeeded is complete": Case(
        {"parallelism": 2, **WORK_QUEUE},
        pods(2, "Succeeded"),
        patches=2,
        succeeded=2,
        by_version=COMPLETED,
    ),
    "a work queue job with a success and a failure is complete": Case(
        {"parallelism": 2, **WORK_QUEUE},
        [*pods(1, "Succeeded"), *pods(1, "Failed")],
        patches=2,
        succeeded=1,
        failed=1,
        by_version=COMPLETED,
    ),
    "successes beside running pods only change the status": Case(
        {"parallelism": 2, "completions": 5},
        [*pods(2), *pods(2, "Succeeded")],
        patches=2,
        active=2,
        succeeded=2,
    ),
    "a job that is being deleted releases every pod and creates none": Case(
        {"parallelism": 2, "completions": 5, "deleted": True},
        [*pods(1, "Pending"), *pods(1), *pods(1, "Succeeded")],
        patches=3,
        active=2,
        succeeded=1,
    ),
    "a job that is being deleted and has too many pods deletes none": Case(
        {"parallelism": 1, "completions": 5, "deleted": True}, pods(3), patches=3, active=3
    ),
    "creations up to a quota: the slow start ends at the first refusal": Case(
        {"parallelism": 100, "completions": 200},
        api={"create_limit": 10},
        created=15,
        active=10,
        error=True,
    ),
    "more failures than the limit: the job has failed": Case(
        {"parallelism": 2, "completions": 5, "backoff_limit": 0},
        pods(1, "Failed"),
        patches=1,
        failed=1,
        by_version=FAILED_AT_ONCE,
    ),
    "more failures than the limit of a job that is being deleted: it has failed too": Case(
        {"parallelism": 2, "completions": 5, "backoff_limit": 0, "deleted": True},
        pods(1, "Failed"),
        patches=1,
        failed=1,
        by_version=FAILED_AT_ONCE,
    ),
    "as many failures as the limit: the job goes on": Case(
        {"parallelism": 1, "completions": 5, "backoff_limit": 2},
        pods(2, "Failed"),
        created=1,
        patches=2,
        active=1,
        failed=2,
    ),
    "more failures than the limit while creations are expected: the end is postponed": Case(
        {"parallelism": 2, "completions": 5, "backoff_limit": 0, "deleted": True},
        pods(1, "Failed"),
        EXPECTS_CREATION,
        patches=1,
        failed=1,
    ),
    "more failures than the limit and a deletion refused: the end is postponed": Case(
        {"parallelism": 2, "completions": 5, "backoff_limit": 0},
        [*pods(2), *pods(1, "Failed")],
        api={"delete_answers": {"running-0": Outcome.REFUSED}},
        deleted=2,
        patches=1,
        active=1,
        failed=1,
        terminating=1,
        error=True,
        by_version=COUNTS_OF_OLD,
    ),
    "a failed job deletes its ready pods and counts them as failed": Case(
        {"parallelism": 2, "completions": 3, "backoff_limit": 0},
        [*ready_pods(2), *pods(1, "Failed")],
        deleted=2,
        patches=3,
        failed=3,
        terminating=2,
        by_version={
            **FAILED_WHEN_PODS_ARE_GONE,
            OLD: {**FAILED_WHEN_PODS_ARE_GONE[OLD], "ready": 2},
        },
    ),
    "creations are expected: nothing is created, the status is written": Case(
        {"parallelism": 2, "completions": 5}, memory=EXPECTS_CREATION
    ),
    "deletions are expected: too many pods are left alone": Case(
        {"parallelism": 1, "completions": 5}, pods(3), EXPECTS_DELETION, active=3
    ),
    "an expectation older than five minutes holds nothing back": Case(
        {"parallelism": 2, "completions": 5},
        memory={"expectations": PodExpectations(2, 0, at(-301))},
        created=2,
        active=2,
    ),
    "an expectation of exactly five minutes still holds": Case(
        {"parallelism": 2, "completions": 5},
        memory={"expectations": PodExpectations(2, 0, at(-300))},
    ),
    "a FailureTarget condition that is False is ignored": Case(
        {
            "status": {
                "active": 1,
                "ready": 1,
                "startTime": format_rfc3339(LONG_AGO_NS),
                "conditions": [condition("FailureTarget", "False", "AddedByHand")],
            }
        },
        ready_pods(1),
        active=1,
        ready=1,
        conditions=[("FailureTarget", "AddedByHand")],
    ),
    "a SuccessCriteriaMet condition that is False is ignored": Case(
        {
            "status": {
                "active": 1,
                "ready": 1,
                "startTime": format_rfc3339(LONG_AGO_NS),
                "conditions": [condition("SuccessCriteriaMet", "False", "AddedByHand")],
            }
        },
        ready_pods(1),
        on=MODERN,
        active=1,
        ready=1,
        conditions=[("SuccessCriteriaMet", "AddedByHand")],
    ),
}

INDEXED = {"indexed": True}
INDEXED_CASES: dict[str, Case] = {
    "a new indexed job creates the lowest indexes": Case(
        {"parallelism": 2, "completions": 5, **INDEXED}, created=2, active=2, indexes=[0, 1]
    ),
    "every index succeeded: complete, and a failure on the way is counted": Case(
        {"parallelism": 2, "completions": 3, **INDEXED},
        indexed_pods((0, "Succeeded"), (1, "Failed"), (1, "Succeeded"), (2, "Succeeded")),
        patches=4,
        succeeded=3,
        failed=1,
        completed="0-2",
        by_version=COMPLETED,
    ),
    "an indexed job beyond its limit deletes what runs and counts it as failed": Case(
        {"parallelism": 2, "completions": 3, "backoff_limit": 0, **INDEXED},
        indexed_pods((0, "Succeeded"), (1, "Failed"), (2, "Running")),
        deleted=1,
        patches=3,
        succeeded=1,
        failed=2,
        completed="0",
        terminating=1,
        by_version=FAILED_WHEN_PODS_ARE_GONE,
    ),
    "two successes of one index count once": Case(
        {"parallelism": 2, "completions": 3, **INDEXED},
        indexed_pods((0, "Succeeded"), (1, "Succeeded"), (1, "Succeeded")),
        created=1,
        indexes=[2],
        patches=3,
        active=1,
        succeeded=2,
        completed="0,1",
    ),
    "running and succeeded indexes are skipped when new ones are picked": Case(
        {"parallelism": 8, "completions": 20, **INDEXED},
        indexed_pods(
            (0, "Running"),
            (2, "Succeeded"),
            (3, "Pending"),
            *((index, "Succeeded") for index in (4, 5, 7, 8, 9)),
        ),
        created=6,
        indexes=[1, 6, 10, 11, 12, 13],
        patches=6,
        active=8,
        succeeded=6,
        completed="2,4,5,7-9",
    ),
    "failed indexes are started again": Case(
        {"parallelism": 3, "completions": 4, **INDEXED},
        indexed_pods((0, "Failed"), (1, "Pending"), (2, "Failed")),
        created=2,
        indexes=[0, 2],
        patches=2,
        active=3,
        failed=2,
    ),
    "pods without a valid index are deleted and count nowhere": Case(
        {"parallelism": 2, "completions": 5, **INDEXED},
        indexed_pods(
            (None, "Running"),
            (None, "Succeeded"),
            (None, "Failed"),
            ("x", "Running"),
            ("x", "Succeeded"),
            ("x", "Failed"),
            ("-1", "Pending"),
            (0, "Succeeded"),
            (1, "Running"),
            (2, "Running"),
        ),
        deleted=3,
        patches=8,
        active=2,
        succeeded=1,
        completed="0",
        terminating=3,
        by_version=COUNTS_OF_OLD,
    ),
    "a repeated index loses its less advanced pod, and nothing is created in that sync": Case(
        {"parallelism": 5, "completions": 5, **INDEXED},
        indexed_pods(
            (None, "Running"),
            (0, "Succeeded"),
            (1, "Running"),
            (2, "Running"),
            (2, "Pending"),
        ),
        deleted=2,
        patches=3,
        active=2,
        succeeded=1,
        completed="0",
        terminating=2,
        by_version=COUNTS_OF_OLD,
    ),
    "indexes beyond completions are deleted and count nowhere": Case(
        {"parallelism": 2, "completions": 5, **INDEXED},
        indexed_pods(
            (0, "Succeeded"), (5, "Running"), (6, "Succeeded"), (7, "Pending"), (8, "Failed")
        ),
        deleted=2,
        patches=5,
        succeeded=1,
        completed="0",
        terminating=2,
        by_version=COUNTS_OF_OLD,
    ),
    "completions scaled down: the active pod beyond goes and the job waits for its sync": Case(
        {
            "parallelism": 2,
            "completions": 2,
            **INDEXED,
            "status": {"succeeded": 1, "completedIndexes": "0", "active": 2},
        },
        indexed_pods((1, "Running"), (2, "Running")),
        deleted=1,
        patches=1,
        active=1,
        succeeded=1,
        completed="0",
        terminating=1,
        by_version=COUNTS_OF_OLD,
    ),
    "completions scaled below what succeeded: indexes beyond are forgotten": Case(
        {
            "parallelism": 2,
            "completions": 2,
            **INDEXED,
            "status": {"succeeded": 1, "completedIndexes": "3", "active": 2},
        },
        indexed_pods((0, "Running"), (1, "Running")),
        active=2,
    ),
    "completions scaled to what succeeded: the job is complete": Case(
        {
            "parallelism": 3,
            "completions": 3,
            **INDEXED,
            "status": {"succeeded": 4, "completedIndexes": "0-3"},
        },
        succeeded=3,
        completed="0-2",
        by_version=COMPLETED,
    ),
    "completions scaled up: the new indexes are started": Case(
        {
            "parallelism": 4,
            "completions": 4,
            **INDEXED,
            "status": {"succeeded": 2, "completedIndexes": "0,1"},
        },
        created=2,
        indexes=[2, 3],
        active=2,
        succeeded=2,
        completed="0,1",
    ),
    "501 indexes succeeded: 500 are counted, the rest waits for the next sync": Case(
        {"parallelism": 600, "completions": 600, **INDEXED, "status": {"active": 0, "ready": 0}},
        [pod(f"pod-{index}", "Succeeded", index=index) for index in range(501)],
        created=99,
        patches=500,
        active=99,
        succeeded=501,
        completed="0-500",
    ),
}

SUSPENDED = [("Suspended", "JobSuspended")]
SUSPEND_CASES: dict[str, Case] = {
    "suspended: every active pod is deleted": Case(
        {"parallelism": 2, "completions": 4, "suspend": True},
        pods(2),
        deleted=2,
        patches=2,
        conditions=SUSPENDED,
        terminating=2,
        by_version=COUNTS_OF_OLD,
    ),
    "suspended with ready pods: they are no longer counted": Case(
        {"parallelism": 2, "completions": 4, "suspend": True},
        ready_pods(2),
        deleted=2,
        patches=2,
        conditions=SUSPENDED,
        terminating=2,
        by_version={OLD: {"ready": 2, "terminating": None}},
    ),
    "suspended with more than 500 pods: all of them go at once": Case(
        {"parallelism": 600, "completions": 600, "suspend": True},
        pods(510),
        deleted=510,
        patches=510,
        conditions=SUSPENDED,
        terminating=510,
        by_version=COUNTS_OF_OLD,
    ),
    "suspended while a deletion is expected: nothing happens yet": Case(
        {"parallelism": 2, "completions": 4, "suspend": True},
        pods(3),
        EXPECTS_DELETION,
        active=3,
    ),
    "suspended with ready pods while a deletion is expected: they are counted": Case(
        {"parallelism": 2, "completions": 4, "suspend": True},
        ready_pods(3),
        EXPECTS_DELETION,
        active=3,
        ready=3,
    ),
    "suspended and being deleted: pods are released, not deleted": Case(
        {"parallelism": 2, "completions": 4, "suspend": True, "deleted": True},
        pods(2),
        patches=2,
        active=2,
    ),
    "suspended with all completions reached: complete, not suspended": Case(
        {"parallelism": 2, "completions": 2, "suspend": True},
        pods(2, "Succeeded"),
        patches=2,
        succeeded=2,
        by_version=COMPLETED,
    ),
}


@pytest.mark.parametrize(
    ("case", "version"),
    [
        pytest.param(case, version, id=f"{name} [{version}]")
        for name, case in {**CASES, **INDEXED_CASES, **SUSPEND_CASES}.items()
        for version in case.on
    ],
)
def test_one_sync(case: Case, version: str) -> None:
    bench = Bench.of(
        job(**case.job),
        rules(version, case.gates),
        case.pods,
        memory=JobMemory(**case.memory),
        api=FakeApi(**case.api),
    )

    result = bench.sync()

    api, status = bench.api, bench.status
    seen = {
        "created": len(api.created),
        "deleted": len(api.deleted),
        "patches": len(api.finalizers_removed),
        "active": status.active,
        "ready": status.ready or 0,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "completed": status.completed_indexes,
        "terminating": status.terminating or 0,
        "conditions": [(c.type, c.reason) for c in status.conditions],
        "error": result.error,
    }
    expected = {name: case.want(version, name) for name in seen}
    expected["conditions"] = list(expected["conditions"])
    if expected["terminating"] is None:
        assert status.terminating is None, "the version has no status.terminating"
        expected["terminating"] = 0
    assert seen == expected
    if case.indexes is not None:
        assert [intent.completion_index for intent in api.created] == list(case.indexes)


@pytest.mark.parametrize("version", EVERY)
def test_resuming_creates_pods_and_starts_the_clock_anew(version: str) -> None:
    bench = Bench.of(
        job(
            parallelism=2,
            completions=4,
            suspend=False,
            status={
                "startTime": format_rfc3339(LONG_AGO_NS),
                "conditions": [condition("Suspended", "True", "JobSuspended", "Job suspended")],
            },
        ),
        rules(version),
    )

    assert not bench.sync().error

    (suspended,) = bench.status.conditions
    assert (suspended.type, suspended.status) == ("Suspended", "False")
    assert (suspended.reason, suspended.message) == ("JobResumed", "Job resumed")
    assert bench.status.start_ns == bench.now_ns
    assert len(bench.api.created) == 2
    assert bench.api.events == [("Normal", "Resumed", "Job resumed")]


def test_a_job_that_was_never_suspended_gets_no_condition_about_it() -> None:
    bench = Bench.of(job(suspend=False), rules())
    bench.sync()
    assert bench.status.conditions == ()


@pytest.mark.parametrize(
    ("version", "gates", "started"),
    [
        pytest.param("v1.36.3", {}, False, id="1.36 forgets the start time of a suspended job"),
        pytest.param("v1.35.0", {}, True, id="1.35 keeps it"),
        pytest.param(
            "v1.36.3",
            {"MutableSchedulingDirectivesForSuspendedJobs": False},
            True,
            id="1.36 without the gate keeps it",
        ),
    ],
)
def test_start_time_of_a_job_that_is_suspended(
    version: str, gates: dict[str, bool], started: bool
) -> None:
    status = {"startTime": format_rfc3339(LONG_AGO_NS), "active": 1}
    bench = Bench.of(job(suspend=True, status=status), rules(version, gates), pods(1))

    bench.sync()

    assert bench.status.start_ns == (LONG_AGO_NS if started else None)
    assert bench.api.events == [("Normal", "Suspended", "Job suspended")]


def test_a_job_created_suspended_has_no_start_time() -> None:
    bench = Bench.of(job(suspend=True), rules())
    bench.sync()
    assert bench.status.start_ns is None


def test_a_new_job_starts_now() -> None:
    bench = Bench.of(job(), rules())
    bench.sync()
    assert bench.status.start_ns == bench.now_ns
