"""The order of an account's steps, and what it tells from beyond the Job controller's syncs."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import Condition
from tracekit.check.replay.run_context import Outage
from tracekit.report.narrative import Narrative, Step, in_order, turned
from tracekit.report.narrative_others import add_restarts, narrative_of_cronjob

_STEPS = st.lists(
    st.tuples(st.integers(0, 50), st.none() | st.integers(1, 50)), max_size=12, unique=True
)


def _step(at_ns: int, rv: int | None) -> Step:
    return Step(at_ns, rv, "who", "what")


def _condition(kind: str, status: str, reason: str) -> Condition:
    return Condition(kind, status, reason, "", None, None)


def test_a_pod_that_arrives_before_its_job_is_told_after_it() -> None:
    job, sync = _step(12, 223), _step(11, 228)
    assert in_order([sync, job]) == [job, sync]


@given(_STEPS, st.randoms(use_true_random=False))
def test_steps_come_by_revision_and_none_is_lost(
    drawn: list[tuple[int, int | None]], chance: random.Random
) -> None:
    steps = [_step(*pair) for pair in drawn]
    ordered = in_order(steps)
    assert sorted(map(repr, ordered)) == sorted(map(repr, steps))
    rvs = [step.rv for step in ordered if step.rv is not None]
    assert rvs == sorted(rvs)
    without = [step.at_ns for step in ordered if step.rv is None]
    assert without == sorted(without)
    chance.shuffle(steps)
    assert in_order(steps) == ordered


def test_only_restarts_within_the_account_are_told() -> None:
    steps = [_step(10 * NS_PER_S, 1), _step(20 * NS_PER_S, 2)]
    narrative = Narrative("Job", "shop", "import", steps)
    restarts = [Outage(at * NS_PER_S, (at + 3) * NS_PER_S, "changed hands") for at in (1, 12, 40)]
    add_restarts(narrative, restarts)
    told = [step.what for step in narrative.steps if step.who == "kube-controller-manager"]
    assert told == ["led again, 3 s after the last sign of the one before"]
    empty = Narrative("Job", "shop", "import")
    add_restarts(empty, restarts)
    assert empty.steps == []


def test_a_cronjob_is_told_with_its_spec_and_what_changed_in_it() -> None:
    revisions = [
        {"recv_ns": 1, "rv": 5, "type": "ADDED", "spec": '{"schedule":"* * * * *"}'},
        {"recv_ns": 2, "rv": 6, "type": "MODIFIED", "spec": '{"schedule":"* * * * *"}'},
        {"recv_ns": 3, "rv": 7, "type": "MODIFIED", "spec": '{"schedule":"@hourly"}'},
        {"recv_ns": 4, "rv": 8, "type": "MODIFIED", "spec": "not JSON"},
        {"recv_ns": 5, "rv": 9, "type": "DELETED", "spec": None},
    ]
    narrative = narrative_of_cronjob("shop", "report", [], revisions)
    assert [(step.rv, step.what, step.details) for step in narrative.steps] == [
        (5, "was created", ("schedule * * * * *",)),
        (7, "changed the CronJob", ("spec schedule: * * * * * → @hourly",)),
        (8, "changed the CronJob", ("spec schedule: @hourly → not set",)),
        (9, "is gone", ()),
    ]
    assert narrative.closing == "Ticks while it was recorded: none; nothing contradicts the rules."


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {"schedule": "*/5 14 * * *"},
            "none, next due 1970-01-01 14:00:00Z (*/5 14 * * * in UTC, as it",
        ),
        (
            {"schedule": "0 14 * * *", "timeZone": "Asia/Tokyo"},
            "05:00:00Z (0 14 * * * in Asia/Tokyo);",
        ),
        ({"schedule": "TZ=Asia/Tokyo 0 14 * * *"}, "05:00:00Z (TZ=Asia/Tokyo 0 14 * * *);"),
        ({"schedule": "0 14 * * *", "suspend": True}, "none; nothing"),
        ({"schedule": "0 14 * *"}, "none; nothing"),
        ({"schedule": "@every 1h"}, "none; nothing"),
    ],
)
def test_a_cronjob_that_was_not_due_says_when_it_is(spec: dict[str, object], said: str) -> None:
    """kubernetes#127344, kubernetes#78795, DOKS#12: a schedule that is read in UTC."""
    revisions = [{"recv_ns": 1, "rv": 5, "type": "LIST", "spec": json.dumps(spec)}]
    assert said in (narrative_of_cronjob("shop", "report", [], revisions).closing or "")


def test_a_condition_is_told_when_it_becomes_true_and_when_it_ceases_to_be() -> None:
    before = [_condition("Suspended", "True", "JobSuspended"), _condition("Stuck", "True", "")]
    now = [_condition("Suspended", "False", "JobResumed"), _condition("Late", "True", "Slow")]
    assert list(turned(before, now)) == [
        "condition Suspended False (JobResumed)", "condition Late (Slow)",
        "condition Stuck taken off",
    ]  # fmt: skip
    assert list(turned(now, now)) == []
