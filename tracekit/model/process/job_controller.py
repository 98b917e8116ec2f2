"""The Job controller in its process: informers, both queues, workers, and its port to the server.

Upstream: pkg/controller/job/job_controller.go:NewController, Run, worker, orphanWorker,
pkg/controller/controller_utils.go:RealPodControl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from tracekit.base.kube.selectors import selector_matches
from tracekit.base.kube.views import (
    JOB_TRACKING_FINALIZER,
    JobStatus,
    JobView,
    PodView,
)
from tracekit.model.cluster.api_server import Reply
from tracekit.model.cluster.references import controller_reference, drop_finalizer, drop_owner
from tracekit.model.cluster.store import Raw
from tracekit.model.process.broadcaster import Broadcaster, Reference
from tracekit.model.process.client import Calls
from tracekit.model.process.context import ControllerContext
from tracekit.model.process.informer import Handlers, Informer
from tracekit.model.process.pod_index import PodInformer
from tracekit.model.process.workers import Workers
from tracekit.ports.actions import Created, CreatePod, Outcome
from tracekit.ports.job.context import Choices, SyncClock, SyncResult
from tracekit.ports.job.event_handlers import JobEventHandlers
from tracekit.ports.job.memory import CacheRevisions, JobMemory
from tracekit.ports.job.orphans import OrphanKey, sync_orphan_pod
from tracekit.ports.job.sync import sync_job
from tracekit.ports.job.worker import process_next_orphan_pod, process_next_work_item
from tracekit.ports.workqueue.rate_limiters import job_rate_limiter
from tracekit.ports.workqueue.rate_limiting import RateLimitingQueue
from tracekit.versions.job import JobRules

_STATUS_RETRIES: Final = 3


class JobLister:
    """The Job informer's cache as the handlers ask it."""

    __slots__ = ("_jobs",)

    def __init__(self, jobs: Informer[JobView]) -> None:
        self._jobs = jobs

    def get(self, namespace: str, name: str) -> JobView | None:
        """The Job of that name."""
        return self._jobs.get(namespace, name)

    def get_pod_jobs(self, pod: PodView) -> Iterable[JobView]:
        """The Jobs of the pod's namespace whose selector matches its labels."""
        return [
            job
            for job in self._jobs.in_namespace(pod.namespace)
            if selector_matches(job.spec.selector, pod.labels)
        ]


