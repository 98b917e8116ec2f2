"""What objects give away about the version that wrote them: the signs, and between which minors.

A sign has hard bounds, outside of which no setting of gates produces it, and bounds under default
gates, which are narrower. Signs of absence ("no label although the pod is Indexed") only count
on objects that were created, or statuses that were written, while the record ran: older objects
outlive upgrades.

Records of real control planes are the witnesses of these bounds; the tests run over them.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from msgspec import Struct


class Sign(Enum):
    """One thing to be seen on an object."""

    __hash__ = object.__hash__  # each is there once; Enum's own asks its name each time

    # API server, any object
    SELF_LINK = auto()
    NO_SELF_LINK = auto()
    MANAGED_FIELDS = auto()
    MANAGED_FIELDS_SUBRESOURCE = auto()
    NAMESPACE_NAME_LABEL = auto()
    NO_NAMESPACE_NAME_LABEL = auto()
    NULL_CREATION_TIMESTAMP = auto()
    NO_NULL_CREATION_TIMESTAMP = auto()
    CRON_JOB_SERVED_AS_V1BETA1 = auto()
    CRON_JOB_SERVED_AS_V1 = auto()
    # Job defaults and fields
    JOB_GENERATION = auto()
    NO_JOB_GENERATION = auto()
    COMPLETION_MODE = auto()
    NO_COMPLETION_MODE = auto()
    SUSPEND = auto()
    POD_FAILURE_POLICY = auto()
    BACKOFF_LIMIT_PER_INDEX = auto()
    POD_REPLACEMENT_POLICY = auto()
    NO_POD_REPLACEMENT_POLICY = auto()
    SUCCESS_POLICY = auto()
    MANAGED_BY = auto()
    TRACKING_ANNOTATION = auto()
    TRACKED_WITHOUT_ANNOTATION = auto()
    PREFIXED_LABELS = auto()
    NO_PREFIXED_LABELS = auto()
    # Job status
    UNCOUNTED_PODS = auto()
    UNTRACKED = auto()
    READY = auto()
    NO_READY = auto()
    TERMINATING = auto()
    NO_TERMINATING = auto()
    FAILED_INDEXES = auto()
    FAILURE_TARGET = auto()
    FAILED_WITHOUT_FAILURE_TARGET = auto()
    FAILURE_TARGET_OF_ANY_ENDING = auto()
    SUCCESS_CRITERIA_MET = auto()
    COMPLETIONS_REACHED = auto()
    COMPLETE_WITHOUT_REASON = auto()
    SUSPENDED_WITH_START = auto()
    SUSPENDED_WITHOUT_START = auto()
    # Pods
    TRACKING_FINALIZER = auto()
    INDEX_LABEL = auto()
    NO_INDEX_LABEL = auto()
    PREEMPTION_POLICY = auto()
    NO_PREEMPTION_POLICY = auto()
    POD_GENERATION = auto()
    NO_POD_GENERATION = auto()
    # CronJobs and their Jobs
    TIME_ZONE = auto()
    LAST_SUCCESSFUL_TIME = auto()
    OWNED_BY_V1BETA1 = auto()
    OWNED_BY_V1 = auto()
    NAME_IN_SECONDS = auto()
    NAME_IN_MINUTES = auto()
    SCHEDULED_ANNOTATION = auto()
    NO_SCHEDULED_ANNOTATION = auto()
    # Events
    EVENT_COMPLETED = auto()
    EVENT_SUSPENDED = auto()
    EVENT_TOO_MANY_ACTIVE = auto()
    EVENT_SAW_COMPLETED_PLAIN = auto()
    EVENT_SAW_COMPLETED_STATUS = auto()
    EVENT_SAW_COMPLETED_CONDITION = auto()
    EVENT_JOB_ALREADY_ACTIVE = auto()


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


def _since(phrase: str, hard: int, default: int | None = None) -> SignRule:
    return SignRule(phrase, Bounds(hard, None), Bounds(default or hard, None))


def _until(phrase: str, hard: int, default: int | None = None) -> SignRule:
    return SignRule(phrase, Bounds(None, hard), Bounds(None, default or hard))


def _within(phrase: str, first: int, last: int) -> SignRule:
    return SignRule(phrase, Bounds(first, last), Bounds(first, last))


RULES: Final[dict[Sign, SignRule]] = {
    Sign.SELF_LINK: _until("metadata.selfLink is set", 23, 19),
    Sign.NO_SELF_LINK: _since("metadata.selfLink is not set", 16, 20),
    Sign.MANAGED_FIELDS: _since("metadata.managedFields is kept", 14, 18),
    Sign.MANAGED_FIELDS_SUBRESOURCE: _since("managedFields name the subresource", 22),
    Sign.NAMESPACE_NAME_LABEL: _since("a namespace has the label kubernetes.io/metadata.name", 21),
    Sign.NO_NAMESPACE_NAME_LABEL: _until(
        "a namespace lacks the label kubernetes.io/metadata.name", 21, 20
    ),
    Sign.NULL_CREATION_TIMESTAMP: _until("a template's creationTimestamp is written as null", 33),
    Sign.NO_NULL_CREATION_TIMESTAMP: _since("a template's creationTimestamp is left out", 34),
    Sign.CRON_JOB_SERVED_AS_V1BETA1: _until("CronJobs are served as batch/v1beta1", 24),
    Sign.CRON_JOB_SERVED_AS_V1: _since("CronJobs are served as batch/v1", 21),
    Sign.JOB_GENERATION: _since("a Job has a generation", 22),
    Sign.NO_JOB_GENERATION: _until("a new Job has no generation", 22),
    Sign.COMPLETION_MODE: _since("a Job has a completionMode", 21, 22),
    Sign.NO_COMPLETION_MODE: _until("a new Job has no completionMode", 23, 21),
    Sign.SUSPEND: _since("a Job has suspend", 21, 22),
    Sign.POD_FAILURE_POLICY: _since("a Job has a podFailurePolicy", 25, 26),
    Sign.BACKOFF_LIMIT_PER_INDEX: _since("a Job has a backoffLimitPerIndex", 28, 29),
    Sign.POD_REPLACEMENT_POLICY: _since("a Job has a podReplacementPolicy", 28, 29),
    Sign.NO_POD_REPLACEMENT_POLICY: _until("a new Job has no podReplacementPolicy", 33, 28),
    Sign.SUCCESS_POLICY: _since("a Job has a successPolicy", 30, 31),
    Sign.MANAGED_BY: _since("a Job has managedBy", 30, 32),
    Sign.TRACKING_ANNOTATION: _within(
        "a new Job has the annotation batch.kubernetes.io/job-tracking", 22, 27
    ),
    Sign.TRACKED_WITHOUT_ANNOTATION: _since(
        "a new Job is tracked with finalizers without being annotated for it", 28
    ),
    Sign.PREFIXED_LABELS: _since("the label batch.kubernetes.io/job-name is set", 27),
    Sign.NO_PREFIXED_LABELS: _until(
        "a new Job's template lacks the label batch.kubernetes.io/job-name", 26
    ),
    Sign.UNCOUNTED_PODS: _since("status.uncountedTerminatedPods is written", 22),
    Sign.UNTRACKED: _until("a new Job's pods are not tracked with finalizers", 25, 24),
    Sign.READY: _since("status.ready is written", 23, 24),
    Sign.NO_READY: _until("a status with active pods is written without ready", 28, 23),
    Sign.TERMINATING: _since("status.terminating is written", 28, 29),
    Sign.NO_TERMINATING: _until("a status with active pods is written without terminating", 33, 28),
    Sign.FAILED_INDEXES: _since("status.failedIndexes is written", 28, 29),
    Sign.FAILURE_TARGET: _since("condition FailureTarget is written", 25, 26),
    Sign.FAILED_WITHOUT_FAILURE_TARGET: _until(
        "condition Failed is written without FailureTarget", 33, 30
    ),
    Sign.FAILURE_TARGET_OF_ANY_ENDING: _since(
        "condition FailureTarget is written for a back-off limit or a deadline", 31
    ),
    Sign.SUCCESS_CRITERIA_MET: _since("condition SuccessCriteriaMet is written", 30, 31),
    Sign.COMPLETIONS_REACHED: _since("a Job completes with reason CompletionsReached", 30, 31),
    Sign.COMPLETE_WITHOUT_REASON: _until("a Job completes without a reason", 32, 30),
    Sign.SUSPENDED_WITH_START: _since("a suspended Job keeps its startTime", 21),
    Sign.SUSPENDED_WITHOUT_START: _since(
        "a Job that had run is suspended without startTime", 35, 36
    ),
    Sign.TRACKING_FINALIZER: _since(
        "a new pod has the finalizer batch.kubernetes.io/job-tracking", 22
    ),
    Sign.INDEX_LABEL: _since("a pod has its completion index as a label", 28),
    Sign.NO_INDEX_LABEL: _until("a new pod has its completion index only as an annotation", 31, 27),
    Sign.PREEMPTION_POLICY: _since("a pod has a preemptionPolicy", 15, 19),
    Sign.NO_PREEMPTION_POLICY: _until("a new pod has no preemptionPolicy", 23, 18),
    Sign.POD_GENERATION: _since("a pod has a generation", 33),
    Sign.NO_POD_GENERATION: _until("a new pod has no generation", 33, 32),
    Sign.TIME_ZONE: _since("a CronJob has a timeZone", 24, 25),
    Sign.LAST_SUCCESSFUL_TIME: _since("status.lastSuccessfulTime of a CronJob is written", 22),
    Sign.OWNED_BY_V1BETA1: _until("a new Job's owner is a CronJob of batch/v1beta1", 20),
    Sign.OWNED_BY_V1: _since("a new Job's owner is a CronJob of batch/v1", 21),
    Sign.NAME_IN_SECONDS: _until("a new Job's name ends in its slot in seconds", 21, 20),
    Sign.NAME_IN_MINUTES: _since("a new Job's name ends in its slot in minutes", 20, 21),
    Sign.SCHEDULED_ANNOTATION: _since(
        "a CronJob's Job has the annotation batch.kubernetes.io/cronjob-scheduled-timestamp", 28
    ),
    Sign.NO_SCHEDULED_ANNOTATION: _until(
        "a CronJob's new Job lacks the annotation batch.kubernetes.io/cronjob-scheduled-timestamp",
        31,
        27,
    ),
    Sign.EVENT_COMPLETED: _since("event Completed is recorded for a Job", 18),
    Sign.EVENT_SUSPENDED: _since("event Suspended is recorded for a Job", 21, 22),
    Sign.EVENT_TOO_MANY_ACTIVE: _until("event TooManyActivePods is recorded", 21),
    Sign.EVENT_SAW_COMPLETED_PLAIN: _until("event SawCompletedJob names no outcome", 14),
    Sign.EVENT_SAW_COMPLETED_STATUS: _within("event SawCompletedJob says `status:`", 15, 30),
    Sign.EVENT_SAW_COMPLETED_CONDITION: _since("event SawCompletedJob says `condition:`", 31),
    Sign.EVENT_JOB_ALREADY_ACTIVE: _since("event JobAlreadyActive is recorded", 20, 21),
}
