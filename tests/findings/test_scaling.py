"""Findings of a record of many Jobs: nothing is read through once for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.findings.conftest import Traces
from tracekit.answers.findings.diagnosis import diagnose
from tracekit.sql import kept_judgements
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.session import Session

#: So many families and rules may look through all of it.
PASSES = 20


class Counted(list):
    """A list that says how often it was read from the start."""

    passes = 0

    def __iter__(self) -> Iterator:
        type(self).passes += 1
        return super().__iter__()


def test_jobs_do_not_each_read_the_whole_record(traces: Traces) -> None:
    facts = facts_from(Session([traces.path("v1.36.3-churn7")]))
    assert len(facts.jobs) > 10 * PASSES
    counted = replace(facts, events=Counted(facts.events))
    assert [f.text for f in diagnose(counted)] == [f.text for f in diagnose(facts)]
    assert Counted.passes <= PASSES


def test_verdicts_become_objects_where_a_rule_asks_for_them(
    traces: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    build = kept_judgements._judgement
    monkeypatch.setattr(
        kept_judgements, "_judgement", lambda *cells: made.append(1) or build(*cells)
    )
    session = Session([traces.path("v1.36.3-churn7")])
    diagnose(facts_from(session))
    (verdicts,) = session.rows("SELECT count(*) AS n FROM internal._verdicts")
    assert 0 < len(made) < verdicts["n"] // 5
