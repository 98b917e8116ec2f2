"""Which releases have which ungated behavior of the Job controller and of its API."""

from __future__ import annotations

from typing import Final

from tracekit.versions.behavior_boundary import Shipped, shipped
from tracekit.versions.behaviors import Behavior

_JOB: Final = "pkg/controller/job/job_controller.go"
_UTILS: Final = "pkg/controller/controller_utils.go"
_VALIDATION: Final = "pkg/apis/batch/validation/validation.go"
_STRATEGY: Final = "pkg/registry/batch/job/strategy.go"

JOB_SHIPPED: Final[dict[Behavior, Shipped]] = {
    Behavior.DEADLINE_TIMER_REARMED_ON_JOB_UPDATE: shipped(
        "1.12",
        "a changed activeDeadlineSeconds arms a timer (before, old and new object were mixed up)",
        f"{_JOB}:updateJob",
    ),
    Behavior.DELETE_OF_MISSING_POD_SUCCEEDS: shipped(
        "1.12",
        "a 404 on a pod DELETE is no error of the sync",
        f"{_UTILS}:RealPodControl.DeletePod",
    ),
    Behavior.ON_FAILURE_LIMIT_ZERO_NEEDS_A_RESTART: shipped(
        "1.13",
        "restartPolicy OnFailure with backoffLimit 0 fails at the first restart, not at once",
        f"{_JOB}:pastBackoffLimitOnFailure",
    ),
    Behavior.ON_FAILURE_COUNTS_PENDING_PODS: shipped(
        "1.15",
        "restarts of Pending pods count towards backoffLimit, not only those of Running ones",
        f"{_JOB}:pastBackoffLimitOnFailure",
    ),
    Behavior.NOTHING_TO_CREATE_KEEPS_EXPECTATIONS: shipped(
        "1.16",
        "a sync with nothing to create leaves the expectations row alone (before: reset to zero)",
        f"{_JOB}:manageJob",
    ),
    Behavior.CREATE_TIMEOUT_IS_AN_ERROR: shipped(
        "1.18",
        "a pod create that timed out is retried (before: taken as done until the row expires)",
        f"{_JOB}:manageJob",
        first_patch={"1.16": 5, "1.17": 1},
    ),
    Behavior.TERMINATING_NAMESPACE_IS_SILENT: shipped(
        "1.17",
        "a pod refused because its namespace terminates is neither retried nor told",
        f"{_JOB}:manageJob",
    ),
    Behavior.DELETE_OF_MISSING_POD_LOWERS_EXPECTATION: shipped(
        "1.19",
        "a 404 on a pod DELETE lowers the expectation and records no event",
        f"{_JOB}:manageJob",
        first_patch={"1.17": 12, "1.18": 9},
    ),
    Behavior.COMPLETED_EVENT: shipped(
        "1.18", "event Completed when a Job completes", f"{_JOB}:syncJob"
    ),
    Behavior.BACKOFF_LIMIT_COUNTS_FAILED_PODS: shipped(
        "1.20",
        "backoffLimit is compared with the failed pods (before: with the retries of the queue)",
        f"{_JOB}:syncJob",
    ),
    Behavior.POD_FAILURE_DELAYS_SYNC: shipped(
        "1.11",
        "a pod's move to Failed enqueues its Job after the key's back-off",
        f"{_JOB}:updatePod",
        gone="1.28",
    ),
    Behavior.NEW_FAILURE_RETURNS_ERROR: shipped(
        "1.11",
        "a sync that wrote a new failure of an unfinished Job ends in an error, to be retried",
        f"{_JOB}:syncJob",
        gone="1.28",
    ),
    Behavior.PODS_BEYOND_COMPLETIONS_REMOVED: shipped(
        "1.22",
        "active pods beyond the completions that are left are deleted (before: only those beyond "
        "parallelism)",
        f"{_JOB}:manageJob",
    ),
    Behavior.COMPLETION_WAITS_FOR_ACTIVE_PODS: shipped(
        "1.22",
        "a Job with enough successes completes when no pod is active any more (before: at once, "
        "with event TooManyActivePods)",
        f"{_JOB}:syncJob",
    ),
    Behavior.INDEXES_BEYOND_COMPLETIONS_IGNORED: shipped(
        "1.22",
        "pods of an Indexed Job without a valid index count neither as succeeded nor as failed",
        f"{_JOB}:countPodsByPhase",
    ),
    Behavior.INDEX_IN_POD_NAME: shipped(
        "1.22",
        "pods of an Indexed Job carry their index in name and host name",
        "pkg/controller/job/indexed_job_utils.go:podGenerateNameWithIndex",
    ),
    Behavior.ONLY_INDEXED_JOBS_PUT_INDEX_IN_NAMES: shipped(
        "1.23",
        "pods of Jobs that are not Indexed are named after the Job alone (matters from 1.22 on; "
        "before: with the index that they do not have, NAME--1-)",
        f"{_JOB}:manageJob",
        first_patch={"1.22": 10},
    ),
    Behavior.STATUS_WRITTEN_FROM_CACHED_REVISION: shipped(
        "1.23",
        "the status PUT carries the cached revision (before: read again, up to four attempts)",
        f"{_JOB}:updateJobStatus",
    ),
    Behavior.DELETES_EXCLUDE_CREATES: shipped(
        "1.22",
        "one sync deletes pods or creates pods, never both (matters from 1.21 on)",
        f"{_JOB}:manageJob",
    ),
    Behavior.ORPHAN_PODS_LOSE_FINALIZER: shipped(
        "1.22",
        "a second queue takes the finalizer off pods whose Job is gone",
        f"{_JOB}:syncOrphanPod",
    ),
    Behavior.FINALIZER_REMOVALS_EXPECTED: shipped(
        "1.23",
        "a pod whose finalizer was taken off counts as released before the cache shows it",
        "pkg/controller/job/tracking_utils.go:uidTrackingExpectations",
    ),
    Behavior.UNCOUNTED_PODS_LEAVE_THEIR_LIST_ONE_BY_ONE: shipped(
        "1.23",
        "an uncounted pod is counted once it is known to be without finalizer (before: all of "
        "them, when no removal of this sync failed)",
        f"{_JOB}:cleanUncountedPodsWithoutFinalizers",
        first_patch={"1.22": 2},
    ),
    Behavior.ORPHANS_WITHOUT_OWNER_LOSE_FINALIZER: shipped(
        "1.24",
        "the orphan queue also takes pods that lost their owner and those of a Job that was "
        "deleted, and looks again whether a Job owns them by now",
        f"{_JOB}:addPod, updatePod, deletePod, deleteJob, syncOrphanPod",
        first_patch={"1.23": 7},
    ),
    Behavior.ENDING_WAITS_FOR_EXPECTATIONS: shipped(
        "1.25",
        "a tracked Job fails only when its expectations are met, for the cache may lack pods",
        f"{_JOB}:syncJob",
        first_patch={"1.23": 7, "1.24": 1},
    ),
    Behavior.PODS_OF_FINISHED_JOBS_LOSE_FINALIZER: shipped(
        "1.25",
        "the orphan queue also takes pods of a finished Job that are deleted",
        f"{_JOB}:deletePod, syncOrphanPod",
        first_patch={"1.23": 7, "1.24": 1},
    ),
    Behavior.FAILED_POD_IS_NOT_COUNTED_AS_SUCCESS: shipped(
        "1.25",
        "a pod that is noted as failed and succeeds then stays in that list (before: in both, "
        "which the API server refuses)",
        f"{_JOB}:trackJobStatusAndRemoveFinalizers",
        first_patch={"1.23": 10, "1.24": 4},
    ),
    Behavior.STATUS_CONFLICT_IS_RETRIED: shipped(
        "1.25",
        "a 409 on the status write brings the key back (matters from 1.23 on; before: it waits "
        "for the next event)",
        f"{_JOB}:processNextWorkItem",
        first_patch={"1.23": 10, "1.24": 4},
    ),
    Behavior.STATUS_CONFLICT_REQUEUES_WITHOUT_ERROR: shipped(
        "1.27",
        "a 409 on the status write enqueues the key with its back-off instead of failing the sync",
        f"{_JOB}:syncJob",
        first_patch={"1.23": 16, "1.24": 10, "1.25": 6, "1.26": 1},
        gone="1.28",
    ),
    Behavior.DEADLINE_TIMER_REARMED_ON_EVERY_SYNC: shipped(
        "1.25",
        "a running Job's deadline timer is armed by every sync (before: by the first one only)",
        f"{_JOB}:syncJob",
        first_patch={"1.22": 12, "1.23": 9, "1.24": 3},
    ),
    Behavior.BACKOFF_LIMIT_IGNORES_ACTIVE_PODS: shipped(
        "1.28",
        "failed > backoffLimit suffices (before: only if new and active != parallelism)",
        f"{_JOB}:syncJob",
        first_patch={"1.24": 16, "1.25": 12, "1.26": 7, "1.27": 4},
    ),
    Behavior.ONLY_FIRST_POD_FAILURE_DELAYS_SYNC: shipped(
        "1.27",
        "updates of a pod that had failed before do not delay its Job, nor reset its back-off",
        f"{_JOB}:updatePod",
        first_patch={"1.23": 16, "1.24": 10, "1.25": 6, "1.26": 1},
        gone="1.28",
    ),
    Behavior.STATUS_WRITE_KEEPS_RETRIES: shipped(
        None,
        "only a new success or a suspension clears the retries of a key, not any status write",
        f"{_JOB}:syncJob",
        first_patch={"1.23": 16, "1.24": 10, "1.25": 6, "1.26": 1},
    ),
    Behavior.SYNC_WITHOUT_ERROR_FORGETS_RETRIES: shipped(
        "1.27",
        "a sync without an error clears the retries of its key, whatever it did",
        f"{_JOB}:processNextWorkItem",
    ),
    Behavior.COMPLETED_INDEXES_CUT_TO_COMPLETIONS: shipped(
        "1.27",
        "status.completedIndexes is written anew when indexes beyond spec.completions are to go "
        "(before: only with newly completed ones)",
        f"{_JOB}:trackJobStatusAndRemoveFinalizers",
        first_patch={"1.24": 11, "1.25": 7, "1.26": 2},
    ),
    Behavior.ENDING_WAITS_FOR_ALL_PODS: shipped(
        "1.28",
        "a Job with more finished pods than a status may note ends only when all have lost "
        "their finalizer",
        f"{_JOB}:trackJobStatusAndRemoveFinalizers",
        first_patch={"1.24": 16, "1.25": 12, "1.26": 7, "1.27": 4},
    ),
    Behavior.CONDITION_UPDATE_RENEWS_PROBE_TIME: shipped(
        "1.25",
        "a condition that turns over gets a new lastProbeTime with its new lastTransitionTime",
        f"{_JOB}:ensureJobConditionStatus",
    ),
    Behavior.POD_DISRUPTION_CONDITIONS_AWAIT_PHASE: shipped(
        "1.26",
        "with PodDisruptionConditions, a terminating pod of a Job with a podFailurePolicy has "
        "failed only when its phase says so",
        f"{_JOB}:isPodFailed",
        gone="1.31",
    ),
    Behavior.ENDING_EVENT_FOLLOWS_STATUS: shipped(
        "1.26",
        "the Event of a tracked Job's ending is recorded once its status was written (before: "
        "ahead of the PUT, so that a conflict repeats it)",
        f"{_JOB}:recordJobFinished",
    ),
    Behavior.TRACKING_NEEDS_NO_ANNOTATION: shipped(
        "1.27",
        "every Job is tracked with finalizers, with or without batch.kubernetes.io/job-tracking",
        f"{_JOB}:syncJob",
    ),
    Behavior.BACKOFF_FROM_POD_FINISH_TIMES: shipped(
        "1.27",
        "pods are replaced after a delay computed from the finish times of the failed ones",
        "pkg/controller/job/backoff_utils.go:getRemainingTime",
    ),
    Behavior.FINISH_TIME_READ_FROM_POD_STATUS: shipped(
        "1.28",
        "a pod without ended containers finished when it was no longer ready, else when it was "
        "deleted, else when it was created (before: in the moment of the sync that counts it)",
        "pkg/controller/job/backoff_utils.go:getFinishedTime",
        first_patch={"1.27": 5},
    ),
    Behavior.FINISH_TIME_COVERS_SIDECARS: shipped(
        "1.31",
        "a pod has finished when its sidecars have ended as well",
        "pkg/controller/job/backoff_utils.go:getFinishTimeFromContainers",
    ),
    Behavior.IGNORED_FAILURES_DELAY_REPLACEMENTS: shipped(
        "1.28",
        "failed pods that the pod failure policy ignores count towards the delay of replacements, "
        "as they do not towards backoffLimit",
        f"{_JOB}:getNewFinishedPods",
        first_patch={"1.27": 5},
    ),
    Behavior.JOB_STATUS_UPDATES_BATCHED: shipped(
        "1.28",
        "a Job update that keeps the generation waits for the batch period",
        f"{_JOB}:updateJob",
    ),
    Behavior.EVERY_SUCCEEDED_INDEX_WRITTEN: shipped(
        "1.28",
        "status.completedIndexes lists every index that has succeeded (before: of those beyond the "
        "500 pods that a sync counts, none)",
        f"{_JOB}:trackJobStatusAndRemoveFinalizers",
    ),
    Behavior.FAILURE_POLICY_AWAITS_PHASE: shipped(
        "1.28",
        "a Job with a podFailurePolicy replaces pods only when they have failed, not while they "
        "terminate",
        f"{_JOB}:onlyReplaceFailedPods",
    ),
    Behavior.TERMINAL_CONDITION_WAITS_FOR_TERMINATING_PODS: shipped(
        "1.31",
        "with JobManagedBy or JobPodReplacementPolicy, Complete and Failed wait until no pod "
        "terminates; every ending is first noted as SuccessCriteriaMet or FailureTarget",
        f"{_JOB}:delayTerminalCondition",
    ),
    Behavior.ACTIVE_PODS_SURVIVE_TERMINATING_ONES: shipped(
        "1.29",
        "where only failed pods are replaced, terminating pods take no active one's place "
        "(matters from 1.28 on; before: active pods beyond the wanted number less the "
        "terminating ones are deleted)",
        f"{_JOB}:manageJob",
        first_patch={"1.28": 5},
    ),
    Behavior.TERMINATING_ALONE_IS_WRITTEN: shipped(
        "1.29",
        "a change of status.terminating is reason enough for a status update",
        f"{_JOB}:syncJob",
    ),
    Behavior.FINISHED_JOB_RELEASES_ITS_PODS: shipped(
        "1.29",
        "an update of a finished Job sends its pods that still have the finalizer to the orphan "
        "queue",
        f"{_JOB}:updateJob",
    ),
    Behavior.ORPHANS_OF_OTHER_KINDS_KEPT: shipped(
        "1.31",
        "the orphan queue leaves pods alone that something else than a batch/v1 Job controls",
        f"{_JOB}:syncOrphanPod",
    ),
    Behavior.DELETED_JOB_FORGETS_BACKOFF: shipped(
        "1.34",
        "a deletion clears the record of failures at once, so that a new Job of the name does "
        "not wait (before: at the next sync without a Job)",
        f"{_JOB}:deleteJob",
        first_patch={"1.31": 11, "1.32": 7, "1.33": 3},
    ),
    Behavior.READY_AND_TERMINATING_FOLLOW_DELETIONS: shipped(
        "1.31",
        "status.ready and status.terminating count the deletions of the same sync",
        f"{_JOB}:deleteJobPods",
    ),
    Behavior.COMPLETION_NAMES_ITS_REASON: shipped(
        "1.31",
        "with JobSuccessPolicy, reaching the completions has the reason CompletionsReached",
        f"{_JOB}:newSuccessCondition",
    ),
    Behavior.SIDECAR_RESTARTS_RANK_PODS: shipped(
        "1.32",
        "of two pods whose regular containers restarted equally often, the one whose sidecars "
        "restarted more is deleted first",
        f"{_UTILS}:compareMaxContainerRestarts",
    ),
    Behavior.ORPHANS_FOUND_BY_SELECTOR: shipped(
        "1.32",
        "the orphan queue takes a selector, for all pods of a deleted or finished Job, and an "
        "update of a finished Job enqueues nothing else",
        f"{_JOB}:enqueueLabelSelector, syncOrphanPodsBySelector",
    ),
    Behavior.FINISHED_JOB_AWAITS_ITS_UPDATE: shipped(
        "1.34",
        "a Job whose terminal status was written is not synced again until the cache shows it "
        "(before: a sync in between could create a pod)",
        f"{_JOB}:syncJob",
    ),
    Behavior.ACTIVE_KEPT_DURING_CREATION_BACKOFF: shipped(
        "1.37",
        "status.active stays true while the back-off holds creations back (before: told as 0)",
        f"{_JOB}:manageJob",
        first_patch={"1.34": 10, "1.35": 7, "1.36": 3},
        certain=False,
    ),
    Behavior.ONLY_REPLACEMENT_POLICY_HOLDS_REPLACEMENTS_BACK: shipped(
        "1.37",
        "replacements wait for terminating pods where podReplacementPolicy is Failed (before: also "
        "where a Job of before the field has a podFailurePolicy)",
        f"{_JOB}:onlyReplaceFailedPods",
    ),
    Behavior.ORPHAN_FINALIZER_RETRIED: shipped(
        "1.37",
        "taking the finalizer off an orphan is tried again with a back-off when it failed (before: "
        "at the pod's next change)",
        f"{_JOB}:syncOrphanPodsBySelector",
        # On 1.35 the pick was merged after 1.35.8 was tagged; the release itself was not read.
        first_patch={"1.35": 9, "1.36": 5, "1.37": 1},
        certain=False,
    ),
    Behavior.DELETED_JOB_FORGETS_EXPECTATIONS: shipped(
        "1.37",
        "a deletion clears what was expected of the Job's pods, so that a new Job of the name does "
        "not wait for them (before: for up to 5 minutes, where the new Job came before the next "
        "sync)",
        f"{_JOB}:deleteJob",
        first_patch={"1.37": 2},
    ),
}

