"""What one finding is the cause of follows it, in words for one object or several."""

from __future__ import annotations

import pytest

from tracekit.answers.findings.advice import advice
from tracekit.answers.findings.controllers import BACKLOG
from tracekit.answers.findings.diagnosis import grouped
from tracekit.answers.findings.jobs import NOT_BEGUN, OVERRUN
from tracekit.answers.model import Case, Target
from tracekit.answers.words import of_several


def case(rule, name, claim, **more):
    return Case(rule, Target("Job", "ns", name), claim, 0, 1, "detail", **more)


def test_a_cause_stands_before_its_consequences() -> None:
    behind = "overran its deadline: its controller was behind (TK207)"
    findings = grouped(
        [
            case(NOT_BEGUN, "c", "has not begun: no node takes its pods"),
            case(OVERRUN, "a", behind, cause=BACKLOG),
            case(OVERRUN, "b", behind, cause=BACKLOG),
            Case(BACKLOG, Target("Controller", "", "the Job controller"), "fell back", 0, 1, ""),
        ]
    )
    assert [f.id for f in findings] == ["TK207", "TK424", "TK411"]
    assert findings[1].text == (
        "2 Jobs in ns: overran their deadline: their controller was behind (TK207)"
    )
    assert findings[1].thread is None, "the thread is about another cause"
    assert advice(findings[1]) == f"see TK207. {BACKLOG.todo}"
    assert advice(findings[0]) == BACKLOG.todo


def test_without_a_cause_the_order_is_by_rank() -> None:
    lone = Case(BACKLOG, Target("Controller", "", "the Job controller"), "fell back", 0, 1, "")
    found = grouped([lone, case(OVERRUN, "a", "overran its deadline: nothing woke its controller")])
    assert [f.id for f in found] == ["TK424", "TK207"]
    assert found[0].thread == OVERRUN.thread


@pytest.mark.parametrize(
    ("one", "several"),
    [
        ("has not begun: its pods wait", "have not begun: their pods wait"),
        ("was due while nobody led, and was never started",
         "were due while nobody led, and were never started"),
        ("failed: it ran longer than activeDeadlineSeconds",
         "failed: they ran longer than activeDeadlineSeconds"),
        ("was due while it was suspended", "were due while they were suspended"),
        ("failed: a rule of its own ended it (FailedIndexes)",
         "failed: a rule of their own ended them (FailedIndexes)"),
        ("cannot pull its image shop/it:1", "cannot pull their image shop/it:1"),
        ("pods were left with the tracking finalizer after the Job was over",
         "pods were left with the tracking finalizer after the Jobs were over"),
    ],
)  # fmt: skip
def test_what_is_said_of_one_is_said_of_several(one: str, several: str) -> None:
    assert of_several(one) == several
