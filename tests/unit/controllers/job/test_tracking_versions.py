"""What 1.22 to 1.28 do otherwise with tracked Jobs, each change at the release that has it.

Read at the tags of kubernetes/kubernetes. Witnessed by traces: the back-off of the queue and the
conflicts (v1.23.17-all, v1.24.17-all), batching and finish times (v1.27.4-churn606). The others
show in no trace that ships: they need races, more than 500 pods, or patch releases that nobody
recorded.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.fake_api import Bench, FakeApi
from tests.support.objects import (
    at,
    container,
    exit_code_rule,
    indexed_pods,
    job,
    pod,
    pods,
    rules,
)
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JOB_TRACKING_ANNOTATION, JobStatus, JobView, PodView
from tracekit.ports.actions import Outcome
from tracekit.ports.job.memory import JobMemory, PodExpectations


def tracked(**fields: Any) -> JobView:
    """A Job that every version from 1.22 on tracks."""
    return replace(job(**fields), annotations={JOB_TRACKING_ANNOTATION: ""})


def bench_of(
    version: str,
    given: JobView,
    seen: list[PodView] | None = None,
    *,
    gates: dict[str, bool] | None = None,
    **further: Any,
) -> Bench:
    on = {"JobTrackingWithFinalizers": True} if version < "v1.26" else {}
    return Bench.of(given, rules(version, {**on, **(gates or {})}), seen or [], **further)


FAILED_POD = [pod("a", "Failed")]


@pytest.mark.parametrize(
    ("version", "error"),
    [("v1.22.17", True), ("v1.25.4", True), ("v1.27.16", True), ("v1.28.0", False)],
)
def test_a_new_failure_is_an_error_up_to_1_27(version: str, *, error: bool) -> None:
    assert bench_of(version, tracked(), FAILED_POD).sync().error is error


@pytest.mark.parametrize(("version", "error"), [("v1.22.17", False), ("v1.23.17", True)])
def test_from_1_23_on_even_the_failure_that_ends_the_job_is_an_error(
    version: str, *, error: bool
) -> None:
    """The flush hands out a new copy of the Job, and it is the old one that is asked."""
    bench = bench_of(version, tracked(backoff_limit=0), FAILED_POD)
    assert bench.sync().error is error
    assert [c.type for c in bench.status.conditions] == ["Failed"]


CONFLICTS: dict[str, tuple[bool, bool, bool, bool]] = {
    # version -> (error, retried, requeued, forget)
    "v1.23.9": (True, False, False, True),
    "v1.23.10": (True, True, False, True),
    "v1.23.16": (False, True, True, False),
    "v1.24.3": (True, False, False, True),
    "v1.24.4": (True, True, False, True),
    "v1.25.5": (True, True, False, True),
    "v1.25.6": (False, True, True, False),
    "v1.26.0": (True, True, False, True),
    "v1.27.0": (False, True, True, True),
    "v1.28.0": (True, True, False, True),
    "v1.36.3": (True, True, False, True),
}


@pytest.mark.parametrize(("version", "expected"), CONFLICTS.items())
def test_what_a_conflict_of_the_status_write_does_to_the_key(
    version: str, expected: tuple[bool, bool, bool, bool]
) -> None:
    api = FakeApi(put_answers=[Outcome.CONFLICT])
    result = bench_of(version, tracked(), pods(1), api=api).sync()
    assert (result.error, result.retried, result.requeued, result.forget) == expected


FORGETTING: dict[str, tuple[dict[str, Any], list[PodView], dict[str, bool]]] = {
    # the Job and its pods -> by version, whether the sync clears the retries
    "a pod became active": (
        {},
        pods(1),
        {"v1.23.15": True, "v1.23.16": False, "v1.26.0": True, "v1.26.1": False, "v1.27.0": True},
    ),
    "a pod succeeded": (
        {"completions": 2},
        [*pods(1), *pods(1, "Succeeded")],
        {"v1.23.15": True, "v1.23.16": True, "v1.26.1": True, "v1.27.0": True},
    ),
    "the Job was suspended": ({"suspend": True}, [], {"v1.24.10": True, "v1.28.0": True}),
}


@pytest.mark.parametrize(
    ("case", "version", "forget"),
    [(case, v, f) for case, (*_, table) in FORGETTING.items() for v, f in table.items()],
)
def test_what_clears_the_retries_of_a_key(case: str, version: str, *, forget: bool) -> None:
    fields, given, _ = FORGETTING[case]
    result = bench_of(version, tracked(**fields), given).sync()
    assert (result.error, result.forget) == (False, forget)


@pytest.mark.parametrize(
    ("version", "seconds"),
    [("v1.22.11", 60), ("v1.22.12", 60), ("v1.23.8", 60), ("v1.36.3", 60)],
)
def test_the_first_sync_arms_the_deadline(version: str, seconds: int) -> None:
    result = bench_of(version, tracked(activeDeadlineSeconds=60), pods(1)).sync()
    assert result.wake_after_ns == seconds * NS_PER_S


@pytest.mark.parametrize(
    ("version", "armed"),
    [
        ("v1.22.11", False),
        ("v1.22.12", True),
        ("v1.23.8", False),
        ("v1.23.9", True),
        ("v1.24.2", False),
        ("v1.24.3", True),
        ("v1.25.0", True),
    ],
)
def test_which_releases_arm_the_deadline_again(version: str, *, armed: bool) -> None:
    given = tracked(activeDeadlineSeconds=60)
    given = replace(given, status=replace(given.status, start_ns=at(-20)))
    result = bench_of(version, given, pods(1)).sync()
    assert result.wake_after_ns == (40 * NS_PER_S if armed else None)


@pytest.mark.parametrize(
    ("version", "ends"),
    [("v1.23.6", True), ("v1.23.7", False), ("v1.24.0", True), ("v1.24.1", False)],
)
def test_an_ending_waits_for_the_expectations(version: str, *, ends: bool) -> None:
    given = tracked(parallelism=2, backoff_limit=0)
    memory = JobMemory(expectations=PodExpectations(1, 0, at(-1)))
    bench = bench_of(version, given, [pod("a", "Failed")], memory=memory)
    bench.sync()
    assert [c.type for c in bench.status.conditions] == (["Failed"] if ends else [])


@pytest.mark.parametrize(
    ("version", "twice"), [("v1.23.9", True), ("v1.23.10", False), ("v1.25.0", False)]
)
def test_a_pod_that_is_noted_as_failed_and_succeeds(version: str, *, twice: bool) -> None:
    given = tracked(completions=2)
    given = replace(
        given, status=JobStatus(uncounted_failed=("a",), tracks_uncounted=True, start_ns=at(-9))
    )
    bench = bench_of(version, given, [pod("a", "Succeeded")])
    bench.sync()
    flushed = bench.api.puts[0]
    assert flushed.uncounted_failed == ("a",)
    assert flushed.uncounted_succeeded == (("a",) if twice else ())


@pytest.mark.parametrize(
    ("version", "cut"),
    [("v1.24.10", False), ("v1.24.11", True), ("v1.26.1", False), ("v1.26.2", True)],
)
def test_indexes_beyond_the_completions_are_cut(version: str, *, cut: bool) -> None:
    given = tracked(parallelism=1, completions=3, indexed=True)
    given = replace(
        given, status=JobStatus(completed_indexes="0,4-5", succeeded=3, start_ns=at(-9), active=1)
    )
    bench = bench_of(version, given, indexed_pods((1, "Running")))
    bench.sync()
    assert bench.status.completed_indexes == ("0" if cut else "0,4-5")


def many(phase: str = "Failed", count: int = 501) -> list[PodView]:
    return [pod(f"{phase.lower()}-{number:03d}", phase) for number in range(count)]


@pytest.mark.parametrize(
    ("version", "ends"),
    [("v1.24.15", True), ("v1.24.16", False), ("v1.27.3", True), ("v1.27.4", False)],
)
def test_an_ending_waits_for_all_pods(version: str, *, ends: bool) -> None:
    bench = bench_of(version, tracked(parallelism=1, backoff_limit=0), many())
    bench.sync()
    assert [c.type for c in bench.status.conditions] == (["Failed"] if ends else [])
    assert bench.status.failed == 500


@pytest.mark.parametrize(("version", "indexes"), [("v1.27.16", "0-499"), ("v1.28.0", "0-509")])
def test_indexes_beyond_500_pods_are_written(version: str, indexes: str) -> None:
    given = tracked(parallelism=0, completions=600, indexed=True)
    bench = bench_of(version, given, [pod(f"p{i}", "Succeeded", index=i) for i in range(510)])
    bench.sync()
    assert bench.status.completed_indexes == indexes


@pytest.mark.parametrize(("version", "expected"), [("v1.22.17", 0), ("v1.23.0", 1)])
def test_removals_of_finalizers_are_expected(version: str, expected: int) -> None:
    bench = bench_of(version, tracked(completions=2), pods(1, "Succeeded"))
    bench.sync()
    assert len(bench.memory.finalizers) == expected


@pytest.mark.parametrize(
    ("version", "first"), [("v1.22.1", (0, ("gone", "new"))), ("v1.22.2", (1, ("new",)))]
)
def test_uncounted_pods_leave_their_list_one_by_one(
    version: str, first: tuple[int, tuple[str, ...]]
) -> None:
    """1.22.0 and 1.22.1 count all pods of the lists at once, after the removals of the sync."""
    given = tracked(completions=9, parallelism=0)
    noted = JobStatus(uncounted_succeeded=("gone",), tracks_uncounted=True, start_ns=at(-9))
    bench = bench_of(version, replace(given, status=noted), [pod("new", "Succeeded")])
    bench.sync()
    assert (bench.api.puts[0].succeeded, bench.api.puts[0].uncounted_succeeded) == first
    assert (bench.status.succeeded, bench.status.uncounted_succeeded) == (2, ())


@pytest.mark.parametrize(("version", "written"), [("v1.28.15", False), ("v1.29.0", True)])
def test_a_change_of_terminating_alone_is_written(version: str, *, written: bool) -> None:
    given = job(parallelism=1, podReplacementPolicy="Failed")
    given = replace(given, status=JobStatus(start_ns=at(-9), terminating=0, ready=0))
    seen = [pod("a", "Running", deleted_ns=at(20))]
    bench = bench_of(version, given, seen, gates={"JobPodReplacementPolicy": True})
    bench.sync()
    assert bool(bench.api.puts) is written


POLICY = {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": []}]}}
DYING = [pod("a", "Running", deleted_ns=at(20))]


@pytest.mark.parametrize(
    ("version", "gates", "failed", "created"),
    [
        ("v1.25.16", {"JobPodFailurePolicy": True}, 1, 1),
        ("v1.26.0", {}, 0, 1),
        ("v1.26.0", {"PodDisruptionConditions": False}, 1, 1),
        ("v1.27.16", {}, 0, 1),
        ("v1.28.0", {}, 0, 0),
        ("v1.28.0", {"PodDisruptionConditions": False}, 0, 0),
        ("v1.36.3", {}, 0, 0),
    ],
)
def test_a_terminating_pod_of_a_job_with_a_failure_policy(
    version: str, gates: dict[str, bool], failed: int, created: int
) -> None:
    """Whether it counts as failed at once, and whether it is replaced at once."""
    bench = bench_of(version, tracked(**POLICY), DYING, gates=gates)
    bench.sync()
    # Back-off may hold a replacement of a failed pod; none counts here before 1.27.
    assert (bench.status.failed, len(bench.api.created)) == (failed, created)


def test_the_retry_of_a_stale_sync_clears_nothing() -> None:
    """The answer of a refused write is an error in every version, whoever is to blame."""
    for version in ("v1.23.17", "v1.27.16", "v1.36.3"):
        api = FakeApi(put_answers=[Outcome.REFUSED])
        result = bench_of(version, tracked(), pods(1), api=api).sync()
        assert (result.error, result.retried, result.requeued) == (True, True, False)


@pytest.mark.parametrize(
    ("action", "gate", "failed", "reasons"),
    [
        ("FailJob", True, 1, ["PodFailurePolicy"]),
        ("Ignore", True, 0, []),
        ("Count", True, 1, []),
        ("FailJob", False, 1, []),
    ],
)
def test_a_failure_policy_of_a_job_that_is_not_tracked(
    action: str, gate: bool, failed: int, reasons: list[str]
) -> None:
    """1.25 and 1.26 count Jobs without the annotation by listing, and know the policy already."""
    rule = exit_code_rule(action, 5)
    exited = pod("a", "Failed", containers=[container(exit_code=5, finished_ns=at(-1))])
    given = job(podFailurePolicy={"rules": [rule]})
    for version in ("v1.25.16", "v1.26.0"):
        bench = Bench.of(given, rules(version, {"JobPodFailurePolicy": gate}), [exited])
        bench.sync()
        assert bench.status.failed == failed
        assert [found.reason for found in bench.status.conditions] == reasons
