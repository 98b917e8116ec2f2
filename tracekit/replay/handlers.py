"""What the informers' handlers do to a key's memory while its caches catch up.

Only the effect on memory: which key is woken, and when, is the business of the work queue.

Upstream: pkg/controller/job/job_controller.go:addPod, updatePod, deletePod.
"""

from __future__ import annotations

from tracekit.controllers.job.memory import JobMemory
from tracekit.kube.views import PodView


def pod_observed(
    memory: JobMemory, old: PodView | None, new: PodView, *, deleted: bool, job_uid: str
) -> None:
    """Apply one delta of the pod informer; `deleted` is the final one."""
    if deleted or new.deleted_ns is not None:
        if _owned(new, job_uid):
            memory.deletion_observed()
            if deleted or not new.has_tracking_finalizer:
                memory.finalizer_removal_observed(new.uid)
        return
    if old is None:
        if _owned(new, job_uid):
            memory.creation_observed()
        return
    if not new.has_tracking_finalizer and (_owned(new, job_uid) or _owned(old, job_uid)):
        memory.finalizer_removal_observed(new.uid)


def _owned(pod: PodView, job_uid: str) -> bool:
    return pod.controller is not None and pod.controller.uid == job_uid
