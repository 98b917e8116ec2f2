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
QUICK_CPU_S = 20.0

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


QUICK: dict[str, Kept] = {
    "unit/trace/importers/test_encodings.py::test_every_encoding_is_the_same_rows": Kept(
        ("audit",)
    ),
    "mutation/test_witnesses.py::test_a_row_that_is_turned_over_is_contradicted_by_its_witness": Kept(
        every=1
    ),
    "unit/cli/test_report_browser.py::test_ten_thousand_jobs_are_one_page": NONE,
    "unit/cli/test_report_browser.py::test_ten_thousand_pods_open_and_scroll": NONE,
    "attack/test_queries.py::test_no_attack_changes_anything": NONE,
    "replay/test_misfit.py::test_a_lie_in_each_tenth_job_is_no_misfit_and_one_in_each_is": NONE,
    "attack/test_hostile_texts.py::test_an_agent_gets_them_as_data": Kept(every=3),
    "attack/test_hostile_traces.py::test_columns_that_no_writer_makes": Kept(every=4),
    "attack/test_losses.py::test_a_trace_that_has_lost_its_end_is_damaged_and_not_short": Kept(
        every=3
    ),
    "attack/test_modes.py::test_nobody_else_reads_what_is_written": Kept(every=2),
    "attack/test_outputs.py::test_each_escapes": Kept(every=2),
    "whatif/test_upgrades.py::test_each_page_says_what_the_table_says": Kept(every=20),
    "whatif/test_upgrades.py::test_the_old_side_foretells_the_ticks_of_the_new_one": Kept(every=20),
    "replay/test_judging_in_pieces.py::test_what_is_kept_on_this_machine_is_what_would_be_judged": Kept(
        every=3
    ),
    "replay/test_judging_in_pieces.py::test_a_part_is_counted_as_it_would_be_kept": NONE,
    "replay/test_judging_in_pieces.py::test_what_is_only_counted_is_what_would_be_kept": NONE,
    "findings/test_reports.py::test_the_first_screen_says_what_is_right": Kept(every=8),
    "lies/test_lies.py::test_a_seed_plants_the_same_lie_again": Kept(every=8),
    "lies/test_lies.py::test_it_names_the_object_that_it_lies_about": Kept(every=8),
    "lies/test_lies.py::test_managed_fields_stay_what_they_were": Kept(every=8),
    "lies/test_lies.py::test_rows_that_stay_differ_only_where_the_kind_says": Kept(every=8),
    "lies/test_lies.py::test_streams_stay_in_the_order_of_the_store": Kept(every=8),
    "unit/cli/test_completion.py::test_tab_lets_the_shell_list_paths": Kept(every=8),
    "stores/test_ranges.py::test_a_namespace_costs_its_own_row_groups": Kept(("narrow-jobs",)),
    "replay/test_determinism.py::test_a_part_is_judged_as_it_is_in_the_whole": Kept(
        of=("v1.17.17-all",)
    ),
    "findings/test_one_answer.py::test_each_form_says_the_same": Kept(every=12),
    "attack/test_hostile_traces.py::test_a_directory_may_have_any_name": Kept(every=9),
    "attack/test_hostile_traces.py::test_a_header_of_any_shape": Kept(every=9),
    "attack/test_footers.py::test_a_footer_that_lies_is_not_believed": Kept(every=4),
    "attack/test_fuzz.py::test_a_field_of_another_type": NONE,
    "attack/test_bombs.py::test_what_is_imported_is_replayed": NONE,
    "attack/test_bombs.py::test_a_bomb_is_no_log": Kept(every=4),
    "attack/test_bombs.py::test_a_cut_is_said_and_what_came_before_it_is_kept": NONE,
    "attack/test_hostile_texts.py::test_nothing_printed_is_obeyed": Kept(every=16),
    "api/test_one_answer.py::test_explain_says_of_each_job_what_diagnose_says": NONE,
    "api/test_docs.py::test_the_examples_of_the_api_run": NONE,
    "mcp/test_questions.py::test_the_right_answer_is_what_the_tools_say": Kept(every=14),
    "attack/test_bit_flips.py::test_no_flip_changes_what_a_command_says": Kept(("narrow-4",)),
    "attack/test_bit_flips.py::test_no_flip_reaches_a_reader": NONE,
    "attack/test_hostile_texts.py::test_a_terminal_obeys_nothing": Kept(every=6),
    "attack/test_hostile_traces.py::test_pages_that_are_nearly_nothing_compressed": NONE,
    "attack/test_losses.py::test_a_lost_segment_invents_nothing_and_hides_little": NONE,
    "attack/test_losses.py::test_what_lies_outside_of_the_loss_is_judged_as_before": NONE,
    "docs/test_mistakes.py::test_a_mistake_is_one_sentence_and_the_page_says_what_is_printed": NONE,
    "docs/test_notebook.py::test_the_stored_outputs_are_what_the_cells_print": NONE,
    "findings/test_outputs.py::test_a_lie_is_named_in_the_first_three_lines": NONE,
    "lies/test_audit_lies.py::test_a_lie_in_an_audit_log_accuses_its_own_job": Kept(every=9),
    "minimise/test_minimise.py::test_each_kind_of_divergence_is_shown_alone": NONE,
    "minimise/test_minimise.py::test_the_command_redacts_and_tells_how_it_goes": NONE,
    "record/test_compaction.py::test_never_two_on_one_trace": Kept(("limits0",)),
    "record/test_container_logs.py::test_a_recording_with_logs": NONE,
    "record/test_credentials.py::test_no_credential_gets_out": Kept(("token", "exec")),
    "record/test_fault_schedules.py::test_nothing_is_lost_silently": Kept(every=6),
    "record/test_judge_beside.py::test_on_a_terminal_it_stands_above_the_recorders_table": NONE,
    "record/test_kills.py::test_kills_lose_nothing_that_was_flushed": NONE,
    "record/test_record_cli.py::test_a_damaged_trace_does_not_stop_a_rotating_recorder": NONE,
    "record/test_record_cli.py::test_a_dead_stream_makes_the_status_non_zero": NONE,
    "record/test_record_cli.py::test_a_full_disk_is_one_sentence_and_loses_nothing_flushed": NONE,
    "record/test_record_cli.py::test_a_full_volume_is_freed_of_expired_traces_before_anything_is_written": NONE,
    "record/test_record_cli.py::test_a_recording_is_redacted_in_all_that_it_writes": NONE,
    "record/test_record_cli.py::test_append_after_compaction_has_gaps_and_synthesised_deletes": NONE,
    "record/test_record_cli.py::test_rotated_traces_are_continued_and_expire": NONE,
    "record/test_record_cli.py::test_rotation_opens_every_trace_with_what_lives": NONE,
    "record/test_redact.py::test_a_redacted_trace_replays_with_the_same_verdicts": Kept(every=2),
    "record/test_uploading.py::test_a_store_that_is_away_costs_nothing": NONE,
    "replay/test_bad_input.py::test_a_clock_that_goes_back_is_said_and_loses_nothing": NONE,
    "replay/test_cron_jobs_and_ttl.py::test_a_record_that_ends_anywhere_has_no_divergence": NONE,
    "replay/test_cron_jobs_and_ttl.py::test_a_wrong_body_is_different_and_nothing_else": Kept(
        every=7
    ),
    "replay/test_determinism.py::test_hash_seeds_change_no_byte": NONE,
    "replay/test_determinism.py::test_the_order_among_rows_of_the_same_time_changes_no_byte": Kept(
        of=("v1.17.17-all",)
    ),
    "replay/test_erasures.py::test_a_cut_record_has_no_divergence": Kept(every=16),
    "replay/test_forced.py::test_a_search_without_these_caches_finds_others_only_where_it_is_said": NONE,
    "replay/test_formats_agree.py::test_a_verb_says_the_same_of_both": Kept(("jsonl",)),
    "replay/test_one_answer.py::test_a_part_of_the_verdicts_is_a_part_of_the_same_verdicts": Kept(
        every=16
    ),
    "replay/test_one_answer.py::test_all_say_the_same": Kept(("duplicate-pod", "pod-removed")),
    "replay/test_planted_lies.py::test_a_lie_about_an_old_controller_is_found": Kept(every=64),
    "replay/test_planted_lies.py::test_a_lie_in_a_trace_on_disk_is_judged_alike": Kept(
        ("release-missing",)
    ),
    "replay/test_real_traces.py::test_an_untouched_trace_has_no_divergence": Kept(
        of=smallest_by_version()
    ),
    "replay/test_detected_version.py::test_the_range_holds_the_version_that_was_recorded": Kept(
        of=("v1.17.17-all", "v1.36.3-conflicts", "v1.25.4-twins")
    ),
    "replay/test_recorded_gates.py::test_as_another_version_the_defaults_of_the_recorded_one_do_not_count": NONE,
    "replay/test_small_records.py::test_what_a_real_controller_did_is_no_divergence": Kept(every=9),
    "scale/test_failures.py::test_a_scheduler_that_dies_is_one_sentence": NONE,
    "scale/test_failures.py::test_a_scheduler_without_workers_is_one_sentence": NONE,
    "scale/test_many.py::test_a_bucket_under_dask_with_a_worker_killed_and_a_store_that_fails": NONE,
    "scale/test_many.py::test_dask_workers_answer_with_the_same_bytes": NONE,
    "scale/test_many.py::test_what_other_rules_would_have_done_is_asked_of_each_trace": NONE,
    "scale/test_processes.py::test_a_killed_process_costs_a_retry_and_a_poison_task_itself": NONE,
    "scale/test_processes.py::test_a_process_that_dies_before_there_is_work_is_replaced": NONE,
    "scale/test_processes.py::test_pieces_say_what_the_whole_says": Kept(("v1.25.4-twins",)),
    "scale/test_processes.py::test_units_read_alone_say_the_same": NONE,
    "simulate/test_law.py::test_a_simulated_trace_replays_without_a_divergence": Kept(every=10),
    "simulate/test_law.py::test_what_was_mended_stays_so": Kept(every=56),
    "stores/test_stores.py::test_every_command_says_of_a_url_what_it_says_of_the_directory": Kept(
        every=6
    ),
    "unit/cli/test_completion.py::test_tab_completes": Kept(every=8),
    "unit/cli/test_import_watch.py::test_recorded_traces_come_in_whole": Kept(every=20),
    "unit/cli/test_main.py::test_a_reader_that_goes_is_neither_a_divergence_nor_an_error": Kept(
        every=12
    ),
    "unit/cli/test_report_browser.py::test_nothing_is_broken_at_any_width": Kept(every=18),
    "unit/cli/test_width.py::test_nothing_is_wider_than_the_terminal": Kept(every=10),
    "unit/test_stopping.py::test_an_event_would_not_do": NONE,
    "unit/trace/importers/test_audit.py::test_a_log_that_begins_midway_accuses_nobody": Kept(
        every=4
    ),
    "unit/trace/importers/test_audit.py::test_what_kubelets_sent_is_as_good_as_what_they_were_answered": Kept(
        every=3
    ),
    "unit/trace/importers/test_audit_everywhere.py::test_alone": Kept(every=12),
    "unit/trace/importers/test_audit_everywhere.py::test_with_the_record": Kept(every=12),
    "unit/trace/importers/test_blocks.py::test_blocks_of_any_size_make_the_same_trace": Kept(
        every=4
    ),
    "unit/trace/importers/test_blocks.py::test_what_is_looked_at_all_at_once_is_what_each_row_is": NONE,
    "unit/trace/importers/test_callers.py::test_actors_are_filled_in_and_none_is_wrong": NONE,
    "unit/trace/importers/test_wrappers.py::test_a_wrapped_log_is_the_same_trace": Kept(
        (
            "webhook",
            "pubsub",
            "kinesis",
            "eks-export",
            "aks-table",
            "aks-tsv",
            "shipper",
            "fluent-bit-merged",
            "splunk-raw",
            "elastic",
            "datadog",
            "loki-api",
            "journal-export",
            "eks-text",
            "otlp",
        )
    ),
    "unit/trace/test_compact.py::test_stopping_anywhere_loses_nothing": Kept(every=3),
    "unit/trace/test_merge.py::test_what_either_saw_is_there_and_only_what_neither_saw_is_a_gap": Kept(
        every=3
    ),
    "unit/trace/test_narrow.py::test_texts_that_would_fill_the_memory_are_refused": NONE,
    "watch/test_live.py::test_the_divergences_are_those_of_the_whole_each_once": NONE,
    "watch/test_live.py::test_what_never_came_and_what_the_ttl_asks_for_are_told_meanwhile": NONE,
    "watch/test_watch_events.py::test_a_server_that_fails_now_and_then_has_it_in_the_end": NONE,
    "watch/test_watch_events.py::test_credentials_that_expire_are_read_again": NONE,
    "whatif/test_proof.py::test_a_condition_more_is_a_difference_of_fields": NONE,
    "whatif/test_proof.py::test_an_ending_that_waits_for_terminating_pods_comes_later": NONE,
    "whatif/test_proof.py::test_annotations_of_the_stand_in_kubelet_are_not_read": NONE,
    "whatif/test_proof.py::test_the_same_rules_do_the_same": Kept(
        ("v1.36.3-restart", "v1.32.2-twins")
    ),
    "whatif/test_proof.py::test_what_is_proved_came_true_on_a_real_control_plane": NONE,
    "whatif/test_three_worlds.py::test_the_delay_of_replacements_is_named": NONE,
    "whatif/test_three_worlds.py::test_what_is_told_came_true_on_a_real_control_plane": NONE,
    "whatif/test_upgrades.py::test_the_old_side_foretells_the_new_one": Kept(every=20),
    "whatif/test_verb.py::test_a_time_is_asked_about_the_jobs_that_were_there": NONE,
    "whatif/test_verb.py::test_more_tokens_are_a_question_as_well": NONE,
    "whatif/test_verb.py::test_the_document_keeps_its_promise": NONE,
    "replay/test_planted_lies.py::test_what_is_remembered_of_a_key_is_what_is_said_of_it_again": Kept(
        ("cron-job-removed-v1.23.17-all",)
    ),
    "replay/test_planted_lies.py::test_the_untouched_record_says_nothing": Kept(
        of=("v1.28.15-all",)
    ),
    "replay/test_planted_lies.py::test_a_lie_that_was_missed_is_found": Kept(every=4),
    "replay/test_detected_version.py::test_what_hangs_on_the_version_is_unknowable": Kept(
        of=("v1.36.3-conflicts",)
    ),
    "replay/test_detected_version.py::test_a_lie_is_one_by_all_versions_that_fit": Kept(
        ("status-ready-high",)
    ),
    "replay/test_judging_in_pieces.py::test_a_lie_in_a_growing_record_is_told": Kept(
        ("sync-late",)
    ),
    "replay/test_judging_in_pieces.py::test_a_growing_record_gets_the_verdicts_of_the_whole": Kept(
        ("900",)
    ),
    "replay/test_misfit.py::test_a_record_of_few_jobs_is_one_finding_too": NONE,
    "replay/test_cron_jobs_and_ttl.py::test_a_record_that_begins_in_the_middle_has_no_divergence": Kept(
        of=("v1.17.17-all",)
    ),
    "replay/test_cron_jobs_and_ttl.py::test_a_ttl_deletion_long_after_its_time_is_late": Kept(
        of=("v1.17.17-all",)
    ),
    "replay/test_cron_jobs_and_ttl.py::test_an_event_of_nothing_is_extra": Kept(
        of=("v1.17.17-all",)
    ),
    "replay/test_cron_jobs_and_ttl.py::test_a_tick_taken_out_of_the_record_is_missing": Kept(
        ("failing-v1.17.17-all", "replace-v1.36.3-all")
    ),
    "replay/test_cron_jobs_and_ttl.py::test_a_schedule_without_a_zone_is_read_in_that_of_the_process": Kept(
        of=("v1.17.17-all",)
    ),
    "replay/test_bad_input.py::test_a_distribution_replays_as_the_version_that_it_is_built_from": Kept(
        ("v1.36.3+k3s1",)
    ),
    "replay/test_bad_input.py::test_repeated_and_disordered_observations_change_no_verdict": Kept(
        ("_swapped",)
    ),
    "replay/test_ambiguous.py::test_an_event_that_begins_with_two_is_not_simply_explained": Kept(
        ("v1.28.15-all-774411",)
    ),
    "replay/test_one_answer.py::test_every_verb_says_by_which_rules_it_judges": Kept(every=3),
    "replay/test_one_answer.py::test_other_verbs_know_no_namespace_that_is_not_there": Kept(
        every=2
    ),
    "replay/test_queue_order.py::test_no_sync_of_a_real_controller_overtakes_another": Kept(
        ("v1.36.3-churn7", "evicted-in-a-backlog")
    ),
    "replay/test_retry_timing.py::test_a_retry_that_nothing_can_have_woken_yet_is_early": Kept(
        ("4-True",)
    ),
    "replay/test_views.py::test_a_view_has_no_divergence": Kept(every=10),
    "replay/test_scope.py::test_what_nobody_saw_is_not": Kept(every=8),
    "replay/test_scope.py::test_what_is_watched_is_concluded_from": Kept(every=3),
    "replay/test_repeated_endings.py::test_the_end_of_a_job_told_twice": Kept(every=3),
    "attack/test_edge_matrix.py::test_a_handful": NONE,
    "attack/test_edges.py::test_a_job_may_have_no_time_at_all": NONE,
    "attack/test_edges.py::test_a_verb_takes_it": Kept(every=3),
    "attack/test_bombs.py::test_work_is_bounded_by_what_was_read": Kept(every=6),
    "attack/test_archives.py::test_what_is_whole_is_taken": Kept(every=3),
    "attack/test_edges.py::test_a_job_may_ask_for_two_thousand_million_pods": Kept(("v1.36.3",)),
    "findings/test_admission.py::test_what_is_said_first_and_by_explain": Kept(every=4),
    "findings/test_parts.py::test_findings_do_not_depend_on_the_parts": NONE,
    "findings/test_advice_tried.py::test_what_is_advised_helps": Kept(every=4),
    "findings/test_outputs.py::test_an_incident_is_told_first_with_its_cause_above_it": Kept(
        every=4
    ),
    "findings/test_left_messages.py::test_explain_says_the_same": Kept(every=3),
    "findings/test_tracker_reports.py::test_what_is_said_first": Kept(every=2),
    "findings/test_tracker_reports.py::test_what_is_said_first_of_an_audit_log": Kept(every=3),
    "findings/test_public_reports.py::test_a_stream_that_was_never_seen_has_no_time": Kept(every=3),
    "findings/test_situations.py::test_what_a_list_shows": Kept(every=2),
    "unit/answers/test_commands.py::test_no_blank_is_left_to_fill_in": Kept(every=8),
    "findings/test_causes.py::test_why_a_job_failed_is_one_finding": Kept(
        ("incidents/failed-pods-vanish",)
    ),
    "findings/test_release_bugs.py::test_no_advice_on_a_new_release_names_an_old_one": Kept(
        ("v1.36.3",)
    ),
    "sql/test_questions.py::test_closed_columns_compare_without_regard_to_case": Kept(every=4),
    "sql/test_session.py::test_nothing_but_reading_the_trace_is_possible": Kept(every=2),
    "unit/cli/test_one_stream_alone.py::test_what_cannot_be_judged_has_no_green": Kept(every=4),
    "scale/test_finding_curves.py::test_as_many_live_beside_a_pod_as_comparing_all_finds": Kept(
        every=6
    ),
    "scale/test_cron_answers.py::test_each_sync_has_the_want_that_comparing_all_finds": Kept(
        every=5
    ),
    "unit/cli/test_width.py::test_the_verdict_is_summed_up_in_five_lines_at_most": Kept(("clean",)),
    "unit/trace/importers/test_bundles.py::test_an_archive_in_an_archive_is_opened": Kept(every=7),
    "unit/trace/importers/test_fuzz.py::test_what_comes_in_is_kept_or_named": Kept(every=3),
    "unit/trace/importers/test_fuzz.py::test_what_is_broken_is_a_sentence_or_a_trace": Kept(
        every=3
    ),
    "unit/trace/importers/test_fuzz_stores.py::test_each_revision_is_kept_or_named": Kept(every=3),
    "unit/trace/importers/test_fuzz_stores.py::test_what_is_broken_is_a_sentence_or_a_trace": Kept(
        every=3
    ),
    "unit/trace/importers/test_kcm_log.py::test_what_a_store_gives_back_is_the_same_log": Kept(
        every=5
    ),
    "unit/trace/importers/test_audit_everywhere.py::test_what_only_a_restart_explains_is_unknowable_without_leases": Kept(
        every=3
    ),
    "replay/test_views.py::test_a_constant_offset_of_the_recorders_clock_changes_no_verdict": Kept(
        every=3
    ),
    "replay/test_kept_verdicts.py::test_what_is_kept_is_what_a_new_judge_says": Kept(every=3),
    "attack/test_full_disks.py::test_a_trace_is_there_whole_or_not_at_all": Kept(every=3),
    "findings/test_matrix.py::test_the_table_says_what_is_found": Kept(every=3),
    "findings/test_admission.py::test_the_view_of_waits_says_the_same": Kept(every=2),
    "unit/cli/test_config.py::test_what_may_be_given_several_times_is_a_word_or_a_list": Kept(
        every=2
    ),
    "simulate/test_hidden_timers.py::test_a_deadline_that_passed_before_the_pod_ended": Kept(
        every=4
    ),
    "simulate/test_combined_events.py::test_it_is_believed_no_further": Kept(every=2),
    "scale/test_time_spans.py::test_years_of_nothing_are_not_counted_out": Kept(every=3),
    "whatif/test_quotas.py::test_as_many_pods_are_let_live_as_the_record_shows": Kept(every=3),
    "whatif/test_cron_jobs.py::test_what_is_recorded_is_what_the_view_counts": Kept(
        of=("v1.36.3-conflicts",)
    ),
    "docs/test_incidents.py::test_a_page_shows_what_its_commands_print": Kept(("counted-twice",)),
    "packaging/test_tools.py::test_a_divergence_is_the_check": Kept(("some-2",)),
    "stores/test_ranges.py::test_to_open_a_trace_takes_the_ends_of_its_files": Kept(("narrow",)),
    "stores/test_ranges.py::test_a_unit_costs_what_its_jobs_take_and_is_judged_alike": Kept(
        ("wide",)
    ),
    "stores/test_ranges.py::test_what_was_spoilt_in_the_copy_is_fetched_again": Kept(("wide",)),
    "stores/test_ranges.py::test_a_time_costs_its_own_row_groups": Kept(("wide",)),
    "watch/test_live.py::test_a_recorders_clock_that_is_off_changes_nothing_while_it_grows": NONE,
    "mcp/test_server.py::test_each_sentence_carries_what_it_rests_on": Kept(every=4),
}


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
