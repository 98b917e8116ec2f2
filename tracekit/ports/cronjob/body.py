"""The Job that a CronJob starts for a slot: name, metadata, owner, spec.

Upstream: pkg/controller/cronjob/utils.go:getJobFromTemplate, getJobFromTemplate2, getJobName.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracekit.base.cron.gotime import rfc3339
from tracekit.base.cron.zones import UnknownZoneError, load_zone
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.numbers import whole_number
from tracekit.ports.cronjob.actions import CreateJob
from tracekit.versions.cronjob import Controller

if TYPE_CHECKING:
    from tracekit.base.kube.cronjob_views import CronJobView
    from tracekit.versions.cronjob import CronJobEra

SCHEDULED_TIMESTAMP_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MINUTE_S = 60


def job_name(cron_job_name: str, scheduled_ns: int, controller: Controller) -> str:
    """The slot in seconds (polling) or whole minutes (queue-based) behind the CronJob's name."""
    seconds = scheduled_ns // NS_PER_S
    suffix = seconds if controller is Controller.POLLING else seconds // _MINUTE_S
    return f"{cron_job_name}-{suffix}"


def scheduled_ns_of_name(name: str, cron_job_name: str, controller: Controller) -> int | None:
    """The slot that a Job's name tells, None where it is not a name of that CronJob's."""
    prefix, _, suffix = name.rpartition("-")
    slot = whole_number(suffix)
    if prefix != cron_job_name or slot is None:
        return None
    unit_s = 1 if controller is Controller.POLLING else _MINUTE_S
    return slot * unit_s * NS_PER_S


def job_from_template(cron_job: CronJobView, scheduled_ns: int, era: CronJobEra) -> CreateJob | str:
    """The Job to create; a text where it cannot be made (a time zone that does not load)."""
    annotations = dict(cron_job.spec.job_annotations)
    queued = era.controller is Controller.QUEUED
    if queued and era.scheduled_annotation:
        # The empty name loads as UTC: without a timeZone the slot is written in UTC.
        try:
            zone = load_zone(cron_job.spec.time_zone or "")
        except UnknownZoneError as error:
            return str(error)
        annotations[SCHEDULED_TIMESTAMP_ANNOTATION] = rfc3339(scheduled_ns, zone)
    return CreateJob(
        namespace=cron_job.namespace,
        name=job_name(cron_job.name, scheduled_ns, era.controller),
        labels=dict(cron_job.spec.job_labels),
        annotations=annotations,
        owner_api=era.owner_api,
        owner_name=cron_job.name,
        owner_uid=cron_job.uid,
        spec=cron_job.spec.job_spec,
        scheduled_ns=scheduled_ns,
        creation_time_ns=scheduled_ns if queued and era.request_has_creation_time else None,
    )
