"""What the API server of each version fills into batch objects, and which fields it drops.

Upstream: pkg/apis/batch/v1/defaults.go, pkg/registry/batch/job/strategy.go (generateSelector,
dropDisabledFields, PrepareForCreate), pkg/registry/batch/cronjob/strategy.go.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tracekit.versions.era import Era
from tracekit.versions.gates import GATES, Gate
from tracekit.versions.version import Boundary

#: Selector and template labels carry the prefix batch.kubernetes.io/ beside the old names.
_PREFIXED_LABELS: Final = Boundary("1.27")
_GATED_FIELDS: Final = {
    "completionMode": Gate.IndexedJob,
    "suspend": Gate.SuspendJob,
    "podFailurePolicy": Gate.JobPodFailurePolicy,
    "backoffLimitPerIndex": Gate.JobBackoffLimitPerIndex,
    "maxFailedIndexes": Gate.JobBackoffLimitPerIndex,
    "podReplacementPolicy": Gate.JobPodReplacementPolicy,
    "successPolicy": Gate.JobSuccessPolicy,
    "managedBy": Gate.JobManagedBy,
    "ttlSecondsAfterFinished": Gate.TTLAfterFinished,
}


class ApiRules(Struct, frozen=True):
    """One version's API server, as far as batch objects see it."""

    prefixed_labels: bool = True
    tracking_annotation: bool = False
    completion_mode: bool = True
    pod_replacement_policy: bool = True
    #: Fields of a Job's spec that a gate turns off: they are dropped when a Job is made. The
    #: template of a CronJob keeps them.
    dropped: tuple[str, ...] = ()
    #: Those that came with their gates later: whoever sends them, nothing of them is stored.
    unknown: tuple[str, ...] = ()
    time_zone: bool = True
    cron_job_api: str = "batch/v1"
    #: A pod that is evicted gets the condition DisruptionTarget before it is deleted.
    disruption_conditions: bool = True
    #: TZ or CRON_TZ in the schedule of a new CronJob is an error.
    refuses_zone_in_schedule: bool = False

    @classmethod
    def of(cls, era: Era) -> ApiRules:
        """The API server of an era."""
        gates = era.gates
        off = tuple(name for name, gate in _GATED_FIELDS.items() if not era.enabled(gate))
        return cls(
            prefixed_labels=_PREFIXED_LABELS.holds(era.basis),
            tracking_annotation=gates.JobTrackingWithFinalizers
            and not era.behaviors.tracking_needs_no_annotation,
            completion_mode=gates.IndexedJob,
            pod_replacement_policy=gates.JobPodReplacementPolicy,
            dropped=off,
            unknown=tuple(name for name in off if GATES[_GATED_FIELDS[name]].at(era.basis) is None),
            time_zone=gates.CronJobTimeZone,
            disruption_conditions=gates.PodDisruptionConditions,
            cron_job_api="batch/v1" if era.behaviors.cron_job_api_v1 else "batch/v1beta1",
            refuses_zone_in_schedule=era.behaviors.zone_in_schedule_refused,
        )
