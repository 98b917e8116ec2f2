"""A Job that follows one of its name: what is awaited is kept under the name."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.support.traces import import_log
from tracekit.check.diff.trace import diff_groups
from tracekit.check.replay.feed import COLUMNS
from tracekit.check.replay.run_context import Unposted
from tracekit.judge.judged import Judge, resolve_era
from tracekit.versions.job import JobRules

RECORD = Path(__file__).parents[1] / "data" / "replay" / "waits-for-another-of-the-name"
FIRST_SYNC_NS = 1795408160561034501
S = 10**9


def test_nothing_is_owed_while_it_may_wait_for_another_ones_pod(tmp_path: Path) -> None:
    """Also where its only sync may have been refused: then as well another way explains it."""
    reader = import_log(RECORD / "watch.jsonl.zst", tmp_path / "trace", RECORD)
    era = resolve_era(reader, None, None)
    known = Judge(reader, era).run_context
    lost = Unposted(FIRST_SYNC_NS - S, FIRST_SYNC_NS + S, "Events were dropped then")
    context = replace(known, unposted=(*known.unposted, lost))
    groups = reader.groups(COLUMNS)
    report = diff_groups(groups, JobRules.of(era), context, observations=0)
    assert [j.why for j in report.judgements if j.divergent] == []
    kinds = {
        assumption.kind
        for judgement in report.judgements
        if judgement.object.name == "c0028-mixed" and judgement.time_ns >= FIRST_SYNC_NS - S
        for assumption in judgement.assumptions
    }
    assert "refused-creations" in kinds
