"""More than 100 missed starts: truly missed, or counted so after lastScheduleTime was set back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tracekit.answers.findings.cron_jumps import missed_many
from tracekit.answers.model import Case, Severity, Target
from tracekit.base.cron import Generation, parse
from tracekit.base.cron.zones import UTC
from tracekit.base.kube.timestamps import NS_PER_S

MINUTE_NS = 60 * NS_PER_S
#: A minute, and so a time of `* * * * *`.
NOW_NS = 1_795_259_640 * NS_PER_S


def jump(*runs: int, created: int, generation: Generation = Generation.GEN3) -> list[Case]:
    """Of a CronJob with these lastScheduleTimes one after the other, in minutes before now."""
    states: list[Any] = [
        SimpleNamespace(rv=rv, row={"last_schedule_ns": NOW_NS - ago * MINUTE_NS,
                                    "created_ns": NOW_NS - created * MINUTE_NS})
        for rv, ago in enumerate(runs, 1)
    ]  # fmt: skip
    cron: Any = SimpleNamespace(target=Target("CronJob", "ns", "tick"), states=states)
    job: Any = SimpleNamespace(name="tick-1", first=SimpleNamespace(at_ns=NOW_NS))
    facts: Any = SimpleNamespace(generation=generation)
    reading = parse("* * * * *"), UTC
    return list(missed_many(facts, cron, job, states[-1], reading, NOW_NS))


def test_runs_that_never_came_are_missed() -> None:
    (case,) = jump(480, created=900)
    assert (case.badness, case.evidence["missed"]) == (Severity.ERROR, 479)
    assert "only the most recent one was made up for" in case.claim


def test_a_last_run_that_was_set_back_is_no_missed_run() -> None:
    (case,) = jump(1, 480, created=900)
    assert (case.badness, case.evidence["missed"]) == (Severity.WARNING, 0)
    assert "lastScheduleTime was set back" in case.claim
    assert case.harm is not None
    assert case.harm.missed_runs == 0


def test_a_last_run_before_the_creation_was_set_by_hand() -> None:
    (case,) = jump(480, created=5)
    assert (case.badness, case.evidence["missed"]) == (Severity.WARNING, 4)


def test_a_hundred_are_not_too_many() -> None:
    assert jump(101, created=900) == []


def test_only_a_controller_that_polls_is_said_to_stop() -> None:
    (new,) = jump(1, 480, created=900)
    (old,) = jump(1, 480, created=900, generation=Generation.GEN1)
    assert "a polling controller starts nothing" in (old.todo or "")
    assert "polling" not in (new.todo or "")