STATUS_SHIPPED: Final[dict[Behavior, Shipped]] = {
    Behavior.STATUS_TRANSITIONS_VALIDATED: shipped(
        "1.30",
        "with JobManagedBy, the API server answers 422 to a status that contradicts itself, the "
        "spec or the status before it",
        f"{_VALIDATION}:ValidateJobStatusUpdate",
    ),
    Behavior.ENDING_WITHOUT_INTERIM_CONDITION_REFUSED: shipped(
        "1.31",
        "with JobManagedBy, Failed without FailureTarget is refused, and so is Complete without "
        "SuccessCriteriaMet",
        f"{_VALIDATION}:validateJobStatus",
    ),
    Behavior.READY_ABOVE_ACTIVE_REFUSED: shipped(
        "1.31",
        "with JobManagedBy, a status with more ready pods than active ones is refused",
        f"{_VALIDATION}:validateJobStatus",
    ),
    Behavior.FINISHED_JOB_WITH_TERMINATING_PODS_REFUSED: shipped(
        "1.31",
        "with JobManagedBy, an ending is refused while pods terminate",
        f"{_VALIDATION}:validateJobStatus",
    ),
    Behavior.SUSPENDED_EMPTY_JOB_ENDS_WITHOUT_START: shipped(
        "1.34",
        "a suspended Job with completions 0 may end without a startTime (before, with "
        "JobManagedBy: refused for ever)",
        f"{_STRATEGY}:getStatusValidationOptions",
        first_patch={"1.32": 7, "1.33": 3},
    ),
    Behavior.RESUMED_START_TIME_ACCEPTED: shipped(
        "1.35",
        "a Job's startTime may move in the status that turns Suspended to False (before, with "
        "JobManagedBy: refused, so that a resumed Job has no status until it ends)",
        f"{_STRATEGY}:getStatusValidationOptions",
        first_patch={"1.32": 10, "1.33": 6, "1.34": 2},
    ),
}
