"""What the API server refuses of a Job's status: the answer 422 to a PUT.

A refused write leaves nothing in a watch: the sync ends in an error, the key is tried again with
its back-off, and each later sync runs into the same wall until the Job has changed. So a model of
the API server has to refuse what the server of that version would have refused.

Most rules came with JobManagedBy, for the sake of other controllers, and look only at what the
write changes: a status that was wrong before may stay so. A stale revision is answered with a
conflict before any of this is looked at.

Upstream: pkg/apis/batch/validation/validation.go:validateJobStatus, ValidateJobStatusUpdate and
pkg/registry/batch/job/strategy.go:getStatusValidationOptions, from v1.22 on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import compress
from operator import ne
from typing import Final, NamedTuple

from msgspec.structs import astuple

from tracekit.base.kube.job_status import COUNTS
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobStatus, JobView, go_atoi
from tracekit.ports.job.indexes import parse_intervals
from tracekit.versions.status_validation import StatusValidation


class StatusUpdate:
    """A status that is to be written, and the Job as the server holds it."""

    __slots__ = ("changes", "finished", "held_true", "new", "new_true", "old", "spec", "turning")

    def __init__(self, held: JobView, new: JobStatus) -> None:
        self.old = old = held.status  # that the server holds
        self.new = new
        self.spec = held.spec  # a PUT of the status cannot change it
        #: The fields that the write changes, and the conditions that become or cease to be True.
        self.changes = frozenset(compress(_FIELDS, map(ne, astuple(old), astuple(new))))
        self.turning = _NONE
        self.new_true = self.held_true = _true_conditions(new)
        if "conditions" in self.changes:
            self.held_true = _true_conditions(old)
            self.turning = self.held_true ^ self.new_true
        #: Whether the Job is finished with the new status.
        self.finished = not _FINISHED.isdisjoint(self.new_true)

    def changed(self, *names: str) -> bool:
        """Whether one of these fields of the status changes."""
        return not self.changes.isdisjoint(names)

    def moved(self, name: str) -> bool:
        """Whether a time changes in the whole seconds that the API keeps."""
        if name not in self.changes:
            return False
        return _seconds(getattr(self.old, name)) != _seconds(getattr(self.new, name))

    def turned(self, *types: str) -> bool:
        """Whether one of these conditions becomes or ceases to be True."""
        return not self.turning.isdisjoint(types)

    def had(self, kind: str) -> bool:
        """Whether this condition is True in the status that the server holds."""
        return kind in self.held_true

    def has(self, kind: str) -> bool:
        """Whether this condition is True in the new status."""
        return kind in self.new_true

    @property
    def finish_changed(self) -> bool:
        """Whether the Job finishes with this write (or ceases to be finished)."""
        return self.finished == _FINISHED.isdisjoint(self.held_true)


_FIELDS: Final = JobStatus.__struct_fields__
_FINISHED: Final = frozenset({"Complete", "Failed"})
_NONE: Final = frozenset[str]()


def _true_conditions(status: JobStatus) -> frozenset[str]:
    if not status.conditions:
        return _NONE
    return frozenset([c.type for c in status.conditions if c.status == "True"])


class Rule(NamedTuple):
    """One reason to refuse a status."""

    field: str
    message: str
    broken: Callable[[StatusUpdate, StatusValidation], bool]
    #: A write that changes none of these fields and conditions cannot break it; empty: any may.
    looks_at: frozenset[str] = frozenset()
    #: Only the status of a finished Job can break it.
    at_the_end: bool = False


def status_refusals(
    held: JobView, status: JobStatus, validation: StatusValidation
) -> tuple[str, ...]:
    """Why the API server answers 422 to a PUT of `status` over `held`; empty if it takes it.

    Each is a line `status.FIELD: what is wrong`, in the order of upstream's checks.
    """
    update = StatusUpdate(held, status)
    return tuple(
        [
            f"status.{rule.field}: {rule.message}"
            for rule in _rules(
                validation.transitions,
                validation.success_criteria,
                update.changes | update.turning,
                update.finished,
            )
            if rule.broken(update, validation)
        ]
    )


@lru_cache(maxsize=1024)
def _rules(
    transitions: bool,
    success_criteria: bool,
    changes: frozenset[str],
    finished: bool,
) -> tuple[Rule, ...]:
    """The rules that a write of these changes to such a status can break."""
    rules = (
        *_ALWAYS,
        *(_TRANSITIONS if transitions else ()),
        *(_SUCCESS_CRITERIA if success_criteria else ()),
    )
    return tuple(
        rule
        for rule in rules
        if not (rule.looks_at and rule.looks_at.isdisjoint(changes))
        and (finished or not rule.at_the_end)
    )


def _seconds(at_ns: int | None) -> int | None:
    return None if at_ns is None else at_ns // NS_PER_S


def _negative_count(update: StatusUpdate, _: StatusValidation) -> bool:
    return any((getattr(update.new, name) or 0) < 0 for name in COUNTS)


def _uid_twice(update: StatusUpdate, validation: StatusValidation) -> bool:
    uids = update.new.uncounted_succeeded + update.new.uncounted_failed
    if not uids:
        return False
    return validation.uncounted_pods and ("" in uids or len(frozenset(uids)) != len(uids))


_ALWAYS: Final = (
    Rule("active", "no count may be negative", _negative_count),
    Rule("uncountedTerminatedPods", "a uid is empty or there twice", _uid_twice),
)


def _failed_after_success(update: StatusUpdate, _: StatusValidation) -> bool:
    both = update.has("Complete") and update.has("Failed")
    return update.turned("Complete", "Failed") and both


def _complete_despite_target(update: StatusUpdate, _: StatusValidation) -> bool:
    both = update.has("Complete") and update.has("FailureTarget")
    return update.turned("Complete", "FailureTarget") and both


def _completion_time_without_complete(update: StatusUpdate, _: StatusValidation) -> bool:
    if not update.turned("Complete") and not update.moved("completion_ns"):
        return False
    return (update.new.completion_ns is not None) != update.has("Complete")


def _completion_before_start(update: StatusUpdate, _: StatusValidation) -> bool:
    start, completion = _seconds(update.new.start_ns), _seconds(update.new.completion_ns)
    if not update.moved("start_ns") and not update.moved("completion_ns"):
        return False
    return start is not None and completion is not None and completion < start


def _failed_without_target(update: StatusUpdate, validation: StatusValidation) -> bool:
    if not update.turned("Failed") and not update.changed("failed_indexes"):
        return False
    lacks = update.has("Failed") and not update.has("FailureTarget")
    return validation.interim_condition_before_ending and lacks


def _complete_without_criteria(update: StatusUpdate, validation: StatusValidation) -> bool:
    if not update.turned("Complete", "SuccessCriteriaMet"):
        return False
    lacks = update.has("Complete") and not update.has("SuccessCriteriaMet")
    return validation.interim_condition_before_ending and lacks


def _finished_with_active_pods(update: StatusUpdate, _: StatusValidation) -> bool:
    looked_at = update.finish_changed or update.changed("active")
    return looked_at and update.finished and update.new.active > 0


def _finished_without_start(update: StatusUpdate, validation: StatusValidation) -> bool:
    if not update.finish_changed and not update.moved("start_ns"):
        return False
    spec = update.spec
    if spec.suspend and spec.completions == 0 and validation.suspended_empty_job_ends_without_start:
        return False
    return update.finished and update.new.start_ns is None


def _finished_with_uncounted_pods(update: StatusUpdate, _: StatusValidation) -> bool:
    new = update.new
    lists = ("uncounted_succeeded", "uncounted_failed", "tracks_uncounted")
    looked_at = update.finish_changed or update.changed(*lists)
    uncounted = new.uncounted_succeeded or new.uncounted_failed
    return looked_at and update.finished and bool(uncounted)


def _completed_indexes_malformed(update: StatusUpdate, _: StatusValidation) -> bool:
    if update.spec.completions is None or not update.changed("completed_indexes"):
        return False
    return not _well_formed(update.new.completed_indexes, update.spec.completions)


def _failed_indexes_malformed(update: StatusUpdate, _: StatusValidation) -> bool:
    spec, failed = update.spec, update.new.failed_indexes
    if spec.completions is None or spec.backoff_limit_per_index is None or failed is None:
        return False
    return update.changed("failed_indexes") and not _well_formed(failed, spec.completions)


def _well_formed(text: str, completions: int) -> bool:
    """Rising intervals below `completions`, as `0-2,5,7-8`."""
    last = None
    for part in text.split(",") if text else ():
        ends = [go_atoi(end) for end in part.split("-")]
        numbers = [end for end in ends if end is not None]
        if len(numbers) != len(ends) or len(ends) > 2 or max(numbers) >= completions:  # noqa: PLR2004 - first and last
            return False
        if len(numbers) > 1 and numbers[0] >= numbers[1]:
            return False
        if last is not None and last >= numbers[0]:
            return False
        last = numbers[-1]
    return True


def _completed_indexes_of_plain_job(update: StatusUpdate, _: StatusValidation) -> bool:
    has_some = update.new.completed_indexes != ""
    return update.changed("completed_indexes") and has_some and not update.spec.indexed


def _failed_indexes_unasked(update: StatusUpdate, _: StatusValidation) -> bool:
    unasked = update.spec.backoff_limit_per_index is None and update.new.failed_indexes is not None
    return update.changed("failed_indexes") and unasked


def _indexes_overlap(update: StatusUpdate, _: StatusValidation) -> bool:
    completions, failed = update.spec.completions, update.new.failed_indexes
    if (
        completions is None
        or not failed
        or not update.changed("failed_indexes", "completed_indexes")
    ):
        return False
    left = parse_intervals(update.new.completed_indexes, completions)
    right = parse_intervals(failed, completions)
    return any(a <= d and c <= b for a, b in left for c, d in right)


def _finished_with_terminating_pods(update: StatusUpdate, validation: StatusValidation) -> bool:
    looked_at = update.finish_changed or update.changed("terminating")
    terminating = update.finished and (update.new.terminating or 0) > 0
    return validation.nothing_terminates_at_the_end and looked_at and terminating


def _ready_above_active(update: StatusUpdate, validation: StatusValidation) -> bool:
    above = (update.new.ready or 0) > update.new.active
    return validation.ready_within_active and update.changed("ready", "active") and above


_ENDINGS: Final = frozenset({"Failed", "Complete", "FailureTarget"})


def _ending_taken_back(update: StatusUpdate, _: StatusValidation) -> bool:
    return not _ENDINGS.isdisjoint(update.held_true - update.new_true)


def _failed_falls(update: StatusUpdate, _: StatusValidation) -> bool:
    return update.new.failed < update.old.failed


def _succeeded_falls(update: StatusUpdate, _: StatusValidation) -> bool:
    spec = update.spec
    if spec.indexed and spec.completions == spec.parallelism:
        return False  # such a Job may be scaled down
    return update.new.succeeded < update.old.succeeded


def _completion_time_moves(update: StatusUpdate, _: StatusValidation) -> bool:
    there = update.old.completion_ns is not None and update.new.completion_ns is not None
    return there and update.moved("completion_ns")


def _start_moves(update: StatusUpdate, validation: StatusValidation) -> bool:
    """A Job that was resumed begins anew, but its spec says already that it is not suspended."""
    if update.old.start_ns is None or not update.moved("start_ns") or update.spec.suspend:
        return False
    after = update.new.condition("Suspended")
    resumes = update.had("Suspended") and after is not None and after.status == "False"
    return not (validation.resumed_start_accepted and resumes)


def _of(*names: str) -> frozenset[str]:
    return frozenset(names)


_TRANSITIONS: Final = (
    Rule(
        "conditions",
        "Complete and Failed exclude each other",
        _failed_after_success,
        _of("Complete", "Failed"),
    ),
    Rule(
        "conditions",
        "Complete and FailureTarget exclude each other",
        _complete_despite_target,
        _of("Complete", "FailureTarget"),
    ),
    Rule(
        "completionTime",
        "goes with Complete only",
        _completion_time_without_complete,
        _of("Complete", "completion_ns"),
    ),
    Rule(
        "completionTime",
        "lies before startTime",
        _completion_before_start,
        _of("start_ns", "completion_ns"),
    ),
    Rule(
        "conditions",
        "Failed needs FailureTarget first",
        _failed_without_target,
        _of("Failed", "failed_indexes"),
    ),
    Rule(
        "conditions",
        "Complete needs SuccessCriteriaMet first",
        _complete_without_criteria,
        _of("Complete", "SuccessCriteriaMet"),
    ),
    Rule(
        "active",
        "a finished Job has none",
        _finished_with_active_pods,
        _of("Complete", "Failed", "active"),
        at_the_end=True,
    ),
    Rule(
        "startTime",
        "a finished Job has one",
        _finished_without_start,
        _of("Complete", "Failed", "start_ns"),
        at_the_end=True,
    ),
    Rule(
        "uncountedTerminatedPods",
        "a finished Job has none",
        _finished_with_uncounted_pods,
        _of("Complete", "Failed", "uncounted_succeeded", "uncounted_failed", "tracks_uncounted"),
        at_the_end=True,
    ),
    Rule(
        "completedIndexes",
        "not a list of indexes",
        _completed_indexes_malformed,
        _of("completed_indexes"),
    ),
    Rule(
        "failedIndexes", "not a list of indexes", _failed_indexes_malformed, _of("failed_indexes")
    ),
    Rule(
        "completedIndexes",
        "the Job is not Indexed",
        _completed_indexes_of_plain_job,
        _of("completed_indexes"),
    ),
    Rule(
        "failedIndexes",
        "the Job has no backoffLimitPerIndex",
        _failed_indexes_unasked,
        _of("failed_indexes"),
    ),
    Rule(
        "failedIndexes",
        "overlap completedIndexes",
        _indexes_overlap,
        _of("completed_indexes", "failed_indexes"),
    ),
    Rule(
        "terminating",
        "a finished Job has none",
        _finished_with_terminating_pods,
        _of("Complete", "Failed", "terminating"),
        at_the_end=True,
    ),
    Rule("ready", "above active", _ready_above_active, _of("ready", "active")),
    Rule("conditions", "an ending cannot be taken back", _ending_taken_back, _ENDINGS),
    Rule("failed", "cannot fall", _failed_falls, _of("failed")),
    Rule("succeeded", "cannot fall", _succeeded_falls, _of("succeeded")),
    Rule("completionTime", "cannot move", _completion_time_moves, _of("completion_ns")),
    Rule("startTime", "cannot move while the Job is not suspended", _start_moves, _of("start_ns")),
)


def _criteria_unasked(update: StatusUpdate, validation: StatusValidation) -> bool:
    if validation.success_criteria_for_every_job or update.had("SuccessCriteriaMet"):
        return False
    asked = update.spec.indexed and update.spec.success_rules is not None
    return update.has("SuccessCriteriaMet") and not asked


def _criteria_and_failure(update: StatusUpdate, _: StatusValidation) -> bool:
    if not update.has("SuccessCriteriaMet"):
        return False
    return update.has("Failed") or update.has("FailureTarget")


def _complete_without_asked_criteria(update: StatusUpdate, _: StatusValidation) -> bool:
    lacks = update.has("Complete") and not update.has("SuccessCriteriaMet")
    return update.spec.success_rules is not None and lacks


def _criteria_taken_back(update: StatusUpdate, _: StatusValidation) -> bool:
    return update.had("SuccessCriteriaMet") and not update.has("SuccessCriteriaMet")


def _criteria_after_complete(update: StatusUpdate, _: StatusValidation) -> bool:
    over = update.had("Complete") and not update.had("SuccessCriteriaMet")
    return over and update.has("SuccessCriteriaMet")


_SUCCESS_CRITERIA: Final = (
    Rule(
        "conditions",
        "SuccessCriteriaMet needs a successPolicy",
        _criteria_unasked,
        _of("SuccessCriteriaMet"),
    ),
    Rule("conditions", "SuccessCriteriaMet excludes a failure", _criteria_and_failure),
    Rule(
        "conditions",
        "a successPolicy needs its criteria met",
        _complete_without_asked_criteria,
        at_the_end=True,
    ),
    Rule(
        "conditions",
        "SuccessCriteriaMet cannot be taken back",
        _criteria_taken_back,
        _of("SuccessCriteriaMet"),
    ),
    Rule(
        "conditions",
        "SuccessCriteriaMet comes before Complete",
        _criteria_after_complete,
        _of("SuccessCriteriaMet"),
    ),
)
