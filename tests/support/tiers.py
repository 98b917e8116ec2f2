"""Which tests run in `make test` and which only in `make test-all`.

`make test` holds each lie, gate, version and verb once, on its smallest witness. What asks the same
of further records, and what waits long for processes and servers, has the marker `full`. A test is
in this table, or has the marker itself; all others are in both tiers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Kept:
    """The parameter sets of one test that stay in the quick tier.

    `ids` names them as pytest does; with `every`, each `every`-th one in the order of collection
    stays as well. Neither: the whole test is in the full tier.
    """

    ids: Collection[str] = ()
    every: int = 0


NONE = Kept()

#: The smallest records that are of different versions and together hold every kind of action.
SMALL = ("v1.32.2-twins", "v1.17.17-all", "v1.36.3-restart", "duplicate-pod", "deadline-overrun")

QUICK: dict[str, Kept] = {
    "api/test_docs.py::test_the_examples_of_the_api_run": NONE,
    "mcp/test_questions.py::test_the_right_answer_is_what_the_tools_say": Kept(every=6),
    "attack/test_bit_flips.py::test_no_flip_changes_what_a_command_says": Kept(("narrow",)),
    "attack/test_bit_flips.py::test_no_flip_reaches_a_reader": Kept(("narrow",)),
    "attack/test_hostile_texts.py::test_a_terminal_obeys_nothing": Kept(every=3),
    "attack/test_hostile_traces.py::test_pages_that_are_nearly_nothing_compressed": NONE,
    "attack/test_losses.py::test_a_lost_segment_invents_nothing_and_hides_little": Kept(every=3),
    "attack/test_losses.py::test_what_lies_outside_of_the_loss_is_judged_as_before": NONE,
    "docs/test_mistakes.py::test_a_mistake_is_one_sentence_and_the_page_says_what_is_printed": NONE,
    "docs/test_notebook.py::test_the_stored_outputs_are_what_the_cells_print": NONE,
    "findings/test_outputs.py::test_a_lie_is_named_in_the_first_three_lines": Kept(every=2),
    "lies/test_audit_lies.py::test_a_lie_in_an_audit_log_accuses_its_own_job": Kept(every=3),
    "minimise/test_minimise.py::test_each_kind_of_divergence_is_shown_alone": Kept(
        ("v1.36.3-all-TK157", "v1.36.3-churn7-TK126", "v1.36.3-all-TK136")
    ),
    "minimise/test_minimise.py::test_the_command_redacts_and_tells_how_it_goes": NONE,
    "mutation/test_witnesses.py::test_a_row_that_is_turned_over_is_contradicted_by_its_witness": Kept(
        every=2
    ),
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
    "replay/test_cron_jobs_and_ttl.py::test_a_record_that_ends_anywhere_has_no_divergence": Kept(
        every=3
    ),
    "replay/test_cron_jobs_and_ttl.py::test_a_wrong_body_is_different_and_nothing_else": Kept(
        every=3
    ),
    "replay/test_determinism.py::test_hash_seeds_change_no_byte": Kept(every=2),
    "replay/test_determinism.py::test_the_order_among_rows_of_the_same_time_changes_no_byte": Kept(
        every=2
    ),
    "replay/test_erasures.py::test_a_cut_record_has_no_divergence": Kept(every=3),
    "replay/test_forced.py::test_a_search_without_these_caches_finds_others_only_where_it_is_said": NONE,
    "replay/test_formats_agree.py::test_a_verb_says_the_same_of_both": Kept(every=3),
    "replay/test_one_answer.py::test_a_part_of_the_verdicts_is_a_part_of_the_same_verdicts": Kept(
        every=4
    ),
    "replay/test_one_answer.py::test_all_say_the_same": Kept((*SMALL, "cron-early")),
    "replay/test_planted_lies.py::test_a_lie_about_an_old_controller_is_found": Kept(every=16),
    "replay/test_planted_lies.py::test_a_lie_in_a_trace_on_disk_is_judged_alike": Kept(every=3),
    "replay/test_real_traces.py::test_an_untouched_trace_has_no_divergence": Kept(every=2),
    "replay/test_recorded_gates.py::test_as_another_version_the_defaults_of_the_recorded_one_do_not_count": NONE,
    "replay/test_small_records.py::test_what_a_real_controller_did_is_no_divergence": Kept(every=3),
    "scale/test_failures.py::test_a_scheduler_that_dies_is_one_sentence": NONE,
    "scale/test_failures.py::test_a_scheduler_without_workers_is_one_sentence": NONE,
    "scale/test_many.py::test_a_bucket_under_dask_with_a_worker_killed_and_a_store_that_fails": NONE,
    "scale/test_many.py::test_dask_workers_answer_with_the_same_bytes": NONE,
    "scale/test_many.py::test_what_other_rules_would_have_done_is_asked_of_each_trace": NONE,
    "scale/test_processes.py::test_a_killed_process_costs_a_retry_and_a_poison_task_itself": NONE,
    "scale/test_processes.py::test_a_process_that_dies_before_there_is_work_is_replaced": NONE,
    "scale/test_processes.py::test_pieces_say_what_the_whole_says": Kept(("v1.25.4-twins",)),
    "scale/test_processes.py::test_units_read_alone_say_the_same": Kept(every=3),
    "simulate/test_law.py::test_a_simulated_trace_replays_without_a_divergence": Kept(every=2),
    "simulate/test_law.py::test_what_was_mended_stays_so": Kept(every=7),
    "sql/test_views.py::test_every_example_answers": Kept(every=5),
    "sql/test_views.py::test_every_view_answers_as_documented": Kept(every=5),
    "stores/test_stores.py::test_every_command_says_of_a_url_what_it_says_of_the_directory": Kept(
        every=3
    ),
    "unit/cli/test_completion.py::test_tab_completes": Kept(every=4),
    "unit/cli/test_import_watch.py::test_recorded_traces_come_in_whole": Kept(every=5),
    "unit/cli/test_main.py::test_a_reader_that_goes_is_neither_a_divergence_nor_an_error": Kept(
        every=3
    ),
    "unit/cli/test_report_browser.py::test_nothing_is_broken_at_any_width": Kept(every=5),
    "unit/cli/test_width.py::test_nothing_is_wider_than_the_terminal": Kept(every=3),
    "unit/test_stopping.py::test_an_event_would_not_do": NONE,
    "unit/trace/importers/test_audit.py::test_a_log_that_begins_midway_accuses_nobody": Kept(
        every=2
    ),
    "unit/trace/importers/test_audit.py::test_what_kubelets_sent_is_as_good_as_what_they_were_answered": Kept(
        every=3
    ),
    "unit/trace/importers/test_audit_everywhere.py::test_alone": Kept(every=5),
    "unit/trace/importers/test_audit_everywhere.py::test_with_the_record": Kept(every=5),
    "unit/trace/importers/test_blocks.py::test_blocks_of_any_size_make_the_same_trace": Kept(
        every=2
    ),
    "unit/trace/importers/test_blocks.py::test_what_is_looked_at_all_at_once_is_what_each_row_is": NONE,
    "unit/trace/importers/test_callers.py::test_actors_are_filled_in_and_none_is_wrong": Kept(
        every=2
    ),
    "unit/trace/importers/test_wrappers.py::test_a_wrapped_log_is_the_same_trace": Kept(every=3),
    "unit/trace/test_compact.py::test_stopping_anywhere_loses_nothing": Kept(every=3),
    "unit/trace/test_merge.py::test_what_either_saw_is_there_and_only_what_neither_saw_is_a_gap": Kept(
        every=3
    ),
    "unit/trace/test_narrow.py::test_texts_that_would_fill_the_memory_are_refused": NONE,
    "watch/test_live.py::test_the_divergences_are_those_of_the_whole_each_once": NONE,
    "watch/test_live.py::test_what_never_came_and_what_the_ttl_asks_for_are_told_meanwhile": Kept(
        every=3
    ),
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
    "whatif/test_three_worlds.py::test_what_is_told_came_true_on_a_real_control_plane": Kept(
        every=2
    ),
    "whatif/test_upgrades.py::test_the_old_side_foretells_the_new_one": Kept(every=3),
    "whatif/test_verb.py::test_a_time_is_asked_about_the_jobs_that_were_there": NONE,
    "whatif/test_verb.py::test_more_tokens_are_a_question_as_well": NONE,
    "whatif/test_verb.py::test_the_document_keeps_its_promise": NONE,
}


def mark(items: Sequence[pytest.Item]) -> None:
    """Give the tests of the full tier its marker.

    Raises:
        pytest.UsageError: the table keeps a parameter set that its test does not have.
    """
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        path, _, name = item.nodeid.partition("::")
        tests.setdefault(f"{path.removeprefix('tests/')}::{name.split('[', 1)[0]}", []).append(item)
    for key in tests.keys() & QUICK.keys():
        kept = QUICK[key]
        ids = [item.name.partition("[")[2].removesuffix("]") for item in tests[key]]
        chosen = set(kept.ids)
        if kept.every:
            chosen.update(ids[:: kept.every])
        if len(ids) > 1 and kept != NONE and not chosen & set(ids):
            raise pytest.UsageError(f"tests/support/tiers.py keeps none of {key}'s parameter sets")
        for item, name in zip(tests[key], ids, strict=True):
            if name not in chosen:
                item.add_marker(pytest.mark.full)
