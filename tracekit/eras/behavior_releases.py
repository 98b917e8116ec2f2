"""Which releases have which ungated behavior.

Keyed by behavior, not by version: patch releases carried many of them back, and some came and
went, so neither a chain of versions nor a "since" can say it. One entry per change: the branches
that got it by a patch, the minor from which every release has it, and the minor that lost it.

Upstream places are files of kubernetes/kubernetes with the function that changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tracekit.eras.behaviors import Behavior
from tracekit.eras.version import Boundary, KubeVersion


@dataclass(frozen=True, slots=True)
class Shipped:
    """When a behavior shipped, what it is, and where upstream has it."""

    boundary: Boundary
    about: str
    upstream: str
    #: False: a patch number comes from release notes or dates and was not compared in the source.
    patch_is_certain: bool = True


def _shipped(
    onward: str | None,
    about: str,
    upstream: str,
    *,
    first_patch: dict[str, int] | None = None,
    gone: str | None = None,
    certain: bool = True,
) -> Shipped:
    patches = tuple((first_patch or {}).items())
    return Shipped(Boundary(onward, patches, gone), about, upstream, certain)


_JOB: Final = "pkg/controller/job/job_controller.go"
_UTILS: Final = "pkg/controller/controller_utils.go"
_POLL: Final = "pkg/controller/cronjob/cronjob_controller.go"
_CRON: Final = "pkg/controller/cronjob/cronjob_controllerv2.go"
_CRON_UTILS: Final = "pkg/controller/cronjob/utils.go"
_VALIDATION: Final = "pkg/apis/batch/validation/validation.go"
_STRATEGY: Final = "pkg/registry/batch/job/strategy.go"

_JOB_SHIPPED: Final[dict[Behavior, Shipped]] = {
    Behavior.DEADLINE_TIMER_REARMED_ON_JOB_UPDATE: _shipped(
        "1.12",
        "a changed activeDeadlineSeconds arms a timer (before, old and new object were mixed up)",
        f"{_JOB}:updateJob",
    ),
    Behavior.DELETE_OF_MISSING_POD_SUCCEEDS: _shipped(
        "1.12",
        "a 404 on a pod DELETE is no error of the sync",
        f"{_UTILS}:RealPodControl.DeletePod",
    ),
    Behavior.ON_FAILURE_LIMIT_ZERO_NEEDS_A_RESTART: _shipped(
        "1.13",
        "restartPolicy OnFailure with backoffLimit 0 fails at the first restart, not at once",
        f"{_JOB}:pastBackoffLimitOnFailure",
    ),
    Behavior.ON_FAILURE_COUNTS_PENDING_PODS: _shipped(
        "1.15",
        "restarts of Pending pods count towards backoffLimit, not only those of Running ones",
        f"{_JOB}:pastBackoffLimitOnFailure",
    ),
    Behavior.NOTHING_TO_CREATE_KEEPS_EXPECTATIONS: _shipped(
        "1.16",
        "a sync with nothing to create leaves the expectations row alone (before: reset to zero)",
        f"{_JOB}:manageJob",
    ),
    Behavior.CREATE_TIMEOUT_IS_AN_ERROR: _shipped(
        "1.18",
        "a pod create that timed out is retried (before: taken as done until the row expires)",
        f"{_JOB}:manageJob",
        first_patch={"1.16": 5, "1.17": 1},
        certain=False,
    ),
    Behavior.TERMINATING_NAMESPACE_IS_SILENT: _shipped(
        "1.17",
        "a pod refused because its namespace terminates is neither retried nor told",
        f"{_JOB}:manageJob",
    ),
    Behavior.RELEASE_PATCH_NAMES_UID_FIRST: _shipped(
        "1.17",
        "key order in the body of the release patch",
        "pkg/controller/controller_ref_manager.go:deleteOwnerRefStrategicMergePatch",
    ),
    Behavior.DELETE_OF_MISSING_POD_LOWERS_EXPECTATION: _shipped(
        "1.19",
        "a 404 on a pod DELETE lowers the expectation and records no event",
        f"{_JOB}:manageJob",
        first_patch={"1.17": 12, "1.18": 9},
    ),
    Behavior.COMPLETED_EVENT: _shipped(
        "1.18", "event Completed when a Job completes", f"{_JOB}:syncJob"
    ),
    Behavior.BACKOFF_LIMIT_COUNTS_FAILED_PODS: _shipped(
        "1.20",
        "backoffLimit is compared with the failed pods (before: with the retries of the queue)",
        f"{_JOB}:syncJob",
    ),
    Behavior.POD_FAILURE_DELAYS_SYNC: _shipped(
        "1.11",
        "a pod's move to Failed enqueues its Job after the key's back-off",
        f"{_JOB}:updatePod",
        gone="1.28",
    ),
    Behavior.NEW_FAILURE_RETURNS_ERROR: _shipped(
        "1.11",
        "a sync that wrote a new failure of an unfinished Job ends in an error, to be retried",
        f"{_JOB}:syncJob",
        gone="1.28",
    ),
    Behavior.PODS_BEYOND_COMPLETIONS_REMOVED: _shipped(
        "1.22",
        "active pods beyond the completions that are left are deleted (before: only those beyond "
        "parallelism)",
        f"{_JOB}:manageJob",
        certain=False,
    ),
    Behavior.COMPLETION_WAITS_FOR_ACTIVE_PODS: _shipped(
        "1.22",
        "a Job with enough successes completes when no pod is active any more (before: at once, "
        "with event TooManyActivePods)",
        f"{_JOB}:syncJob",
        certain=False,
    ),
    Behavior.INDEXES_BEYOND_COMPLETIONS_IGNORED: _shipped(
        "1.22",
        "pods of an Indexed Job without a valid index count neither as succeeded nor as failed",
        f"{_JOB}:countPodsByPhase",
        certain=False,
    ),
    Behavior.INDEX_IN_POD_NAME: _shipped(
        "1.22",
        "pods of an Indexed Job carry their index in name and host name",
        "pkg/controller/job/indexed_job_utils.go:podGenerateNameWithIndex",
        certain=False,
    ),
    Behavior.ONLY_INDEXED_JOBS_PUT_INDEX_IN_NAMES: _shipped(
        "1.23",
        "pods of Jobs that are not Indexed are named after the Job alone (matters from 1.22 on; "
        "before: with the index that they do not have, NAME--1-)",
        f"{_JOB}:manageJob",
        first_patch={"1.22": 10},
    ),
    Behavior.STATUS_WRITTEN_FROM_CACHED_REVISION: _shipped(
        "1.23",
        "the status PUT carries the cached revision (before: read again, up to four attempts)",
        f"{_JOB}:updateJobStatus",
    ),
    Behavior.DELETES_EXCLUDE_CREATES: _shipped(
        "1.22",
        "one sync deletes pods or creates pods, never both (matters from 1.21 on)",
        f"{_JOB}:manageJob",
        certain=False,
    ),
    Behavior.ORPHAN_PODS_LOSE_FINALIZER: _shipped(
        "1.22",
        "a second queue takes the finalizer off pods whose Job is gone",
        f"{_JOB}:syncOrphanPod",
    ),
    Behavior.STATUS_CONFLICT_REQUEUES_WITHOUT_ERROR: _shipped(
        "1.25",
        "a 409 on the status write enqueues the key with its back-off instead of failing the sync",
        f"{_JOB}:syncJob",
        first_patch={"1.23": 10, "1.24": 4},
        gone="1.28",
        certain=False,
    ),
    Behavior.DEADLINE_TIMER_REARMED_ON_EVERY_SYNC: _shipped(
        "1.25",
        "a running Job's deadline timer is armed by every sync (before: by the first one only)",
        f"{_JOB}:syncJob",
        first_patch={"1.22": 11, "1.23": 8, "1.24": 2},
        certain=False,
    ),
    Behavior.BACKOFF_LIMIT_IGNORES_ACTIVE_PODS: _shipped(
        "1.28",
        "failed > backoffLimit suffices (before: only if new and active != parallelism)",
        f"{_JOB}:syncJob",
        first_patch={"1.25": 12, "1.26": 7, "1.27": 4},
        certain=False,
    ),
    Behavior.ONLY_FIRST_POD_FAILURE_DELAYS_SYNC: _shipped(
        "1.27",
        "updates of a pod that had failed before do not delay its Job, nor reset its back-off",
        f"{_JOB}:updatePod",
        first_patch={"1.23": 16, "1.24": 10, "1.25": 6, "1.26": 1},
        gone="1.28",
        certain=False,
    ),
    Behavior.FAILURE_TARGET_PRECEDES_FAILED: _shipped(
        "1.26",
        "a podFailurePolicy failure is first noted as condition FailureTarget",
        f"{_JOB}:syncJob",
    ),
    Behavior.CONDITION_UPDATE_RENEWS_PROBE_TIME: _shipped(
        "1.25",
        "a condition that turns over gets a new lastProbeTime with its new lastTransitionTime",
        f"{_JOB}:ensureJobConditionStatus",
    ),
    Behavior.ENDING_EVENT_FOLLOWS_STATUS: _shipped(
        "1.26",
        "the Event of a tracked Job's ending is recorded once its status was written (before: "
        "ahead of the PUT, so that a conflict repeats it)",
        f"{_JOB}:recordJobFinished",
        certain=False,
    ),
    Behavior.TRACKING_NEEDS_NO_ANNOTATION: _shipped(
        "1.27",
        "every Job is tracked with finalizers, with or without batch.kubernetes.io/job-tracking",
        f"{_JOB}:syncJob",
    ),
    Behavior.PREFIXED_JOB_LABELS: _shipped(
        "1.27",
        "pods also carry batch.kubernetes.io/job-name and batch.kubernetes.io/controller-uid",
        "pkg/registry/batch/job/strategy.go:generateSelector",
    ),
    Behavior.BACKOFF_FROM_POD_FINISH_TIMES: _shipped(
        "1.27",
        "pods are replaced after a delay computed from the finish times of the failed ones",
        "pkg/controller/job/backoff_utils.go:getRemainingTime",
    ),
    Behavior.FINISH_TIME_READ_FROM_POD_STATUS: _shipped(
        "1.28",
        "a pod without ended containers finished when it was no longer ready, else when it was "
        "deleted, else when it was created (before: in the moment of the sync that counts it)",
        "pkg/controller/job/backoff_utils.go:getFinishedTime",
        first_patch={"1.27": 5},
    ),
    Behavior.FINISH_TIME_COVERS_SIDECARS: _shipped(
        "1.31",
        "a pod has finished when its sidecars have ended as well",
        "pkg/controller/job/backoff_utils.go:getFinishTimeFromContainers",
    ),
    Behavior.IGNORED_FAILURES_DELAY_REPLACEMENTS: _shipped(
        "1.28",
        "failed pods that the pod failure policy ignores count towards the delay of replacements, "
        "as they do not towards backoffLimit",
        f"{_JOB}:getNewFinishedPods",
        first_patch={"1.27": 5},
    ),
    Behavior.JOB_STATUS_UPDATES_BATCHED: _shipped(
        "1.28",
        "a Job update that keeps the generation waits for the batch period",
        f"{_JOB}:updateJob",
    ),
    Behavior.TERMINAL_CONDITION_WAITS_FOR_TERMINATING_PODS: _shipped(
        "1.31",
        "with JobManagedBy or JobPodReplacementPolicy, Complete and Failed wait until no pod "
        "terminates; every ending is first noted as SuccessCriteriaMet or FailureTarget",
        f"{_JOB}:delayTerminalCondition",
    ),
    Behavior.TERMINATING_PODS_PUSH_ACTIVE_ONES_OUT: _shipped(
        "1.28",
        "where only failed pods are replaced, terminating pods count as excess: active pods beyond "
        "the wanted number less the terminating ones are deleted",
        f"{_JOB}:manageJob",
        gone="1.29",
    ),
    Behavior.READY_AND_TERMINATING_FOLLOW_DELETIONS: _shipped(
        "1.31",
        "status.ready and status.terminating count the deletions of the same sync",
        f"{_JOB}:deleteJobPods",
    ),
    Behavior.COMPLETION_NAMES_ITS_REASON: _shipped(
        "1.31",
        "with JobSuccessPolicy, reaching the completions has the reason CompletionsReached",
        f"{_JOB}:newSuccessCondition",
    ),
    Behavior.SIDECAR_RESTARTS_RANK_PODS: _shipped(
        "1.32",
        "of two pods whose regular containers restarted equally often, the one whose sidecars "
        "restarted more is deleted first",
        f"{_UTILS}:compareMaxContainerRestarts",
        certain=False,
    ),
    Behavior.FINISHED_JOB_AWAITS_ITS_UPDATE: _shipped(
        "1.34",
        "a Job whose terminal status was written is not synced again until the cache shows it "
        "(before: a sync in between could create a pod)",
        f"{_JOB}:syncJob",
        certain=False,
    ),
    Behavior.ACTIVE_KEPT_DURING_CREATION_BACKOFF: _shipped(
        "1.37",
        "status.active stays true while the back-off holds creations back (before: told as 0)",
        f"{_JOB}:manageJob",
        first_patch={"1.33": 13, "1.34": 9, "1.35": 6, "1.36": 3},
        certain=False,
    ),
    Behavior.ONLY_REPLACEMENT_POLICY_HOLDS_REPLACEMENTS_BACK: _shipped(
        "1.37",
        "replacements wait for terminating pods where podReplacementPolicy is Failed (before: also "
        "where a Job of before the field has a podFailurePolicy)",
        f"{_JOB}:onlyReplaceFailedPods",
    ),
    Behavior.ORPHAN_FINALIZER_RETRIED: _shipped(
        "1.37",
        "taking the finalizer off an orphan is tried again with a back-off when it failed (before: "
        "at the pod's next change)",
        f"{_JOB}:syncOrphanPodsBySelector",
        first_patch={"1.37": 1},
    ),
}

_STATUS_SHIPPED: Final[dict[Behavior, Shipped]] = {
    Behavior.STATUS_TRANSITIONS_VALIDATED: _shipped(
        "1.30",
        "with JobManagedBy, the API server answers 422 to a status that contradicts itself, the "
        "spec or the status before it",
        f"{_VALIDATION}:ValidateJobStatusUpdate",
    ),
    Behavior.ENDING_WITHOUT_INTERIM_CONDITION_REFUSED: _shipped(
        "1.31",
        "with JobManagedBy, Failed without FailureTarget is refused, and so is Complete without "
        "SuccessCriteriaMet",
        f"{_VALIDATION}:validateJobStatus",
    ),
    Behavior.READY_ABOVE_ACTIVE_REFUSED: _shipped(
        "1.31",
        "with JobManagedBy, a status with more ready pods than active ones is refused",
        f"{_VALIDATION}:validateJobStatus",
    ),
    Behavior.FINISHED_JOB_WITH_TERMINATING_PODS_REFUSED: _shipped(
        "1.31",
        "with JobManagedBy, an ending is refused while pods terminate",
        f"{_VALIDATION}:validateJobStatus",
    ),
    Behavior.SUSPENDED_EMPTY_JOB_ENDS_WITHOUT_START: _shipped(
        "1.34",
        "a suspended Job with completions 0 may end without a startTime (before, with "
        "JobManagedBy: refused for ever)",
        f"{_STRATEGY}:getStatusValidationOptions",
        first_patch={"1.32": 7, "1.33": 3},
    ),
    Behavior.RESUMED_START_TIME_ACCEPTED: _shipped(
        "1.35",
        "a Job's startTime may move in the status that turns Suspended to False (before, with "
        "JobManagedBy: refused, so that a resumed Job has no status until it ends)",
        f"{_STRATEGY}:getStatusValidationOptions",
        first_patch={"1.32": 10, "1.33": 6, "1.34": 2},
    ),
}

_CRON_SHIPPED: Final[dict[Behavior, Shipped]] = {
    Behavior.CRON_JOB_API_V1: _shipped(
        "1.21", "CronJobs are read as batch/v1 and owner references say so", f"{_CRON_UTILS}"
    ),
    Behavior.CRON_GRAMMAR_WITH_ZONES: _shipped(
        "1.22",
        "cron library of the second generation: zone prefixes, other star rule, other DST repair",
        "go.mod: github.com/robfig/cron/v3",
    ),
    Behavior.POLLING_DELETES_IN_BACKGROUND: _shipped(
        "1.14",
        "a Job is deleted with propagation Background",
        f"{_POLL}:deleteJob",
        first_patch={"1.13": 1},
    ),
    Behavior.POLLING_DELETE_SCALES_DOWN_FIRST: _shipped(
        "1.11",
        "a Job is scaled to 0 and its pods are deleted before the Job itself is, as an orphaner",
        f"{_POLL}:deleteJob",
        gone="1.13",
    ),
    Behavior.POLLING_LISTS_IN_PAGES: _shipped(
        "1.14", "Jobs and CronJobs are listed 500 at a time", f"{_POLL}:syncAll"
    ),
    Behavior.POLLING_PAGES_WORK: _shipped(
        "1.15", "more than one page of Jobs or CronJobs does not abort the pass", f"{_POLL}:syncAll"
    ),
    Behavior.COMPLETED_JOB_EVENT_NAMES_STATUS: _shipped(
        "1.15", "event SawCompletedJob names how the Job ended", f"{_POLL}:syncOne"
    ),
    Behavior.TOO_MANY_MISSED_TEXT_LOWER_CASE: _shipped(
        "1.15",
        "the text of too many missed runs begins in lower case and has no full stop",
        f"{_CRON_UTILS}:getRecentUnmetScheduleTimes",
    ),
    Behavior.UNPARSEABLE_TEXT_LOWER_CASE: _shipped(
        "1.16",
        "the text of an unparseable schedule begins in lower case",
        f"{_CRON_UTILS}:getRecentUnmetScheduleTimes",
    ),
    Behavior.POLLING_SILENT_IN_TERMINATING_NAMESPACE: _shipped(
        "1.17", "no FailedCreate event in a namespace that terminates", f"{_POLL}:syncOne"
    ),
    Behavior.MISSED_RUNS_BY_ARITHMETIC: _shipped(
        "1.21",
        "the last missed run is computed from equal spacing (before: all runs are listed)",
        f"{_CRON_UTILS}:getMostRecentScheduleTime",
    ),
    Behavior.ALREADY_EXISTS_IS_AN_ERROR: _shipped(
        "1.21",
        "a Job name that is taken is an error (before: an empty Job enters status.active)",
        f"{_CRON}:syncCronJob",
    ),
    Behavior.REQUEUE_FROM_LAST_RUN: _shipped(
        "1.25",
        "the next timer counts from the last run, not from now",
        f"{_CRON_UTILS}:nextScheduleTimeDuration",
    ),
    Behavior.MISSED_RUNS_WALKED_NEAR_END: _shipped(
        "1.28",
        "the last missed run is a real slot, found by walking the last two periods",
        f"{_CRON_UTILS}:mostRecentScheduleTime",
        first_patch={"1.25": 12, "1.26": 7, "1.27": 4},
    ),
    Behavior.MISSED_RUNS_REQUEUE_FROM_NOW: _shipped(
        "1.29",
        "missed runs without a found slot set the timer from now (before: a hot loop)",
        f"{_CRON_UTILS}:nextScheduleTimeDuration",
        first_patch={"1.26": 11, "1.27": 8, "1.28": 4},
    ),
    Behavior.CHILDREN_BY_OWNER_ONLY: _shipped(
        "1.24",
        "children are found by owner name alone (before: they also had to carry the labels)",
        f"{_CRON}:getJobsToBeReconciled",
        first_patch={"1.21": 11, "1.22": 8, "1.23": 5},
        certain=False,
    ),
    Behavior.CHILDREN_BY_OWNER_UID: _shipped(
        "1.37",
        "children are found by the owner's uid (before: by its name, so that the Jobs of a deleted "
        "CronJob count as those of its namesake)",
        f"{_CRON}:getCronJobJobsByIndexer",
    ),
    Behavior.LAST_SUCCESSFUL_TIME_WRITTEN: _shipped(
        "1.22", "status.lastSuccessfulTime is written", f"{_CRON}:syncCronJob"
    ),
    Behavior.JOB_REQUEST_CARRIES_SCHEDULED_TIME: _shipped(
        "1.22",
        "the request that creates a Job carries the slot as creationTimestamp",
        f"{_CRON_UTILS}:getJobFromTemplate2",
    ),
    Behavior.UNSUPPORTED_ZONE_IN_SCHEDULE_WARNED: _shipped(
        "1.23",
        "event UnsupportedSchedule for TZ or CRON_TZ inside the schedule",
        f"{_CRON}:syncCronJob",
        first_patch={"1.22": 17},
        certain=False,
    ),
    Behavior.UNPARSEABLE_SCHEDULE_QUOTED: _shipped(
        "1.23",
        "event UnparseableSchedule quotes the schedule",
        f"{_CRON}:syncCronJob",
        first_patch={"1.22": 17},
        certain=False,
    ),
    Behavior.STATUS_WRITTEN_ONLY_WHEN_CHANGED: _shipped(
        "1.24", "at most one status PUT a sync, and only when something changed", f"{_CRON}:sync"
    ),
    Behavior.CLEANUP_SEES_OWN_STATUS_WRITE: _shipped(
        "1.24",
        "history clean-up uses the revision that the sync wrote (before: a 409 after each start)",
        f"{_CRON}:syncCronJob",
        first_patch={"1.21": 9, "1.22": 6, "1.23": 2},
        certain=False,
    ),
    Behavior.CLEANUP_PRECEDES_SCHEDULING: _shipped(
        "1.29",
        "history clean-up runs before the schedule is looked at",
        f"{_CRON}:sync",
        first_patch={"1.25": 14, "1.26": 9, "1.27": 6, "1.28": 2},
        certain=False,
    ),
    Behavior.ALREADY_EXISTS_RECOVERS: _shipped(
        "1.37",
        "a Job of that name which is the CronJob's own is taken into status.active (before: an "
        "error each time; the first attempt at it, in 1.29, 1.28.3, 1.27.7, 1.26.10 and 1.25.15, "
        "looks the Job up without a namespace, which client-go refuses)",
        f"{_CRON}:syncCronJob",
    ),
    Behavior.QUEUED_ERROR_IN_TERMINATING_NAMESPACE: _shipped(
        "1.28",
        "a Job refused because its namespace terminates is an error without an event",
        f"{_CRON}:syncCronJob",
        first_patch={"1.25": 16, "1.26": 15, "1.27": 16},
        certain=False,
    ),
    Behavior.LAST_SUCCESSFUL_TIME_OF_COMPLETE_JOBS_ONLY: _shipped(
        "1.30", "a failed Job does not touch status.lastSuccessfulTime", f"{_CRON}:syncCronJob"
    ),
    Behavior.LAST_SUCCESSFUL_TIME_IN_SAME_SYNC: _shipped(
        "1.31",
        "status.lastSuccessfulTime is set by the sync that sees the Job complete",
        f"{_CRON}:syncCronJob",
    ),
    Behavior.COMPLETED_JOB_EVENT_SAYS_CONDITION: _shipped(
        "1.31", "event SawCompletedJob says `condition:` for `status:`", f"{_CRON}:syncCronJob"
    ),
    Behavior.SCHEDULE_PARSER_PANIC_CAUGHT: _shipped(
        "1.35", "a schedule that makes the parser panic is an invalid one", f"{_CRON}:syncCronJob"
    ),
    Behavior.KEY_FORGOTTEN_WITHOUT_REQUEUE: _shipped(
        "1.37",
        "a sync without error that arms no timer forgets the key's failures (before: the next "
        "error goes on with the old back-off)",
        f"{_CRON}:processNextWorkItem",
    ),
}

SHIPPED: Final[dict[Behavior, Shipped]] = {**_JOB_SHIPPED, **_STATUS_SHIPPED, **_CRON_SHIPPED}


def behaviors_of(version: KubeVersion) -> frozenset[Behavior]:
    """Every behavior that a release has."""
    return frozenset(b for b in Behavior if SHIPPED[b].boundary.holds(version))
