"""Seed 004, the Job controller at 1.23: tracking finalizers, orphan queue, handlers."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.support.fake_api import Bench, FakeApi
from tests.support.handlers import (
    Controller,
    Jobs,
    Pods,
    Wake,
    job_updated,
    pod_added,
    pod_deleted,
    pod_observed,
    pod_updated,
)
from tests.support.objects import LABELS, NOW_NS, at, job, pod, pods, raw_job, rules
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.base.kube.views import JobView, PodView, job_from_raw
from tracekit.base.sim.clock import VirtualClock
from tracekit.check.replay.history import Revision, build_history
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.run_context import RunContext
from tracekit.check.replay.search import KeyWalker
from tracekit.check.replay.search_state import WithoutSync
from tracekit.ports.actions import Outcome
from tracekit.ports.job.memory import JobMemory, PodExpectations
from tracekit.ports.job.orphans import sync_orphan_pod
from tracekit.ports.job.worker import process_next_orphan_pod
from tracekit.ports.workqueue.rate_limiters import job_rate_limiter
from tracekit.ports.workqueue.rate_limiting import RateLimitingQueue
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

VERSION = "v1.23.0"
ERA = Era.resolve(VERSION, {})
RULES = rules(VERSION)
WAKE = JobRules.of(ERA)


def tracked(**fields: Any) -> JobView:
    raw = raw_job(**fields)
    raw["metadata"]["annotations"] = {"batch.kubernetes.io/job-tracking": ""}
    return job_from_raw(raw)


JOB = tracked()
JOBS = {JOB.key: JOB}
KEY = JOB.key
POD = pod("a")
BARE = pod("a", finalizer=False)
DYING = pod("a", deleted_ns=at(30))


def observe(memory: JobMemory, old: PodView | None, new: PodView, *, deleted: bool = False) -> None:
    pod_observed(memory, old, new, JOB, RULES, deleted=deleted)


def waiting(creations: int = 0, deletions: int = 0) -> JobMemory:
    return JobMemory(PodExpectations(creations, deletions, NOW_NS), finalizers=frozenset({"a"}))


def updated(old: PodView, new: PodView, retries: int = 0) -> list[Wake]:
    return list(pod_updated(old, replace(new, rv=old.rv + 1), JOBS, WAKE, lambda _: retries))


def test_the_annotation_decides_who_is_tracked() -> None:
    """Seed 004, tracking finalizers: a Job with the annotation gets pods with the finalizer."""
    done = Bench.of(JOB, RULES)
    done.sync()
    assert RULES.tracks(JOB)
    assert not RULES.tracks(job())
    assert "batch.kubernetes.io/job-tracking" in done.api.created[0].finalizers


def test_a_finished_pod_is_counted_before_its_finalizer_goes() -> None:
    """Seed 004, tracking finalizers: uncounted in the status, finalizer off, then the counter."""
    view = tracked(parallelism=2, completions=5)
    done = Bench.of(view, RULES, [*pods(2), pod("a", "Succeeded")])
    done.sync()
    assert done.api.log == ["put", "finalizer", "put"]
    assert done.api.puts[0].uncounted_succeeded == ("a",)
    assert (done.status.uncounted_succeeded, done.status.succeeded) == ((), 1)


def test_an_added_pod_lowers_the_creations() -> None:
    """Seed 004, addPod: CreationObserved and enqueueController(job, true)."""
    memory = waiting(creations=1)
    observe(memory, None, POD)
    assert memory.satisfied(NOW_NS)
    assert pod_added(POD, JOBS, WAKE) == (Wake(KEY, 0),)


def test_an_added_pod_that_is_being_deleted_is_not_final() -> None:
    """Seed 004, addPod after a restart: deletePod(pod, false) keeps the finalizer expectation."""
    memory = waiting(creations=1, deletions=1)
    observe(memory, None, DYING)
    assert memory.expectations == PodExpectations(1, 0, NOW_NS)
    assert memory.finalizers == {"a"}


def test_an_orphan_wakes_the_jobs_that_it_matches() -> None:
    """Seed 004, addPod: getPodJobs for a pod without controllerRef."""
    assert pod_added(pod("a", owner=None, labels=LABELS), JOBS, WAKE) == (Wake(KEY, 0),)


def test_a_removed_finalizer_is_observed() -> None:
    """Seed 004, updatePod: finalizerRemovalObserved where the pod has no finalizer any more."""
    memory = waiting()
    observe(memory, POD, BARE)
    assert memory.finalizers == frozenset()


def test_a_pod_that_is_still_expected_is_not_counted_again() -> None:
    """Seed 004, finalizerExpectations: until the removal is seen the pod counts as done with."""
    view = tracked(parallelism=2, completions=5)
    done = Bench.of(view, RULES, [*pods(2), pod("a", "Succeeded")])
    done.sync()
    assert done.memory.finalizers == {"a"}
    done.see_status()
    done.sync()
    assert done.status.succeeded == 1
    done.see_pods()
    assert done.memory.finalizers == frozenset()


def test_a_counter_whose_write_failed_is_made_up_for() -> None:
    """Seed 004, finalizerExpectations: a removal that was sent counts, seen or not."""
    view = tracked(parallelism=2, completions=5)
    done = Bench.of(view, RULES, [*pods(2), pod("a", "Succeeded")])
    done.api.put_answers = [Outcome.OK, Outcome.REFUSED]
    assert done.sync().error
    done.job = replace(view, status=done.api.puts[0])
    done.api.puts.clear()
    done.sync()  # the cache still shows the finalizer
    assert (done.status.uncounted_succeeded, done.status.succeeded) == ((), 1)
    assert done.api.finalizers_removed == ["a"]


def test_a_changed_owner_wakes_the_old_job() -> None:
    """Seed 004, updatePod: controllerRefChanged queues the old owner, and observes its finalizer."""
    freed = pod("a", owner=None, finalizer=False, labels={"app": "x"})
    assert updated(POD, freed) == [Wake(KEY, 0)]
    memory = waiting()
    observe(memory, POD, freed)
    assert memory.finalizers == frozenset()


def test_a_resync_is_filtered() -> None:
    """Seed 004, updatePod: equal resourceVersions wake nobody."""
    assert pod_updated(POD, POD, JOBS, WAKE, lambda _: 0) == ()


def test_a_failed_pod_is_enqueued_with_the_back_off() -> None:
    """Seed 004, enqueueController(immediate=false): 10 s doubled per retry, 6 min at most."""
    failed = replace(POD, phase="Failed")
    for retries, seconds in ((0, 0), (1, 10), (2, 20), (7, 360)):
        assert updated(POD, failed, retries) == [Wake(KEY, seconds * NS_PER_S)]
    assert updated(POD, replace(POD, phase="Succeeded"), 5) == [Wake(KEY, 0)]


def test_the_queue_backs_off_from_ten_seconds() -> None:
    """Seed 004, NewController: DefaultJobBackOff 10 s, doubled, MaxJobBackOff 6 min."""
    limiter = job_rate_limiter(ERA.constants)
    waits = []
    for _ in range(8):
        queue = RateLimitingQueue(VirtualClock(), limiter)
        queue.add_rate_limited(KEY)
        waits.append((queue.next_ready_ns() or 0) // NS_PER_S)
    assert waits == [10, 20, 40, 80, 160, 320, 360, 360]


def test_an_updated_job_rearms_its_deadline() -> None:
    """Seed 004, updateJob: a changed activeDeadlineSeconds adds the key after what is left."""
    started = {"startTime": format_rfc3339(at(-10))}
    old = tracked(activeDeadlineSeconds=60, status=started)
    new = tracked(activeDeadlineSeconds=90, status=started)
    woken = job_updated(old, new, WAKE, now_ns=NOW_NS)
    assert woken == (Wake(KEY, 0), Wake(KEY, 80 * NS_PER_S))
    assert job_updated(new, new, WAKE, now_ns=NOW_NS) == (Wake(KEY, 0),)


def test_a_final_deletion_ends_the_wait_for_the_finalizer() -> None:
    """Seed 004, deletePod(final): true ends it always, false only where the finalizer is off."""
    memory = waiting(deletions=1)
    observe(memory, POD, DYING)
    assert memory.finalizers == {"a"}
    observe(memory, DYING, DYING, deleted=True)
    assert memory.finalizers == frozenset()
    assert memory.satisfied(NOW_NS)
    assert pod_deleted(DYING, JOBS, WAKE) == (Wake(KEY, 0),)


def test_an_orphan_that_is_deleted_concerns_nobody() -> None:
    """Seed 004, deletePod: no controllerRef, nothing to do; an unknown Job is not woken either."""
    assert pod_deleted(pod("a", owner=None), JOBS, WAKE) == ()
    assert pod_deleted(pod("a", owner="gone-uid"), JOBS, WAKE) == ()


def test_the_orphan_queue_takes_finalizers_off() -> None:
    """Seed 004, orphanQueue: a pod whose Job is gone loses its finalizer, without a sync."""
    gone = replace(JOB, rv=3)
    jobs: Any = [_revision(1, "LIST", JOB), _revision(3, "DELETED", gone)]
    seen: Any = [_revision(2, "LIST", POD), _revision(4, "MODIFIED", BARE)]
    found = build_history("default", "demo", jobs, seen, ())
    facts = KeyEvidence(found, RULES, RunContext(5 * NS_PER_S))
    replayed = KeyWalker(facts, dict).run()
    assert [(write.uid, why) for _, write, why, _ in replayed.of(WithoutSync.ORPHAN_WORKER)] == [
        ("a", "the pod's Job is gone")
    ]


def _revision(rv: int, kind: str, view: JobView | PodView) -> Any:
    evidence: Any = None
    return Revision(rv, NOW_NS + rv * NS_PER_S, rv, kind, replace(view, rv=rv), evidence)


def test_the_orphan_worker_patches_and_retries() -> None:
    """Seed 004, orphanWorker: a deleted pod of a Job that is gone is freed, errors come again."""
    controller = Controller(RULES, {})
    controller.handlers.delete_pod(DYING, final=False)
    (key,) = controller.requests.orphans
    for answer, error in ((Outcome.OK, False), (Outcome.REFUSED, True)):
        api = FakeApi(patch_answers={"a": answer})
        failed = sync_orphan_pod(key, Jobs(), Pods([DYING]), api, controller.requests, RULES)
        assert (failed, api.finalizers_removed) == (error, ["a"])
    queue = RateLimitingQueue(VirtualClock(NOW_NS), job_rate_limiter(ERA.constants))
    queue.add("default/a")
    assert process_next_orphan_pod(queue, lambda _: True)
    assert queue.pending_ns("default/a") == NOW_NS + 10 * NS_PER_S
