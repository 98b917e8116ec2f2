"""Which cuts to try first: those whose pods go with the next status.

Only an order. A status tells how many pods were ready and how many had finished; the counts at each
position of the pod stream are kept, so that a likely position is found without running a sync at
every other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tracekit.base.kube.selectors import selector_matches
from tracekit.base.kube.views import JobStatus, JobView, PodView
from tracekit.check.replay.history import Revision


@dataclass(slots=True)
class PodCounts:
    """How many pods of one Job were ready, and had finished, at each position of the stream."""

    ready: list[int] = field(default_factory=lambda: [0])
    finished: list[int] = field(default_factory=lambda: [0])
    #: Whether a status may leave out failures: its Job's policy ignores some.
    ignores: bool = False

    @classmethod
    def of(cls, pods: Sequence[Revision[PodView]], job: JobView) -> PodCounts:
        """Count along the whole stream, the pods that a sync does not release."""
        counts = cls(ignores=job.spec.ignores_failures)
        ready = 0
        finished: set[str] = set()
        is_ready: set[str] = set()
        for revision in pods:
            pod = revision.view
            if pod.controller is not None and pod.controller.uid == job.uid:
                kept = selector_matches(job.spec.selector, pod.labels)
                now = kept and revision.type != "DELETED" and pod.active and pod.ready
                if now != (pod.uid in is_ready):
                    ready += 1 if now else -1
                    (is_ready.add if now else is_ready.discard)(pod.uid)
                if not kept and pod.has_tracking_finalizer:
                    finished.discard(pod.uid)  # released before it was counted
                elif pod.phase in ("Succeeded", "Failed") or pod.deleted_ns is not None:
                    finished.add(pod.uid)
            counts.ready.append(ready)
            counts.finished.append(len(finished))
        return counts

    def odds(self, position: int, status: JobStatus) -> int:
        """In how many counts the pods at `position` differ from what the status tells."""
        counted = (
            status.succeeded
            + status.failed
            + len(status.uncounted_succeeded)
            + len(status.uncounted_failed)
        )
        unready = status.ready is not None and status.ready != self.ready[position]
        finished = self.finished[position]
        return unready + (counted > finished if self.ignores else counted != finished)
