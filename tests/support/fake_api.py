"""An API server in a dict: what the Job controller writes is applied, unless told to fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from tests.support.handlers import pod_observed
from tests.support.objects import NOW_NS
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import (
    JOB_TRACKING_FINALIZER,
    JobStatus,
    JobView,
    OwnerRef,
    PodView,
    completion_index,
)
from tracekit.ports.actions import Created, CreatePod, Outcome
from tracekit.ports.job.context import Choices, SyncClock
from tracekit.ports.job.memory import JobMemory
from tracekit.ports.job.sync import SyncResult, sync_job
from tracekit.versions.job import JobRules


@dataclass
class FakeApi:
    """The port of the Job controller; every call is noted, failures are set by name of the pod."""

    pods: dict[str, PodView] = field(default_factory=dict)
    now_ns: int = NOW_NS
    # What shall fail.
    create_limit: int | None = None  # creations from this one on are answered with `create_answer`
    create_answer: Outcome = Outcome.REFUSED
    delete_answers: dict[str, Outcome] = field(default_factory=dict)
    patch_answers: dict[str, Outcome] = field(default_factory=dict)
    put_answers: list[Outcome] = field(default_factory=list)  # used up from the front
    adoptable: bool = True
    # What was asked.
    created: list[CreatePod] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    finalizers_removed: list[str] = field(default_factory=list)
    adopted: list[tuple[str, bool]] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    puts: list[JobStatus] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)  # the kinds of calls, in their order
    adopt_checks: int = 0

    def __post_init__(self) -> None:
        self.put_answers = list(self.put_answers)

    def create_pods(self, job: JobView, intents: list[CreatePod]) -> list[Created]:
        self.batches.append(len(intents))
        answers = []
        for intent in intents:
            self.log.append("create")
            number = len(self.created)
            self.created.append(intent)
            if self.create_limit is not None and number >= self.create_limit:
                answers.append(Created(self.create_answer))
                continue
            name = f"{intent.generate_name}{number:05d}"
            self.pods[name] = _pod_of(job, intent, name, self.now_ns)
            answers.append(Created(Outcome.OK, name))
        return answers

    def delete_pods(self, job: JobView, pods: Sequence[PodView]) -> list[Outcome]:
        del job
        return [self._delete(pod) for pod in pods]

    def _delete(self, pod: PodView) -> Outcome:
        self.log.append("delete")
        self.deleted.append(pod.name)
        answer = self.delete_answers.get(pod.name, Outcome.OK)
        if answer is Outcome.OK and pod.name in self.pods:
            self._store(
                replace(
                    self.pods[pod.name], deleted_ns=self.now_ns + 30 * NS_PER_S, deletion_grace_s=30
                )
            )
        return answer

    def remove_finalizers(self, pods: Sequence[PodView]) -> list[Outcome]:
        return [self.remove_finalizer(pod) for pod in pods]

    def remove_finalizer(self, pod: PodView) -> Outcome:
        self.log.append("finalizer")
        self.finalizers_removed.append(pod.name)
        answer = self.patch_answers.get(pod.name, Outcome.OK)
        if answer is Outcome.OK and pod.name in self.pods:
            now = self.pods[pod.name]
            left = tuple(name for name in now.finalizers if name != JOB_TRACKING_FINALIZER)
            self._store(replace(now, finalizers=left, has_tracking_finalizer=False))
        return answer

    def adopt_pod(self, job: JobView, pod: PodView, *, add_finalizer: bool) -> Outcome:
        del job
        self.log.append("adopt")
        self.adopted.append((pod.name, add_finalizer))
        return self.patch_answers.get(pod.name, Outcome.OK)

    def release_pod(self, job: JobView, pod: PodView) -> Outcome:
        del job
        self.log.append("release")
        self.released.append(pod.name)
        return self.patch_answers.get(pod.name, Outcome.OK)

    def can_adopt(self, job: JobView) -> bool:
        del job
        self.adopt_checks += 1
        return self.adoptable

    def update_status(self, job: JobView, status: JobStatus) -> tuple[Outcome, JobView]:
        self.log.append("put")
        self.puts.append(status)
        answer = self.put_answers.pop(0) if self.put_answers else Outcome.OK
        if answer is not Outcome.OK:
            return answer, job
        return answer, replace(job, status=status, rv=job.rv + 1)

    def record_event(self, job: JobView, event_type: str, reason: str, message: str) -> None:
        del job
        self.log.append("event")
        self.events.append((event_type, reason, message))

    def _store(self, pod: PodView) -> None:
        """Keep the pod, or drop it where nothing holds it any more."""
        if pod.deleted_ns is not None and not pod.finalizers and not pod.node_name:
            del self.pods[pod.name]
        else:
            self.pods[pod.name] = replace(pod, rv=pod.rv + 1)


def _pod_of(job: JobView, intent: CreatePod, name: str, now_ns: int) -> PodView:
    owner = OwnerRef("Job", job.name, job.uid, "batch/v1", controller=True)
    return PodView(
        namespace=job.namespace,
        name=name,
        uid=name,
        rv=1,
        labels=intent.labels,
        annotations=intent.annotations,
        controller=owner,
        owners=(owner,),
        finalizers=intent.finalizers,
        created_ns=now_ns,
        deleted_ns=None,
        deletion_grace_s=0,
        phase="Pending",
        node_name="",
        ready=False,
        ready_since_ns=None,
        restarts=0,
        restarts_max=0,
        has_tracking_finalizer=JOB_TRACKING_FINALIZER in intent.finalizers,
        completion_index=completion_index(intent.annotations),
    )


@dataclass
class Bench:
    """One key on the bench: its Job, its pods, the controller's memory, and a fake API server."""

    job: JobView
    rules: JobRules
    api: FakeApi = field(default_factory=FakeApi)
    memory: JobMemory = field(default_factory=JobMemory)
    now_ns: int = NOW_NS
    choices: Choices = field(default_factory=Choices)
    cache: dict[str, PodView] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)  # moments that the last sync compared with now

    @classmethod
    def of(
        cls, job: JobView, rules: JobRules, pods: Iterable[PodView] = (), **fields: object
    ) -> Bench:
        """A bench whose pod cache has caught up with the API server."""
        bench = cls(job, rules, **fields)  # type: ignore[arg-type]
        for pod in pods:
            bench.api.pods[pod.name] = pod
            bench.cache[pod.name] = pod
        return bench

    def sync(self) -> SyncResult:
        """One sync over the caches; a status that was written is seen at once."""
        self.api.now_ns = self.now_ns
        clock = SyncClock(self.now_ns)
        result = sync_job(
            self.job,
            list(self.cache.values()),
            self.memory,
            self.api,
            clock=clock,
            rules=self.rules,
            choices=self.choices,
        )
        self.asked = clock.asked
        return result

    @property
    def status(self) -> JobStatus:
        """What the Job's status is after the sync."""
        return self.api.puts[-1] if self.api.puts else self.job.status

    def see_status(self) -> None:
        """The Job informer delivers the status that was written last."""
        self.job = replace(self.job, status=self.status, rv=self.job.rv + 1)

    def see_pods(self) -> None:
        """The pod informer catches up: the handlers run once per pod that changed."""
        for name in {**self.cache, **self.api.pods}:
            old, new = self.cache.get(name), self.api.pods.get(name)
            if new is None:
                gone = self.cache.pop(name)
                pod_observed(self.memory, gone, gone, self.job, self.rules, deleted=True)
            elif new is not old:
                self.cache[name] = new
                pod_observed(self.memory, old, new, self.job, self.rules)
