"""A record that leaves an order open contradicts the rules only if every order does."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.replay.test_planted_lies import record, rules
from tests.support.raw_histories import histories_of
from tracekit.diff.readings import judge_as_known
from tracekit.replay.history import build_history

TRACE = "v1.36.3-all"


def divergences(judged):
    return [judgement for judgement in judged.judgements if judgement.divergent]


@pytest.fixture(scope="module")
def keys():
    return histories_of(record(TRACE).rows)


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
    histories, context = keys
    forgiven = 0
    for history in histories:
        if not 3 <= len(history.pods) <= 12 or forgiven == 5:
            continue
        wrong = reordered(history, told=False)
        if not divergences(judge_as_known(wrong, rules(TRACE), context)):
            continue
        assert not divergences(judge_as_known(reordered(history, told=True), rules(TRACE), context))
        forgiven += 1
    assert forgiven == 5
