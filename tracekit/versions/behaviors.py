"""Upstream changes that shipped without a feature gate, named after what the newer code does.

A behavior is positive (it holds or does not), and its name carries neither a version nor a pull
request; `behavior_releases` says which releases have it. Controllers read the plain booleans of
`BehaviorFlags`, resolved once per era.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from msgspec import Struct


class Behavior(Enum):
    """Ungated changes: Job first, then both CronJob controllers; oldest first in each group."""

    # Job
    DEADLINE_TIMER_REARMED_ON_JOB_UPDATE = auto()
    DELETE_OF_MISSING_POD_SUCCEEDS = auto()
    ON_FAILURE_LIMIT_ZERO_NEEDS_A_RESTART = auto()
    ON_FAILURE_COUNTS_PENDING_PODS = auto()
    NOTHING_TO_CREATE_KEEPS_EXPECTATIONS = auto()
    CREATE_TIMEOUT_IS_AN_ERROR = auto()
    TERMINATING_NAMESPACE_IS_SILENT = auto()
    DELETE_OF_MISSING_POD_LOWERS_EXPECTATION = auto()
    COMPLETED_EVENT = auto()
    BACKOFF_LIMIT_COUNTS_FAILED_PODS = auto()
    POD_FAILURE_DELAYS_SYNC = auto()
    NEW_FAILURE_RETURNS_ERROR = auto()
    PODS_BEYOND_COMPLETIONS_REMOVED = auto()
    COMPLETION_WAITS_FOR_ACTIVE_PODS = auto()
    INDEXES_BEYOND_COMPLETIONS_IGNORED = auto()
    INDEX_IN_POD_NAME = auto()
    ONLY_INDEXED_JOBS_PUT_INDEX_IN_NAMES = auto()
    STATUS_WRITTEN_FROM_CACHED_REVISION = auto()
    DELETES_EXCLUDE_CREATES = auto()
    ORPHAN_PODS_LOSE_FINALIZER = auto()
    FINALIZER_REMOVALS_EXPECTED = auto()
    UNCOUNTED_PODS_LEAVE_THEIR_LIST_ONE_BY_ONE = auto()
    ORPHANS_WITHOUT_OWNER_LOSE_FINALIZER = auto()
    ENDING_WAITS_FOR_EXPECTATIONS = auto()
    PODS_OF_FINISHED_JOBS_LOSE_FINALIZER = auto()
    FAILED_POD_IS_NOT_COUNTED_AS_SUCCESS = auto()
    STATUS_CONFLICT_IS_RETRIED = auto()
    STATUS_CONFLICT_REQUEUES_WITHOUT_ERROR = auto()
    DEADLINE_TIMER_REARMED_ON_EVERY_SYNC = auto()
    BACKOFF_LIMIT_IGNORES_ACTIVE_PODS = auto()
    ONLY_FIRST_POD_FAILURE_DELAYS_SYNC = auto()
    STATUS_WRITE_KEEPS_RETRIES = auto()
    SYNC_WITHOUT_ERROR_FORGETS_RETRIES = auto()
    COMPLETED_INDEXES_CUT_TO_COMPLETIONS = auto()
    ENDING_WAITS_FOR_ALL_PODS = auto()
    CONDITION_UPDATE_RENEWS_PROBE_TIME = auto()
    POD_DISRUPTION_CONDITIONS_AWAIT_PHASE = auto()
    ENDING_EVENT_FOLLOWS_STATUS = auto()
    TRACKING_NEEDS_NO_ANNOTATION = auto()
    BACKOFF_FROM_POD_FINISH_TIMES = auto()
    FINISH_TIME_READ_FROM_POD_STATUS = auto()
    FINISH_TIME_COVERS_SIDECARS = auto()
    IGNORED_FAILURES_DELAY_REPLACEMENTS = auto()
    JOB_STATUS_UPDATES_BATCHED = auto()
    EVERY_SUCCEEDED_INDEX_WRITTEN = auto()
    FAILURE_POLICY_AWAITS_PHASE = auto()
    TERMINAL_CONDITION_WAITS_FOR_TERMINATING_PODS = auto()
    ACTIVE_PODS_SURVIVE_TERMINATING_ONES = auto()
    TERMINATING_ALONE_IS_WRITTEN = auto()
    FINISHED_JOB_RELEASES_ITS_PODS = auto()
    ORPHANS_OF_OTHER_KINDS_KEPT = auto()
    DELETED_JOB_FORGETS_BACKOFF = auto()
    READY_AND_TERMINATING_FOLLOW_DELETIONS = auto()
    COMPLETION_NAMES_ITS_REASON = auto()
    SIDECAR_RESTARTS_RANK_PODS = auto()
    ORPHANS_FOUND_BY_SELECTOR = auto()
    FINISHED_JOB_AWAITS_ITS_UPDATE = auto()
    ACTIVE_KEPT_DURING_CREATION_BACKOFF = auto()
    ONLY_REPLACEMENT_POLICY_HOLDS_REPLACEMENTS_BACK = auto()
    ORPHAN_FINALIZER_RETRIED = auto()
    DELETED_JOB_FORGETS_EXPECTATIONS = auto()
    # Job, the API server's validation of status updates
    STATUS_TRANSITIONS_VALIDATED = auto()
    ENDING_WITHOUT_INTERIM_CONDITION_REFUSED = auto()
    READY_ABOVE_ACTIVE_REFUSED = auto()
    FINISHED_JOB_WITH_TERMINATING_PODS_REFUSED = auto()
    SUSPENDED_EMPTY_JOB_ENDS_WITHOUT_START = auto()
    RESUMED_START_TIME_ACCEPTED = auto()
    # CronJob, both controllers
    CRON_JOB_API_V1 = auto()
    CRON_GRAMMAR_WITH_ZONES = auto()
    ZONE_IN_SCHEDULE_REFUSED = auto()
    # CronJob, polling controller
    POLLING_DELETES_IN_BACKGROUND = auto()
    POLLING_DELETE_SCALES_DOWN_FIRST = auto()
    POLLING_LISTS_IN_PAGES = auto()
    POLLING_PAGES_WORK = auto()
    COMPLETED_JOB_EVENT_NAMES_STATUS = auto()
    TOO_MANY_MISSED_TEXT_LOWER_CASE = auto()
    UNPARSEABLE_TEXT_LOWER_CASE = auto()
    POLLING_SILENT_IN_TERMINATING_NAMESPACE = auto()
    # CronJob, queue-based controller
    MISSED_RUNS_BY_ARITHMETIC = auto()
    ALREADY_EXISTS_IS_AN_ERROR = auto()
    REQUEUE_FROM_LAST_RUN = auto()
    MISSED_RUNS_WALKED_NEAR_END = auto()
    MISSED_RUNS_REQUEUE_FROM_NOW = auto()
    CHILDREN_BY_OWNER_ONLY = auto()
    CHILDREN_BY_OWNER_UID = auto()
    LAST_SUCCESSFUL_TIME_WRITTEN = auto()
    JOB_REQUEST_CARRIES_SCHEDULED_TIME = auto()
    UNSUPPORTED_ZONE_IN_SCHEDULE_WARNED = auto()
    UNPARSEABLE_SCHEDULE_QUOTED = auto()
    STATUS_WRITTEN_ONLY_WHEN_CHANGED = auto()
    CLEANUP_SEES_OWN_STATUS_WRITE = auto()
    CLEANUP_PRECEDES_SCHEDULING = auto()
    ALREADY_EXISTS_RECOVERS = auto()
    QUEUED_ERROR_IN_TERMINATING_NAMESPACE = auto()
    LAST_SUCCESSFUL_TIME_OF_COMPLETE_JOBS_ONLY = auto()
    LAST_SUCCESSFUL_TIME_IN_SAME_SYNC = auto()
    COMPLETED_JOB_EVENT_SAYS_CONDITION = auto()
    SCHEDULE_PARSER_PANIC_CAUGHT = auto()
    KEY_FORGOTTEN_WITHOUT_REQUEUE = auto()


class BehaviorFlags:
    """Whether each behavior holds, by its name in lower case: `flags.completed_event`."""

    __slots__ = ("_held",)

    def __init__(self, held: frozenset[Behavior]) -> None:
        self._held = held

    def __getattr__(self, name: str) -> bool:
        if name not in _NAMES:
            raise AttributeError(f"there is no behavior {name}")
        return Behavior[name.upper()] in self._held


_NAMES: Final = frozenset(behavior.name.lower() for behavior in Behavior)


def flags_named(rules: type[Struct], behaviors: BehaviorFlags) -> dict[str, bool]:
    """The flags of a Struct of rules that have the name of a behavior, as it is."""
    named = (name for name in rules.__struct_fields__ if name in _NAMES)
    return {name: getattr(behaviors, name) for name in named}