class JobController:
    """One Job controller in one process."""

    def __init__(
        self,
        context: ControllerContext,
        jobs: Informer[JobView],
        pods: PodInformer,
        rules: JobRules,
    ) -> None:
        life = context.life
        self._context = context
        self.server = context.server
        self._jobs = jobs
        self._pods = pods
        self.rules = rules
        self.broadcaster = Broadcaster(life, context.server, context.client, "job-controller")
        clock, limits = life.loop.clock, context.constants
        self.queue: RateLimitingQueue[str] = RateLimitingQueue(clock, job_rate_limiter(limits))
        self.orphan_queue: RateLimitingQueue[OrphanKey] = RateLimitingQueue(
            clock, job_rate_limiter(limits)
        )
        self._memories: dict[str, JobMemory] = {}
        self._lister = JobLister(jobs)
        self._workers = Workers(
            life,
            self.queue,
            context.workers,
            lambda: process_next_work_item(self.queue, self._sync, rules.retries),
            context.draws,
        )
        self._orphan_worker = Workers(
            life,
            self.orphan_queue,
            1,
            lambda: process_next_orphan_pod(self.orphan_queue, self._sync_orphan),
            context.draws,
        )
        self._subscribe()

    def _subscribe(self) -> None:
        on = JobEventHandlers(
            self.rules,
            self._lister,
            self._pods,
            self.queue,
            self.orphan_queue,
            self._memories.get,
        )
        self._jobs.handle(
            Handlers(
                on.add_job,
                lambda old, new: on.update_job(old, new, now_ns=self._context.life.now_ns),
                on.delete_job,
                self._wake,
            )
        )
        self._pods.handle(
            Handlers(
                on.add_pod, on.update_pod, lambda pod: on.delete_pod(pod, final=True), self._wake
            )
        )

    def _wake(self) -> None:
        self._workers.wake()
        self._orphan_worker.wake()

    def start(self) -> None:
        """Start the workers: the caches have synced."""
        self._workers.start()
        if self.rules.handlers.orphan_pods_lose_finalizer:
            self._orphan_worker.start()

    # Workers.

    def _sync(self, key: str) -> SyncResult:
        context, loop = self._context, self._context.life.loop
        began_ns = loop.now_ns
        # The caches are read at once, and the memory with them: what they are told while the sync
        # computes is not seen, so the list of pods takes that long to come.
        namespace, _, name = key.partition("/")
        job = self._lister.get(namespace, name)
        pods = context.draws.shuffled(self._pods.of(job)) if job is not None else ()
        read = CacheRevisions(self._jobs.revision, self._pods.revision)
        memory = self._memories.setdefault(key, JobMemory())
        memory.requeues = self.queue.num_requeues(key)
        calls = context.client.goroutine()
        listed = False

        def pods_listed() -> Iterator[PodView]:
            nonlocal listed
            listed = True
            context.compute()
            yield from pods

        result = sync_job(
            job,
            pods_listed(),
            memory,
            _Port(self, calls, memory),
            clock=SyncClock(began_ns),
            rules=self.rules,
            choices=Choices(),
            read=read,
        )
        if not listed:
            context.compute()
        if job is None:
            self._memories.pop(key, None)
        if result.wake_after_ns is None:
            return result
        # The timer was armed while the sync ran.
        return replace(result, wake_after_ns=result.wake_after_ns - (loop.now_ns - began_ns))

    def _sync_orphan(self, key: OrphanKey) -> bool:
        calls = self._context.client.goroutine()
        port = _Port(self, calls, None)
        return sync_orphan_pod(key, self._lister, self._pods, port, self.orphan_queue, self.rules)


