"""One CronJob in one pass of the polling controller (v1): bookkeeping, start, history.

A pass lists all Jobs, then all CronJobs, and syncs one CronJob after the other; the next pass
begins 10 s after the last one ended. There is no queue, no cache and no retry.

Upstream: pkg/controller/cronjob/cronjob_controller.go:syncOne, v1.11 to v1.21.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tracekit.base.cron.gotime import rfc1123z
from tracekit.base.cron.zones import UTC, Zone
from tracekit.base.kube.cronjob_views import FORBID, REPLACE, ActiveRef, CronJobView
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import (
    Answer,
    CronJobApi,
    Recorder,
    SyncResult,
)
from tracekit.ports.cronjob.body import job_from_template
from tracekit.ports.cronjob.children import finished_status
from tracekit.ports.cronjob.history import delete_job, delete_surplus, has_limits
from tracekit.ports.cronjob.missed import (
    ScheduleError,
    parse_schedule,
    unmet_starts,
)
from tracekit.versions.constants import CRON_MISSED_RUNS_MAX

if TYPE_CHECKING:
    from tracekit.base.kube.views import JobView
    from tracekit.versions.cronjob import CronJobEra

#: Objects per page from 1.14 on.
PAGE_SIZE = 500
_TOO_MANY = (
    "oo many missed start time (> 100). "
    "Set or decrease .spec.startingDeadlineSeconds or check clock skew"
)


def sync_one(
    cron_job: CronJobView,
    jobs: Sequence[JobView],
    now_ns: int,
    era: CronJobEra,
    api: CronJobApi,
    *,
    process_zone: Zone = UTC,
) -> SyncResult:
    """Sync one CronJob with the Jobs of its uid, then clean its history."""
    recorder = Recorder(api)
    listed = cron_job
    cron_job = _Pass(listed, now_ns, era, recorder, process_zone).run(jobs)
    if has_limits(cron_job):
        cron_job, _ = delete_surplus(cron_job, jobs, era, recorder)
        recorder.put_status(cron_job)  # always; an error is only logged
    return recorder.result()


class _Pass:
    """The steps of syncOne; the CronJob in hand changes from step to step."""

    __slots__ = ("cron_job", "era", "now_ns", "recorder", "zone")

    def __init__(
        self, cron_job: CronJobView, now_ns: int, era: CronJobEra, recorder: Recorder, zone: Zone
    ) -> None:
        self.cron_job = cron_job
        self.now_ns = now_ns
        self.era = era
        self.recorder = recorder
        self.zone = zone

    def run(self, jobs: Sequence[JobView]) -> CronJobView:
        self._bookkeeping(jobs)
        self.cron_job, answer = self.recorder.put_status(self.cron_job)
        if not answer.ok:
            self.recorder.reason = "the status write failed"
        elif self.cron_job.deleted_ns is not None:
            self.recorder.reason = "the CronJob is being deleted"
        elif self.cron_job.spec.suspend:
            self.recorder.reason = "the CronJob is suspended"
        else:
            slot_ns = self._due_slot()
            if slot_ns is not None and self._may_start(slot_ns):
                self._start(slot_ns)
        return self.cron_job

    def _bookkeeping(self, jobs: Sequence[JobView]) -> None:
        children = set()
        for job in jobs:
            children.add(job.uid)
            known, state = self.cron_job.status.is_active(job.uid), finished_status(job)
            if not known and state is None:
                self.recorder.warn(
                    "UnexpectedJob",
                    f"Saw a job that the controller did not create or forgot: {job.name}",
                )
            elif known and state is not None:
                self._drop(job.uid)
                suffix = f", status: {state}" if self.era.completed_event_names_status else ""
                self.recorder.note("SawCompletedJob", f"Saw completed job: {job.name}{suffix}")
        for ref in self.cron_job.status.active:
            if ref.uid not in children:
                self.recorder.note("MissingJob", f"Active job went missing: {ref.name}")
                self._drop(ref.uid)

    def _drop(self, uid: str) -> None:
        self.cron_job = replace(self.cron_job, status=self.cron_job.status.without(uid))

    def _due_slot(self) -> int | None:
        """The newest unmet start; more than 100 of them are an error for ever."""
        error = None
        starts: list[int] | None = []
        try:
            schedule = parse_schedule(self.cron_job, self.era)
        except ScheduleError as parse_error:
            word = "unparseable" if self.era.unparseable_text_lower else "Unparseable"
            error = f"{word} schedule: {self.cron_job.spec.schedule} : {parse_error}"
        else:
            starts = unmet_starts(
                self.cron_job, schedule, self.now_ns, self.zone, limit=CRON_MISSED_RUNS_MAX
            )
            if starts is None:
                error = f"t{_TOO_MANY}" if self.era.too_many_text_lower else f"T{_TOO_MANY}."
        if error is not None:
            self.recorder.reason = error
            self.recorder.warn(
                "FailedNeedsStart", f"Cannot determine if job needs to be started: {error}"
            )
        return starts[-1] if starts else None

    def _may_start(self, slot_ns: int) -> bool:
        recorder, spec = self.recorder, self.cron_job.spec
        recorder.due_ns = slot_ns
        deadline_s = spec.starting_deadline_s
        if deadline_s is not None and slot_ns + deadline_s * NS_PER_S < self.now_ns:
            recorder.reason = "the starting deadline has passed"
            recorder.warn(
                "MissSchedule",
                f"Missed scheduled time to start a job: {rfc1123z(slot_ns, self.zone)}",
            )
            return False
        if spec.concurrency_policy == FORBID and self.cron_job.status.active:
            recorder.reason = "a Job is active and the policy is Forbid"
            return False
        return spec.concurrency_policy != REPLACE or self._replace_active()

    def _replace_active(self) -> bool:
        for ref in self.cron_job.status.active:
            job = self.recorder.get_job(ref.namespace, ref.name)
            if isinstance(job, Answer):
                self.recorder.warn("FailedGet", f"Get job: {job.message}")
                return False
            after = delete_job(self.cron_job, job, self.era, self.recorder)
            if after is None:
                return False
            self.cron_job = after
        return True

    def _start(self, slot_ns: int) -> None:
        intent = job_from_template(self.cron_job, slot_ns, self.era)
        if isinstance(intent, str):
            return
        answer = self.recorder.perform(intent)
        if not answer.ok:
            terminating = answer.outcome is Outcome.NAMESPACE_TERMINATING
            if not (terminating and self.era.quiet_in_terminating_namespace):
                self.recorder.warn("FailedCreate", f"Error creating job: {answer.message}")
            return
        self.recorder.note("SuccessfulCreate", f"Created job {intent.name}")
        ref = ActiveRef(intent.name, answer.uid, intent.namespace, rv=answer.rv)
        status = self.cron_job.status
        self.cron_job = replace(
            self.cron_job,
            status=replace(status, active=(*status.active, ref), last_schedule_ns=slot_ns),
        )
        # The server's answer is thrown away: the clean-up's write still carries the revision
        # from before this one and is refused where a history limit is set.
        self.recorder.put_status(self.cron_job)
