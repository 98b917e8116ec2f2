"""What wakes the queue-based CronJob controller up: which key, after which delay.

Upstream: pkg/controller/cronjob/cronjob_controllerv2.go: the event handlers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from tracekit.base.cron.zones import UTC, Zone
from tracekit.ports.cronjob.actions import WARNING, RecordEvent
from tracekit.ports.cronjob.children import CronJobLister, resolve_owner
from tracekit.ports.cronjob.missed import ScheduleError, parse_schedule, requeue_after_ns

if TYPE_CHECKING:
    from tracekit.base.kube.cronjob_views import CronJobView
    from tracekit.base.kube.views import JobView
    from tracekit.versions.cronjob import CronJobEra


class Enqueue(Struct, frozen=True):
    """Add a key to the queue, at once (0 or less) or after a delay."""

    key: str
    delay_ns: int = 0


def cron_job_added(cron_job: CronJobView) -> tuple[Enqueue, ...]:
    """An added or deleted CronJob is looked at at once."""
    return (Enqueue(cron_job.key),)


def cron_job_updated(
    old: CronJobView, new: CronJobView, now_ns: int, era: CronJobEra, zone: Zone = UTC
) -> tuple[Enqueue | RecordEvent, ...]:
    """A changed schedule waits for its next slot; any other update is looked at at once.

    Nothing compares revisions, so the controller's own status writes wake it up too.
    """
    same_zone = not era.time_zone_field or old.spec.time_zone == new.spec.time_zone
    if old.spec.schedule == new.spec.schedule and same_zone:
        return (Enqueue(new.key),)
    try:
        schedule = parse_schedule(new, era)
    except ScheduleError:
        text = f"unparseable schedule for cronjob: {new.spec.schedule}"
        return (RecordEvent(WARNING, "UnParseableCronJobSchedule", text),)
    return (Enqueue(new.key, requeue_after_ns(new, schedule, now_ns, era, zone)),)


def job_added(job: JobView, lister: CronJobLister) -> tuple[Enqueue, ...]:
    """An added Job wakes its CronJob, whether or not it is being deleted."""
    return _owner_of(job, lister)


def job_updated(old: JobView, new: JobView, lister: CronJobLister) -> tuple[Enqueue, ...]:
    """A changed Job wakes its CronJob, and the old one where its owner changed."""
    if old.rv == new.rv:
        return ()
    before = _owner_of(old, lister) if old.controller != new.controller else ()
    return (*before, *_owner_of(new, lister))


def job_deleted(job: JobView, lister: CronJobLister) -> tuple[Enqueue, ...]:
    """A deleted Job wakes its CronJob."""
    return _owner_of(job, lister)


def _owner_of(job: JobView, lister: CronJobLister) -> tuple[Enqueue, ...]:
    owner = resolve_owner(job.namespace, job.controller, lister)
    return () if owner is None else (Enqueue(owner.key),)
