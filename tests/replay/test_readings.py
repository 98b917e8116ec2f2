"""A record that leaves an order open contradicts the rules only if every order does."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.support.traces import TRACES, import_log
from tracekit.check.diff.alternative_readings import judge_as_known
from tracekit.check.replay.feed import COLUMNS, histories
from tracekit.check.replay.history import build_history
from tracekit.judge.judged import Judge, resolve_era
from tracekit.versions.job import JobRules

TRACE = "v1.36.3-all"


def divergences(judged):
    return [judgement for judgement in judged.judgements if judgement.divergent]


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    target = tmp_path_factory.mktemp("trace") / TRACE
    reader = import_log(TRACES / TRACE / "watch.jsonl.zst", target, TRACE)
    judge = Judge(reader, resolve_era(reader, None, None))
    return list(histories(reader.groups(COLUMNS))), JobRules.of(judge.era), judge.run_context


def reordered(history, *, told: bool):
    """A pod's last revision put right behind its one before; with or without the word that it was chosen."""
    last = history.pods[-1]
    before = last.previous.rv
    bounds = (before, last.rv + 1) if told else (None, None)
    moved = replace(last, rv=before + 1, rv_after=bounds[0], rv_before=bounds[1])
    return build_history(
        history.namespace, history.name, history.jobs, [*history.pods[:-1], moved], history.events
    )


def test_a_wrong_order_is_forgiven_only_where_it_was_chosen(keys):
    found, rules, context = keys
    forgiven = 0
    for history in found:
        if not 3 <= len(history.pods) <= 12 or forgiven == 5:
            continue
        wrong = reordered(history, told=False)
        if not divergences(judge_as_known(wrong, rules, context)):
            continue
        assert not divergences(judge_as_known(reordered(history, told=True), rules, context))
        forgiven += 1
    assert forgiven == 5
