"""A sync between the informer's change of its cache and the handlers' running."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.judged_rows import judge_of
from tests.support.traces import TRACES, import_log, json_lines
from tracekit.check.diff.judge import judge_key
from tracekit.check.replay.history import History
from tracekit.check.replay.run_context import RunContext
from tracekit.judge.judged import Judge, resolve_era
from tracekit.versions.job import JobRules

#: One Job of a churn run on 1.20.15: a sync finds a new pod in its cache, and waits for it still.
RECORD = Path(__file__).parents[1] / "data" / "replay" / "handlers-behind"
JOB = ("t-churn", "c0040-fail")


@pytest.fixture
def job() -> Iterator[tuple[History, JobRules, RunContext]]:
    """The Job's history in a record that knows of nothing that it did not see."""
    with judge_of(json_lines(RECORD / "watch.jsonl.zst"), RECORD) as judge:
        judged = judge.job(*JOB)
        assert judged is not None
        context = RunContext(judge.run_context.end_ns)
        yield judged.replay.history, JobRules.of(judge.era), context


def test_a_pod_may_be_in_the_cache_while_its_creation_is_still_waited_for(job) -> None:
    judged = judge_key(*job)
    assert [j for j in judged.judgements if j.divergent] == []
    lagging = [sync for sync in judged.replay.syncs if sync.handlers_behind]
    assert len(lagging) == 1


def test_no_sync_is_taken_to_be_one_as_long_as_others_explain_all(job) -> None:
    history, rules, context = job
    history.writes = [write for write in history.writes if write.rv < 3800]
    history.status_indexes = [i for i in history.status_indexes if i < len(history.writes)]
    judged = judge_key(history, rules, context)
    assert not any(sync.handlers_behind for sync in judged.replay.syncs)


def test_handlers_are_not_behind_for_ever(tmp_path: Path) -> None:
    """1.36.3 counts active pods while the back-off holds creations back, 1.36.0 told none.

    Handlers that never ran would explain each of these statuses: a sync that waits for a creation
    counts, too.
    """
    name = "v1.36.3-all"
    reader = import_log(TRACES / name / "watch.jsonl.zst", tmp_path / name, name)
    report = Judge(reader, resolve_era(reader, "v1.36.0", None)).report()
    told = {(j.object.namespace, j.object.name) for j in report.divergences}
    assert ("t-pod-replacement-policy", "replace-terminating") in told
