"""Statuses as the API writes them: what a controller means, as JSON.

Upstream: staging/src/k8s.io/api/batch/v1/types.go (the fields and which are left out when empty).
"""

from __future__ import annotations

from typing import Any

from tracekit.base.kube.cronjob_views import CronJobStatus
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
    _set(made, "startTime", time_text(status.start_ns))
    _set(made, "completionTime", time_text(status.completion_ns))
    _set(made, "active", status.active or None)
    _set(made, "succeeded", status.succeeded or None)
    _set(made, "failed", status.failed or None)
    _set(made, "terminating", status.terminating)
    _set(made, "completedIndexes", status.completed_indexes or None)
    _set(made, "failedIndexes", status.failed_indexes)
    if status.tracks_uncounted:
        lists: Raw = {}
        _set(lists, "succeeded", list(status.uncounted_succeeded) or None)
        _set(lists, "failed", list(status.uncounted_failed) or None)
        made["uncountedTerminatedPods"] = lists
    _set(made, "ready", status.ready)
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
