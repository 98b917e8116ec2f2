"""What objects give away about the version that wrote them: the signs, and between which minors.

A sign has hard bounds, outside of which no setting of gates produces it, and bounds under default
gates, which are narrower. Signs of absence ("no label although the pod is Indexed") only count
on objects that were created, or statuses that were written, while the record ran: older objects
outlive upgrades.

Records of real control planes are the witnesses of these bounds; the tests run over them.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from tracekit.versions.gates import Gate


class Bounds(Struct, frozen=True):
    """First and last minor of 1.x, both included; None is open."""

    first: int | None
    last: int | None


class SignRule(Struct, frozen=True):
    """What a sign says, in words and in minors."""

    phrase: str
    hard: Bounds
    #: With default gates; equal to `hard` where no gate has a part in it.
    default: Bounds
    #: The gate that it shows to be on or off, in versions in which that can be set.
    shows: tuple[Gate, bool] | None = None


_Shown = tuple[Gate, bool] | None


def _since(phrase: str, hard: int, default: int | None = None, *, shows: _Shown = None) -> SignRule:
    return SignRule(phrase, Bounds(hard, None), Bounds(default or hard, None), shows)


def _until(phrase: str, hard: int, default: int | None = None, *, shows: _Shown = None) -> SignRule:
    return SignRule(phrase, Bounds(None, hard), Bounds(None, default or hard), shows)


def _within(phrase: str, first: int, last: int) -> SignRule:
    return SignRule(phrase, Bounds(first, last), Bounds(first, last))


class Sign(Enum):
    """One thing to be seen on an object, and what it says."""

    __hash__ = object.__hash__  # each is there once; Enum's own asks its name each time

    # API server, any object
    SELF_LINK = _until("metadata.selfLink is set", 23, 19)
    NO_SELF_LINK = _since("metadata.selfLink is not set", 16, 20)
    MANAGED_FIELDS = _since("metadata.managedFields is kept", 14, 18)
    MANAGED_FIELDS_SUBRESOURCE = _since("managedFields name the subresource", 22)
    NAMESPACE_NAME_LABEL = _since("a namespace has the label kubernetes.io/metadata.name", 21)
    NO_NAMESPACE_NAME_LABEL = _until(
        "a namespace lacks the label kubernetes.io/metadata.name", 21, 20
    )
    NULL_CREATION_TIMESTAMP = _until("a template's creationTimestamp is written as null", 33)
    NO_NULL_CREATION_TIMESTAMP = _since("a template's creationTimestamp is left out", 34)
    CRON_JOB_SERVED_AS_V1BETA1 = _until("CronJobs are served as batch/v1beta1", 24)
    CRON_JOB_SERVED_AS_V1 = _since("CronJobs are served as batch/v1", 21)
    # Job defaults and fields
    JOB_GENERATION = _since("a Job has a generation", 22)
    NO_JOB_GENERATION = _until("a new Job has no generation", 22)
    COMPLETION_MODE = _since("a Job has a completionMode", 21, 22, shows=(Gate.IndexedJob, True))
    NO_COMPLETION_MODE = _until("a new Job has no completionMode", 23, 21)
    SUSPEND = _since("a Job has suspend", 21, 22, shows=(Gate.SuspendJob, True))
    POD_FAILURE_POLICY = _since(
        "a Job has a podFailurePolicy", 25, 26, shows=(Gate.JobPodFailurePolicy, True)
    )
    BACKOFF_LIMIT_PER_INDEX = _since(
        "a Job has a backoffLimitPerIndex", 28, 29, shows=(Gate.JobBackoffLimitPerIndex, True)
    )
    POD_REPLACEMENT_POLICY = _since("a Job has a podReplacementPolicy", 28, 29)
    NO_POD_REPLACEMENT_POLICY = _until("a new Job has no podReplacementPolicy", 33, 28)
    SUCCESS_POLICY = _since(
        "a Job has a successPolicy", 30, 31, shows=(Gate.JobSuccessPolicy, True)
    )
    MANAGED_BY = _since("a Job has managedBy", 30, 32, shows=(Gate.JobManagedBy, True))
    TRACKING_ANNOTATION = _within(
        "a new Job has the annotation batch.kubernetes.io/job-tracking", 22, 27
    )
    TRACKED_WITHOUT_ANNOTATION = _since(
        "a new Job is tracked with finalizers without being annotated for it", 28
    )
    PREFIXED_LABELS = _since("the label batch.kubernetes.io/job-name is set", 27)
    NO_PREFIXED_LABELS = _until(
        "a new Job's template lacks the label batch.kubernetes.io/job-name", 26
    )
    # Job status
    UNCOUNTED_PODS = _since(
        "status.uncountedTerminatedPods is written",
        22,
        shows=(Gate.JobTrackingWithFinalizers, True),
    )
    UNTRACKED = _until(
        "a new Job's pods are not tracked with finalizers",
        25,
        24,
        shows=(Gate.JobTrackingWithFinalizers, False),
    )
    READY = _since("status.ready is written", 23, 24, shows=(Gate.JobReadyPods, True))
    NO_READY = _until(
        "a status with active pods is written without ready",
        28,
        23,
        shows=(Gate.JobReadyPods, False),
    )
    TERMINATING = _since(
        "status.terminating is written", 28, 29, shows=(Gate.JobPodReplacementPolicy, True)
    )
    NO_TERMINATING = _until(
        "a status with active pods is written without terminating",
        33,
        28,
        shows=(Gate.JobPodReplacementPolicy, False),
    )
    FAILED_INDEXES = _since("status.failedIndexes is written", 28, 29)
    FAILURE_TARGET = _since("condition FailureTarget is written", 25, 26)
    FAILED_WITHOUT_FAILURE_TARGET = _until(
        "condition Failed is written without FailureTarget", 33, 30
    )
    FAILURE_TARGET_OF_ANY_ENDING = _since(
        "condition FailureTarget is written for a back-off limit or a deadline", 31
    )
    SUCCESS_CRITERIA_MET = _since("condition SuccessCriteriaMet is written", 30, 31)
    COMPLETIONS_REACHED = _since(
        "a Job completes with reason CompletionsReached",
        30,
        31,
        shows=(Gate.JobSuccessPolicy, True),
    )
    COMPLETE_WITHOUT_REASON = _until(
        "a Job completes without a reason", 32, 30, shows=(Gate.JobSuccessPolicy, False)
    )
    SUSPENDED_WITH_START = _since(
        "a suspended Job keeps its startTime",
        21,
        shows=(Gate.MutableSchedulingDirectivesForSuspendedJobs, False),
    )
    SUSPENDED_WITHOUT_START = _since(
        "a Job that had run is suspended without startTime",
        35,
        36,
        shows=(Gate.MutableSchedulingDirectivesForSuspendedJobs, True),
    )
    # Pods
    TRACKING_FINALIZER = _since(
        "a new pod has the finalizer batch.kubernetes.io/job-tracking",
        22,
        shows=(Gate.JobTrackingWithFinalizers, True),
    )
    INDEX_LABEL = _since(
        "a pod has its completion index as a label", 28, shows=(Gate.PodIndexLabel, True)
    )
    NO_INDEX_LABEL = _until(
        "a new pod has its completion index only as an annotation",
        31,
        27,
        shows=(Gate.PodIndexLabel, False),
    )
    PREEMPTION_POLICY = _since("a pod has a preemptionPolicy", 15, 19)
    NO_PREEMPTION_POLICY = _until("a new pod has no preemptionPolicy", 23, 18)
    POD_GENERATION = _since("a pod has a generation", 33)
    NO_POD_GENERATION = _until("a new pod has no generation", 33, 32)
    # CronJobs and their Jobs
    TIME_ZONE = _since("a CronJob has a timeZone", 24, 25, shows=(Gate.CronJobTimeZone, True))
    LAST_SUCCESSFUL_TIME = _since("status.lastSuccessfulTime of a CronJob is written", 22)
    OWNED_BY_V1BETA1 = _until("a new Job's owner is a CronJob of batch/v1beta1", 20)
    OWNED_BY_V1 = _since("a new Job's owner is a CronJob of batch/v1", 21)
    NAME_IN_SECONDS = _until(
        "a new Job's name ends in its slot in seconds",
        21,
        20,
        shows=(Gate.CronJobControllerV2, False),
    )
    NAME_IN_MINUTES = _since(
        "a new Job's name ends in its slot in minutes",
        20,
        21,
        shows=(Gate.CronJobControllerV2, True),
    )
    SCHEDULED_ANNOTATION = _since(
        "a CronJob's Job has the annotation batch.kubernetes.io/cronjob-scheduled-timestamp",
        28,
        shows=(Gate.CronJobsScheduledAnnotation, True),
    )
    NO_SCHEDULED_ANNOTATION = _until(
        "a CronJob's new Job lacks the annotation batch.kubernetes.io/cronjob-scheduled-timestamp",
        31,
        27,
        shows=(Gate.CronJobsScheduledAnnotation, False),
    )
    # Events
    EVENT_COMPLETED = _since("event Completed is recorded for a Job", 18)
    EVENT_SUSPENDED = _since("event Suspended is recorded for a Job", 21, 22)
    EVENT_TOO_MANY_ACTIVE = _until("event TooManyActivePods is recorded", 21)
    EVENT_SAW_COMPLETED_PLAIN = _until("event SawCompletedJob names no outcome", 14)
    EVENT_SAW_COMPLETED_STATUS = _within("event SawCompletedJob says `status:`", 15, 30)
    EVENT_SAW_COMPLETED_CONDITION = _since("event SawCompletedJob says `condition:`", 31)
    EVENT_JOB_ALREADY_ACTIVE = _since("event JobAlreadyActive is recorded", 20, 21)

    @property
    def rule(self) -> SignRule:
        """What it says."""
        return self.value
