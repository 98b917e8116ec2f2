"""Which pods reach the orphan queue in which release, and what its worker does with them.

Upstream: pkg/controller/job/job_controller_test.go: TestOrphanPodsFinalizersClearedWithGC,
TestSyncOrphanPod, TestDeletePod, TestUpdateJobDelay, TestFinalizersRemovedExpectations. Witnessed
by every trace of 1.23 on in which a Job with pods is deleted; the races are not.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.support.handlers import Controller, Jobs, Pods, Requests, Wake
from tests.support.objects import NOW_NS, at, condition, job, pod, rules
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.base.kube.views import JobView, OwnerRef, PodView
from tracekit.ports.actions import Outcome
from tracekit.ports.job.backoff import NO_FAILURES, BackoffRecord
from tracekit.ports.job.event_handlers import JobEventHandlers
from tracekit.ports.job.memory import JobMemory, PodExpectations
from tracekit.ports.job.orphans import OrphanKey, orphan_pod, orphans_of, sync_orphan_pod

JOB = job()
DONE = job(status={"conditions": [condition("Complete")]})
POD = pod("a")
FREED = replace(pod("a", owner=None), rv=POD.rv + 1)
DYING = pod("a", deleted_ns=at(30))
OF_POD = [OrphanKey("default", pod="a")]
BY_SELECTOR = [OrphanKey("default", selector='{"matchLabels":{"app":"demo"}}')]

Event = Callable[[JobEventHandlers], None]
EVENTS: dict[str, tuple[dict[str, JobView], Event]] = {
    "added without an owner": ({}, lambda h: h.add_pod(FREED)),
    "loses its owner": ({}, lambda h: h.update_pod(POD, FREED)),
    "deleted without an owner": ({}, lambda h: h.delete_pod(FREED, final=False)),
    "deleted, its Job is gone": ({}, lambda h: h.delete_pod(DYING, final=False)),
    "deleted, its Job has finished": ({DONE.key: DONE}, lambda h: h.delete_pod(DYING, final=False)),
    "deleted, its Job runs": ({JOB.key: JOB}, lambda h: h.delete_pod(DYING, final=False)),
    "its Job is deleted": ({}, lambda h: h.delete_job(JOB)),
    "its finished Job is updated": (
        {DONE.key: DONE},
        lambda h: h.update_job(DONE, DONE, now_ns=NOW_NS),
    ),
}
NONE: list[OrphanKey] = []
QUEUED: dict[str, dict[str, list[OrphanKey]]] = {
    # event -> from which release on it puts what into the orphan queue
    "added without an owner": {"1.22.0": NONE, "1.23.6": NONE, "1.23.7": OF_POD, "1.24.0": OF_POD},
    "loses its owner": {"1.22.0": NONE, "1.23.6": NONE, "1.23.7": OF_POD, "1.36.3": OF_POD},
    "deleted without an owner": {"1.23.6": NONE, "1.23.7": OF_POD, "1.36.3": OF_POD},
    "deleted, its Job is gone": {"1.21.14": NONE, "1.22.0": OF_POD, "1.36.3": OF_POD},
    "deleted, its Job has finished": {
        "1.23.6": NONE,
        "1.23.7": OF_POD,
        "1.24.0": NONE,
        "1.24.1": OF_POD,
    },
    "deleted, its Job runs": {"1.22.0": NONE, "1.36.3": NONE},
    "its Job is deleted": {
        "1.23.6": NONE,
        "1.23.7": OF_POD,
        "1.31.14": OF_POD,
        "1.32.0": BY_SELECTOR,
    },
    "its finished Job is updated": {"1.28.15": NONE, "1.29.0": OF_POD, "1.32.0": BY_SELECTOR},
}


@pytest.mark.parametrize(
    ("event", "version", "queued"),
    [(event, v, q) for event, table in QUEUED.items() for v, q in table.items()],
)
def test_what_reaches_the_orphan_queue(event: str, version: str, queued: list[OrphanKey]) -> None:
    jobs, happens = EVENTS[event]
    controller = Controller(rules(version), jobs, pods=[POD])
    happens(controller.handlers)
    assert controller.requests.orphans == queued


def test_a_pod_without_the_finalizer_is_no_orphan() -> None:
    bare, freed, dying = (
        replace(given, has_tracking_finalizer=False, finalizers=()) for given in (POD, FREED, DYING)
    )
    controller = Controller(rules("1.31.14"), {}, pods=[bare])
    controller.handlers.add_pod(freed)
    controller.handlers.update_pod(bare, freed)
    controller.handlers.delete_pod(dying, final=True)
    controller.handlers.delete_job(JOB)
    assert controller.requests.orphans == []


class Server:
    """Takes finalizers off, or refuses to."""

    def __init__(self, answer: Outcome = Outcome.OK) -> None:
        self.answer = answer
        self.freed: list[str] = []

    def remove_finalizers(self, given: list[PodView]) -> list[Outcome]:
        self.freed += [pod.name for pod in given]
        return [self.answer] * len(given)


def worked_on(
    version: str,
    held: list[PodView],
    jobs: dict[str, JobView] | None = None,
    *,
    key: OrphanKey = OF_POD[0],
    answer: Outcome = Outcome.OK,
    gates: dict[str, bool] | None = None,
) -> tuple[bool, list[str], list[OrphanKey]]:
    """Whether the entry failed, whose finalizer was taken off, what was added again."""
    server, queue = Server(answer), Requests()
    error = sync_orphan_pod(
        key, Jobs(jobs or {}), Pods(held), server, queue, rules(version, gates or {})
    )
    return error, server.freed, queue.delayed_orphans


def test_the_worker_takes_the_finalizer_off() -> None:
    assert worked_on("1.36.3", [POD]) == (False, ["a"], [])
    assert worked_on("1.36.3", [POD], answer=Outcome.NOT_FOUND) == (False, ["a"], [])
    assert worked_on("1.36.3", [POD], answer=Outcome.REFUSED) == (True, ["a"], [])


def test_a_pod_that_is_gone_or_free_needs_no_work() -> None:
    assert worked_on("1.36.3", []) == (False, [], [])
    assert worked_on("1.36.3", [pod("a", finalizer=False)]) == (False, [], [])


@pytest.mark.parametrize(
    ("version", "freed"), [("1.23.6", True), ("1.23.7", False), ("1.24.0", False)]
)
def test_the_worker_looks_again_whether_a_job_owns_the_pod(version: str, *, freed: bool) -> None:
    assert bool(worked_on(version, [POD], {JOB.key: JOB})[1]) is freed


@pytest.mark.parametrize(("version", "freed"), [("1.24.0", False), ("1.24.1", True)])
def test_a_finished_job_does_not_hold_its_pods(version: str, *, freed: bool) -> None:
    assert bool(worked_on(version, [POD], {DONE.key: DONE})[1]) is freed


@pytest.mark.parametrize(("version", "freed"), [("1.30.14", True), ("1.31.0", False)])
def test_a_pod_of_another_kind_is_left_alone(version: str, *, freed: bool) -> None:
    ref = OwnerRef("ReplicaSet", "web", "web-uid", "apps/v1", controller=True)
    assert bool(worked_on(version, [replace(POD, controller=ref)])[1]) is freed


def test_a_job_that_another_controller_manages_keeps_its_pods() -> None:
    elsewhere = replace(DONE, spec=replace(DONE.spec, managed_by="example.com/jobs"))
    held = {DONE.key: elsewhere}
    assert worked_on("1.32.0", [POD], held) == (False, [], [])
    assert worked_on("1.32.0", [POD], held, gates={"JobManagedBy": False}) == (False, ["a"], [])


def test_a_selector_stands_for_all_pods_that_it_matches() -> None:
    held = [POD, pod("b"), pod("other", labels={"app": "other"}), pod("bare", finalizer=False)]
    assert worked_on("1.36.3", held, key=BY_SELECTOR[0]) == (False, ["a", "b"], [])
    assert worked_on("1.36.3", held, {JOB.key: JOB}, key=BY_SELECTOR[0]) == (False, [], [])


@pytest.mark.parametrize(
    ("version", "again"), [("1.36.4", []), ("1.36.5", OF_POD), ("1.37.0", []), ("1.37.1", OF_POD)]
)
def test_a_pod_of_a_selector_that_failed(version: str, again: list[OrphanKey]) -> None:
    found = worked_on(version, [POD], key=BY_SELECTOR[0], answer=Outcome.REFUSED)
    assert found == (False, ["a"], again)


def test_a_jobs_own_pods_are_its_orphans() -> None:
    held = [POD, pod("b", owner="earlier"), pod("c", owner=None), pod("d", finalizer=False)]
    assert list(orphans_of(JOB, Pods(held), by_selector=False)) == [orphan_pod(POD)]
    (key,) = orphans_of(JOB, Pods(held), by_selector=True)
    assert key.label_selector() == JOB.spec.selector


def deleted(version: str) -> JobMemory:
    memory = JobMemory(
        PodExpectations(1, 0, NOW_NS), frozenset(), BackoffRecord(2, at(-5)), frozenset({JOB.uid})
    )
    controller = Controller(rules(version), {}, memories={JOB.key: memory})
    assert controller.woken(lambda h: h.delete_job(JOB)) == (Wake(JOB.key, 0),)
    return memory


@pytest.mark.parametrize(
    ("version", "backoff", "finished", "expects"),
    [
        ("1.33.2", BackoffRecord(2, at(-5)), True, True),
        ("1.33.3", NO_FAILURES, True, True),
        ("1.34.0", NO_FAILURES, False, True),
        ("1.37.1", NO_FAILURES, False, True),  # the sync that finds no Job clears it
        ("1.37.2", NO_FAILURES, False, False),
    ],
)
def test_what_a_deletion_of_the_job_clears(
    version: str, backoff: BackoffRecord, *, finished: bool, expects: bool
) -> None:
    memory = deleted(version)
    assert (memory.backoff, JOB.uid in memory.finished_uids) == (backoff, finished)
    assert (memory.expectations is not None) is expects


@pytest.mark.parametrize(
    ("version", "woken"),
    [
        ("1.27.16", (Wake(JOB.key, 0),)),
        ("1.28.0", (Wake(JOB.key, NS_PER_S),)),
        ("1.31.14", (Wake(JOB.key, NS_PER_S),)),
        ("1.32.0", ()),
    ],
)
def test_an_update_of_a_finished_job_enqueues_it_up_to_1_31(
    version: str, woken: tuple[Wake, ...]
) -> None:
    controller = Controller(rules(version), {DONE.key: DONE})
    assert controller.woken(lambda h: h.update_job(DONE, DONE, now_ns=NOW_NS)) == woken


def test_an_added_job_is_enqueued_at_once() -> None:
    for version in ("1.11.0", "1.27.4", "1.36.3"):
        assert Controller(rules(version)).woken(lambda h: h.add_job(JOB)) == (Wake(JOB.key, 0),)


def test_a_changed_deadline_of_a_job_that_runs_is_armed() -> None:
    started = {"startTime": format_rfc3339(at(-10))}
    old, new = job(status=started), job(activeDeadlineSeconds=30, status=started)
    for version, first in (("1.12.0", 0), ("1.36.3", NS_PER_S)):
        controller = Controller(rules(version))
        woken = controller.woken(lambda h: h.update_job(old, new, now_ns=NOW_NS))
        assert woken == (Wake(JOB.key, first), Wake(JOB.key, 20 * NS_PER_S))
    assert (
        len(Controller(rules("1.36.3")).woken(lambda h: h.update_job(new, old, now_ns=NOW_NS))) == 1
    )


def test_events_change_the_memory_of_the_owner_only() -> None:
    memory, other = (JobMemory(PodExpectations(2, 2, NOW_NS), frozenset({"a"})) for _ in range(2))
    controller = Controller(rules("1.36.3"), {JOB.key: JOB}, memories={JOB.key: memory, "x": other})
    handlers = controller.handlers
    handlers.add_pod(POD)
    handlers.update_pod(POD, replace(DYING, rv=POD.rv + 1))
    handlers.delete_pod(DYING, final=True)
    assert memory.expectations == PodExpectations(1, 0, NOW_NS)
    assert (memory.finalizers, other.finalizers) == (frozenset(), frozenset({"a"}))
    assert other.expectations == PodExpectations(2, 2, NOW_NS)


def test_raised_and_lowered_expectations_keep_their_age() -> None:
    memory = JobMemory()
    memory.raise_expectations(1, 1)
    assert memory.expectations is None
    memory.expect_creations(2, at(-9))
    memory.raise_expectations(1, 2)
    memory.lower_expectations(2, 3)
    assert memory.expectations == PodExpectations(1, -1, at(-9))
    assert not memory.satisfied(NOW_NS)
    memory.lower_expectations(1, 0)
    assert memory.satisfied(NOW_NS)
