"""History limits: which finished Jobs are surplus, oldest first, and their deletion.

Upstream: pkg/controller/cronjob/cronjob_controllerv2.go:cleanupFinishedJobs and utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tracekit.ports.cronjob.actions import DeleteJob, DeleteJobPods, Recorder, ScaleDownJob
from tracekit.ports.cronjob.children import finished_status
from tracekit.versions.cronjob import Controller, CronJobEra, DeletePath

if TYPE_CHECKING:
    from tracekit.base.kube.cronjob_views import CronJobView
    from tracekit.base.kube.views import JobView


def by_start_time(job: JobView) -> tuple[bool, int, str]:
    """Sort key: Jobs without a start time last, then the older one, then the name."""
    start_ns = job.status.start_ns
    return (start_ns is None, start_ns or 0, job.name)


def surplus(cron_job: CronJobView, jobs: Iterable[JobView]) -> list[JobView]:
    """The finished Jobs beyond the limits: succeeded ones first, each kind oldest first."""
    found: list[JobView] = []
    finished = [(job, finished_status(job)) for job in jobs]
    for kind, limit in (
        ("Complete", cron_job.spec.successful_limit),
        ("Failed", cron_job.spec.failed_limit),
    ):
        if limit is not None:
            of_kind = sorted((job for job, state in finished if state == kind), key=by_start_time)
            found += of_kind[: max(0, len(of_kind) - limit)]
    return found


def has_limits(cron_job: CronJobView) -> bool:
    """Whether any history limit is set."""
    spec = cron_job.spec
    return spec.successful_limit is not None or spec.failed_limit is not None


def delete_surplus(
    cron_job: CronJobView, jobs: Sequence[JobView], era: CronJobEra, recorder: Recorder
) -> tuple[CronJobView, bool]:
    """Delete the surplus Jobs; the CronJob without them, and whether any deletion succeeded."""
    deleted = False
    for job in surplus(cron_job, jobs):
        after = delete_job(cron_job, job, era, recorder)
        if after is not None:
            cron_job, deleted = after, True
    return cron_job, deleted


def delete_job(
    cron_job: CronJobView, job: JobView, era: CronJobEra, recorder: Recorder
) -> CronJobView | None:
    """Delete one Job; the CronJob with the Job dropped from its active ones, None on failure."""
    target = (job.namespace, job.name, job.uid)
    path = era.delete_path if era.controller is Controller.POLLING else DeletePath.BACKGROUND
    if path is DeletePath.SCALE_DOWN and not _scale_down(job, recorder):
        return None
    background = path is DeletePath.BACKGROUND
    answer = recorder.perform(DeleteJob(*target, propagation="Background" if background else None))
    if not answer.ok:
        recorder.warn("FailedDelete", f"Deleted job: {answer.message}")
        return None
    recorder.note("SuccessfulDelete", f"Deleted job {job.name}")
    return replace(cron_job, status=cron_job.status.without(job.uid))


def _scale_down(job: JobView, recorder: Recorder) -> bool:
    """Stop the Job and delete its pods, as releases up to 1.12 did before deleting a Job."""
    target = (job.namespace, job.name, job.uid)
    if job.spec.parallelism != 0:
        answer = recorder.perform(ScaleDownJob(*target))
        if not answer.ok:
            recorder.warn("FailedUpdate", f"Update job: {answer.message}")
            return False
    answer = recorder.perform(DeleteJobPods(*target))
    if answer.ok:
        return True
    if answer.step == "list":
        recorder.warn("FailedList", f"List job-pods: {answer.message}")
    else:
        recorder.warn("FailedDelete", f"Deleted job-pods: {answer.message}")
    return False
