"""What a controller had to do and the record does not show, in words."""

from __future__ import annotations

import pytest

from tracekit.check.verdict import Judgement, ObjectRef, Verdict
from tracekit.report.narrative import Narrative, not_seen
from tracekit.report.narrative_others import add_judgements


def missing(subject: str) -> Judgement:
    target = ObjectRef("CronJob", "ns", "tick", "u")
    return Judgement("cronjob", target, "job-create", Verdict.MISSING, 1, "1", subject, "it is due")


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("tick-1", "had to do job-create, which is not seen: tick-1"),
        ("", "had to do job-create, which is not seen"),
    ],
)
def test_what_was_due_and_is_not_seen_is_said_so(subject: str, said: str) -> None:
    assert not_seen(missing(subject)) == said


def test_so_does_the_step_of_a_cronjob() -> None:
    narrative = Narrative("", "", [])
    add_judgements(narrative, [missing("tick-1")])
    assert [(step.who, step.what) for step in narrative.steps] == [
        ("cronjob-controller", "had to do job-create, which is not seen: tick-1")
    ]