class _Port:
    """The port of one sync (`controllers.actions.JobApi`)."""

    __slots__ = ("_calls", "_controller", "_memory", "_server")

    def __init__(self, controller: JobController, calls: Calls, memory: JobMemory | None) -> None:
        self._controller = controller
        self._server = controller.server
        self._calls = calls
        self._memory = memory

    def create_pods(self, job: JobView, intents: list[CreatePod]) -> list[Created]:
        """One slow-start batch: its requests are under way at the same time."""
        return self._calls.side_by_side([partial(self._create, job, i) for i in intents])

    def _create(self, job: JobView, intent: CreatePod) -> Created:
        reply = self._server.create("pods", _pod_body(job, intent))
        name = ""
        if reply.ok and reply.obj is not None:
            name = reply.obj["metadata"]["name"]
            self._wrote(job.uid, pods=_rv(reply))
            self.record_event(job, "Normal", "SuccessfulCreate", f"Created pod: {name}")
        elif reply.outcome is not Outcome.NAMESPACE_TERMINATING:
            text = f"Error creating: {reply.message}"
            self.record_event(job, "Warning", "FailedCreate", text)
        return Created(reply.outcome, name)

    def delete_pods(self, job: JobView, pods: Sequence[PodView]) -> list[Outcome]:
        """DELETE pods."""
        return self._calls.side_by_side([partial(self._delete, job, pod) for pod in pods])

    def _delete(self, job: JobView, pod: PodView) -> Outcome:
        reply = self._server.delete("pods", pod.namespace, pod.name)
        if reply.ok:
            self.record_event(job, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}")
        elif reply.outcome is not Outcome.NOT_FOUND:
            text = f"Error deleting: {reply.message}"
            self.record_event(job, "Warning", "FailedDelete", text)
        return reply.outcome

    def remove_finalizers(self, pods: Sequence[PodView]) -> list[Outcome]:
        """PATCH the tracking finalizers away."""

        def dropped(obj: Raw) -> None:
            drop_finalizer(obj, JOB_TRACKING_FINALIZER)

        return self._calls.side_by_side([partial(self._patch, pod, dropped) for pod in pods])

    def adopt_pod(self, job: JobView, pod: PodView, *, add_finalizer: bool) -> Outcome:
        """PATCH the controller reference (and the finalizer) in."""

        def adopted(obj: Raw) -> None:
            meta = obj["metadata"]
            meta["ownerReferences"] = [*meta.get("ownerReferences", ()), _owner(job)]
            if add_finalizer and JOB_TRACKING_FINALIZER not in meta.get("finalizers", ()):
                meta["finalizers"] = [*meta.get("finalizers", ()), JOB_TRACKING_FINALIZER]

        return self._calls.call(lambda: self._patch(pod, adopted))

    def release_pod(self, job: JobView, pod: PodView) -> Outcome:
        """PATCH the controller reference (and the finalizer) out."""

        def released(obj: Raw) -> None:
            drop_owner(obj, job.uid)
            drop_finalizer(obj, JOB_TRACKING_FINALIZER)

        return self._calls.call(lambda: self._patch(pod, released))

    def _patch(self, pod: PodView, change: Callable[[Raw], None]) -> Outcome:
        reply = self._server.change("pods", pod.namespace, pod.name, change, uid=pod.uid)
        if reply.ok and pod.controller is not None:
            self._wrote(pod.controller.uid, pods=_rv(reply))
        return reply.outcome

    def can_adopt(self, job: JobView) -> bool:
        """Uncached GET of the Job: same uid and not being deleted."""
        reply = self._calls.call(lambda: self._server.get("jobs", job.namespace, job.name))
        if reply.obj is None:
            return False
        meta = reply.obj["metadata"]
        return meta["uid"] == job.uid and meta.get("deletionTimestamp") is None

    def update_status(self, job: JobView, status: JobStatus) -> tuple[Outcome, JobView]:
        """PUT the status; old releases read the Job again first, and once more on a conflict."""
        if not self._controller.rules.overwrites_status:
            return self._put(job, job.rv, status)
        outcome, after = Outcome.OK, job
        for _ in range(_STATUS_RETRIES):
            live = self._calls.call(lambda: self._server.get("jobs", job.namespace, job.name))
            if live.obj is None:
                return live.outcome, job
            outcome, after = self._put(job, _rv(live), status)
            if outcome is Outcome.OK:
                break
        return outcome, after

    def _put(self, job: JobView, base_rv: int, status: JobStatus) -> tuple[Outcome, JobView]:
        reply = self._calls.call(
            lambda: self._server.update_job_status(
                job.namespace, job.name, job.uid, base_rv, status
            )
        )
        if not reply.ok or reply.obj is None:
            return reply.outcome, job
        self._wrote(job.uid, jobs=_rv(reply))
        # The answer keeps whole seconds, as everything that was read from the server does.
        return Outcome.OK, self._server.views.job(reply.obj)

    def record_event(self, job: JobView, event_type: str, reason: str, message: str) -> None:
        """Hand an Event to the broadcaster."""
        about = Reference.to("Job", "batch/v1", job)
        self._controller.broadcaster.record(about, event_type, reason, message)

    def _wrote(self, uid: str, *, jobs: int = 0, pods: int = 0) -> None:
        if self._memory is not None:
            self._memory.wrote_at(uid, jobs=jobs, pods=pods)


def _rv(reply: Reply) -> int:
    return int(reply.obj["metadata"]["resourceVersion"]) if reply.obj is not None else 0


def _owner(job: JobView) -> Raw:
    return controller_reference("batch/v1", "Job", job.name, job.uid)


def _pod_body(job: JobView, intent: CreatePod) -> Raw:
    meta: Raw = {
        "generateName": intent.generate_name,
        "namespace": job.namespace,
        "labels": dict(intent.labels),
        "ownerReferences": [_owner(job)],
    }
    if intent.annotations:
        meta["annotations"] = dict(intent.annotations)
    if intent.finalizers:
        meta["finalizers"] = list(intent.finalizers)
    return {"metadata": meta, "spec": dict(intent.spec)}
