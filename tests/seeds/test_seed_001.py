"""Seed 001, the Job controller's handlers, expectations and claims at 1.12."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.support.fake_api import Bench
from tests.support.handlers import (
    Controller,
    Wake,
    job_updated,
    pod_added,
    pod_deleted,
    pod_observed,
    pod_updated,
)
from tests.support.objects import LABELS, NOW_NS, at, condition, job, pod, pods, rules
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.base.kube.views import PodView
from tracekit.check.replay.history import Revision, build_history
from tracekit.ports.cache.pods import PodCache
from tracekit.ports.job.memory import JobMemory, PodExpectations
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

VERSION = "v1.12.10"
RULES = rules(VERSION)
WAKE = JobRules.of(Era.resolve(VERSION, {}))
JOB = job()
OTHER = replace(job("other"), uid="other-uid")
JOBS = {view.key: view for view in (JOB, OTHER)}
PLAIN: dict[str, Any] = {"finalizer": False}
POD = pod("a", **PLAIN)
KEY = JOB.key


def observe(memory: JobMemory, old: PodView | None, new: PodView, *, deleted: bool = False) -> None:
    pod_observed(memory, old, new, JOB, RULES, deleted=deleted)


def counts(memory: JobMemory) -> tuple[int, int]:
    assert memory.expectations is not None
    return memory.expectations.creations, memory.expectations.deletions


def updated(old: PodView, new: PodView, retries: int = 0) -> list[Wake]:
    return list(pod_updated(old, replace(new, rv=old.rv + 1), JOBS, WAKE, lambda _: retries))


def test_every_job_update_wakes_the_key() -> None:
    """Seed 001, updateJob: every update of the Job queues its key."""
    assert job_updated(JOB, JOB, WAKE, now_ns=NOW_NS) == (Wake(KEY, 0),)


def test_a_changed_deadline_arms_a_second_timer() -> None:
    """Seed 001, updateJob (in its corrected form): AddAfter with what is left of the deadline."""
    started = {"startTime": format_rfc3339(at(-10))}
    old = job(activeDeadlineSeconds=60, status=started)
    new = job(activeDeadlineSeconds=30, status=started)
    woken = job_updated(old, new, WAKE, now_ns=NOW_NS)
    assert woken == (Wake(KEY, 0), Wake(KEY, 20 * NS_PER_S))


def test_an_added_pod_lowers_the_creations() -> None:
    """Seed 001, addPod (2): its owner is a Job, so add - 1, and the Job is queued."""
    memory = JobMemory(PodExpectations(2, 0, NOW_NS))
    observe(memory, None, POD)
    assert counts(memory) == (1, 0)
    assert pod_added(POD, JOBS, WAKE) == (Wake(KEY, 0),)


def test_an_added_pod_that_is_being_deleted_lowers_the_deletions() -> None:
    """Seed 001, addPod (1): with a deletionTimestamp it is handled as deleted."""
    memory = JobMemory(PodExpectations(1, 1, NOW_NS))
    observe(memory, None, pod("a", deleted_ns=at(30), **PLAIN))
    assert counts(memory) == (1, 0)


def test_an_orphan_wakes_the_jobs_that_it_matches() -> None:
    """Seed 001, addPod (3): no owner, so every Job whose selector matches is queued."""
    orphan = pod("a", owner=None, **PLAIN)
    assert {wake.key for wake in pod_added(orphan, JOBS, WAKE)} == set(JOBS)


def test_an_updated_pod_that_is_being_deleted_lowers_the_deletions() -> None:
    """Seed 001, updatePod (1): a deletionTimestamp counts at once, whatever the grace period."""
    memory = JobMemory(PodExpectations(0, 1, NOW_NS))
    observe(memory, POD, pod("a", deleted_ns=at(30), **PLAIN))
    assert counts(memory) == (0, 0)


def test_a_changed_owner_wakes_both_jobs() -> None:
    """Seed 001, updatePod (2) and (3): the old owner is queued first, then the new one."""
    assert POD.controller is not None
    new = replace(POD, controller=POD.controller._replace(name="other", uid="other-uid"))
    assert [wake.key for wake in updated(POD, new)] == [KEY, OTHER.key]


def test_an_orphan_whose_labels_changed_wakes_the_jobs_that_it_matches() -> None:
    """Seed 001, updatePod (4): an orphan's labels changed."""
    old = pod("a", owner=None, labels={"app": "x"}, **PLAIN)
    new = pod("a", owner=None, labels=LABELS, **PLAIN)
    assert {wake.key for wake in updated(old, new)} == set(JOBS)


def test_a_resync_wakes_nobody() -> None:
    """Seed 001, updatePod: two events with one resourceVersion are the same state."""
    assert pod_updated(POD, POD, JOBS, WAKE, lambda _: 0) == ()


def test_a_failed_pod_waits_for_the_back_off_of_its_key() -> None:
    """Seed 001, updatePod: immediate is false where the pod is Failed."""
    failed = replace(POD, phase="Failed")
    assert updated(POD, failed, retries=2) == [Wake(KEY, 20 * NS_PER_S)]


def test_a_deleted_pod_lowers_the_deletions_and_an_orphan_wakes_nobody() -> None:
    """Seed 001, deletePod: del - 1 and the Job is queued; orphans concern no controller."""
    memory = JobMemory(PodExpectations(0, 1, NOW_NS))
    observe(memory, POD, POD, deleted=True)
    assert counts(memory) == (0, 0)
    assert pod_deleted(POD, JOBS, WAKE) == (Wake(KEY, 0),)
    assert pod_deleted(pod("a", owner=None, **PLAIN), JOBS, WAKE) == ()


