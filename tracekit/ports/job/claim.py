"""Which pods belong to a Job: keep, adopt, release.

Runs at the start of every sync over all pods of the namespace that could matter. Phase is not
looked at: finished pods are adopted too.

Upstream: pkg/controller/controller_ref_manager.go:PodControllerRefManager.ClaimPods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from tracekit.base.kube.selectors import selector_matches
from tracekit.base.kube.views import JOB_TRACKING_FINALIZER, JobView, PodView
from tracekit.ports.actions import JobApi, Outcome

#: A pod that is gone needs no owner.
_DONE = (Outcome.OK, Outcome.NOT_FOUND)


class ClaimError(Exception):
    """An adoption or a release failed: the sync stops before it counts anything."""


def claim_pods(
    job: JobView, pods: Iterable[PodView], api: JobApi, *, add_finalizer: bool
) -> list[PodView]:
    """The pods that the Job manages in this sync; adopted ones count at once."""
    claimed: list[PodView] = []
    failed = False
    may_adopt: bool | None = None  # one uncached look at the Job per sync, and only if needed
    for pod, matches in _not_of_others(job, pods):
        if pod.controller is not None:
            if matches:
                claimed.append(pod)
            elif job.deleted_ns is None:
                failed |= api.release_pod(job, pod) not in _DONE
        elif matches and job.deleted_ns is None and pod.deleted_ns is None:
            if may_adopt is None:
                may_adopt = api.can_adopt(job)
            answer = api.adopt_pod(job, pod, add_finalizer=add_finalizer) if may_adopt else None
            if answer is Outcome.OK:
                claimed.append(_adopted(pod, add_finalizer=add_finalizer))
            failed |= answer not in _DONE
    if failed:
        raise ClaimError
    return claimed


def _not_of_others(job: JobView, pods: Iterable[PodView]) -> Iterator[tuple[PodView, bool]]:
    """The pods that are the Job's or nobody's, and whether its selector matches each."""
    labels, matches = None, False
    for pod in pods:
        if pod.controller is not None and pod.controller.uid != job.uid:
            continue
        if pod.labels is not labels:  # those of one Job mostly share them
            labels = pod.labels
            matches = selector_matches(job.spec.selector, labels)
        yield pod, matches


def _adopted(pod: PodView, *, add_finalizer: bool) -> PodView:
    """The pod as the rest of the sync sees it: upstream adds the finalizer to its own copy."""
    if not add_finalizer or pod.has_tracking_finalizer:
        return pod
    return replace(
        pod, finalizers=(*pod.finalizers, JOB_TRACKING_FINALIZER), has_tracking_finalizer=True
    )
