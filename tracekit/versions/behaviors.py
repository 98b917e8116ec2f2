"""Upstream changes that shipped without a feature gate, named after what the newer code does.

A behavior is positive (it holds or does not), and its name carries neither a version nor a pull
request; `behavior_releases` says which releases have it. Controllers read the plain booleans of
`BehaviorFlags`, resolved once per era.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Final

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


class BehaviorFlags(Struct, frozen=True):
    """One plain boolean per behavior; same names and order as the enum."""

    deadline_timer_rearmed_on_job_update: bool
    delete_of_missing_pod_succeeds: bool
    on_failure_limit_zero_needs_a_restart: bool
    on_failure_counts_pending_pods: bool
    nothing_to_create_keeps_expectations: bool
    create_timeout_is_an_error: bool
    terminating_namespace_is_silent: bool
    delete_of_missing_pod_lowers_expectation: bool
    completed_event: bool
    backoff_limit_counts_failed_pods: bool
    pod_failure_delays_sync: bool
    new_failure_returns_error: bool
    pods_beyond_completions_removed: bool
    completion_waits_for_active_pods: bool
    indexes_beyond_completions_ignored: bool
    index_in_pod_name: bool
    only_indexed_jobs_put_index_in_names: bool
    status_written_from_cached_revision: bool
    deletes_exclude_creates: bool
    orphan_pods_lose_finalizer: bool
    finalizer_removals_expected: bool
    uncounted_pods_leave_their_list_one_by_one: bool
    orphans_without_owner_lose_finalizer: bool
    ending_waits_for_expectations: bool
    pods_of_finished_jobs_lose_finalizer: bool
    failed_pod_is_not_counted_as_success: bool
    status_conflict_is_retried: bool
    status_conflict_requeues_without_error: bool
    deadline_timer_rearmed_on_every_sync: bool
    backoff_limit_ignores_active_pods: bool
    only_first_pod_failure_delays_sync: bool
    status_write_keeps_retries: bool
    sync_without_error_forgets_retries: bool
    completed_indexes_cut_to_completions: bool
    ending_waits_for_all_pods: bool
    condition_update_renews_probe_time: bool
    pod_disruption_conditions_await_phase: bool
    ending_event_follows_status: bool
    tracking_needs_no_annotation: bool
    backoff_from_pod_finish_times: bool
    finish_time_read_from_pod_status: bool
    finish_time_covers_sidecars: bool
    ignored_failures_delay_replacements: bool
    job_status_updates_batched: bool
    every_succeeded_index_written: bool
    failure_policy_awaits_phase: bool
    terminal_condition_waits_for_terminating_pods: bool
    active_pods_survive_terminating_ones: bool
    terminating_alone_is_written: bool
    finished_job_releases_its_pods: bool
    orphans_of_other_kinds_kept: bool
    deleted_job_forgets_backoff: bool
    ready_and_terminating_follow_deletions: bool
    completion_names_its_reason: bool
    sidecar_restarts_rank_pods: bool
    orphans_found_by_selector: bool
    finished_job_awaits_its_update: bool
    active_kept_during_creation_backoff: bool
    only_replacement_policy_holds_replacements_back: bool
    orphan_finalizer_retried: bool
    deleted_job_forgets_expectations: bool
    status_transitions_validated: bool
    ending_without_interim_condition_refused: bool
    ready_above_active_refused: bool
    finished_job_with_terminating_pods_refused: bool
    suspended_empty_job_ends_without_start: bool
    resumed_start_time_accepted: bool
    cron_job_api_v1: bool
    cron_grammar_with_zones: bool
    zone_in_schedule_refused: bool
    polling_deletes_in_background: bool
    polling_delete_scales_down_first: bool
    polling_lists_in_pages: bool
    polling_pages_work: bool
    completed_job_event_names_status: bool
    too_many_missed_text_lower_case: bool
    unparseable_text_lower_case: bool
    polling_silent_in_terminating_namespace: bool
    missed_runs_by_arithmetic: bool
    already_exists_is_an_error: bool
    requeue_from_last_run: bool
    missed_runs_walked_near_end: bool
    missed_runs_requeue_from_now: bool
    children_by_owner_only: bool
    children_by_owner_uid: bool
    last_successful_time_written: bool
    job_request_carries_scheduled_time: bool
    unsupported_zone_in_schedule_warned: bool
    unparseable_schedule_quoted: bool
    status_written_only_when_changed: bool
    cleanup_sees_own_status_write: bool
    cleanup_precedes_scheduling: bool
    already_exists_recovers: bool
    queued_error_in_terminating_namespace: bool
    last_successful_time_of_complete_jobs_only: bool
    last_successful_time_in_same_sync: bool
    completed_job_event_says_condition: bool
    schedule_parser_panic_caught: bool
    key_forgotten_without_requeue: bool


_FLAG_NAMES: Final = BehaviorFlags.__struct_fields__


def flags_of(behaviors: frozenset[Behavior]) -> BehaviorFlags:
    """A set of behaviors as plain booleans."""
    return BehaviorFlags(**{name: Behavior[name.upper()] in behaviors for name in _FLAG_NAMES})


def flags_named(rules: type[Struct], behaviors: BehaviorFlags) -> dict[str, Any]:
    """The flags of a Struct of rules that have the name of a behavior, as it is."""
    named = (name for name in rules.__struct_fields__ if name in _FLAG_NAMES)
    return {name: getattr(behaviors, name) for name in named}
