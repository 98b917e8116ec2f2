"""Which tests run in `make test` and which only in `make test-all`.

`make test` holds each lie, gate, version and verb once, on its smallest witness, which
`tests/tidy/test_tiers.py` looks up. What asks the same of further records, and what waits long for
processes and servers, has the marker `full`: by this table, by `WITNESSES` (a test that goes over
the shipped records asks these in `make test`), or because it says so itself. All others are in both
tiers. `too_dear` holds the quick tier to what a test of it may cost.
"""

from __future__ import annotations

import resource
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pytest

from tests.support.traces import ALL, TRACES, about


@dataclass(frozen=True)
class Kept:
    """The parameter sets of one test that stay in the quick tier.

    `ids` names them as pytest does; with `every`, each `every`-th one in the order of collection
    stays as well, and with `of` those of these shipped records. None of them: the whole test is in
    the full tier.
    """

    ids: Collection[str] = ()
    every: int = 0
    of: Collection[str] = ()


NONE = Kept()

#: What a test of the quick tier may take of the processor, with the processes that it waited for.
#: Few take more than two seconds; the rest is for what the first of its process makes for others,
#: and for a machine that is slow. It is no time on the clock, which a busy machine stretches.
QUICK_CPU_S = 10.0

#: Of the shipped records these are asked in `make test`: a controller that polls, and one with
#: tracking finalizers that counts terminating pods. Each with CronJobs and TTL. A test that is about
#: neither is asked of the smallest of its own.
WITNESSES = ("v1.17.17-all", "v1.36.3-all")
#: By file, where fewer do.
FEWER = {
    "sql/test_views.py": ("v1.36.3-all",),
    "sql/test_questions.py": ("v1.36.3-all",),
    "sql/test_counts.py": ("v1.36.3-all",),
    "sql/test_answers.py": ("v1.36.3-all",),
}


def _size(record: str) -> int:
    return (TRACES / record / "watch.jsonl.zst").stat().st_size


def smallest_by_version() -> tuple[str, ...]:
    """Of each Kubernetes version the smallest record."""
    by_size = sorted(ALL, key=_size, reverse=True)
    return tuple({about(name)["gitVersion"]: name for name in by_size}.values())


