"""Second half of a queue-based sync: is a slot due, may its Job be started (D.3, steps 4-14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.cron.gotext import quote
from tracekit.base.cron.gotime import rfc1123z
from tracekit.base.cron.zones import UTC, UnknownZoneError, load_zone
from tracekit.base.kube.cronjob_views import FORBID, REPLACE, ActiveRef, CronJobView
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import Answer, CreateJob, Recorder, SyncContext
from tracekit.ports.cronjob.body import job_from_template, job_name
from tracekit.ports.cronjob.history import delete_job
from tracekit.ports.cronjob.missed import (
    Due,
    Missed,
    ScheduleError,
    due,
    parse_schedule,
    requeue_after_ns,
)
from tracekit.versions.cronjob import CronJobEra, Exists, ZoneWarning

if TYPE_CHECKING:
    from tracekit.base.cron.schedule import Schedule

_DOCS = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"


class Halt(Struct, frozen=True):
    """The sync ends without a new Job."""

    cron_job: CronJobView
    dirty: bool = False
    requeue_after_ns: int | None = None
    error: str | None = None


class Started(Struct, frozen=True):
    """The CronJob with the new Job in its status; that status is to be written."""

    cron_job: CronJobView
    requeue_after_ns: int


def start_if_due(cron_job: CronJobView, ctx: SyncContext) -> Started | Halt:
    """Find the due slot and start its Job unless something forbids it."""
    era, recorder = ctx.era, ctx.recorder
    schedule = _usable_schedule(cron_job, era, recorder)
    if schedule is None:
        return Halt(cron_job)
    try:
        found = due(cron_job, schedule, ctx.now_ns, era, ctx.zone)
    except ScheduleError as error:
        recorder.reason = str(error)
        recorder.warn("InvalidSchedule", f"{era.invalid_text}: {cron_job.spec.schedule} : {error}")
        return Halt(cron_job)
    wait_ns = requeue_after_ns(cron_job, schedule, ctx.now_ns, era, ctx.zone)
    if found.slot_ns is None:
        return Halt(cron_job, requeue_after_ns=wait_ns)
    recorder.due_ns = found.slot_ns
    _warn_of_many(found, era, recorder)
    if _is_refused(cron_job, found.slot_ns, ctx):
        return Halt(cron_job, requeue_after_ns=wait_ns)
    return _start(cron_job, found.slot_ns, wait_ns, era, recorder)


def _start(
    cron_job: CronJobView, slot_ns: int, wait_ns: int, era: CronJobEra, recorder: Recorder
) -> Started | Halt:
    """Steps 12-14: make room where the policy is Replace, create the Job, take it into account."""
    replaced = False
    if cron_job.spec.concurrency_policy == REPLACE:
        cron_job, replaced, error_text = _replace_active(cron_job, era, recorder)
        if error_text is not None:
            return Halt(cron_job, dirty=replaced, error=error_text)
    intent = job_from_template(cron_job, slot_ns, era)
    if isinstance(intent, str):
        return Halt(cron_job, dirty=replaced, error=intent)
    ref = _create(cron_job, intent, era, recorder)
    if isinstance(ref, Halt):
        return replace(ref, dirty=replaced)
    status = replace(
        cron_job.status, active=(*cron_job.status.active, ref), last_schedule_ns=slot_ns
    )
    return Started(replace(cron_job, status=status), wait_ns)


def _usable_schedule(cron_job: CronJobView, era: CronJobEra, recorder: Recorder) -> Schedule | None:
    """Steps 4-7: the parsed schedule, None where the CronJob is not to be started at all."""
    spec = cron_job.spec
    if cron_job.deleted_ns is not None:
        recorder.reason = "the CronJob is being deleted"
        return None
    if era.time_zone_field and spec.time_zone is not None:
        try:
            load_zone(spec.time_zone)
        except UnknownZoneError as error:
            recorder.reason = str(error)
            recorder.warn("UnknownTimeZone", f"invalid timeZone: {quote(spec.time_zone)}: {error}")
            return None
    if spec.suspend:
        recorder.reason = "the CronJob is suspended"
        return None
    if era.zone_warning is ZoneWarning.BEFORE_PARSE:
        _warn_of_zone_in_schedule(cron_job, recorder)
    try:
        schedule = parse_schedule(cron_job, era)
    except ScheduleError as error:
        recorder.reason = str(error)
        shown = quote(spec.schedule) if era.quotes_unparseable else spec.schedule
        recorder.warn("UnparseableSchedule", f"unparseable schedule: {shown} : {error}")
        return None
    if era.zone_warning is ZoneWarning.AFTER_PARSE:
        _warn_of_zone_in_schedule(cron_job, recorder)
    return schedule


def _warn_of_zone_in_schedule(cron_job: CronJobView, recorder: Recorder) -> None:
    if "TZ" in cron_job.spec.schedule:
        recorder.warn(
            "UnsupportedSchedule",
            f"CRON_TZ or TZ used in schedule {quote(cron_job.spec.schedule)} is not officially "
            f"supported, see {_DOCS} for more details",
        )


def _warn_of_many(found: Due, era: CronJobEra, recorder: Recorder) -> None:
    if found.missed is Missed.MANY:
        count = {"count": f": {found.missed_count}", "zero": ": 0", "none": ""}[era.too_many_count]
        recorder.warn(
            "TooManyMissedTimes",
            f"too many missed start times{count}. "
            "Set or decrease .spec.startingDeadlineSeconds or check clock skew",
        )


def _is_refused(cron_job: CronJobView, slot_ns: int, ctx: SyncContext) -> bool:
    """Steps 9-11: too late, already handled, or forbidden."""
    era, recorder = ctx.era, ctx.recorder
    spec, status = cron_job.spec, cron_job.status
    deadline_s = spec.starting_deadline_s
    if deadline_s is not None and slot_ns + deadline_s * NS_PER_S < ctx.now_ns:
        recorder.reason = "the starting deadline has passed"
        shown_zone = UTC if era.missed_time_in_utc else ctx.zone
        recorder.warn(
            "MissSchedule",
            f"Missed scheduled time to start a job: {rfc1123z(slot_ns, shown_zone)}",
        )
        return True
    name = job_name(cron_job.name, slot_ns, era.controller)
    listed = any(ref.name == name and ref.namespace == cron_job.namespace for ref in status.active)
    if listed or status.last_schedule_ns == slot_ns:
        recorder.reason = "the slot was started already"
        return True
    if spec.concurrency_policy == FORBID and status.active:
        recorder.reason = "a Job is active and the policy is Forbid"
        recorder.note(
            "JobAlreadyActive",
            "Not starting job because prior execution is running and concurrency policy is Forbid",
        )
        return True
    return False


def _replace_active(
    cron_job: CronJobView, era: CronJobEra, recorder: Recorder
) -> tuple[CronJobView, bool, str | None]:
    """Step 12: delete every active Job; whether the status changed, and the error if any."""
    changed = False
    for ref in cron_job.status.active:
        job = recorder.get_job(ref.namespace, ref.name)
        if isinstance(job, Answer):
            recorder.warn("FailedGet", f"Get job: {job.message}")
            return cron_job, changed, job.message
        after = delete_job(cron_job, job, era, recorder)
        if after is None:
            return cron_job, changed, f"could not replace job {job.namespace}/{job.name}"
        cron_job, changed = after, True
    return cron_job, changed, None


def _create(
    cron_job: CronJobView, intent: CreateJob, era: CronJobEra, recorder: Recorder
) -> ActiveRef | Halt:
    """Step 13: POST the Job; its reference for status.active, or why the sync ends."""
    answer = recorder.perform(intent)
    outcome = answer.outcome
    if outcome is Outcome.OK:
        recorder.note("SuccessfulCreate", f"Created job {intent.name}")
        return ActiveRef(intent.name, answer.uid, intent.namespace, rv=answer.rv)
    if outcome is Outcome.NAMESPACE_TERMINATING and era.namespace_terminating_is_error:
        return Halt(cron_job, error=answer.message)
    if outcome is Outcome.ALREADY_EXISTS and era.exists is not Exists.FALLS_THROUGH:
        if era.exists is Exists.ERROR:
            return Halt(cron_job, error=answer.message)
        return _recover_existing(cron_job, intent, recorder)
    if outcome in {Outcome.NAMESPACE_TERMINATING, Outcome.ALREADY_EXISTS}:
        # Not handled: the sync goes on with an empty Job, and the CronJob is stuck from then on.
        recorder.note("SuccessfulCreate", "Created job ")
        return ActiveRef(name="", uid="")
    recorder.warn("FailedCreate", f"Error creating job: {answer.message}")
    return Halt(cron_job, error=answer.message)


def _recover_existing(
    cron_job: CronJobView, intent: CreateJob, recorder: Recorder
) -> ActiveRef | Halt:
    """Take an own Job that exists already into the status; leave a foreign one alone."""
    job = recorder.get_job(intent.namespace, intent.name)
    if isinstance(job, Answer):
        return Halt(cron_job, error=job.message)
    if job.controller is None or job.controller.uid != cron_job.uid:
        recorder.reason = "a Job of that name belongs to something else"
        return Halt(cron_job)
    if cron_job.status.is_active(job.uid):
        recorder.reason = "the slot was started already"
        return Halt(cron_job)
    return ActiveRef(job.name, job.uid, job.namespace, rv=str(job.rv))
