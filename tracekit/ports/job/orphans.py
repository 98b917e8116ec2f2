"""The orphan queue: pods that keep the tracking finalizer though no Job will count them.

A pod whose Job is gone or finished, or that lost its owner, would stay for ever. Handlers put it
into a second queue; its worker looks again, and takes the finalizer off. From 1.32 on an entry may
also stand for all pods that a selector matches.

Upstream: pkg/controller/job/job_controller.go:enqueueOrphanPod, enqueueLabelSelector,
cleanupPodFinalizers, syncOrphanPod, handleSingleOrphanPod, syncOrphanPodsBySelector,
from v1.22 on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tracekit.base.kube.views import JobView, OwnerRef, PodView
from tracekit.ports.actions import Outcome
from tracekit.versions.job import JobRules

#: An orphan's patch went through, or there is nothing left to patch.
_GONE = (Outcome.OK, Outcome.NOT_FOUND)


class OrphanKey(NamedTuple):
    """An entry of the orphan queue: one pod by name, or all pods of a selector."""

    namespace: str
    pod: str = ""
    selector: str = ""  # as JSON with sorted keys, so that equal ones are one entry

    def label_selector(self) -> Mapping[str, Any] | None:
        """The selector as the API has it."""
        decoded: Mapping[str, Any] | None = json.loads(self.selector)
        return decoded


class OrphanQueue(Protocol):
    """What is asked of the orphan queue."""

    def add(self, key: OrphanKey) -> None:
        """Add an entry."""
        ...

    def add_rate_limited(self, key: OrphanKey) -> None:
        """Add an entry once its back-off has passed."""
        ...


class JobLister(Protocol):
    """The informer's Jobs."""

    def get(self, namespace: str, name: str) -> JobView | None:
        """The Job of that name."""
        ...

    def get_pod_jobs(self, pod: PodView) -> Iterable[JobView]:
        """The Jobs of the pod's namespace whose selector matches its labels."""
        ...


class PodLister(Protocol):
    """The informer's pods."""

    def get(self, namespace: str, name: str) -> PodView | None:
        """The pod of that name."""
        ...

    def select(self, namespace: str, selector: Mapping[str, Any] | None) -> Iterable[PodView]:
        """The pods of a namespace that a label selector matches."""
        ...


class FinalizerApi(Protocol):
    """What the orphan worker may ask of the API server."""

    def remove_finalizers(self, pods: Sequence[PodView]) -> list[Outcome]:
        """PATCH the tracking finalizers away."""
        ...


def orphan_pod(pod: PodView) -> OrphanKey:
    """The entry of one pod."""
    return OrphanKey(pod.namespace, pod=pod.name)


def orphans_of(job: JobView, pods: PodLister, *, by_selector: bool) -> Iterable[OrphanKey]:
    """The entries for the pods of a Job that is gone or finished."""
    if by_selector:
        text = json.dumps(job.spec.selector, sort_keys=True, separators=(",", ":"))
        return (OrphanKey(job.namespace, selector=text),)
    return [
        orphan_pod(pod)
        for pod in pods.select(job.namespace, job.spec.selector)
        if pod.has_tracking_finalizer
        and pod.controller is not None
        and pod.controller.uid == job.uid
    ]


def resolve_controller_ref(namespace: str, ref: OwnerRef, jobs: JobLister) -> JobView | None:
    """The Job that an owner reference means, by kind, name and uid."""
    if ref.kind != "Job":
        return None
    job = jobs.get(namespace, ref.name)
    return job if job is not None and job.uid == ref.uid else None


def sync_orphan_pod(
    key: OrphanKey,
    jobs: JobLister,
    pods: PodLister,
    api: FinalizerApi,
    queue: OrphanQueue,
    rules: JobRules,
) -> bool:
    """Work on one entry of the orphan queue; True is an error: the entry is tried again.

    A selector's entry never fails as a whole. A pod of it that did is tried again by name from
    1.37.1 on, and before at its next change only.
    """
    if not key.selector:
        pod = pods.get(key.namespace, key.pod)
        return pod is not None and _fails(pod, jobs, api, rules)
    for pod in list(pods.select(key.namespace, key.label_selector())):
        if _fails(pod, jobs, api, rules) and rules.handlers.orphan_finalizer_retried:
            queue.add_rate_limited(orphan_pod(pod))
    return False


def _fails(pod: PodView, jobs: JobLister, api: FinalizerApi, rules: JobRules) -> bool:
    """Take the finalizer off, if the pod is an orphan still; whether that went wrong."""
    if not pod.has_tracking_finalizer or _has_an_owner(pod, jobs, rules):
        return False
    return api.remove_finalizers([pod])[0] not in _GONE


def _has_an_owner(pod: PodView, jobs: JobLister, rules: JobRules) -> bool:
    """Whether somebody owns the pod who will take care of its finalizer."""
    handlers, ref = rules.handlers, pod.controller
    if ref is None or not handlers.orphans_without_owner_lose_finalizer:
        return False  # 1.22 to 1.23.6 do not look again
    if handlers.orphans_of_other_kinds_kept and (ref.kind, ref.api_version) != ("Job", "batch/v1"):
        return True
    job = resolve_controller_ref(pod.namespace, ref, jobs)
    if job is None:
        return False
    if handlers.orphans_of_managed_jobs_kept and rules.managed_elsewhere(job):
        return True
    return job.status.finished is None or not handlers.pods_of_finished_jobs_lose_finalizer