#: Tests that only the full tier has, by file.
FULL: dict[str, tuple[str, ...]] = {
    "api/test_docs.py": ("test_the_examples_of_the_api_run",),
    "api/test_docstrings.py": ("test_the_examples_of_docstrings_run",),
    "api/test_one_answer.py": (
        "test_explain_names_who_asked_where_an_audit_log_does",
        "test_explain_says_of_each_job_what_diagnose_says",
    ),
    "api/test_pytest_plugin.py": ("test_a_trace_within_the_rules_passes",),
    "api/test_trace.py": (
        "test_a_range_chooses_what_is_shown",
        "test_a_second_question_reads_the_rows_of_its_own_job_alone",
        "test_every_status_write_of_the_job_is_in_its_account",
        "test_reprs_are_short_and_html_is_safe", "test_the_account_tells_what_was_waited_for",
    ),
    "attack/test_bit_flips.py": (
        "test_no_flip_changes_what_a_command_says", "test_no_flip_reaches_a_reader",
    ),
    "attack/test_bombs.py": (
        "test_a_cut_is_said_and_what_came_before_it_is_kept",
        "test_a_document_of_tiny_values_is_refused", "test_what_is_imported_is_replayed",
    ),
    "attack/test_edge_matrix.py": ("test_a_handful",),
    "attack/test_edges.py": (
        "test_a_job_may_ask_for_two_thousand_million_pods", "test_a_job_may_have_no_time_at_all",
        "test_a_job_that_fails_for_ever_costs_no_more_in_a_longer_record",
        "test_a_name_that_is_no_text_leaves_nothing_behind", "test_a_verb_takes_it",
        "test_what_cannot_be_read_is_not_said_to_be_absent",
    ),
    "attack/test_fuzz.py": ("test_a_field_of_another_type",),
    "attack/test_hostile_texts.py": (
        "test_a_failing_gate_prints_nothing_that_is_obeyed", "test_a_terminal_obeys_nothing",
    ),
    "attack/test_hostile_traces.py": (
        "test_a_dictionary_that_repeats_a_long_text", "test_a_header_of_any_shape",
        "test_a_nested_dictionary_that_repeats_a_long_text",
        "test_an_encoding_that_stands_for_any_length", "test_columns_that_no_writer_makes",
        "test_deep_nesting", "test_pages_that_are_nearly_nothing_compressed",
        "test_verdicts_that_a_trace_brings_along_are_not_believed",
    ),
    "attack/test_losses.py": (
        "test_a_lost_segment_invents_nothing_and_hides_little",
        "test_a_trace_that_has_lost_its_end_is_damaged_and_not_short",
        "test_a_trace_without_one_of_its_parts_is_no_empty_trace",
        "test_what_lies_outside_of_the_loss_is_judged_as_before",
    ),
    "attack/test_modes.py": (
        "test_a_file_that_is_there_keeps_its_mode", "test_a_mask_that_is_none_is_one_sentence",
        "test_nobody_else_reads_what_is_written",
    ),
    "attack/test_nesting.py": ("test_a_row_of_a_log_leaves_the_others_readable",),
    "attack/test_queries.py": (
        "test_a_session_answers_as_before", "test_no_attack_changes_anything",
    ),
    "attack/test_query_values.py": ("test_every_output_takes_every_value", "test_json_is_exact"),
    "attack/test_readers_beside_compaction.py": (
        "test_a_compaction_at_every_step_of_a_reader",
        "test_a_reader_at_every_step_of_a_compaction",
        "test_an_open_session_and_an_open_reader_outlive_a_compaction",
    ),
    "attack/test_strangers_folder.py": (
        "test_a_recorder_with_a_judge_and_a_plugin", "test_an_import_of_several_blocks",
        "test_traces_that_other_processes_judge",
    ),
    "attack/test_streams.py": (
        "test_a_closed_stream_is_no_file_of_the_trace", "test_a_full_disk_is_no_divergence",
    ),
    "attack/test_times.py": (
        "test_a_line_without_a_time_has_that_of_the_line_before",
        "test_a_log_that_says_no_time_is_refused", "test_a_time_may_be_further_than_any_record",
        "test_objects_before_the_first_time_are_told",
        "test_a_trace_with_a_time_of_no_clock_is_not_believed",
        "test_a_trace_without_times_is_answered_without_a_fault",
    ),
    "docs/test_extending.py": (
        "test_a_pod_that_it_leaves_is_told",
        "test_its_deletions_are_explained_beside_those_of_the_others",
        "test_what_its_judges_tell_each_other_can_be_sent",
    ),
    "docs/test_incidents.py": ("test_what_is_explained_is_what_the_audit_log_counts",),
    "docs/test_mistakes.py": ("test_a_mistake_is_one_sentence_and_the_page_says_what_is_printed",),
    "docs/test_notebook.py": ("test_the_stored_outputs_are_what_the_cells_print",),
    "docs/test_questions.py": ("test_the_answer_is_that_of_the_lines",),
    "docs/test_readme.py": ("test_its_examples_print_what_they_show",),
    "findings/test_admission.py": (
        "test_the_view_of_waits_says_the_same", "test_the_workload_of_its_jobset_counts",
        "test_what_a_workload_repeats_of_its_pods_is_not_kept",
        "test_what_is_said_first_and_by_explain",
    ),
    "findings/test_advice_tried.py": ("test_no_policy_is_advised_that_validation_refuses",),
    "findings/test_batch_reports.py": (
        "test_what_explain_says_of_a_lost_container_is_no_exit_code",
    ),
    "findings/test_churn.py": (
        "test_failed_pods_that_the_ttl_took_later_were_left_by_the_failure",
        "test_pods_that_ran_side_by_side_are_no_retries",
        "test_pods_that_the_controller_deleted_did_not_exit_by_themselves",
        "test_sentences_about_one_start_do_not_contradict_each_other",
        "test_who_edited_a_cronjob_is_named_in_the_words_of_the_api",
        "test_writes_of_one_sync_stand_where_it_began",
    ),
    "findings/test_families.py": ("test_a_tick_that_has_a_reason_is_told_with_it",),
    "findings/test_issue_reports.py": ("test_what_is_said_first",),
    "findings/test_left_messages.py": ("test_explain_says_the_same",),
    "findings/test_matrix.py": ("test_the_table_says_what_is_found",),
    "findings/test_no_room.py": (
        "test_a_job_that_finds_no_room_is_not_passed_over",
        "test_of_jobs_alone_the_status_tells_that_none_has_begun",
        "test_where_pods_were_looked_at_they_tell",
    ),
    "findings/test_outputs.py": (
        "test_a_baseline_accepts_what_was_found", "test_a_lie_is_named_in_the_first_three_lines",
        "test_fail_on", "test_verdicts_as_junit_and_sarif",
    ),
    "findings/test_parts.py": ("test_findings_do_not_depend_on_the_parts",),
    "findings/test_public_reports.py": ("test_what_is_said_first",),
    "findings/test_reports.py": ("test_who_deleted_is_known_by_an_event_that_was_combined",),
    "findings/test_scaling.py": (
        "test_jobs_do_not_each_read_the_whole_record",
        "test_verdicts_become_objects_where_a_rule_asks_for_them",
    ),
    "findings/test_thread_reports.py": (
        "test_a_pod_of_a_workflow_that_is_deleted_is_told",
        "test_explain_knows_the_cronjob_of_a_job", "test_one_job_alone_says_nothing_of_others",
        "test_what_is_said_first",
    ),
    "lies/test_audit_lies.py": (
        "test_a_ttl_deletion_before_its_time_is_told_where_a_log_names_the_controller",
        "test_what_was_never_done_accuses_nobody_without_leases",
    ),
    "lies/test_lies.py": ("test_streams_stay_in_the_order_of_the_store",),
    "mcp/test_questions.py": ("test_the_right_answer_is_what_the_tools_say",),
    "mcp/test_server.py": (
        "test_an_answer_goes_on_where_the_last_one_ended",
        "test_each_sentence_carries_what_it_rests_on", "test_no_other_trace_or_file_is_opened",
    ),
    "minimise/test_minimise.py": (
        "test_an_attempt_without_end_ends_with_the_time",
        "test_each_kind_of_divergence_is_shown_alone",
        "test_the_command_redacts_and_tells_how_it_goes",
    ),
    "record/test_clock_notes.py": (
        "test_a_recorder_under_a_clock_that_is_set_has_two_epochs_by_the_dates",
    ),
    "record/test_compaction.py": ("test_never_two_on_one_trace",),
    "record/test_container_logs.py": (
        "test_a_recording_with_logs", "test_logs_that_may_not_be_read_are_not_asked_for",
    ),
    "record/test_credentials.py": ("test_a_token_file_may_end_in_a_newline",),
    "record/test_frames.py": ("test_the_text_is_the_object",),
    "record/test_judge_beside.py": (
        "test_on_a_terminal_it_stands_above_the_recorders_table",
        "test_what_the_last_rows_show_is_told_before_it_ends",
    ),
    "record/test_kills.py": ("test_kills_lose_nothing_that_was_flushed",),
    "record/test_plain_segments.py": (
        "test_compaction_types_and_loses_nothing", "test_reading_types_what_the_writer_did_not",
        "test_selections_see_plain_rows", "test_sql_sees_plain_rows_with_their_columns",
    ),
    "record/test_record_cli.py": (
        "test_a_damaged_trace_does_not_stop_a_rotating_recorder",
        "test_a_dead_stream_makes_the_status_non_zero",
        "test_a_full_disk_is_one_sentence_and_loses_nothing_flushed",
        "test_a_full_volume_is_freed_of_expired_traces_before_anything_is_written",
        "test_a_recording_is_redacted_in_all_that_it_writes", "test_a_second_ctrl_c_leaves_at_once",
        "test_a_trace_that_is_not_redacted_is_not_gone_on_with_as_one_that_is",
        "test_append_after_compaction_has_gaps_and_synthesised_deletes",
        "test_append_goes_on_without_a_gap", "test_ctrl_c_ends_cleanly_and_the_trace_is_whole",
        "test_max_size_ends_it", "test_metrics_and_health",
        "test_output_of_another_scope_or_cluster", "test_rotated_traces_are_continued_and_expire",
        "test_rotation_opens_every_trace_with_what_lives",
        "test_secrets_and_configmaps_are_never_asked_for",
        "test_selectors_and_scope_reach_the_server",
        "test_several_namespaces_are_streams_of_their_own",
        "test_two_recorders_on_one_trace_are_refused",
        "test_what_may_not_be_seen_is_said_and_written",
    ),
    "record/test_unseen_streams.py": (
        "test_a_gap_reaches_to_the_end_of_the_first_list", "test_a_list_says_what_it_asked_for",
        "test_pods_that_answer_503_are_a_hole_and_prove_nothing",
        "test_pods_that_are_seen_tell_that_a_status_is_wrong",
    ),
    "record/test_uploading.py": ("test_a_store_that_is_away_costs_nothing",),
    "replay/test_ambiguous.py": (
        "test_a_deadline_that_was_kept_late_without_a_proof_says_so",
        "test_a_pod_for_a_job_that_had_ended_is_told_to_need_an_old_cache",
        "test_an_event_that_begins_with_two_is_not_simply_explained",
        "test_what_a_job_did_not_create_may_have_been_refused_when_its_events_were_spent",
        "test_what_the_last_sync_had_still_to_do_is_not_simply_granted",
        "test_without_events_no_deletion_is_certainly_the_controllers",
    ),
    "replay/test_bad_input.py": (
        "test_a_clock_that_goes_back_is_said_and_loses_nothing", "test_a_damaged_trace",
        "test_a_distribution_replays_as_the_version_that_it_is_built_from",
        "test_a_newer_version_than_any_known_is_replayed_as_the_newest_with_a_warning",
        "test_an_option_that_does_not_fit",
        "test_repeated_and_disordered_observations_change_no_verdict",
    ),
    "replay/test_cron_jobs_and_ttl.py": (
        "test_a_clean_up_that_did_not_happen_is_missing",
        "test_a_job_beside_a_running_one_is_extra_where_that_is_forbidden",
        "test_a_job_taken_out_of_the_record_is_missing_by_its_status",
        "test_a_record_that_begins_in_the_middle_has_no_divergence",
        "test_a_record_that_ends_anywhere_has_no_divergence",
        "test_a_schedule_without_a_zone_is_read_in_that_of_the_process",
        "test_a_start_long_after_its_slot_is_late",
        "test_a_ttl_deletion_before_its_time_may_be_a_users",
        "test_a_ttl_deletion_of_the_wrong_job_is_told_on_both",
        "test_a_ttl_deletion_that_did_not_happen_is_missing", "test_a_wrong_name_is_different",
        "test_a_wrong_status_is_different", "test_jobs_started_although_forbidden_are_extra",
        "test_jobs_started_while_suspended_are_extra",
    ),
    "replay/test_detected_version.py": (
        "test_a_lie_is_one_by_all_versions_that_fit",
        "test_what_hangs_on_the_version_is_unknowable",
    ),
    "replay/test_determinism.py": (
        "test_hash_seeds_change_no_byte",
        "test_the_order_among_rows_of_the_same_time_changes_no_byte",
    ),
    "replay/test_erasures.py": ("test_a_cut_record_has_no_divergence",),
    "replay/test_forced.py": (
        "test_a_search_without_these_caches_finds_others_only_where_it_is_said",
        "test_only_what_syncs_wrote_is_forced_or_not",
    ),
    "replay/test_formats_agree.py": (
        "test_a_verb_says_the_same_of_both", "test_info_differs_in_size_alone",
    ),
    "replay/test_json_contract.py": ("test_divergences",),
    "replay/test_judging_in_pieces.py": (
        "test_a_growing_record_gets_the_verdicts_of_the_whole",
        "test_a_lie_in_a_growing_record_is_told", "test_a_part_is_counted_as_it_would_be_kept",
        "test_what_is_kept_on_this_machine_is_what_would_be_judged",
        "test_what_is_only_counted_is_what_would_be_kept",
    ),
    "replay/test_kept_verdicts.py": (
        "test_a_kept_file_that_was_damaged_is_made_again",
        "test_a_machine_without_a_place_goes_without", "test_compaction_takes_the_verdicts_along",
        "test_what_is_kept_is_what_a_new_judge_says", "test_who_reads_them_imports_no_engine",
    ),
    "replay/test_misfit.py": (
        "test_a_lie_in_each_tenth_job_is_no_misfit_and_one_in_each_is",
        "test_a_record_of_few_jobs_is_one_finding_too",
    ),
    "replay/test_one_answer.py": ("test_a_part_of_the_verdicts_is_a_part_of_the_same_verdicts",),
    "replay/test_planted_lies.py": (
        "test_a_first_call_long_after_its_sync_began_is_late_where_the_process_had_the_time",
        "test_a_lie_in_a_trace_on_disk_is_judged_alike", "test_a_lie_that_was_missed_is_found",
        "test_an_event_of_a_refused_call_is_a_warning", "test_the_untouched_record_says_nothing",
        "test_what_a_process_left_undone_is_told_though_another_has_come",
        "test_what_is_remembered_of_a_key_is_what_is_said_of_it_again",
    ),
    "replay/test_real_traces.py": (
        "test_explained_actions_of_the_job_controller_are_those_that_the_audit_log_counts",
    ),
    "replay/test_recorded_gates.py": (
        "test_a_recorded_version_that_is_not_known_does_not_stop_a_named_one",
        "test_as_another_version_the_defaults_of_the_recorded_one_do_not_count",
        "test_the_gates_that_a_cluster_reports_change_nothing",
    ),
    "replay/test_repeated_endings.py": ("test_the_end_of_a_job_told_twice",),
    "replay/test_retry_timing.py": ("test_a_retry_that_nothing_can_have_woken_yet_is_early",),
    "replay/test_views.py": ("test_a_verdict_that_hangs_on_an_offset_says_what_tells_it",),
    "scale/test_ahead.py": (
        "test_nothing_is_left_of_what_went_between_them",
        "test_results_come_in_order_and_from_others",
        "test_what_a_process_did_when_it_died_is_done_here", "test_what_finds_no_room_is_done_here",
        "test_who_would_wait_for_others_does_some_of_it",
    ),
    "scale/test_dask.py": (
        "test_a_run_that_was_cut_goes_on_with_what_is_missing",
        "test_what_is_no_address_is_one_sentence_at_once",
    ),
    "scale/test_failures.py": (
        "test_a_scheduler_that_dies_is_one_sentence",
        "test_a_scheduler_without_workers_is_one_sentence",
        "test_a_trace_that_vanishes_midway_is_named_and_the_rest_is_answered",
        "test_parts_that_cannot_be_kept_are_told_once_and_all_is_answered",
    ),
    "scale/test_many.py": (
        "test_a_bucket_under_dask_with_a_worker_killed_and_a_store_that_fails",
        "test_dask_workers_answer_with_the_same_bytes",
        "test_what_other_rules_would_have_done_is_asked_of_each_trace",
    ),
    "scale/test_processes.py": (
        "test_a_key_that_cannot_be_judged_is_named_and_the_rest_is_answered",
        "test_a_killed_process_costs_a_retry_and_a_poison_task_itself",
        "test_a_process_that_dies_before_there_is_work_is_replaced",
        "test_pieces_of_a_narrow_trace_say_what_the_wide_one_says",
        "test_pieces_say_what_the_whole_says", "test_the_same_bytes_for_any_number_of_processes",
        "test_units_read_alone_say_the_same",
    ),
    "scale/test_time_spans.py": ("test_years_of_nothing_are_not_counted_out",),
    "simulate/test_combined_events.py": (
        "test_a_count_rises_by_what_the_spam_filter_kept_back", "test_it_is_believed_no_further",
    ),
    "simulate/test_edited_statuses.py": ("test_who_set_a_field_that_no_entry_shows",),
    "simulate/test_hidden_timers.py": (
        "test_a_deadline_that_passed_before_the_pod_ended",
        "test_a_retry_long_after_refusals_that_events_tell_of",
    ),
    "simulate/test_law.py": (
        "test_a_slow_client_is_known_by_its_flags",
        "test_of_two_starts_the_first_takes_the_deadlines_timer",
        "test_worlds_hold_what_the_controllers_have_rules_for",
    ),
    "simulate/test_left_in_the_queue.py": (
        "test_the_retry_of_a_job_that_was_made_anew",
        "test_the_timer_of_a_cron_job_that_was_made_anew",
    ),
    "simulate/test_workload.py": ("test_a_file_makes_a_trace_that_every_verb_reads",),
    "sql/test_answers.py": (
        "test_the_parts_of_latency_add_up_to_the_whole", "test_the_views_say_what_diagnose_says",
        "test_what_an_unfinished_job_waits_for_is_a_row",
    ),
    "sql/test_questions.py": (
        "test_closed_columns_compare_without_regard_to_case",
        "test_with_an_audit_log_each_deletion_names_its_user",
    ),
    "sql/test_session.py": (
        "test_a_process_zone_that_is_none_is_one_sentence",
        "test_a_query_that_needs_more_memory_than_it_may_says_what_to_do",
        "test_a_query_without_verdicts_imports_neither_the_engine_nor_pandas",
        "test_a_session_makes_only_the_views_that_a_query_takes",
        "test_a_view_that_is_held_is_made_once", "test_all_that_only_reads_is_possible",
        "test_nothing_but_reading_the_trace_is_possible",
        "test_ticks_follow_the_version_that_is_asked_for",
        "test_verdicts_are_kept_outside_the_trace_and_made_again_when_it_grows",
    ),
    "sql/test_trace_model.py": (
        "test_a_cronjob_that_is_deleted_at_once_has_missed_nothing",
        "test_ticks_are_those_of_the_trace",
    ),
    "stores/test_import.py": (
        "test_a_snapshot_and_a_trace_beside_it", "test_what_is_not_there_is_said",
    ),
    "stores/test_ranges.py": (
        "test_a_file_that_is_gone_when_its_rows_are_read_is_one_sentence",
        "test_a_namespace_costs_its_own_row_groups",
        "test_a_row_group_that_is_damaged_in_the_bucket_is_named_when_it_is_read",
        "test_a_time_costs_its_own_row_groups",
        "test_a_unit_costs_what_its_jobs_take_and_is_judged_alike",
        "test_to_open_a_trace_takes_the_ends_of_its_files",
        "test_what_was_spoilt_in_the_copy_is_fetched_again",
    ),
    "stores/test_stores.py": (
        "test_a_copy_that_was_cut_off_or_tampered_with_is_mended",
        "test_a_pattern_reads_several_as_one_with_their_names",
        "test_a_trace_on_a_web_server_that_lists_its_folders",
        "test_another_trace_under_the_same_name_replaces_the_copy",
        "test_every_command_says_of_a_url_what_it_says_of_the_directory",
        "test_only_what_is_new_is_fetched", "test_the_api_opens_a_url",
    ),
    "unit/answers/test_commands.py": ("test_no_blank_is_left_to_fill_in",),
    "unit/cache/test_pods.py": ("test_it_can_be_moved_along_its_stream_in_both_directions",),
    "unit/check/test_turning_back.py": ("test_states_that_stand_for_others_save_attempts",),
    "unit/cli/test_completion.py": (
        "test_tab_after_what_is_no_trace_says_nothing", "test_tab_lets_the_shell_list_paths",
    ),
    "unit/cli/test_config.py": (
        "test_jobs_by_label_and_in_order",
        "test_what_may_be_given_several_times_is_a_word_or_a_list",
    ),
    "unit/cli/test_import_watch.py": (
        "test_a_truncated_file_keeps_what_came_before_and_says_so",
        "test_files_that_are_no_watch_log", "test_standard_input",
    ),
    "unit/cli/test_imports.py": ("test_a_quick_question_runs_none_of_what_takes_long",),
    "unit/cli/test_info.py": ("test_an_offset_that_no_clock_has_is_refused",),
    "unit/cli/test_looks.py": (
        "test_a_file_is_as_of_when_it_was_written", "test_a_lease_that_nobody_renews",
        "test_explain_tells_all_that_a_look_shows_as_of_its_time",
        "test_several_files_are_read_together", "test_that_nobody_leads_is_told_of_each_that_waits",
        "test_the_other_verbs_take_a_file_too",
    ),
    "unit/cli/test_main.py": (
        "test_a_reader_that_goes_is_neither_a_divergence_nor_an_error",
        "test_a_reader_that_never_reads",
    ),
    "unit/cli/test_one_stream_alone.py": (
        "test_an_account_says_what_there_is", "test_jobs_that_were_not_recorded_are_not_none",
        "test_listed_events_stand_at_their_own_times", "test_the_other_verbs_do_their_work",
        "test_what_cannot_be_judged_has_no_green",
    ),
    "unit/cli/test_report.py": (
        "test_a_report_needs_no_network_and_forbids_it", "test_a_trace_without_a_row_has_a_report",
        "test_an_empty_trace_can_be_exported", "test_chrome_has_every_span_and_its_arrows",
        "test_hostile_names_stay_data_in_the_page",
        "test_jsonl_and_csv_have_the_same_rows_in_order_of_time",
        "test_otlp_spans_have_their_parents_and_status",
        "test_perfetto_is_a_tree_of_tracks_with_paired_slices",
        "test_the_command_does_not_overwrite", "test_the_report_of_a_namespace_holds_only_that",
        "test_the_report_of_one_job_holds_only_that",
    ),
    "unit/cli/test_report_browser.py": (
        "test_nothing_is_broken_at_any_width", "test_ten_thousand_jobs_are_one_page",
        "test_ten_thousand_pods_open_and_scroll",
        "test_the_culprit_comes_first_and_leads_to_the_job",
    ),
    "unit/cli/test_report_serve.py": (
        "test_a_part_is_asked_for", "test_an_answer_about_a_long_time_says_where_it_ends",
        "test_ctrl_c_ends_it", "test_only_who_was_told_the_address_is_answered",
        "test_the_page_says_what_the_file_says",
        "test_what_happened_and_who_wrote_are_those_of_the_file",
    ),
    "unit/cli/test_sql.py": (
        "test_explain_is_text_or_json", "test_hostile_names_do_not_reach_the_terminal",
        "test_jobs_filters_and_suggests", "test_json_jsonl_and_csv_say_the_same",
        "test_what_an_answer_leaves_out_is_said_once",
    ),
    "unit/cli/test_sql_prompt.py": (
        "test_commands_print", "test_describe_and_show_tables_tell_what_things_mean",
    ),
    "unit/cli/test_war_room.py": (
        "test_a_cronjob_has_a_good_run_and_a_bad_one", "test_a_users_writes_are_those_of_the_log",
        "test_fields_are_told_old_and_new", "test_no_phase_is_lost",
        "test_one_object_has_its_jobs_and_pods", "test_the_time_between_two_short_times",
        "test_troubles_have_failures_refusals_and_missed_runs", "test_two_jobs_side_by_side",
        "test_what_cannot_be_compared", "test_when_nothing_happened_is_said",
        "test_without_the_log_managed_fields_name_the_client",
        "test_writes_of_a_time_and_in_parts_are_those_of_the_whole",
    ),
    "unit/controllers/job/test_malformed.py": ("test_junk_in_the_job",),
    "unit/cron/test_cron_properties.py": (
        "test_every_text_is_answered", "test_ordinary_schedules_agree_with_croniter",
        "test_the_generations_agree_in_utc_where_no_star_has_a_step",
    ),
    "unit/cron/test_go_answers.py": ("test_the_shared_answers_of_both_libraries_agree",),
    "unit/cronlint/test_vectors.py": ("test_each_disagreement_on_a_recorded_answer_has_a_class",),
    "unit/kube/test_api_types.py": ("test_views_are_made_of_anything",),
    "unit/kube/test_field_changes.py": ("test_the_same_has_no_change_and_another_has_one",),
    "unit/kube/test_views.py": ("test_any_object_is_viewed_without_an_error",),
    "unit/report/test_conclusion.py": ("test_back_off_of_indexes_is_no_part_of_the_duration",),
    "unit/report/test_table.py": ("test_nothing_is_cut_and_nothing_is_wider_than_the_terminal",),
    "unit/test_collecting.py": ("test_cycles_that_many_blocks_leave_go",),
    "unit/test_escaping.py": ("test_nothing_hidden_is_left",),
    "unit/test_stopping.py": ("test_an_event_would_not_do",),
    "unit/trace/importers/test_audit.py": (
        "test_a_log_that_begins_midway_accuses_nobody",
        "test_any_order_and_twice_is_the_same_trace",
        "test_what_follows_an_entry_that_was_cut_in_its_line_is_kept",
        "test_what_kubelets_sent_is_as_good_as_what_they_were_answered",
    ),
    "unit/trace/importers/test_blocks.py": (
        "test_a_block_of_nothing_unusual_is_not_looked_at_row_by_row",
        "test_blocks_of_any_size_make_the_same_trace", "test_line_by_line_is_the_same_trace",
        "test_what_is_looked_at_all_at_once_is_what_each_row_is",
    ),
    "unit/trace/importers/test_bundles.py": (
        "test_an_archive_in_an_archive_is_opened", "test_an_archive_that_was_cut_is_said_to_be",
        "test_an_archive_three_deep_is_left_out_and_said",
    ),
    "unit/trace/importers/test_callers.py": ("test_actors_are_filled_in_and_none_is_wrong",),
    "unit/trace/importers/test_columns.py": (
        "test_an_answer_that_was_taken_apart_is_not_put_together",
    ),
    "unit/trace/importers/test_encodings.py": ("test_every_encoding_is_the_same_rows",),
    "unit/trace/importers/test_for_people.py": ("test_it_is_refused_with_what_to_ask_for",),
    "unit/trace/importers/test_formats.py": ("test_it_is_refused_with_what_to_do",),
    "unit/trace/importers/test_fuzz.py": (
        "test_what_comes_in_is_kept_or_named", "test_what_is_broken_is_a_sentence_or_a_trace",
    ),
    "unit/trace/importers/test_fuzz_stores.py": (
        "test_each_revision_is_kept_or_named", "test_what_is_broken_is_a_sentence_or_a_trace",
    ),
    "unit/trace/importers/test_kcm_log.py": ("test_what_a_store_gives_back_is_the_same_log",),
    "unit/trace/importers/test_kinds.py": ("test_a_file_that_holds_nothing_whole_is_said_to",),
    "unit/trace/importers/test_kubectl_text.py": ("test_numbers_of_any_size_are_no_fault",),
    "unit/trace/importers/test_layouts.py": (
        "test_a_log_may_begin_with_other_lines", "test_an_empty_list_is_a_look",
        "test_an_empty_list_that_names_nothing_is_of_what_its_file_is_named_after",
    ),
    "unit/trace/importers/test_list_scope.py": (
        "test_a_list_of_unknown_scope_looks_where_it_shows_something",
        "test_a_watch_log_says_what_its_lists_asked_for",
    ),
    "unit/trace/importers/test_manifests.py": (
        "test_a_cronjob_without_a_creation_is_not_missed_since_1970",
    ),
    "unit/trace/importers/test_parts.py": ("test_a_file_of_no_use_stops_no_folder",),
    "unit/trace/importers/test_several_servers.py": (
        "test_a_clock_that_differs_is_put_right_by_the_revisions",
        "test_a_small_difference_in_one_file_widens_what_is_known_of_the_order",
        "test_a_write_that_took_long_is_no_lateness_of_the_controller",
    ),
    "unit/trace/importers/test_stores.py": (
        "test_a_watch_gives_its_times_to_a_snapshot_that_is_the_better_source",
        "test_delta_snapshots_have_times", "test_every_store_tells_what_the_watch_saw", "test_kine",
    ),
    "unit/trace/importers/test_wrappers.py": (
        "test_too_large_a_body_of_aks_is_a_write_that_was_not_seen",
        "test_what_a_log_cannot_tell_is_said_as_it_is",
    ),
    "unit/trace/importers/test_yaml_in_text.py": (
        "test_each_object_is_kept_and_each_line_around_it_counted",
    ),
    "unit/trace/test_compact.py": (
        "test_a_compaction_of_the_whole_says_which_namespaces_there_are",
        "test_a_lost_file_is_noticed", "test_everything_that_fits_becomes_one_segment",
        "test_steps_rewrite_a_row_only_a_few_times", "test_stopping_anywhere_loses_nothing",
    ),
    "unit/trace/test_document.py": ("test_the_macro_puts_narrow_rows_together",),
    "unit/trace/test_extract.py": ("test_any_object_becomes_a_row_that_arrow_takes",),
    "unit/trace/test_merge.py": (
        "test_a_recorder_that_came_later_goes_on_where_the_first_ended",
        "test_another_cluster_is_refused", "test_clocks_that_differ_are_put_right_and_told",
        "test_one_that_is_killed_leaves_nothing_and_the_next_one_is_whole",
        "test_records_that_do_not_meet_leave_a_gap_and_tell_what_vanished",
        "test_two_records_fill_each_others_gaps",
        "test_what_either_saw_is_there_and_only_what_neither_saw_is_a_gap",
        "test_where_both_had_a_gap_one_remains",
    ),
    "unit/trace/test_narrow.py": (
        "test_a_cut_segment_is_refused_or_a_gap", "test_a_merge_with_something_narrow_stays_narrow",
        "test_a_real_trace_comes_back_in_a_third_of_its_bytes",
        "test_a_recorders_trace_is_compacted_whole", "test_a_trace_without_checksums_gets_them",
        "test_damage_in_one_row_group_leaves_the_others",
        "test_hot_segments_stay_wide_until_they_are_full",
        "test_it_is_as_sound_after_some_of_it_was_read", "test_row_groups_stand_alone",
        "test_selections_find_the_same_rows", "test_texts_that_would_fill_the_memory_are_refused",
        "test_what_a_narrow_trace_has_is_told_without_its_texts",
        "test_whatever_the_text_it_comes_back",
    ),
    "unit/trace/test_reader.py": (
        "test_groups_are_a_sort_of_all_rows",
        "test_groups_are_right_whatever_the_size_of_windows_and_row_groups", "test_selections",
        "test_what_was_asked_before_changes_no_answer",
    ),
    "unit/trace/test_typed.py": ("test_whatever_else_arrives_is_read_the_same_or_left_to_extract",),
    "unit/trace/test_writer.py": (
        "test_a_killed_writer_loses_only_what_it_had_not_flushed",
        "test_any_object_survives_the_round_trip",
    ),
    "watch/test_follow.py": ("test_rows_come_once_and_in_order",),
    "watch/test_live.py": (
        "test_a_clock_that_is_set_is_no_silence", "test_a_divergence_is_told_long_before_the_end",
        "test_a_record_that_has_just_begun_is_judged",
        "test_a_recorders_clock_that_is_off_changes_nothing_while_it_grows",
        "test_findings_are_told_once_and_are_those_of_the_whole",
        "test_that_nobody_leads_is_told_once_until_somebody_does",
        "test_the_divergences_are_those_of_the_whole_each_once",
        "test_what_is_old_when_it_is_first_judged_is_told_once",
        "test_what_never_came_and_what_the_ttl_asks_for_are_told_meanwhile",
        "test_what_was_judged_as_a_whole_is_not_judged_again",
    ),
    "watch/test_watch_cli.py": (
        "test_a_rotation_takes_nothing_of_what_was_not_certain_yet",
        "test_it_says_what_replay_says_whatever_the_recorders_clock_showed",
        "test_metrics_say_what_was_told", "test_once_takes_in_no_row_of_what_is_judged_as_a_whole",
        "test_once_tells_all_that_diagnose_warns_of",
    ),
    "watch/test_watch_events.py": (
        "test_a_server_that_fails_now_and_then_has_it_in_the_end", "test_bad_input_is_one_sentence",
        "test_credentials_that_expire_are_read_again",
    ),
    "watch/test_watch_terminal.py": ("test_the_table_shows_what_was_found_last",),
    "whatif/test_cron_jobs.py": (
        "test_a_schedule_with_a_zone_is_refused_and_its_jobs_are_never_made",
        "test_forbid_waits_for_what_an_ending_waits_for",
        "test_the_document_keeps_its_promise_for_cron_jobs",
        "test_the_queue_starts_what_the_polling_controller_started_later",
    ),
    "whatif/test_gaps.py": ("test_only_what_a_gap_hides_is_not_told",),
    "whatif/test_proof.py": (
        "test_a_condition_more_is_a_difference_of_fields",
        "test_an_ending_that_waits_for_terminating_pods_comes_later",
        "test_annotations_of_the_stand_in_kubelet_are_not_read",
        "test_what_is_proved_came_true_on_a_real_control_plane",
    ),
    "whatif/test_three_worlds.py": (
        "test_a_life_that_was_cut_off_is_not_made_up", "test_the_delay_of_replacements_is_named",
        "test_what_is_told_came_true_on_a_real_control_plane",
    ),
    "whatif/test_upgrades.py": ("test_the_old_side_foretells_the_ticks_of_the_new_one",),
    "whatif/test_verb.py": (
        "test_a_time_is_asked_about_the_jobs_that_were_there", "test_bad_input_is_one_sentence",
        "test_more_tokens_are_a_question_as_well", "test_the_document_keeps_its_promise",
        "test_upgrade_is_the_same_question",
    ),
}  # fmt: skip
QUICK: dict[str, Kept] = {
    "mutation/test_witnesses.py::test_a_row_that_is_turned_over_is_contradicted_by_its_witness": Kept(
        every=1
    ),
    "attack/test_hostile_texts.py::test_an_agent_gets_them_as_data": Kept(every=3),
    "attack/test_outputs.py::test_each_escapes": Kept(
        (
            "info---output-table",
            "diagnose---output-table",
            "jobs---output-csv",
            "explain---output-json",
            "timeline---output-json",
            "compare---output-json",
            "who---output-json",
            "sql---output-json",
            "watch---output-lines",
            "replay---output-table",
            "whatif---output-json",
            "upgrade---output-wide",
            "cron lint---output-table",
            "export---format-perfetto",
        )
    ),
    "whatif/test_upgrades.py::test_each_page_says_what_the_table_says": Kept(every=20),
    "findings/test_reports.py::test_the_first_screen_says_what_is_right": Kept(
        ("17-node-shutdown",)
    ),
    "lies/test_lies.py::test_a_seed_plants_the_same_lie_again": Kept(every=8),
    "lies/test_lies.py::test_it_names_the_object_that_it_lies_about": Kept(every=8),
    "lies/test_lies.py::test_managed_fields_stay_what_they_were": Kept(every=8),
    "lies/test_lies.py::test_rows_that_stay_differ_only_where_the_kind_says": Kept(every=8),
    "replay/test_determinism.py::test_a_part_is_judged_as_it_is_in_the_whole": Kept(
        of=("v1.17.17-all",)
    ),
    "findings/test_one_answer.py::test_each_form_says_the_same": Kept(every=12),
    "attack/test_hostile_traces.py::test_a_directory_may_have_any_name": Kept(every=9),
    "attack/test_footers.py::test_a_footer_that_lies_is_not_believed": Kept(every=4),
    "attack/test_bombs.py::test_a_bomb_is_no_log": Kept(every=4),
    "attack/test_query_values.py::test_a_terminal_takes_every_value": NONE,
    "attack/test_full_disks.py::test_a_file_is_there_whole_or_not_at_all": Kept(every=5),
    "attack/test_footers.py::test_pages_that_cannot_be_decoded_are_damage": NONE,
    "attack/test_footers_that_abort.py::test_a_footer_that_would_abort_is_damage": Kept(every=5),
    "attack/test_pages.py::test_a_page_that_duckdb_alone_refuses_is_damage": Kept(("diagnose",)),
    "findings/test_clock_changes.py::test_explain_says_when_it_is_due_as_the_release_reads_it": (
        Kept(every=2)
    ),
    "sql/test_kept_cases.py::test_what_an_account_begins_with_is_kept": NONE,
    "sql/test_kept_cases.py::test_other_rules_find_other_things": NONE,
    "attack/test_edge_matrix.py::test_objects_without_names_or_labels": NONE,
    "attack/test_exits.py::test_whoever_ends_it_nothing_half_made_is_left": Kept(every=3),
    "findings/test_clock_changes.py::test_no_other_is": Kept(every=4),
    "findings/test_event_reports.py::test_what_events_alone_say_first": Kept(every=5),
    "findings/test_families.py::test_it_is_found": Kept(every=3),
    "findings/test_shown_pods.py::test_what_is_said_of_a_pod_in_a_table": Kept(every=4),
    "findings/test_who_and_what.py::test_a_container_that_is_put_in_is_not_looked_for_in_the_template": (
        Kept(every=3)
    ),
    "stores/test_ranges.py::test_a_directory_that_is_no_copy_of_this_process_asks_nobody": Kept(
        ("narrow",)
    ),
    "unit/cli/test_report.py::test_revisions_are_read_by_namespace_until_there_are_enough": NONE,
    "findings/test_refused_again.py::test_what_is_refused_again_and_again_is_told": Kept(
        ("a drain that hangs", "nothing but conflicts")
    ),
    "attack/test_hostile_texts.py::test_nothing_printed_is_obeyed": Kept(("info -o json",)),
    "lies/test_audit_lies.py::test_a_lie_in_an_audit_log_accuses_its_own_job": Kept(every=9),
    "record/test_credentials.py::test_no_credential_gets_out": Kept(("token",)),
    "record/test_fault_schedules.py::test_nothing_is_lost_silently": Kept(every=6),
    "record/test_redact.py::test_a_redacted_trace_replays_with_the_same_verdicts": Kept(
        ("v1.28.15-all-mode0",)
    ),
    "replay/test_cron_jobs_and_ttl.py::test_a_wrong_body_is_different_and_nothing_else": Kept(
        ("image-<lambda>-v1.17.17-all",)
    ),
    "replay/test_one_answer.py::test_all_say_the_same": Kept(("duplicate-pod",)),
    "replay/test_planted_lies.py::test_a_lie_about_an_old_controller_is_found": Kept(
        ("cron-suspended",)
    ),
    "replay/test_real_traces.py::test_an_untouched_trace_has_no_divergence": Kept(
        of=smallest_by_version()
    ),
    "replay/test_detected_version.py::test_the_range_holds_the_version_that_was_recorded": Kept(
        of=("v1.17.17-all", "v1.36.3-conflicts", "v1.25.4-twins")
    ),
    "replay/test_small_records.py::test_what_a_real_controller_did_is_no_divergence": Kept(
        (
            "a-lease-that-is-always-late",
            "status-refused-as-the-record-ends",
            "limit-zero-on-failure",
        )
    ),
    "simulate/test_law.py::test_a_simulated_trace_replays_without_a_divergence": Kept(every=10),
    "simulate/test_law.py::test_what_was_mended_stays_so": Kept(every=56),
    "unit/cli/test_completion.py::test_tab_completes": Kept(
        ("tracekit sql run --example backoff-wanted16",)
    ),
    "unit/cli/test_import_watch.py::test_recorded_traces_come_in_whole": Kept(every=20),
    "unit/cli/test_width.py::test_nothing_is_wider_than_the_terminal": Kept(every=30),
    "unit/trace/importers/test_audit_everywhere.py::test_alone": Kept(("incidents/counted-twice",)),
    "unit/trace/importers/test_audit_everywhere.py::test_with_the_record": Kept(
        ("incidents/counted-twice",)
    ),
    "unit/trace/importers/test_wrappers.py::test_a_wrapped_log_is_the_same_trace": Kept(
        ("aks-tsv",)
    ),
    "whatif/test_proof.py::test_the_same_rules_do_the_same": Kept(
        ("v1.36.3-restart", "v1.32.2-twins")
    ),
    "whatif/test_upgrades.py::test_the_old_side_foretells_the_new_one": Kept(
        ("suspended-without-work-outcome-JobManagedBy",)
    ),
    "replay/test_cron_jobs_and_ttl.py::test_a_ttl_deletion_long_after_its_time_is_late": Kept(
        of=("v1.17.17-all",)
    ),
    "replay/test_cron_jobs_and_ttl.py::test_an_event_of_nothing_is_extra": Kept(
        of=("v1.17.17-all",)
    ),
    "replay/test_cron_jobs_and_ttl.py::test_a_tick_taken_out_of_the_record_is_missing": Kept(
        ("failing-v1.17.17-all",)
    ),
    "replay/test_one_answer.py::test_every_verb_says_by_which_rules_it_judges": Kept(
        ("sql TRACE SELECT verdict FROM verdicts", "replay TRACE --diff")
    ),
    "replay/test_one_answer.py::test_other_verbs_know_no_namespace_that_is_not_there": Kept(
        every=2
    ),
    "replay/test_queue_order.py::test_no_sync_of_a_real_controller_overtakes_another": Kept(
        ("evicted-in-a-backlog",)
    ),
    "replay/test_views.py::test_a_view_has_no_divergence": Kept(
        ("polls every 60 s", "controllers and kubelets +3 s")
    ),
    "replay/test_scope.py::test_what_nobody_saw_is_not": Kept(
        ("view cron_ticks-all looked at only",)
    ),
    "replay/test_scope.py::test_what_is_watched_is_concluded_from": Kept(
        ("view cron_ticks", "view deletions")
    ),
    "attack/test_bombs.py::test_work_is_bounded_by_what_was_read": Kept(every=6),
    "attack/test_archives.py::test_what_is_whole_is_taken": Kept(("links and devices",)),
    "findings/test_advice_tried.py::test_what_is_advised_helps": Kept(("too short a deadline",)),
    "findings/test_outputs.py::test_an_incident_is_told_first_with_its_cause_above_it": Kept(
        ("counted-twice",)
    ),
    "findings/test_tracker_reports.py::test_what_is_said_first": Kept(("kubernetes#130881",)),
    "findings/test_tracker_reports.py::test_what_is_said_first_of_an_audit_log": Kept(
        ("helm#6741",)
    ),
    "findings/test_public_reports.py::test_a_stream_that_was_never_seen_has_no_time": Kept(
        ("kinds3",)
    ),
    "findings/test_situations.py::test_what_a_list_shows": Kept(
        ("an active pod that is not there",)
    ),
    "findings/test_causes.py::test_why_a_job_failed_is_one_finding": Kept(
        ("incidents/failed-pods-vanish",)
    ),
    "findings/test_release_bugs.py::test_no_advice_on_a_new_release_names_an_old_one": Kept(
        ("v1.36.3",)
    ),
    "scale/test_finding_curves.py::test_as_many_live_beside_a_pod_as_comparing_all_finds": Kept(
        every=6
    ),
    "scale/test_cron_answers.py::test_each_sync_has_the_want_that_comparing_all_finds": Kept(
        every=5
    ),
    "unit/cli/test_width.py::test_the_verdict_is_summed_up_in_five_lines_at_most": Kept(("clean",)),
    "unit/trace/importers/test_audit_everywhere.py::test_what_only_a_restart_explains_is_unknowable_without_leases": Kept(
        every=3
    ),
    "replay/test_views.py::test_a_constant_offset_of_the_recorders_clock_changes_no_verdict": Kept(
        every=3
    ),
    "attack/test_full_disks.py::test_a_trace_is_there_whole_or_not_at_all": Kept(("compact",)),
    "whatif/test_quotas.py::test_as_many_pods_are_let_live_as_the_record_shows": Kept(every=3),
    "whatif/test_cron_jobs.py::test_what_is_recorded_is_what_the_view_counts": Kept(
        of=("v1.36.3-conflicts",)
    ),
    "docs/test_incidents.py::test_a_page_shows_what_its_commands_print": Kept(("counted-twice",)),
    "packaging/test_tools.py::test_a_divergence_is_the_check": Kept(("some-2",)),
    "whatif/test_cron_jobs.py::test_the_same_rules_start_the_same": Kept(("v1.36.3-conflicts",)),
    "scale/test_processes.py::test_what_belongs_together_is_in_one_unit_and_all_is_in_some": Kept(
        ("v1.25.4-twins",)
    ),
    "scale/test_time_spans.py::test_what_was_not_compared_is_not_called_the_same": NONE,
    "unit/trace/importers/test_kinds.py::test_what_is_none_of_a_kind_is_refused_in_a_sentence": Kept(
        ("etcd-delta-another-json", "kshrk-empty", "kubectl-empty", "etcd-delta-binary")
    ),
    "unit/trace/importers/test_layouts.py::test_every_layout_is_the_same_objects": Kept(
        ("zst-None", "xz-utf-16-kubectl", "utf-16-be-None", "pretty-run-together-kubectl")
    ),
    "attack/test_outputs.py::test_each_page_escapes": Kept(("whatif",)),
    "unit/trace/importers/test_bundles.py::test_a_bundle_is_taken_as_it_comes": Kept(
        ("troubleshoot-folder", "must-gather-zip", "troubleshoot-w", "troubleshoot-w:gz")
    ),
    "unit/cli/test_next_commands.py::test_the_command_in_a_refusal_works": Kept(
        ("other kinds", "another description", "a pod's manifest", "journal entries cut")
    ),
    "unit/report/test_conclusion.py::test_the_first_line_is_the_conclusion": Kept(
        ("idx-0-7t26c-Complete after 7 s: 6 pods succeeded.",)
    ),
    "docs/test_incidents.py::test_nothing_diverges_on_an_incident": Kept(
        ("counted-twice", "missed-start")
    ),
    "sql/test_views.py::test_every_view_answers_as_documented": Kept(
        (
            "v1.36.3-all-verdicts",
            "v1.36.3-all-_deletions",
            "v1.36.3-all-divergences",
            "v1.36.3-all-missed_runs",
        )
    ),
    "unit/cli/test_main.py::test_a_name_that_no_file_can_have_is_one_sentence": Kept(
        (
            "import watch /dev/null -o LONG",
            "redact TRACE -o LONG",
            "info LONG",
            "sql TRACE SELECT 1 -f LONG",
        )
    ),
    "unit/trace/importers/test_formats.py::test_it_is_read_with_each_object": Kept(
        ("Logstash, parsed", "k8s_events, flat", "Datadog's CSV", "Events in Datadog's CSV")
    ),
    "unit/cli/test_report.py::test_hostile_names_stay_data_in_every_export": Kept(("otlp",)),
    "findings/test_batch_reports.py::test_what_an_audit_log_tells": Kept(("helm, hook-succeeded",)),
    "unit/trace/importers/test_registry.py::test_the_command_in_the_table_reads_such_a_file": Kept(
        ("etcd-delta", "kshrk", "sched-recorder", "kubectl-text")
    ),
    "unit/check/test_transitions.py::test_each_write_is_taken_for_what_it_was": Kept(
        (
            "died-among-creations-c0078-plain",
            "sync-of-seconds-k007-29922035",
            "deadline-after-a-refusal-c0042-deadline",
            "status-emptied-by-hand-c0103-restart",
        )
    ),
    "record/test_kubeconfig.py::test_aliases_that_stand_for_too_much_are_refused": Kept(
        ("itself", "aliases")
    ),
    "unit/check/test_one_job.py::test_one_change_has_its_verdicts": Kept(
        (
            "its last revisions are after the end of the record",
            "its pod never was",
            "an Event was lost, as client-go may",
        )
    ),
    "attack/test_nesting.py::test_an_item_of_a_list_leaves_the_others_readable": Kept(("300",)),
    "unit/trace/importers/test_wrappers.py::test_what_is_no_encoded_log_is_left_as_it_is": Kept(
        ("damaged",)
    ),
    "unit/check/test_one_cronjob.py::test_one_change_has_its_verdicts": Kept(
        (
            "the second run is not as the template has it",
            "the second run never was",
            "the first run outlives its limit",
        )
    ),
    "unit/controllers/job/test_malformed.py::test_junk_in_a_pod": Kept(("v1.17.17",)),
    "findings/test_tracker_reports.py::test_what_a_queue_may_not_change_is_told_by_the_release": Kept(
        ("the same, mended",)
    ),
    "sql/test_views.py::test_a_view_takes_what_is_made_for_it": Kept(
        ("waits", "conditions", "gaps", "endings")
    ),
    "findings/test_reports.py::test_a_pod_whose_job_is_in_no_list_is_left_with_its_finalizer": Kept(
        ("jobs.yaml",)
    ),
    "unit/trace/importers/test_strangers.py::test_one_sentence_says_what_to_do": Kept(
        (
            "kubectl-SimKube",
            "kubectl-Python's client",
            "kubectl-an empty list of Rancher",
            "kubectl-Python's print",
        )
    ),
    "attack/test_hostile_texts.py::test_no_cell_is_a_formula": Kept(("words0",)),
    "attack/test_hostile_texts.py::test_no_error_is_obeyed": Kept(
        (
            "replay --feature-gates EVIL",
            "replay -o EVIL",
            "replay --kubernetes-version EVIL",
            "replay --EVIL",
        )
    ),
    "sql/test_views.py::test_every_example_answers": Kept(
        (
            "v1.36.3-all-divergences",
            "empty-divergences",
            "v1.36.3-all-missed-runs",
            "empty-slowest-jobs",
        )
    ),
    "replay/test_cron_jobs_and_ttl.py::test_a_start_before_its_slot_is_early": Kept(
        ("v1.17.17-all",)
    ),
    "attack/test_bombs.py::test_what_is_in_an_archive_counts_for_it": Kept(
        ("bytes-plain-_tar", "lines-plain-_zip", "bytes-compressed-_zip", "bytes-compressed-_tar")
    ),
    "attack/test_queries.py::test_values_that_python_has_not_are_said": Kept(
        ("line", "json", "markdown")
    ),
    "replay/test_cron_jobs_and_ttl.py::test_a_clean_up_of_the_wrong_job_misses_the_right_one": Kept(
        ("v1.17.17-all",)
    ),
    "unit/test_plain_yaml.py::test_a_file_with_it_is_one_sentence": Kept(
        ("cron lint-.inf", "cron lint-!x y", "simulate-!!omap [b: 1", "simulate-!!int ''")
    ),
    "attack/test_queries.py::test_what_goes_wrong_as_it_is_fetched_is_ours": Kept(every=5),
    "attack/test_queries.py::test_the_program_itself_refuses": Kept(every=4),
}
QUICK |= {f"{path}::{name}": NONE for path, names in FULL.items() for name in names}