def test_a_tombstone_carries_the_last_state_that_was_known() -> None:
    """Seed 001, tombstones: a deletion that only a relist told counts as one."""
    added: Any = Revision(200, NOW_NS, 0, "ADDED", POD, None)  # type: ignore[arg-type]
    gone: Any = replace(added, seq=1, type="DELETED", synthesized=True, previous=added)
    memory = JobMemory(PodExpectations(0, 1, NOW_NS))
    observe(memory, POD, gone.view, deleted=gone.type == "DELETED")
    assert counts(memory) == (0, 0)
    later: Any = Revision(250, NOW_NS, 0, "LIST", replace(JOB, rv=250), None)  # type: ignore[arg-type]
    found = build_history("default", "demo", [later], [added, gone], ())
    assert found.pods[-1].rv == 250  # behind everything that had arrived before the relist
    cache = PodCache()
    cache.move_to(found.pods, len(found.pods))
    assert cache.pods() == []


def test_the_expectations_map() -> None:
    """Seed 001, the map: setting overwrites both counts and the time; observing lowers one."""
    memory = JobMemory()
    memory.expect_creations(3, at(0))
    memory.expect_deletions(2, at(1))
    assert memory.expectations == PodExpectations(0, 2, at(1))
    memory.deletion_observed()
    assert memory.expectations == PodExpectations(0, 1, at(1))


def test_the_row_of_a_deleted_job_goes() -> None:
    """Seed 001, DeleteExpectations: a key that the lister does not know is forgotten."""
    done = Bench.of(job(), RULES, memory=JobMemory(PodExpectations(1, 0, NOW_NS)))
    done.job = None  # type: ignore[assignment]
    done.sync()
    assert done.memory == JobMemory()


def test_the_walk_through_of_the_article() -> None:
    """Seed 001, section 4: completions 4, parallelism 2; nothing happens until both are seen."""
    done = Bench.of(job(parallelism=2, completions=4), RULES)
    done.sync()
    assert counts(done.memory) == (2, 0)
    done.sync()  # the pods were not seen yet
    assert len(done.api.created) == 2
    done.see_pods()
    assert counts(done.memory) == (0, 0)
    for name, seen in done.cache.items():
        done.cache[name] = done.api.pods[name] = replace(seen, phase="Succeeded")
    done.see_status()
    done.sync()
    assert len(done.api.created) == 4


def test_a_condition_must_be_true_to_finish_the_job() -> None:
    """Seed 001, IsJobFinished: type Complete or Failed, and status True."""
    assert job(status={"conditions": [condition("Complete")]}).status.finished is not None
    assert job(status={"conditions": [condition("Failed", "False")]}).status.finished is None


def test_claiming_goes_by_uid_and_selector() -> None:
    """Seed 001, ClaimPods: foreign pods are passed over, one fresh look before adopting."""
    given = [
        POD,
        pod("foreign", owner="other-uid", **PLAIN),
        pod("orphan-1", owner=None, **PLAIN),
        pod("orphan-2", owner=None, **PLAIN),
    ]
    done = Bench.of(job(parallelism=5, completions=9), RULES, given)
    done.sync()
    assert len(done.api.created) == 2  # the foreign pod takes no place
    assert [name for name, _ in done.api.adopted] == ["orphan-1", "orphan-2"]
    assert done.api.adopt_checks == 1


def test_a_job_that_is_being_deleted_gets_no_pods() -> None:
    """Seed 001, syncJob (7): manageJob needs expectations met and no deletionTimestamp."""
    done = Bench.of(job(deleted=True), RULES)
    done.sync()
    assert done.api.created == []


def test_a_job_that_failed_loses_its_pods_and_says_why() -> None:
    """Seed 001, syncJob (6): active pods are deleted, then an Event with the reason."""
    started = {"startTime": format_rfc3339(at(-60))}
    late = job(parallelism=2, completions=2, activeDeadlineSeconds=10, status=started)
    done = Bench.of(late, RULES, pods(2, **PLAIN))
    done.sync()
    assert len(done.api.deleted) == 2
    assert [reason for _, reason, _ in done.api.events] == ["DeadlineExceeded"]


def test_an_added_and_a_deleted_job_are_enqueued_at_once() -> None:
    """Seed 001, NewJobController: AddFunc and DeleteFunc enqueue immediately."""
    controller = Controller(RULES, JOBS)
    assert controller.woken(lambda handlers: handlers.add_job(JOB)) == (Wake(KEY, 0),)
    assert controller.woken(lambda handlers: handlers.delete_job(JOB)) == (Wake(KEY, 0),)
    assert controller.requests.orphans == []


def test_expectations_are_raised_and_lowered() -> None:
    """Seed 001, ControllerExpectations: Raise/LowerExpectations move the counts of a row."""
    memory = JobMemory(PodExpectations(2, 0, NOW_NS))
    memory.raise_expectations(0, 1)
    memory.lower_expectations(1, 0)
    assert counts(memory) == (1, 1)


def test_back_off_limit_and_ranking_are_those_of_1_12() -> None:
    """Seed 001, syncJob and ActivePods: retries against the limit; who is deleted first."""
    failed = [*pods(3, **PLAIN), pod("gone", "Failed", **PLAIN)]
    for requeues, ended in ((1, False), (2, True)):
        memory = JobMemory(requeues=requeues)
        done = Bench.of(job(parallelism=4, backoff_limit=2), RULES, failed, memory=memory)
        done.sync()
        assert [found.reason for found in done.status.conditions] == (
            ["BackoffLimitExceeded"] if ended else []
        )
    waiting_pod, running = pod("waiting", "Pending", **PLAIN), pod("running", **PLAIN)
    done = Bench.of(job(parallelism=1, completions=5), RULES, [running, waiting_pod])
    done.sync()
    assert done.api.deleted == ["waiting"]
