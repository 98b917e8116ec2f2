"""Which Jobs an event of the informers wakes, and after what delay.

The handlers of one controller version as pure functions: they look at the two revisions of an
object, at the retries that the Job's key has behind it, and answer with (key, delay) pairs that a
driver hands to `add_after`. What the same events do to expectations is in `replay.handlers`.

Up to 1.27 a pod's move to Failed waits for the key's back-off; from 1.23 on other pod events may
wait for a batch period; from 1.28 on Job updates that keep the generation wait for it too.

Upstream: pkg/controller/job/job_controller.go:addPod, updatePod, deletePod, updateJob,
enqueueController*, getBackoff.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tracekit.eras.era import Era
from tracekit.kube.selectors import selector_matches
from tracekit.kube.timestamps import NS_PER_S
from tracekit.kube.views import JobView, OwnerRef, PodView

#: Retries counted for a key (client-go: NumRequeues).
Retries = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Wake:
    """One request to sync a key."""

    key: str
    delay_ns: int


@dataclass(frozen=True, slots=True)
class WakeRules:
    """When the handlers of one version wake a Job."""

    pod_failure_delays: bool
    first_failure_only: bool
    job_status_batched: bool
    deadline_rearmed: bool
    batch_ns: int
    backoff_ns_base: int
    backoff_ns_max: int

    @classmethod
    def of(cls, era: Era) -> WakeRules:
        """The rules of a version with its gates."""
        behaviors, constants = era.behaviors, era.constants
        batched = era.gates.JobReadyPods or behaviors.job_status_updates_batched
        return cls(
            pod_failure_delays=behaviors.pod_failure_delays_sync,
            first_failure_only=behaviors.only_first_pod_failure_delays_sync,
            job_status_batched=behaviors.job_status_updates_batched,
            deadline_rearmed=behaviors.deadline_timer_rearmed_on_job_update,
            batch_ns=constants.sync_batch_period_ns if batched else 0,
            backoff_ns_base=constants.queue_backoff_ns_base,
            backoff_ns_max=constants.queue_backoff_ns_max,
        )

    def backoff_ns(self, retries: int) -> int:
        """The key's back-off: nothing before the first retry, then doubling (getBackoff)."""
        if retries <= 0:
            return 0
        return min(self.backoff_ns_base << min(retries - 1, 63), self.backoff_ns_max)


def pod_added(pod: PodView, jobs: Mapping[str, JobView], rules: WakeRules) -> tuple[Wake, ...]:
    """A pod that the informer shows for the first time; `jobs` is the Job lister by key."""
    if pod.deleted_ns is not None:
        return pod_deleted(pod, jobs, rules)
    if pod.controller is not None:
        job = _resolve(pod.namespace, pod.controller, jobs)
        return (Wake(job.key, rules.batch_ns),) if job is not None else ()
    return tuple(Wake(job.key, rules.batch_ns) for job in _matching(pod, jobs.values()))


def pod_updated(
    old: PodView, new: PodView, jobs: Mapping[str, JobView], rules: WakeRules, retries: Retries
) -> tuple[Wake, ...]:
    """A new revision of a pod; a resync's echo wakes nobody."""
    if old.rv == new.rv:
        return ()
    if new.deleted_ns is not None:
        return pod_deleted(new, jobs, rules)

    def wake(job: JobView) -> Wake:
        return Wake(job.key, _delay_ns(old, new, rules, retries(job.key)))

    woken = []
    ref_changed = old.controller != new.controller
    if ref_changed and old.controller is not None:
        before = _resolve(old.namespace, old.controller, jobs)
        if before is not None:
            woken.append(wake(before))
    if new.controller is not None:
        now = _resolve(new.namespace, new.controller, jobs)
        if now is not None:
            woken.append(wake(now))
    elif ref_changed or old.labels != new.labels:
        woken += [wake(job) for job in _matching(new, jobs.values())]
    return tuple(woken)


def _delay_ns(old: PodView, new: PodView, rules: WakeRules, retries: int) -> int:
    """The batch period, or the key's back-off where a failure is to be slowed down."""
    failed = new.phase == "Failed"
    if rules.first_failure_only:
        failed = failed and old.phase != "Failed"
    if not (rules.pod_failure_delays and failed):
        return rules.batch_ns
    backoff_ns = rules.backoff_ns(retries)
    return max(backoff_ns, rules.batch_ns) if rules.first_failure_only else backoff_ns


def pod_deleted(pod: PodView, jobs: Mapping[str, JobView], rules: WakeRules) -> tuple[Wake, ...]:
    """A pod that is being deleted or gone; nobody cares for an orphan."""
    if pod.controller is None:
        return ()
    job = _resolve(pod.namespace, pod.controller, jobs)
    return (Wake(job.key, rules.batch_ns),) if job is not None else ()


def job_updated(old: JobView, new: JobView, rules: WakeRules, *, now_ns: int) -> tuple[Wake, ...]:
    """A new revision of a Job, resyncs included; a changed deadline gets a timer of its own."""
    same_generation = old.generation == new.generation
    batched = rules.job_status_batched and same_generation
    woken = [Wake(new.key, rules.batch_ns if batched else 0)]
    deadline_s, start_ns = new.spec.active_deadline_s, new.status.start_ns
    changed = deadline_s is not None and old.spec.active_deadline_s != deadline_s
    if rules.deadline_rearmed and changed and deadline_s is not None and start_ns is not None:
        woken.append(Wake(new.key, deadline_s * NS_PER_S - (now_ns - start_ns)))
    return tuple(woken)


def _resolve(namespace: str, ref: OwnerRef, jobs: Mapping[str, JobView]) -> JobView | None:
    """The Job that an owner reference means, by kind, name and uid."""
    if ref.kind != "Job":
        return None
    job = jobs.get(f"{namespace}/{ref.name}")
    return job if job is not None and job.uid == ref.uid else None


def _matching(pod: PodView, jobs: Iterable[JobView]) -> list[JobView]:
    """The Jobs whose selector an orphan matches; a pod without labels matches none."""
    if not pod.labels:
        return []
    return [
        job
        for job in jobs
        if job.namespace == pod.namespace and selector_matches(job.spec.selector, pod.labels)
    ]
