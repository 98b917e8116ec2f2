"""A sync between the informer's change of its cache and the handlers' running."""

from __future__ import annotations

from pathlib import Path

from tests.support.raw_histories import histories_of
from tests.support.traces import json_lines
from tracekit.diff.judge import judge_key
from tracekit.eras.era import Era
from tracekit.eras.job import JobRules
from tracekit.replay.history import History
from tracekit.replay.run_context import RunContext

#: One Job of a churn run on 1.20.15: a sync finds a new pod in its cache, and waits for it still.
RECORD = Path(__file__).parents[1] / "data" / "replay" / "handlers-behind.jsonl.zst"
RULES = JobRules.of(Era.resolve("v1.20.15"))


def job() -> tuple[History, RunContext]:
    histories, run_context = histories_of(list(json_lines(RECORD)))
    (history,) = histories
    return history, run_context


def test_a_pod_may_be_in_the_cache_while_its_creation_is_still_waited_for() -> None:
    history, run_context = job()
    judged = judge_key(history, RULES, run_context)
    assert [j for j in judged.judgements if j.divergent] == []
    lagging = [sync for sync in judged.replay.syncs if sync.handlers_behind]
    assert len(lagging) == 1


def test_no_sync_is_taken_to_be_one_as_long_as_others_explain_all() -> None:
    history, run_context = job()
    history.writes = [write for write in history.writes if write.rv < 3800]
    judged = judge_key(history, RULES, run_context)
    assert not any(sync.handlers_behind for sync in judged.replay.syncs)
