"""What ends a Job: limits, deadlines, policies; the interim condition and the terminal one.

Upstream: pkg/controller/job/job_controller_test.go: TestSyncJobPastDeadline,
TestSyncJobWithJobPodFailurePolicy, TestSyncJobWithJobSuccessPolicy,
TestSyncJobWithJobBackoffLimitPerIndex, TestPastBackoffLimitOnFailure, TestSingleJobFailedCondition,
TestSyncJobComplete, TestSyncJobWhenManagedBy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.fake_api import Bench, FakeApi
from tests.support.objects import (
    LONG_AGO_NS,
    at,
    condition,
    condition_rule,
    container,
    exit_code_rule,
    indexed_pods,
    job,
    pod,
    pods,
    ready_pods,
    rules,
)
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.base.kube.views import (
    INDEX_FAILURE_COUNT_ANNOTATION,
    INDEX_IGNORED_FAILURE_COUNT_ANNOTATION,
    JOB_TRACKING_ANNOTATION,
    PodView,
)
from tracekit.ports.actions import Outcome
from tracekit.ports.job.backoff import NO_FAILURES, BackoffRecord
from tracekit.ports.job.memory import JobMemory, PodExpectations

#: Every gate of the Job controller that a 1.32 lets one turn off: endings are terminal at once.
BARE = ("v1.32.0", {"JobPodReplacementPolicy": False, "JobManagedBy": False})
REPLACING = ("v1.32.0", {"JobPodReplacementPolicy": True, "JobManagedBy": False})
MANAGED = ("v1.32.0", {"JobPodReplacementPolicy": False, "JobManagedBy": True})
V1_36 = ("v1.36.3", {})
V1_28 = ("v1.28.15", {})

UNLIMITED = 2**31 - 1
LIMIT = "BackoffLimitExceeded"
DEADLINE = "DeadlineExceeded"


def started(seconds_ago: int, **more: Any) -> dict[str, Any]:
    return {"startTime": format_rfc3339(at(-seconds_ago)), **more}


@dataclass(frozen=True)
class Case:
    job: Mapping[str, Any]
    pods: Sequence[PodView] = ()
    under: tuple[str, Mapping[str, bool]] = V1_36
    conditions: Sequence[tuple[str, str]] = ()  # (type, reason) of those that are True
    message: str | None = None  # of the last condition
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    deleted: int = 0
    completed: str = ""
    failed_indexes: str | None = None
    wake_s: float | None = None
    memory: Mapping[str, Any] = field(default_factory=dict)


def run(case: Case) -> Bench:
    version, gates = case.under
    bench = Bench.of(
        job(**case.job), rules(version, gates), case.pods, memory=JobMemory(**case.memory)
    )
    result = bench.sync()
    assert not result.error
    status = bench.status
    seen = {
        "conditions": [(c.type, c.reason) for c in status.conditions if c.status == "True"],
        "active": status.active,
        "succeeded": status.succeeded,
        "failed": status.failed,
        "deleted": len(bench.api.deleted),
        "completed": status.completed_indexes,
        "failed_indexes": status.failed_indexes,
        "wake_s": None if result.wake_after_ns is None else result.wake_after_ns / NS_PER_S,
    }
    expected = {name: getattr(case, name) for name in seen}
    expected["conditions"] = list(case.conditions)
    assert seen == expected
    if case.message is not None:
        assert status.conditions[-1].message == case.message
    return bench


DEADLINE_CASES: dict[str, Case] = {
    "past the deadline: the pod that runs is deleted and counted as failed": Case(
        {"activeDeadlineSeconds": 10, "status": started(15)},
        pods(1),
        BARE,
        [("Failed", DEADLINE)],
        "Job was active longer than specified deadline",
        failed=1,
        deleted=1,
    ),
    "past the deadline with a success: it is counted": Case(
        {"activeDeadlineSeconds": 10, "completions": 2, "status": started(15)},
        [*pods(1), *pods(1, "Succeeded")],
        BARE,
        [("Failed", DEADLINE)],
        succeeded=1,
        failed=1,
        deleted=1,
    ),
    "exactly at the deadline, before any pod was there": Case(
        {"activeDeadlineSeconds": 10, "status": started(10)},
        (),
        BARE,
        [("Failed", DEADLINE)],
    ),
    "before the deadline: the timer is armed for what is left": Case(
        {"activeDeadlineSeconds": 10, "status": started(7)},
        pods(1),
        BARE,
        active=1,
        wake_s=3,
    ),
    "a job that starts now is woken after its whole deadline": Case(
        {"activeDeadlineSeconds": 10, "status": {"active": 1}},
        pods(1),
        V1_36,
        active=1,
        wake_s=10,
    ),
    "past the deadline and beyond the limit: the limit is the reason": Case(
        {"activeDeadlineSeconds": 1, "backoff_limit": 0, "status": started(10)},
        pods(1, "Failed"),
        BARE,
        [("Failed", LIMIT)],
        failed=1,
    ),
    "suspended: no deadline": Case(
        {"activeDeadlineSeconds": 10, "completions": 2, "suspend": True, "status": started(15)},
        (),
        BARE,
        [("Suspended", "JobSuspended")],
    ),
    "with JobPodReplacementPolicy the terminal condition waits for the deleted pod": Case(
        {"activeDeadlineSeconds": 10, "completions": 2, "status": started(15)},
        [*pods(1), *pods(1, "Succeeded")],
        REPLACING,
        [("FailureTarget", DEADLINE)],
        succeeded=1,
        failed=1,
        deleted=1,
    ),
    "with JobManagedBy the terminal condition waits for the deleted pod": Case(
        {"activeDeadlineSeconds": 10, "completions": 2, "status": started(15)},
        [*pods(1), *pods(1, "Succeeded")],
        MANAGED,
        [("FailureTarget", DEADLINE)],
        succeeded=1,
        failed=1,
        deleted=1,
    ),
    "with nothing left to wait for both conditions come in one sync": Case(
        {"activeDeadlineSeconds": 1, "backoff_limit": 0, "status": started(10)},
        pods(1, "Failed"),
        MANAGED,
        [("FailureTarget", LIMIT), ("Failed", LIMIT)],
        failed=1,
    ),
    "1.28 ends at once": Case(
        {"activeDeadlineSeconds": 10, "status": started(15)},
        pods(1),
        V1_28,
        [("Failed", DEADLINE)],
        failed=1,
        deleted=1,
    ),
}


@pytest.mark.parametrize("case", DEADLINE_CASES.values(), ids=DEADLINE_CASES.keys())
def test_active_deadline(case: Case) -> None:
    run(case)


def test_both_timers_are_armed_and_the_earlier_one_wakes() -> None:
    bench = Bench.of(
        job(activeDeadlineSeconds=100, status=started(10)),
        rules(),
        memory=JobMemory(backoff=BackoffRecord(2, at(-5))),
    )
    assert bench.sync().wake_after_ns == 15 * NS_PER_S
    assert bench.asked == [at(90), at(15)]


def test_a_back_off_that_is_almost_over_wakes_after_the_batch_period() -> None:
    bench = Bench.of(job(), rules(), memory=JobMemory(backoff=BackoffRecord(1, at(-9.7))))
    assert bench.sync().wake_after_ns == NS_PER_S
    assert bench.api.created == []


def test_a_failed_condition_that_is_false_is_turned_over() -> None:
    bench = Bench.of(
        job(
            activeDeadlineSeconds=10,
            status=started(15, conditions=[condition("Failed", "False", DEADLINE)]),
        ),
        rules(*BARE),
    )
    bench.sync()
    (failed,) = bench.status.conditions
    assert (failed.type, failed.status, failed.reason) == ("Failed", "True", DEADLINE)
    assert failed.last_transition_ns == bench.now_ns


RESTARTS = {
    "template": {
        "metadata": {"labels": {"app": "demo"}},
        "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "main"}]},
    }
}


def restarting(phase: str, *counts: int, init: int = 0) -> list[PodView]:
    return [
        pod(
            f"pod-{number}",
            phase,
            containers=[container(restarts=count)],
            init_containers=[container("init", restarts=init)] if init else (),
        )
        for number, count in enumerate(counts)
    ]


ON_FAILURE_CASES: dict[str, tuple[int, list[PodView], bool]] = {
    "limit 0, no restart": (0, restarting("Running", 0), False),
    "limit 0, one restart": (0, restarting("Running", 1), True),
    "limit 1, one restart": (1, restarting("Running", 1), True),
    "limit 2, one restart of a pending pod": (2, restarting("Pending", 1), False),
    "limit 2, restarts of two pods add up": (2, restarting("Running", 1, 1), True),
    "limit 2, restarts of pending pods add up": (2, restarting("Pending", 1, 1), True),
    "limit 3, restarts of two pods stay below": (3, restarting("Running", 1, 1), False),
    "limit 3, restarts of init containers add up": (3, restarting("Running", 1, init=2), True),
    "limit 1, restarts of a finished pod do not count": (1, restarting("Succeeded", 7), False),
    "limit 3, one pod with more": (3, restarting("Running", 5, 1), True),
}


@pytest.mark.parametrize(
    ("limit", "given", "ends"), ON_FAILURE_CASES.values(), ids=ON_FAILURE_CASES.keys()
)
def test_restarts_count_against_the_limit_of_restart_policy_on_failure(
    limit: int, given: list[PodView], ends: bool
) -> None:
    bench = Bench.of(
        job(parallelism=2, completions=9, backoff_limit=limit, **RESTARTS), rules(), given
    )
    bench.sync()
    reasons = [c.reason for c in bench.status.conditions if c.type == "FailureTarget"]
    assert reasons == ([LIMIT] if ends else [])


def test_restarts_do_not_count_for_restart_policy_never() -> None:
    bench = Bench.of(job(backoff_limit=0), rules(), restarting("Running", 9))
    bench.sync()
    assert bench.status.conditions == ()


def exits(code: int, name: str = "main", **fields: Any) -> PodView:
    return pod(
        fields.pop("pod_name", "mypod-0"),
        "Failed",
        containers=[container(name, exit_code=code, finished_ns=LONG_AGO_NS)],
        **fields,
    )


def disrupted(status: str = "True", **fields: Any) -> PodView:
    return pod(
        "mypod-0",
        fields.pop("phase", "Failed"),
        conditions=[condition("DisruptionTarget", status)],
        **fields,
    )


def policy(*given: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    # The API server fills podReplacementPolicy in where there is a podFailurePolicy.
    return {
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": list(given)},
        **more,
    }


IGNORE_OR_FAIL = (exit_code_rule("Ignore", 1, 2, 3), exit_code_rule("FailJob", 5, 6, 7))
MAIN_ONLY = (
    exit_code_rule("Ignore", 1, 2, 3, containerName="main"),
    exit_code_rule("FailJob", 5, 6, 7, containerName="main"),
)
BY_POLICY = [("FailureTarget", "PodFailurePolicy"), ("Failed", "PodFailurePolicy")]
EXIT_5 = "Container main for pod default/mypod-0 failed with exit code 5 matching FailJob rule at index 1"
GONE = (
    "Container main for pod default/gone failed with exit code 5 matching FailJob rule at index 1"
)

POLICY_CASES: dict[str, Case] = {
    "FailJob on an exit code": Case(
        policy(*IGNORE_OR_FAIL), [exits(5)], BARE, BY_POLICY, EXIT_5, failed=1
    ),
    "FailJob on an exit code, 1.28": Case(
        policy(*IGNORE_OR_FAIL), [exits(5)], V1_28, BY_POLICY, EXIT_5, failed=1
    ),
    "FailJob on an exit code, newest": Case(
        policy(*IGNORE_OR_FAIL), [exits(5)], V1_36, BY_POLICY, EXIT_5, failed=1
    ),
    "the exit code is that of another container: the failure counts": Case(
        policy(*MAIN_ONLY),
        [
            pod(
                "mypod-0",
                "Failed",
                containers=[
                    container("helper", exit_code=5, finished_ns=LONG_AGO_NS),
                    container("main", exit_code=42, finished_ns=LONG_AGO_NS),
                ],
            )
        ],
        BARE,
        active=1,
        failed=1,
    ),
    "a pod that still runs decides nothing": Case(
        policy(*IGNORE_OR_FAIL),
        [pod("mypod-0", "Running", containers=[container("main", exit_code=5)])],
        BARE,
        active=1,
    ),
    "the target was set before, and the pod is still there": Case(
        policy(
            *IGNORE_OR_FAIL,
            status={
                "conditions": [
                    condition("FailureTarget", reason="PodFailurePolicy", message=EXIT_5)
                ]
            },
        ),
        [exits(5)],
        BARE,
        BY_POLICY,
        EXIT_5,
        failed=1,
    ),
    "the target was set before for a pod that is gone: its message stays": Case(
        policy(
            *IGNORE_OR_FAIL,
            status={
                "conditions": [condition("FailureTarget", reason="PodFailurePolicy", message=GONE)]
            },
        ),
        [exits(5)],
        BARE,
        BY_POLICY,
        GONE,
        failed=1,
    ),
    "FailJob beside a pod that runs: it is deleted and counted": Case(
        policy(*IGNORE_OR_FAIL, parallelism=2, completions=2),
        [*pods(1), exits(5)],
        BARE,
        BY_POLICY,
        EXIT_5,
        failed=2,
        deleted=1,
    ),
    "FailJob beside a pod that runs: the terminal condition waits for it": Case(
        policy(*IGNORE_OR_FAIL, parallelism=2, completions=2),
        [*pods(1), exits(5)],
        MANAGED,
        [("FailureTarget", "PodFailurePolicy")],
        EXIT_5,
        failed=2,
        deleted=1,
    ),
    "FailJob in an indexed job": Case(
        policy(*IGNORE_OR_FAIL, indexed=True),
        [exits(5, index=0)],
        BARE,
        BY_POLICY,
        EXIT_5,
        failed=1,
    ),
    "NotIn: another exit code fails the job": Case(
        policy(exit_code_rule("FailJob", 5, 6, operator="NotIn")),
        [exits(42)],
        BARE,
        BY_POLICY,
        "Container main for pod default/mypod-0 failed with exit code 42 matching FailJob rule at index 0",
        failed=1,
    ),
    "NotIn: a listed exit code counts": Case(
        policy(exit_code_rule("FailJob", 5, 6, operator="NotIn")),
        [exits(5)],
        BARE,
        active=1,
        failed=1,
    ),
    "an init container's exit code": Case(
        policy(*IGNORE_OR_FAIL),
        [
            pod(
                "mypod-0",
                "Failed",
                containers=[container("main", exit_code=143, finished_ns=LONG_AGO_NS)],
                init_containers=[container("init", exit_code=5)],
            )
        ],
        BARE,
        BY_POLICY,
        "Container init for pod default/mypod-0 failed with exit code 5 matching FailJob rule at index 1",
        failed=1,
    ),
    "two rules match: the first decides": Case(
        policy(*IGNORE_OR_FAIL, backoff_limit=0),
        [
            pod(
                "mypod-0",
                "Failed",
                containers=[
                    container("one", exit_code=2, finished_ns=LONG_AGO_NS),
                    container("two", exit_code=6, finished_ns=LONG_AGO_NS),
                ],
            )
        ],
        BARE,
        active=1,
    ),
    "Ignore: the failure does not count, the pod is replaced": Case(
        policy(*IGNORE_OR_FAIL, backoff_limit=0), [exits(1)], V1_36, active=1
    ),
    "no rule matches: the failure counts": Case(
        policy(*IGNORE_OR_FAIL, backoff_limit=0), [exits(10)], BARE, [("Failed", LIMIT)], failed=1
    ),
    "no rule matches: the failure counts, interim condition first": Case(
        policy(*IGNORE_OR_FAIL, backoff_limit=0),
        [exits(10)],
        MANAGED,
        [("FailureTarget", LIMIT), ("Failed", LIMIT)],
        failed=1,
    ),
    "Count before Ignore on exit codes": Case(
        policy(exit_code_rule("Count", 1, 2), exit_code_rule("Ignore", 2, 3)),
        [exits(2)],
        BARE,
        active=1,
        failed=1,
    ),
    "Count before Ignore on conditions": Case(
        policy(condition_rule("Count", "OutOfMemory"), condition_rule("Ignore")),
        [
            pod(
                "mypod-0",
                "Failed",
                conditions=[condition("OutOfMemory"), condition("DisruptionTarget")],
            )
        ],
        BARE,
        active=1,
        failed=1,
    ),
    "Ignore on a condition": Case(
        policy(condition_rule("Ignore"), backoff_limit=0), [disrupted()], BARE, active=1
    ),
    "Ignore on a condition: an ignored failure delays the replacement as any other": Case(
        policy(condition_rule("Ignore"), backoff_limit=0),
        [disrupted(containers=[], deleted_ns=at(0))],
        BARE,
        wake_s=10,
    ),
    "FailJob on a condition": Case(
        policy(condition_rule("FailJob")),
        [disrupted()],
        BARE,
        BY_POLICY,
        "Pod default/mypod-0 has condition DisruptionTarget matching FailJob rule at index 0",
        failed=1,
    ),
    "a terminating pod has not failed where there is a policy": Case(
        {
            "completions": None,
            "backoff_limit": 0,
            "podFailurePolicy": {"rules": [condition_rule("Count")]},
        },
        [disrupted(phase="Running", deleted_ns=LONG_AGO_NS)],
        BARE,
    ),
    "the gate is off: rules are ignored": Case(
        policy(*IGNORE_OR_FAIL, backoff_limit=0),
        [exits(1)],
        ("v1.28.15", {"JobPodFailurePolicy": False}),
        [("Failed", LIMIT)],
        failed=1,
    ),
}


@pytest.mark.parametrize("case", POLICY_CASES.values(), ids=POLICY_CASES.keys())
def test_pod_failure_policy(case: Case) -> None:
    run(case)


def replaced(
    name: str, index: int, phase: str = "Failed", *, failures: int = 0, **more: Any
) -> PodView:
    """A pod of an index under backoffLimitPerIndex."""
    marks = {INDEX_FAILURE_COUNT_ANNOTATION: str(failures), **more.pop("annotations", {})}
    return pod(name, phase, index=index, annotations=marks, **more)


PER_INDEX = {
    "parallelism": 2,
    "completions": 2,
    "indexed": True,
    "backoff_limit": UNLIMITED,
    "backoffLimitPerIndex": 1,
}
FAILED_INDEXES = [("FailureTarget", "FailedIndexes"), ("Failed", "FailedIndexes")]
MAX_FAILED = "MaxFailedIndexesExceeded"
FOUR = {**PER_INDEX, "parallelism": 4, "completions": 4, "maxFailedIndexes": 1}
TWO_OF_FOUR_FAILED = [
    replaced("a", 0, failures=1),
    replaced("b", 1, "Succeeded"),
    replaced("c", 2, failures=1),
    replaced("d", 3, "Running"),
]

PER_INDEX_CASES: dict[str, Case] = {
    "an index below its limit is started again; its failure is counted afterwards": Case(
        PER_INDEX, [replaced("a", 0), replaced("b", 1, "Running")], active=2, failed_indexes=""
    ),
    "an index at its limit fails, the other one goes on": Case(
        PER_INDEX, [replaced("a", 0, failures=1)], active=1, failed=1, failed_indexes="0"
    ),
    "FailIndex fails the index below its limit": Case(
        {**PER_INDEX, **policy(exit_code_rule("FailIndex", 3))},
        [replaced("a", 0, containers=[container(exit_code=3, finished_ns=LONG_AGO_NS)])],
        active=1,
        failed=1,
        failed_indexes="0",
    ),
    "FailIndex on a condition": Case(
        {**PER_INDEX, **policy(condition_rule("FailIndex"))},
        [replaced("a", 0, conditions=[condition("DisruptionTarget")])],
        active=1,
        failed=1,
        failed_indexes="0",
    ),
    "FailJob ends the job before any index failed": Case(
        {**PER_INDEX, **policy(exit_code_rule("FailJob", 3))},
        [replaced("a", 0, containers=[container("x", exit_code=3, finished_ns=LONG_AGO_NS)])],
        conditions=BY_POLICY,
        message="Container x for pod default/a failed with exit code 3 matching FailJob rule at index 0",
        failed=1,
        failed_indexes="",
    ),
    "Ignore: the index is started again and nothing counts": Case(
        {**PER_INDEX, **policy(exit_code_rule("Ignore", 3))},
        [replaced("a", 0, containers=[container(exit_code=3, finished_ns=LONG_AGO_NS)])],
        active=2,
        failed_indexes="",
    ),
    "Ignore at the limit of the index: it does not fail": Case(
        {**PER_INDEX, **policy(exit_code_rule("Ignore", 3))},
        [
            replaced(
                "a", 0, failures=1, containers=[container(exit_code=3, finished_ns=LONG_AGO_NS)]
            )
        ],
        active=2,
        failed_indexes="",
    ),
    "the limit of the job comes before those of the indexes": Case(
        {**PER_INDEX, "backoff_limit": 1},
        [replaced("a", 0), replaced("b", 1)],
        conditions=[("FailureTarget", LIMIT), ("Failed", LIMIT)],
        failed=2,
        failed_indexes="",
    ),
    "every index is done, one of them failed": Case(
        PER_INDEX,
        [replaced("a", 0, failures=1), replaced("b", 1, "Succeeded")],
        conditions=FAILED_INDEXES,
        message="Job has failed indexes",
        succeeded=1,
        failed=1,
        completed="1",
        failed_indexes="0",
    ),
    "every index is done, one of them failed; no gate delays the end": Case(
        PER_INDEX,
        [replaced("a", 0, failures=1), replaced("b", 1, "Succeeded")],
        BARE,
        [("Failed", "FailedIndexes")],
        succeeded=1,
        failed=1,
        completed="1",
        failed_indexes="0",
    ),
    "every index is done, one of them failed; JobManagedBy": Case(
        PER_INDEX,
        [replaced("a", 0, failures=1), replaced("b", 1, "Succeeded")],
        MANAGED,
        FAILED_INDEXES,
        succeeded=1,
        failed=1,
        completed="1",
        failed_indexes="0",
    ),
    "more failed indexes than allowed": Case(
        FOUR,
        TWO_OF_FOUR_FAILED,
        conditions=[("FailureTarget", MAX_FAILED)],
        message="Job has exceeded the specified maximal number of failed indexes",
        succeeded=1,
        failed=3,
        deleted=1,
        completed="1",
        failed_indexes="0,2",
    ),
    "more failed indexes than allowed; no gate delays the end": Case(
        FOUR,
        TWO_OF_FOUR_FAILED,
        BARE,
        [("Failed", MAX_FAILED)],
        succeeded=1,
        failed=3,
        deleted=1,
        completed="1",
        failed_indexes="0,2",
    ),
    "more failed indexes than allowed; JobManagedBy": Case(
        FOUR,
        TWO_OF_FOUR_FAILED,
        MANAGED,
        [("FailureTarget", MAX_FAILED)],
        succeeded=1,
        failed=3,
        deleted=1,
        completed="1",
        failed_indexes="0,2",
    ),
    "as many failed indexes as allowed: the job goes on": Case(
        {**FOUR, "maxFailedIndexes": 2},
        TWO_OF_FOUR_FAILED,
        active=1,
        succeeded=1,
        failed=2,
        completed="1",
        failed_indexes="0,2",
    ),
    "0 failed indexes allowed: the first one ends the job": Case(
        {**FOUR, "maxFailedIndexes": 0},
        [replaced("a", 0, failures=1)],
        conditions=[("FailureTarget", MAX_FAILED), ("Failed", MAX_FAILED)],
        failed=1,
        failed_indexes="0",
    ),
    "indexes that failed before are remembered": Case(
        {**PER_INDEX, "status": {"failedIndexes": "0", "failed": 1}},
        [replaced("b", 1, "Succeeded")],
        conditions=FAILED_INDEXES,
        succeeded=1,
        failed=1,
        completed="1",
        failed_indexes="0",
    ),
    "limit 0 per index: the first failure fails the index": Case(
        {**PER_INDEX, "backoffLimitPerIndex": 0},
        [replaced("a", 0), replaced("b", 1, "Running")],
        active=1,
        failed=1,
        failed_indexes="0",
    ),
    "the gate is off: failed indexes are wiped, the field is ignored": Case(
        {
            **PER_INDEX,
            "parallelism": 3,
            "completions": 3,
            "status": {"failedIndexes": "0", "completedIndexes": "1"},
        },
        [replaced("c", 2, "Pending", failures=1)],
        ("v1.32.0", {"JobBackoffLimitPerIndex": False}),
        active=2,
        succeeded=1,
        completed="1",
    ),
}


@pytest.mark.parametrize("case", PER_INDEX_CASES.values(), ids=PER_INDEX_CASES.keys())
def test_backoff_limit_per_index(case: Case) -> None:
    run(case)


def test_the_kept_pod_of_an_index_is_counted_once_its_replacement_runs() -> None:
    """1. index 0 fails and is replaced, its pod keeps the finalizer; 2. the failure is counted."""
    bench = Bench.of(job(**PER_INDEX), rules(), [replaced("a", 0), replaced("b", 1, "Running")])
    bench.sync()
    assert bench.api.finalizers_removed == []
    (intent,) = bench.api.created
    assert intent.annotations[INDEX_FAILURE_COUNT_ANNOTATION] == "1"
    bench.see_status()
    bench.see_pods()

    bench.sync()
    assert bench.api.finalizers_removed == ["a"]
    assert bench.status.failed == 1


def test_of_two_failed_pods_of_an_index_the_later_one_is_kept() -> None:
    earlier = replaced("a", 0, containers=[container(exit_code=1, finished_ns=at(-4000))])
    later = replaced("b", 0, failures=1, containers=[container(exit_code=1, finished_ns=at(-3000))])
    for given in ([earlier, later], [later, earlier]):
        bench = Bench.of(job(**{**PER_INDEX, "backoffLimitPerIndex": 5}), rules(), given)
        bench.sync()
        assert bench.api.finalizers_removed == ["a"]


def failing(index: int, seconds_ago: float, failures: int = 0, ignored: int = 0) -> PodView:
    marks = {INDEX_IGNORED_FAILURE_COUNT_ANNOTATION: str(ignored)} if ignored else {}
    return replaced(
        f"pod-{index}",
        index,
        failures=failures,
        annotations=marks,
        containers=[container(exit_code=1, finished_ns=at(-seconds_ago))],
    )


INDEX_BACKOFF_CASES: dict[str, tuple[list[PodView], list[int], float | None]] = {
    "no failures: both indexes start": ([], [1, 3], None),
    "one index failed just now: the other one starts": ([failing(1, 0)], [3], None),
    "one failed just now, one as long ago as its back-off": (
        [failing(1, 0), failing(3, 10)],
        [3],
        None,
    ),
    "one failed just now, one a moment too late": (
        [failing(1, 0), failing(3, 9.5)],
        [],
        1,
    ),
    "all failed just now: woken after the smallest back-off": (
        [failing(1, 0, failures=1), failing(3, 0, failures=2)],
        [],
        20,
    ),
    "all failed a second ago: woken a second earlier": (
        [failing(1, 1, failures=1), failing(3, 1)],
        [],
        9,
    ),
    "ignored failures lengthen the back-off too": (
        [failing(1, 0, failures=1, ignored=1), failing(3, 0, ignored=3)],
        [],
        40,
    ),
    "the back-off is ten minutes at most": (
        [failing(1, 0, failures=9), failing(3, 0, failures=30)],
        [],
        600,
    ),
}


@pytest.mark.parametrize(
    ("given", "indexes", "wake_s"), INDEX_BACKOFF_CASES.values(), ids=INDEX_BACKOFF_CASES.keys()
)
def test_each_index_waits_for_its_own_back_off(
    given: list[PodView], indexes: list[int], wake_s: float | None
) -> None:
    bench = Bench.of(
        job(
            parallelism=4,
            completions=4,
            indexed=True,
            backoff_limit=UNLIMITED,
            backoffLimitPerIndex=100,
            status={"completedIndexes": "0,2", "succeeded": 2},
        ),
        rules(),
        given,
        memory=JobMemory(backoff=BackoffRecord(5, at(0))),  # that of the job does not matter
    )
    result = bench.sync()
    assert [intent.completion_index for intent in bench.api.created] == indexes
    assert result.wake_after_ns == (None if wake_s is None else wake_s * NS_PER_S)


def success(*given: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "parallelism": 3,
        "completions": 3,
        "indexed": True,
        "backoff_limit": UNLIMITED,
        "successPolicy": {"rules": list(given)},
        **more,
    }


ONE_OF_TWO = {"succeededIndexes": "0,1", "succeededCount": 1}
SUCCESS = ("SuccessCriteriaMet", "SuccessPolicy")
DONE = ("Complete", "SuccessPolicy")
ONE_DONE = indexed_pods((0, "Failed"), (0, "Running"), (1, "Succeeded"), (2, "Running"))

SUCCESS_CASES: dict[str, Case] = {
    "a rule is met: what runs is deleted and Complete waits for it": Case(
        success(ONE_OF_TWO),
        ONE_DONE,
        V1_36,
        [SUCCESS],
        "Matched rules at index 0",
        succeeded=1,
        failed=1,
        deleted=2,
        completed="1",
    ),
    "a rule is met: without the delaying gates Complete comes at once": Case(
        success(ONE_OF_TWO),
        ONE_DONE,
        BARE,
        [SUCCESS, DONE],
        "Matched rules at index 0",
        succeeded=1,
        failed=1,
        deleted=2,
        completed="1",
    ),
    "a rule is met beside a policy that does not match": Case(
        success(ONE_OF_TWO, **policy(condition_rule("FailJob"))),
        ONE_DONE,
        V1_36,
        [SUCCESS],
        succeeded=1,
        failed=1,
        deleted=2,
        completed="1",
    ),
    "FailJob comes before a rule that is met": Case(
        success({"succeededCount": 1}, **policy(exit_code_rule("FailJob", 1))),
        indexed_pods((0, "Failed"), (1, "Succeeded")),
        V1_36,
        BY_POLICY,
        succeeded=1,
        failed=1,
        completed="1",
    ),
    "the limit comes before a rule that is met": Case(
        success({"succeededCount": 1}, backoff_limit=0),
        indexed_pods((0, "Failed"), (1, "Succeeded")),
        V1_36,
        [("FailureTarget", LIMIT), ("Failed", LIMIT)],
        succeeded=1,
        failed=1,
        completed="1",
    ),
    "too many failed indexes come before a rule that is met": Case(
        success({"succeededCount": 1}, backoffLimitPerIndex=0, maxFailedIndexes=0),
        indexed_pods((0, "Failed"), (1, "Succeeded")),
        V1_36,
        [("FailureTarget", MAX_FAILED), ("Failed", MAX_FAILED)],
        succeeded=1,
        failed=1,
        completed="1",
        failed_indexes="0",
    ),
    "a rule is met while an index is still below its limit": Case(
        success({"succeededCount": 1}, backoffLimitPerIndex=2, parallelism=2, completions=2),
        indexed_pods((0, "Failed"), (0, "Running"), (1, "Succeeded")),
        V1_36,
        [SUCCESS],
        succeeded=1,
        failed=1,
        deleted=1,
        completed="1",
        failed_indexes="",
    ),
    "the criteria were met before: the end stands although a failure arrives": Case(
        success(
            {"succeededCount": 1},
            **policy(exit_code_rule("FailJob", 1)),
            status={
                "succeeded": 1,
                "completedIndexes": "1",
                "conditions": [condition("SuccessCriteriaMet", reason="SuccessPolicy")],
            },
        ),
        indexed_pods((0, "Failed")),
        V1_36,
        [SUCCESS, DONE],
        succeeded=1,
        failed=1,
        completed="1",
    ),
    "the failure target was set before: a rule that is met changes nothing": Case(
        success(
            {"succeededCount": 1},
            status={"conditions": [condition("FailureTarget", reason=LIMIT)]},
        ),
        indexed_pods((1, "Succeeded")),
        V1_36,
        [("FailureTarget", LIMIT), ("Failed", LIMIT)],
        succeeded=1,
        completed="1",
    ),
    "every index succeeded and the rule is met: the policy is the reason": Case(
        success({"succeededCount": 3}),
        indexed_pods((0, "Succeeded"), (1, "Succeeded"), (2, "Succeeded")),
        V1_36,
        [SUCCESS, DONE],
        succeeded=3,
        completed="0-2",
    ),
    "no rule is met: the job goes on": Case(
        success({"succeededIndexes": "0,1"}),
        indexed_pods((0, "Running"), (1, "Succeeded"), (2, "Running")),
        V1_36,
        active=2,
        succeeded=1,
        completed="1",
    ),
    "a rule is met, but there is no such gate yet": Case(
        success(ONE_OF_TWO),
        indexed_pods((0, "Running"), (1, "Succeeded"), (2, "Running")),
        V1_28,
        active=2,
        succeeded=1,
        completed="1",
    ),
    "the gate was turned off after the criteria were met: the end stands by the delaying gates": Case(
        success(
            ONE_OF_TWO,
            status={
                "succeeded": 1,
                "completedIndexes": "1",
                "conditions": [condition("SuccessCriteriaMet", reason="SuccessPolicy")],
            },
        ),
        indexed_pods((0, "Running")),
        ("v1.31.0", {"JobSuccessPolicy": False}),
        [SUCCESS],
        succeeded=1,
        deleted=1,
        completed="1",
    ),
}


@pytest.mark.parametrize("case", SUCCESS_CASES.values(), ids=SUCCESS_CASES.keys())
def test_success_policy(case: Case) -> None:
    run(case)


REACHED = "Reached expected number of succeeded pods"
COMPLETE_CASES: dict[str, tuple[tuple[str, Mapping[str, bool]], list[tuple[str, str, str]]]] = {
    "1.28": (V1_28, [("Complete", "", "")]),
    "1.30": (("v1.30.14", {}), [("Complete", "", "")]),
    "1.31": (
        ("v1.31.14", {}),
        [
            ("SuccessCriteriaMet", "CompletionsReached", REACHED),
            ("Complete", "CompletionsReached", REACHED),
        ],
    ),
    "1.31 without the success policy": (
        ("v1.31.14", {"JobSuccessPolicy": False}),
        [("SuccessCriteriaMet", "", ""), ("Complete", "", "")],
    ),
    "1.32 without the delaying gates": (BARE, [("Complete", "CompletionsReached", REACHED)]),
    "1.36": (
        V1_36,
        [
            ("SuccessCriteriaMet", "CompletionsReached", REACHED),
            ("Complete", "CompletionsReached", REACHED),
        ],
    ),
}


@pytest.mark.parametrize(("under", "expected"), COMPLETE_CASES.values(), ids=COMPLETE_CASES.keys())
def test_conditions_of_a_completed_job(
    under: tuple[str, Mapping[str, bool]], expected: list[tuple[str, str, str]]
) -> None:
    bench = Bench.of(job(), rules(*under), pods(1, "Succeeded"))
    bench.sync()
    assert [(c.type, c.reason, c.message) for c in bench.status.conditions] == expected
    assert bench.status.completion_ns == bench.now_ns
    assert bench.api.events == [("Normal", "Completed", "Job completed")]


def test_complete_waits_until_no_pod_terminates() -> None:
    """1. the last pod succeeds while another one terminates, 2. that one is gone: Complete."""
    bench = Bench.of(
        job(completions=1, podReplacementPolicy="Failed"),
        rules(),
        [*pods(1, "Succeeded"), pod("late", deleted_ns=at(20), grace_s=30, node="node-1")],
    )
    bench.sync()
    assert [c.type for c in bench.status.conditions] == ["SuccessCriteriaMet"]
    assert bench.status.completion_ns is None
    assert bench.api.events == []
    bench.see_status()
    bench.see_pods()

    del bench.api.pods["late"]
    bench.see_pods()
    bench.now_ns += 30 * NS_PER_S
    bench.sync()
    assert [c.type for c in bench.status.conditions] == ["SuccessCriteriaMet", "Complete"]
    assert bench.status.completion_ns == bench.now_ns
    assert bench.api.events == [("Normal", "Completed", "Job completed")]


def test_failed_waits_until_no_pod_terminates() -> None:
    bench = Bench.of(
        job(parallelism=2, completions=2, backoff_limit=0),
        rules(),
        [*pods(1, "Failed"), *pods(1, node="node-1")],
    )
    bench.sync()
    assert [(c.type, c.reason) for c in bench.status.conditions] == [("FailureTarget", LIMIT)]
    assert (bench.status.failed, bench.status.terminating) == (2, 1)
    bench.see_status()
    bench.see_pods()

    del bench.api.pods["running-0"]
    bench.see_pods()
    bench.sync()
    assert [(c.type, c.reason) for c in bench.status.conditions] == [
        ("FailureTarget", LIMIT),
        ("Failed", LIMIT),
    ]
    assert bench.api.events == [("Warning", LIMIT, "Job has reached the specified backoff limit")]


def test_more_successes_than_completions_are_told() -> None:
    bench = Bench.of(job(completions=1), rules(), pods(2, "Succeeded"))
    bench.sync()
    assert bench.api.events == [
        (
            "Warning",
            "TooManySucceededPods",
            "Too many succeeded pods running after completion count reached",
        ),
        ("Normal", "Completed", "Job completed"),
    ]


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
def test_a_finished_job_is_left_alone_and_forgotten(kind: str) -> None:
    bench = Bench.of(
        job(status={"conditions": [condition(kind)]}),
        rules(),
        pods(2),
        memory=JobMemory(backoff=BackoffRecord(3, at(-1))),
    )
    assert not bench.sync().error
    assert bench.api.log == []
    assert bench.memory.backoff == NO_FAILURES


def test_a_missing_job_is_forgotten() -> None:
    memory = JobMemory(PodExpectations(1, 0, at(0)), frozenset({"a"}), BackoffRecord(1, at(0)))
    bench = Bench(job(), rules(), memory=memory)
    bench.job = None  # type: ignore[assignment]
    assert not bench.sync().error
    assert memory == JobMemory()


def test_an_unknown_completion_mode_is_told_and_left_alone() -> None:
    bench = Bench.of(job(completionMode="Shuffled"), rules(), pods(1))
    assert not bench.sync().error
    assert bench.api.events == [
        (
            "Warning",
            "UnknownCompletionMode",
            "Skipped Job sync because completion mode is unknown",
        )
    ]
    assert bench.api.log == ["event"]


MANAGED_CASES = {
    "by another controller": ("v1.36.3", {}, "example.com/mine", False),
    "by the job controller, by name": ("v1.36.3", {}, "kubernetes.io/job-controller", True),
    "by nobody in particular": ("v1.36.3", {}, None, True),
    "by another controller, gate off": (
        "v1.34.4",
        {"JobManagedBy": False},
        "example.com/mine",
        True,
    ),
    "by another controller, gate on since 1.32": ("v1.32.0", {}, "example.com/mine", False),
    "by another controller, gate still alpha": ("v1.31.14", {}, "example.com/mine", True),
}


@pytest.mark.parametrize(
    ("version", "gates", "manager", "works"), MANAGED_CASES.values(), ids=MANAGED_CASES.keys()
)
def test_a_job_that_is_managed(
    version: str, gates: dict[str, bool], manager: str | None, works: bool
) -> None:
    bench = Bench.of(
        job(parallelism=2, completions=2, managedBy=manager, status={"active": 1, "ready": 1}),
        rules(version, gates),
    )
    bench.sync()
    assert len(bench.api.created) == (2 if works else 0)
    assert bool(bench.api.puts) is works


def test_the_back_off_record_of_a_job_that_another_controller_manages_stays() -> None:
    record = BackoffRecord(1, at(-1))
    bench = Bench.of(job(managedBy="example.com/x"), rules(), memory=JobMemory(backoff=record))
    bench.sync()
    assert bench.memory.backoff == record


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Outcome.OK, False),
        (Outcome.CONFLICT, True),
        (Outcome.REFUSED, True),
        (Outcome.TIMEOUT, True),
    ],
)
def test_a_status_that_cannot_be_written_brings_the_key_back(answer: Outcome, error: bool) -> None:
    bench = Bench.of(job(parallelism=2, completions=2), rules(), api=FakeApi(put_answers=[answer]))
    assert bench.sync().error is error


def test_a_conflict_on_the_status_keeps_finalizers_and_the_back_off_record() -> None:
    bench = Bench.of(job(), rules(), pods(1, "Failed"), api=FakeApi(put_answers=[Outcome.CONFLICT]))
    assert bench.sync().error
    assert bench.api.finalizers_removed == []
    assert bench.memory.backoff == NO_FAILURES


def test_a_conflict_on_the_second_status_tells_no_end() -> None:
    bench = Bench.of(
        job(),
        rules(),
        pods(1, "Succeeded"),
        api=FakeApi(put_answers=[Outcome.OK, Outcome.CONFLICT]),
    )
    assert bench.sync().error
    assert bench.api.events == []
    assert bench.api.finalizers_removed == ["succeeded-0"]


@pytest.mark.parametrize(
    ("version", "told"),
    [("v1.24.17", [("Normal", "Completed", "Job completed")]), ("v1.26.13", [])],
)
def test_an_old_version_tells_of_an_end_before_it_writes_it(
    version: str, told: list[tuple[str, str, str]]
) -> None:
    tracked = replace(job(), annotations={JOB_TRACKING_ANNOTATION: ""})
    bench = Bench.of(
        tracked,
        rules(version, {"JobTrackingWithFinalizers": True}),
        pods(1, "Succeeded"),
        api=FakeApi(put_answers=[Outcome.OK, Outcome.CONFLICT]),
    )
    result = bench.sync()
    assert (result.error, result.requeued) == (False, True)
    assert bench.api.events == told


def test_of_several_messages_the_one_that_was_chosen_is_taken() -> None:
    given = [exits(5, pod_name=name) for name in ("a", "b")]
    messages = {}
    for name in ("a", "b"):
        bench = Bench.of(
            job(**policy(*IGNORE_OR_FAIL, parallelism=2, completions=2)), rules(), given
        )
        wanted = EXIT_5.replace("mypod-0", name)
        bench.choices = replace(bench.choices, messages=frozenset({wanted}))
        bench.sync()
        messages[name] = bench.status.conditions[0].message
        assert messages[name] == wanted
    assert messages["a"] != messages["b"]


def test_ready_pods_that_are_deleted_at_the_end_are_not_counted() -> None:
    bench = Bench.of(
        job(parallelism=2, completions=2, backoff_limit=0),
        rules(),
        [*ready_pods(1), *pods(1, "Failed")],
    )
    bench.sync()
    assert (bench.status.active, bench.status.ready, bench.status.terminating) == (0, 0, 1)
