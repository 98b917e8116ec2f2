"""What the search takes each write for: a small real record in, the way through its writes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.traces import import_log
from tracekit.check.replay.feed import COLUMNS, histories
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.search import KeyWalker
from tracekit.check.replay.search_state import Explanation, KeyReplay, WithoutSync
from tracekit.judge.judged import resolve_era
from tracekit.judge.run_context import run_context_of
from tracekit.versions.job import JobRules

RECORDS = Path(__file__).parents[2] / "data" / "replay"
#: The way through each Job's writes; about.json of the record says what happened.
WAYS = {
    ("adopted-as-its-job-went", "c0011-queue"): "sync sync unknowable orphans sync foreign orphans",
    ("cut-off-before-a-restart", "c0080-mixed"): "sync sync cut-off",
    ("deadline-after-a-refusal", "c0042-deadline"): "refused refused refused foreign sync",
    ("died-among-creations", "c0078-plain"): "cut-off sync sync sync",
    (
        "ended-pod-marked-and-not-deleted",
        "c0024-plain",
    ): "refused sync sync refused sync sync sync sync",
    ("gap-among-creations", "c0349-mixed"): "cut-off sync sync sync sync",
    ("patch-refused-then-done", "c0020-replace"): "refused sync sync refused sync",
    ("released-by-another-in-a-sync", "c0068-mixed"): "sync sync sync unknowable sync sync",
    ("status-emptied-by-hand", "c0103-restart"): "sync sync unknowable sync",
    ("status-refused", "c0027-queue"): "refused sync sync sync",
    ("sync-of-seconds", "k007-29922035"): "sync sync sync foreign",
}
WITHOUT_SYNC = {
    WithoutSync.FOREIGN: "foreign",
    WithoutSync.ORPHAN_WORKER: "orphans",
    WithoutSync.UNKNOWABLE: "unknowable",
}


@pytest.mark.parametrize(("record", "job"), WAYS)
def test_each_write_is_taken_for_what_it_was(record: str, job: str, tmp_path: Path) -> None:
    reader = import_log(RECORDS / record / "watch.jsonl.zst", tmp_path / "t", RECORDS / record)
    rules = JobRules.of(resolve_era(reader, None, None))
    context = run_context_of(reader).watching("jobs", "pods")
    history = next(h for h in histories(reader.groups(COLUMNS)) if h.name == job)
    assert way(KeyWalker(KeyEvidence(history, rules, context), dict).run()) == WAYS[record, job]


def way(replay: KeyReplay) -> str:
    """What made the writes, in the order of the first write of each."""
    steps = [(sync.writes[0].index, kind(sync)) for sync in replay.syncs]
    steps += [(found.write.index, WITHOUT_SYNC[found.reason]) for found in replay.without_sync]
    return " ".join(step for _, step in sorted(steps))


def kind(sync: Explanation) -> str:
    """What a sync was; those that nothing explains say how."""
    if sync.problems:
        return ", ".join(problem.verdict for problem in sync.problems)
    if sync.cut_off:
        return "cut-off"
    return "refused" if sync.refused else "sync"
