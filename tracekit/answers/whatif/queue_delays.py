"""For how long the work queue holds a Job back when something has come, by either side's rules."""

from __future__ import annotations

from tracekit.base.kube.views import JobView, PodView
from tracekit.check.replay.history import Revision
from tracekit.versions.job import JobRules


def job_delay(job: Revision[JobView], rules: JobRules) -> int:
    """After an update of the Job."""
    batched = (
        rules.handlers.job_status_updates_batched
        and job.type == "MODIFIED"
        and job.previous is not None
        and job.previous.view.generation == job.view.generation
    )
    return rules.handlers.batch_ns if batched else 0


def held_back(pod: Revision[PodView], rules: JobRules) -> bool:
    """Whether the pod's failure holds its Job up in the work queue (up to 1.27)."""
    handlers = rules.handlers
    if not handlers.pod_failure_delays_sync or pod.view.phase != "Failed":
        return False
    first = pod.previous is None or pod.previous.view.phase != "Failed"
    return first or not handlers.only_first_pod_failure_delays_sync
