"""Statuses as the API writes them: what a controller means, as JSON.

Upstream: staging/src/k8s.io/api/batch/v1/types.go (the fields and which are left out when empty).
"""

from __future__ import annotations

from typing import Any

from tracekit.base.kube.cronjob_views import CronJobStatus
from tracekit.base.kube.job_status import FIELDS, UNCOUNTED, Shape
from tracekit.base.kube.timestamps import floor_second, format_rfc3339
from tracekit.base.kube.views import Condition, JobStatus
from tracekit.model.cluster.store import Raw


def time_text(at_ns: int | None) -> str | None:
    """A `metav1.Time`: whole seconds."""
    return None if at_ns is None else format_rfc3339(floor_second(at_ns))


def job_status(status: JobStatus) -> Raw:
    """The JSON of a Job's status."""
    made: Raw = {}
    if status.conditions:
        made["conditions"] = [_condition(condition) for condition in status.conditions]
    lists: Raw = {}
    for field in FIELDS:
        value = getattr(status, field.name)
        match field.shape:
            case Shape.TIME:
                _set(made, field.path, time_text(value))
            case Shape.COUNT | Shape.INDEXES:
                _set(made, field.path, value or None)
            case Shape.UIDS:
                _set(lists, field.path.partition(".")[2], list(value) or None)
            case _:
                _set(made, field.path, value)
    if status.tracks_uncounted:
        made[UNCOUNTED] = lists
    return made


def cron_job_status(status: CronJobStatus) -> Raw:
    """The JSON of a CronJob's status."""
    made: Raw = {}
    if status.active:
        made["active"] = [
            {
                "kind": ref.kind,
                "namespace": ref.namespace,
                "name": ref.name,
                "uid": ref.uid,
                "apiVersion": ref.api_version,
                "resourceVersion": ref.rv,
            }
            for ref in status.active
        ]
    _set(made, "lastScheduleTime", time_text(status.last_schedule_ns))
    _set(made, "lastSuccessfulTime", time_text(status.last_successful_ns))
    return made


def _condition(condition: Condition) -> Raw:
    made: Raw = {
        "type": condition.type,
        "status": condition.status,
        "lastProbeTime": time_text(condition.last_probe_ns),
        "lastTransitionTime": time_text(condition.last_transition_ns),
    }
    _set(made, "reason", condition.reason or None)
    _set(made, "message", condition.message or None)
    return made


def _set(made: Raw, name: str, value: Any) -> None:
    if value is not None:
        made[name] = value
