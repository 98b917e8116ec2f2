"""When a pod that terminates is replaced (podReplacementPolicy), and how it is counted.

Upstream: pkg/controller/job/job_controller_test.go:TestControllerSyncJob, the rows about
terminating pods; the last group is the loop that these rows guard against over several syncs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.fake_api import Bench
from tests.support.objects import (
    LONG_AGO_NS,
    exit_code_rule,
    indexed_pods,
    job,
    pod,
    pods,
    rules,
)
from tracekit.base.kube.views import PodView

FAILED = {"podReplacementPolicy": "Failed"}
EITHER = {"podReplacementPolicy": "TerminatingOrFailed"}
POLICY = {"podFailurePolicy": {"rules": [exit_code_rule("FailJob", 42)]}}
OFF = {"JobPodReplacementPolicy": False, "JobManagedBy": False}


def terminating(count: int, **fields: Any) -> list[PodView]:
    """Pods deleted so long ago that no back-off is left."""
    return pods(count, prefix="terminating", deleted_ns=LONG_AGO_NS, **fields)


@dataclass(frozen=True)
class Case:
    job: Mapping[str, Any]
    pods: Sequence[PodView]
    version: str = "v1.36.3"
    gates: Mapping[str, bool] = field(default_factory=dict)
    created: int = 0
    indexes: Sequence[int] | None = None
    deleted: int = 0
    patches: int = 0
    active: int = 0
    failed: int = 0
    terminating: int | None = 0


CASES: dict[str, Case] = {
    "Failed: a terminating pod keeps its place and is not counted": Case(
        {"parallelism": 1, "completions": None, **FAILED},
        [*pods(1), *pods(1, "Failed"), *terminating(1)],
        patches=1,
        active=1,
        failed=1,
        terminating=1,
    ),
    "Failed: nothing is created while a pod terminates": Case(
        {"parallelism": 2, "completions": 2, **FAILED},
        [*pods(1), *terminating(1)],
        active=1,
        terminating=1,
    ),
    "Failed: places that no pod holds are filled": Case(
        {"parallelism": 3, "completions": 3, **FAILED},
        [*pods(1), *terminating(1)],
        created=1,
        active=2,
        terminating=1,
    ),
    "Failed: a deleted pod whose phase is Failed is replaced": Case(
        {"parallelism": 1, "completions": 1, **FAILED},
        pods(1, "Failed", deleted_ns=LONG_AGO_NS),
        created=1,
        patches=1,
        active=1,
        failed=1,
    ),
    "no policy: a terminating pod counts as failed": Case(
        {"parallelism": 1, "completions": 1},
        [*pods(1), *pods(1, "Failed"), *terminating(1)],
        patches=2,
        active=1,
        failed=2,
        terminating=1,
    ),
    "TerminatingOrFailed: a terminating pod is replaced and counts as failed": Case(
        {"parallelism": 2, "completions": 2, **EITHER},
        [*pods(1), *terminating(1)],
        created=1,
        patches=1,
        active=2,
        failed=1,
        terminating=1,
    ),
    "TerminatingOrFailed in a work queue job": Case(
        {"parallelism": 1, "completions": None, **EITHER},
        [*pods(1), *pods(1, "Failed"), *terminating(1)],
        patches=2,
        active=1,
        failed=2,
        terminating=1,
    ),
    "Failed: more terminating pods than parallelism, one active pod too many": Case(
        {"parallelism": 1, "completions": 1, **FAILED},
        [*pods(2), *terminating(4)],
        deleted=1,
        patches=1,
        active=1,
        terminating=5,
    ),
    "Failed in 1.28.5: terminating pods push nobody out": Case(
        {"parallelism": 1, "completions": 1, **FAILED},
        [*pods(2), *terminating(4)],
        version="v1.28.5",
        gates={"JobPodReplacementPolicy": True},
        deleted=1,
        patches=1,
        active=1,
        terminating=4,
    ),
    "Failed in 1.28.4: terminating pods push every active one out": Case(
        {"parallelism": 1, "completions": 1, **FAILED},
        [*pods(2), *terminating(4)],
        version="v1.28.4",
        gates={"JobPodReplacementPolicy": True},
        deleted=2,
        patches=2,
        active=0,
        terminating=4,
    ),
    "a pod failure policy alone: terminating pods keep their place too": Case(
        {"parallelism": 1, "completions": 1, **POLICY},
        [*pods(2), *terminating(4)],
        version="v1.33.0",
        gates=OFF,
        deleted=1,
        patches=1,
        active=1,
        terminating=None,
    ),
    "gate off: podReplacementPolicy Failed means nothing": Case(
        {"parallelism": 2, "completions": 2, **FAILED},
        [*pods(1), *terminating(1)],
        version="v1.33.0",
        gates=OFF,
        created=1,
        patches=1,
        active=2,
        failed=1,
        terminating=None,
    ),
    "1.28: a terminating pod is replaced at once and counts as failed": Case(
        {"parallelism": 2, "completions": 2},
        [*pods(1), *terminating(1)],
        version="v1.28.15",
        created=1,
        patches=1,
        active=2,
        failed=1,
        terminating=None,
    ),
    "Failed, indexed: the index of a terminating pod is not started again": Case(
        {"parallelism": 2, "completions": 5, "indexed": True, **FAILED},
        [pod("gone", index=0, deleted_ns=LONG_AGO_NS)],
        created=1,
        indexes=[1],
        active=1,
        terminating=1,
    ),
    "TerminatingOrFailed, indexed: the index of a terminating pod is started again": Case(
        {"parallelism": 2, "completions": 5, "indexed": True, **EITHER},
        [pod("gone", index=0, deleted_ns=LONG_AGO_NS)],
        created=2,
        indexes=[0, 1],
        patches=1,
        active=2,
        failed=1,
        terminating=1,
    ),
    "Failed, indexed: a terminating pod without index takes a place but no index": Case(
        {"parallelism": 2, "completions": 5, "indexed": True, **FAILED},
        terminating(1),
        created=1,
        indexes=[0],
        active=1,
        terminating=1,
    ),
    "a succeeded pod that is being deleted counts as succeeded": Case(
        {"parallelism": 1, "completions": 2},
        [*pods(1), *pods(1, "Succeeded", deleted_ns=LONG_AGO_NS)],
        patches=1,
        active=1,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_replacement_of_terminating_pods(case: Case) -> None:
    bench = Bench.of(job(**case.job), rules(case.version, case.gates), case.pods)

    assert not bench.sync().error

    seen = (
        len(bench.api.created),
        len(bench.api.deleted),
        len(bench.api.finalizers_removed),
        bench.status.active,
        bench.status.failed,
        bench.status.terminating,
    )
    assert seen == (
        case.created,
        case.deleted,
        case.patches,
        case.active,
        case.failed,
        case.terminating,
    )
    if case.indexes is not None:
        assert [intent.completion_index for intent in bench.api.created] == list(case.indexes)


def test_a_pod_is_replaced_when_it_is_gone_and_not_before() -> None:
    """1. the pod is deleted by a user, 2. it fails, 3. the replacement comes."""
    bench = Bench.of(job(**FAILED), rules(), [pod("first", node="node-1")])
    bench.sync()
    bench.see_status()

    bench.api.pods["first"] = replace(bench.api.pods["first"], deleted_ns=bench.now_ns)
    bench.see_pods()
    bench.sync()
    assert bench.api.created == []
    assert (bench.status.active, bench.status.terminating) == (0, 1)
    bench.see_status()

    bench.api.pods["first"] = replace(bench.api.pods["first"], phase="Failed")
    bench.see_pods()
    bench.now_ns += 60_000_000_000
    bench.sync()
    assert len(bench.api.created) == 1
    assert (bench.status.active, bench.status.failed, bench.status.terminating) == (1, 1, 0)


def test_indexes_of_terminating_pods_stay_taken_beside_failed_and_done_ones() -> None:
    bench = Bench.of(
        job(parallelism=4, completions=8, indexed=True, backoffLimitPerIndex=0, **FAILED),
        rules(),
        [
            *indexed_pods((0, "Running"), (1, "Succeeded"), (2, "Failed")),
            pod("gone", index=3, deleted_ns=LONG_AGO_NS),
        ],
    )
    bench.sync()
    assert [intent.completion_index for intent in bench.api.created] == [4, 5]
    assert (bench.status.completed_indexes, bench.status.failed_indexes) == ("1", "2")
