"""Findings of a record of many Jobs: nothing is read through once for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.findings.conftest import Traces
from tracekit.answers.findings.diagnosis import diagnose
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


class Keyed(dict):
    """A mapping that says how often all of it was read."""

    passes = 0

    def items(self):
        type(self).passes += 1
        return super().items()


def test_jobs_do_not_each_read_the_whole_record(traces: Traces) -> None:
    facts = facts_from(Session([traces.path("v1.36.3-churn7")]))
    assert len(facts.jobs) > 10 * PASSES
    counted = replace(facts, events=Counted(facts.events), judgements=Counted(facts.judgements))
    counted.verdicts_of = Keyed(counted.verdicts_of)
    assert [f.text for f in diagnose(counted)] == [f.text for f in diagnose(facts)]
    assert Counted.passes <= PASSES
    assert Keyed.passes <= PASSES
