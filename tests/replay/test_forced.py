"""Whether a sync's caches are the only ones that explain it, by searching again without them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from tests.support.traces import TRACES, import_log
from tracekit.check.diff.forced import with_forced
from tracekit.check.diff.job_verdicts import place_of
from tracekit.check.diff.judge import KeyJudgement
from tracekit.check.diff.trace import judge_groups
from tracekit.check.replay.feed import COLUMNS
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.other_caches import forced_syncs
from tracekit.check.replay.search import KeyWalker
from tracekit.check.replay.search_state import Entry, Explanation, KeyReplay, State
from tracekit.cli.main import cli
from tracekit.judge.judged import resolve_era
from tracekit.judge.run_context import run_context_of
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.job import JobRules


class _Without(KeyWalker):
    """A search that may not explain one sync by the caches that were found, or by any like them."""

    taken: Explanation

    def options(self, state: State, effort: int) -> Iterator[Entry]:
        for found in super().options(state, effort):
            first = isinstance(found, Explanation) and found.writes[0] is self.taken.writes[0]
            if not (first and self._is_like(found)):
                yield found

    def _is_like(self, found: Explanation) -> bool:
        own = found.job is self.taken.job and found.pod_cut == self.taken.pod_cut
        return own or (found.notes, found.state.memory) == (
            self.taken.notes,
            self.taken.state.memory,
        )


def _is_plain(again: KeyReplay, sync: Explanation) -> bool:
    """Whether handlers kept up, caches were fresh, and the same syncs wrote the same."""
    other = next((found for found in again.syncs if found.writes == sync.writes), None)
    odd = any(found.silent or found.handlers_behind for found in again.syncs)
    return other is not None and other.stale is None and not odd and not again.without_sync


def opened(name: str, folder: Path) -> tuple[TraceReader, JobRules]:
    reader = import_log(TRACES / name / "watch.jsonl.zst", folder / "trace", name)
    return reader, JobRules.of(resolve_era(reader, None, None))


@pytest.mark.parametrize("name", ["v1.17.17-all", "v1.27.4-churn606"])
def test_a_search_without_these_caches_finds_others_only_where_it_is_said(
    name: str, tmp_path: Path
) -> None:
    reader, rules = opened(name, tmp_path)
    context = run_context_of(reader).watching("jobs", "pods")
    seen = {True: 0, False: 0}
    for judged in judge_groups(reader.groups(COLUMNS), rules, context):
        facts = KeyEvidence(judged.replay.history, rules, context)
        known = forced_syncs(KeyWalker(facts, dict), judged.replay)
        # Each sync costs a search of the whole Job: those of a sort are much alike.
        some = {forced: number for number, forced in enumerate(known) if forced is not None}
        for forced, number in some.items():
            walker = _Without(facts, dict)
            walker.taken = sync = judged.replay.syncs[number]
            again = walker.run()
            explained = not any(found.problems for found in again.syncs)
            assert explained or forced, (judged.replay.history.name, sync.writes[0].rv)
            if forced:
                assert not (explained and _is_plain(again, sync)), judged.replay.history.name
            seen[forced] += 1
    assert min(seen.values()) > 3, seen


@pytest.mark.full
def test_explain_tells_it_of_each_sync(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    import_log(TRACES / "v1.36.3-churn7" / "watch.jsonl.zst", trace, "v1.36.3-churn7")
    command = ["explain", str(trace), "t-churn/c0005-restart", "--kubernetes-version", "v1.36.3"]
    told = CliRunner().invoke(cli, [*command, "-o", "json"])
    steps = json.loads(told.stdout)["steps"]
    assert [s["forced"] for s in steps if s["who"] == "job-controller"] == [
        True,
        True,
        False,
        False,
    ]
    assert {s["forced"] for s in steps if s["who"] != "job-controller"} == {None}
    text = CliRunner().invoke(cli, [*command, "-v"]).stdout
    assert text.count("not the only state that explains this") == 2


def test_only_what_syncs_wrote_is_forced_or_not(tmp_path: Path) -> None:
    reader, rules = opened("v1.36.3-churn7", tmp_path)
    context = run_context_of(reader).watching("jobs", "pods")
    for judged in judge_groups(reader.groups(COLUMNS), rules, context):
        told: KeyJudgement = with_forced(judged, rules, context)
        assert replace(told, judgements=judged.judgements) == judged
        for judgement in told.judgements:
            by_a_sync = any(
                place_of(write) == (judgement.resource_version, judgement.action, judgement.subject)
                for sync in judged.replay.syncs
                for write in sync.writes
            )
            assert (judgement.forced is not None) == by_a_sync