def cpu_s() -> float:
    """Processor time of this process and of its children that have ended."""
    of = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in of)


def too_dear(item: pytest.Item, spent_s: float) -> str | None:
    """What to say of a test of the quick tier that took more than it may; None of any other."""
    of_others = any(item.get_closest_marker(tier) for tier in ("full", "e2e", "nightly"))
    if of_others or spent_s <= QUICK_CPU_S:
        return None
    return (
        f"{spent_s:.1f} s of processor time, and a test of `make test` may take {QUICK_CPU_S:.0f}: "
        "make it smaller, or mark it `full` where a smaller one asks the same"
    )


#: The tests of the quick tier, by file and name, each with its parameters: what was collected.
quick: dict[str, list[dict[str, object]]] = {}


def mark(items: Sequence[pytest.Item]) -> None:
    """Give the tests of the full tier its marker.

    Raises:
        pytest.UsageError: the table keeps a parameter set that its test does not have.
    """
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        path, _, name = item.nodeid.partition("::")
        tests.setdefault(f"{path.removeprefix('tests/')}::{name.split('[', 1)[0]}", []).append(item)
    for key, found in tests.items():
        for item in _left_out(key, found):
            item.add_marker(pytest.mark.full)
        kept = [item for item in found if item.get_closest_marker("full") is None]
        quick[key] = [_parameters(item) for item in kept]
        if key in QUICK and QUICK[key] != NONE and len(found) > 1 and not kept:
            raise pytest.UsageError(f"tests/support/tiers.py keeps none of {key}'s parameter sets")


def _left_out(key: str, found: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The parameter sets of one test that only the full tier has."""
    kept = QUICK.get(key)
    if kept is not None:
        return [item for turn, item in enumerate(found) if not _is_kept(kept, turn, item)]
    few = FEWER.get(key.partition("::")[0], WITNESSES)
    of = [_record(item) for item in found]
    records = {record for record in of if record is not None}
    if len(records) <= len(few):
        return []
    asked = records.intersection(few) or {min(records, key=_size)}
    return [
        item
        for item, record in zip(found, of, strict=True)
        if record is not None and record not in asked
    ]


def _is_kept(kept: Kept, turn: int, item: pytest.Item) -> bool:
    name = item.name.partition("[")[2].removesuffix("]")
    return bool(
        (kept.every and turn % kept.every == 0) or name in kept.ids or _record(item) in kept.of
    )


def _record(item: pytest.Item) -> str | None:
    """The shipped record that a test is about."""
    return next((str(value) for value in _parameters(item).values() if value in ALL), None)


def _parameters(item: pytest.Item) -> dict[str, object]:
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else dict(callspec.params)
