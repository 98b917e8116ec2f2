"""Where upstream discussed a row of the version table: the KEP of a gate, the issue of a change.

Only what is certain stands here; a row without a reference has its place in the source instead.
"""

from __future__ import annotations

from typing import Final

_KEP: Final = "https://github.com/kubernetes/enhancements/issues/"
_ISSUE: Final = "https://github.com/kubernetes/kubernetes/issues/"
_PULL: Final = "https://github.com/kubernetes/kubernetes/pull/"

_GATES: Final = {
    "CronJobControllerV2": 19,
    "CronJobTimeZone": 3140,
    "CronJobsScheduledAnnotation": 4026,
    "IndexedJob": 2214,
    "JobBackoffLimitPerIndex": 3850,
    "JobManagedBy": 4368,
    "JobPodFailurePolicy": 3329,
    "JobPodReplacementPolicy": 3939,
    "JobReadyPods": 2879,
    "JobSuccessPolicy": 3998,
    "JobTrackingWithFinalizers": 2307,
    "PodDisruptionConditions": 3329,
    "PodIndexLabel": 4017,
    "SuspendJob": 2232,
    "TTLAfterFinished": 592,
}
_BEHAVIORS: Final = {
    "backoff_limit_counts_failed_pods": f"{_PULL}93779",
    "terminal_condition_waits_for_terminating_pods": f"{_ISSUE}125089",
    "suspended_empty_job_ends_without_start": f"{_ISSUE}132144",
    "failure_policy_awaits_phase": f"{_ISSUE}115844",
    "zone_in_schedule_refused": f"{_PULL}116252",
    "missed_runs_requeue_from_now": f"{_PULL}121327",
    "requeue_from_last_run": f"{_PULL}109250",
    "active_kept_during_creation_backoff": f"{_ISSUE}139428",
    "orphan_finalizer_retried": f"{_ISSUE}141346",
    "deleted_job_forgets_expectations": f"{_ISSUE}131917",
}

REFERENCES: Final[dict[tuple[str, str], str]] = {
    **{("gate", name): f"{_KEP}{number}" for name, number in _GATES.items()},
    **{("behavior", name): link for name, link in _BEHAVIORS.items()},
}
