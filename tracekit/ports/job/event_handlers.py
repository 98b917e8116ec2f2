"""What the Job controller does with an event of its informers.

A handler changes the memory of a key (what was expected has come) and enqueues: at once, after the
batch period, or after the key's back-off. A pod that nobody will count any more goes to the orphan
queue, whose worker takes its finalizer off (`orphans`). Handlers run one at a time per informer, in
the order of its events; objects of the first listing arrive as additions, a deletion that was
missed as a deletion with the last state that was known, a resync as an update to itself.

Upstream: pkg/controller/job/job_controller.go:addPod, updatePod, deletePod, addJob, updateJob,
deleteJob, enqueue*, resolveControllerRef, getPodJobs, from v1.11 on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView, PodView
from tracekit.ports.job.memory import JobMemory
from tracekit.ports.job.orphans import (
    JobLister,
    OrphanQueue,
    PodLister,
    orphan_pod,
    orphans_of,
    resolve_controller_ref,
)
from tracekit.versions.job import JobRules


class JobQueue(Protocol):
    """What handlers ask of the Job queue (client-go: RateLimitingInterface)."""

    def add_after(self, key: str, delay_ns: int) -> None:
        """Add a key once the delay has passed; the earliest of several wins."""
        ...

    def num_requeues(self, key: str) -> int:
        """Failures counted since the key was last forgotten."""
        ...


class JobEventHandlers(Struct, frozen=True):
    """The handlers of one version, and what they work on.

    `memory` gives the memory of a key, None where nothing is kept for it.
    """

    rules: JobRules
    jobs: JobLister
    pods: PodLister
    queue: JobQueue
    orphan_queue: OrphanQueue
    memory: Callable[[str], JobMemory | None]

    # Pods.

    def add_pod(self, pod: PodView) -> None:
        """A pod that the informer shows for the first time."""
        if pod.deleted_ns is not None:
            # After a restart: such a pod is no creation that somebody waits for.
            self.delete_pod(pod, final=False)
            return
        if pod.controller is not None:
            job = resolve_controller_ref(pod.namespace, pod.controller, self.jobs)
            if job is not None:
                memory = self.memory(job.key)
                if memory is not None:
                    memory.creation_observed()
                self._enqueue_batched(job.key)
            return
        self._enqueue_orphan_without_owner(pod)
        for job in self._pod_jobs(pod):
            self._enqueue_batched(job.key)

    def update_pod(self, old: PodView, new: PodView) -> None:
        """A new revision of a pod; a resync's echo has the same one and does nothing."""
        if old.rv == new.rv:
            return
        if new.deleted_ns is not None:
            self.delete_pod(new, final=False)
            return
        # The old pod's finalizer is not asked for: it may have been given and taken again since.
        released = not new.has_tracking_finalizer
        failing = self._failure_delays(old, new)
        ref_changed = old.controller != new.controller
        if ref_changed and old.controller is not None:
            job = resolve_controller_ref(old.namespace, old.controller, self.jobs)
            if job is not None:
                self._pod_changed(job, new, released=released, failing=failing)
        if new.controller is not None:
            job = resolve_controller_ref(new.namespace, new.controller, self.jobs)
            if job is not None:
                self._pod_changed(job, new, released=released, failing=failing)
            return
        self._enqueue_orphan_without_owner(new)
        if ref_changed or old.labels != new.labels:
            for job in self._pod_jobs(new):
                self._enqueue_pod_update(job.key, failing=failing)

    def delete_pod(self, pod: PodView, *, final: bool) -> None:
        """A pod that is being deleted, or (`final`) is gone."""
        if pod.controller is None:
            self._enqueue_orphan_without_owner(pod)
            return
        handlers = self.rules.handlers
        job = resolve_controller_ref(pod.namespace, pod.controller, self.jobs)
        over = job is not None and job.status.finished is not None
        if job is None or (over and handlers.pods_of_finished_jobs_lose_finalizer):
            if pod.has_tracking_finalizer and handlers.orphan_pods_lose_finalizer:
                self.orphan_queue.add(orphan_pod(pod))
            if job is None or handlers.pods_of_finished_jobs_lose_finalizer:
                return
        memory = self.memory(job.key)
        if memory is not None:
            memory.deletion_observed()
            if final or not pod.has_tracking_finalizer:
                memory.finalizer_removal_observed(pod.uid)
        self._enqueue_batched(job.key)

    # Jobs.

    def add_job(self, job: JobView) -> None:
        """A Job that the informer shows for the first time."""
        self.queue.add_after(job.key, 0)

    def update_job(self, old: JobView, new: JobView, *, now_ns: int) -> None:
        """A new revision of a Job, resyncs included; a changed deadline gets a timer of its own."""
        handlers = self.rules.handlers
        finished = new.status.finished is not None
        if finished and handlers.orphans_found_by_selector:
            self._enqueue_orphans_of(new)
            return
        if handlers.job_status_updates_batched and old.generation == new.generation:
            self._enqueue_batched(new.key)
        else:
            self.queue.add_after(new.key, 0)
        if finished and handlers.finished_job_releases_its_pods:
            self._enqueue_orphans_of(new)
        deadline_s, start_ns = new.spec.active_deadline_s, new.status.start_ns
        changed = deadline_s != old.spec.active_deadline_s
        rearmed = handlers.deadline_timer_rearmed_on_job_update and changed
        if rearmed and deadline_s is not None and start_ns is not None:
            self.queue.add_after(new.key, deadline_s * NS_PER_S - (now_ns - start_ns))

    def delete_job(self, job: JobView) -> None:
        """A Job that is gone; its last known state, where the deletion itself was missed."""
        handlers = self.rules.handlers
        self.queue.add_after(job.key, 0)
        memory = self.memory(job.key)
        if memory is not None:
            memory.job_deleted(
                job.uid,
                finish=handlers.deleted_job_forgets_finish,
                backoff=handlers.deleted_job_forgets_backoff,
                expectations=handlers.deleted_job_forgets_expectations,
            )
        if handlers.orphans_without_owner_lose_finalizer:
            self._enqueue_orphans_of(job)

    # What they share.

    def _pod_jobs(self, pod: PodView) -> list[JobView]:
        """The Jobs that an orphan matches; a pod without labels matches none."""
        return list(self.jobs.get_pod_jobs(pod)) if pod.labels else []

    def _pod_changed(self, job: JobView, pod: PodView, *, released: bool, failing: bool) -> None:
        memory = self.memory(job.key)
        if released and memory is not None:
            memory.finalizer_removal_observed(pod.uid)
        self._enqueue_pod_update(job.key, failing=failing)

    def _failure_delays(self, old: PodView, new: PodView) -> bool:
        """Whether the pod's failure holds its Job up (up to 1.27)."""
        handlers = self.rules.handlers
        if not handlers.pod_failure_delays_sync or new.phase != "Failed":
            return False
        return old.phase != "Failed" or not handlers.only_first_pod_failure_delays_sync

    def _enqueue_batched(self, key: str) -> None:
        self.queue.add_after(key, self.rules.handlers.batch_ns)

    def _enqueue_pod_update(self, key: str, *, failing: bool) -> None:
        """After the batch period or, for a failure, the key's back-off."""
        handlers = self.rules.handlers
        delay_ns = handlers.batch_ns
        if failing:
            backoff_ns = self.rules.retries.backoff_ns(self.queue.num_requeues(key))
            if backoff_ns > 0 or not handlers.only_first_pod_failure_delays_sync:
                delay_ns = backoff_ns
        self.queue.add_after(key, delay_ns)

    def _enqueue_orphan_without_owner(self, pod: PodView) -> None:
        if pod.has_tracking_finalizer and self.rules.handlers.orphans_without_owner_lose_finalizer:
            self.orphan_queue.add(orphan_pod(pod))

    def _enqueue_orphans_of(self, job: JobView) -> None:
        for key in orphans_of(job, self.pods, by_selector=self._by_selector):
            self.orphan_queue.add(key)

    @property
    def _by_selector(self) -> bool:
        return self.rules.handlers.orphans_found_by_selector
