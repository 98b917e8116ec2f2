"""First half of a queue-based sync: what became of the Jobs in status.active (D.3, steps 1-2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import Answer, Recorder
from tracekit.ports.cronjob.children import finished_status
from tracekit.versions.cronjob import SuccessTime

if TYPE_CHECKING:
    from tracekit.base.kube.cronjob_views import CronJobView
    from tracekit.base.kube.views import JobView
    from tracekit.versions.cronjob import CronJobEra


class Books(Struct, frozen=True):
    """The CronJob after the bookkeeping, whether its status changed, and the error if any.

    `cached` is the copy that the sync began with, as it was when a live read took its place; None
    where none did.
    """

    cron_job: CronJobView
    dirty: bool
    error: str | None = None
    cached: CronJobView | None = None


def bookkeeping(
    cron_job: CronJobView, jobs: Sequence[JobView], era: CronJobEra, recorder: Recorder
) -> Books:
    """Compare the children in the cache with the active list."""
    dirty = False
    cached: CronJobView | None = None
    children = set()
    for job in jobs:
        children.add(job.uid)
        known, state = cron_job.status.is_active(job.uid), finished_status(job)
        if not known and state is None:
            live = recorder.get_cron_job(cron_job.namespace, cron_job.name)
            if isinstance(live, Answer):
                return Books(cron_job, dirty, live.message, cached)
            if live.status.is_active(job.uid):
                cached = cached or cron_job
                cron_job = live  # the cache had not seen the controller's own write yet
                continue
            recorder.warn(
                "UnexpectedJob",
                f"Saw a job that the controller did not create or forgot: {job.name}",
            )
        elif known and state is not None:
            cron_job = replace(cron_job, status=cron_job.status.without(job.uid))
            recorder.note(
                "SawCompletedJob",
                f"Saw completed job: {job.name}, {era.completed_word}: {state}",
            )
            dirty = True
            if era.success_time is SuccessTime.COMPLETE_SAME and state == "Complete":
                cron_job, _ = _record_success(cron_job, job)
        elif not known and _counts_as_success(state, era):
            cron_job, changed = _record_success(cron_job, job)
            dirty = dirty or changed
    books = _missing_jobs(cron_job, children, dirty=dirty, recorder=recorder)
    return replace(books, cached=cached)


def _counts_as_success(state: str | None, era: CronJobEra) -> bool:
    if era.success_time is SuccessTime.NEVER:
        return False
    return era.success_time is SuccessTime.FINISHED or state == "Complete"


def _record_success(cron_job: CronJobView, job: JobView) -> tuple[CronJobView, bool]:
    """Move lastSuccessfulTime; setting it to nothing because it was nothing counts as a change."""
    last_ns, done_ns = cron_job.status.last_successful_ns, job.status.completion_ns
    changed = last_ns is None or (done_ns is not None and done_ns > last_ns)
    if changed:
        status = replace(cron_job.status, last_successful_ns=done_ns)
        cron_job = replace(cron_job, status=status)
    return cron_job, changed


def _missing_jobs(
    cron_job: CronJobView, children: set[str], *, dirty: bool, recorder: Recorder
) -> Books:
    """Drop active Jobs that are neither in the cache nor on the server."""
    for ref in cron_job.status.active:
        if ref.uid in children:
            continue
        live = recorder.get_job(ref.namespace, ref.name)
        if not isinstance(live, Answer):
            continue  # the cache lags; the uid is not compared
        if live.outcome is not Outcome.NOT_FOUND:
            return Books(cron_job, dirty, live.message)
        recorder.note("MissingJob", f"Active job went missing: {ref.name}")
        cron_job = replace(cron_job, status=cron_job.status.without(ref.uid))
        dirty = True
    return Books(cron_job, dirty)
