"""TK302: starts before which a CronJob's controller counts more than 100 missed ones."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tracekit.answers.findings.controllers import BACKWARDS, backwards
from tracekit.answers.findings.cron_stalls import MOST_DUE, due_times
from tracekit.answers.harm import Harm
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import CronJob, Facts, Job, State
from tracekit.answers.words import clock
from tracekit.base.cron import Generation, Schedule
from tracekit.base.cron.zones import Zone
from tracekit.versions.constants import CRON_MISSED_RUNS_MAX

TOO_MANY_MISSED = Rule(
    "TK302", "more than 100 starts were missed", Severity.ERROR,
    "Between lastScheduleTime and the start (or the tick that was not started) lie more than 100 "
    "times of the schedule. Up to 1.20 the controller then starts nothing until "
    "startingDeadlineSeconds bounds the list; later it starts only the most recent one.",
    "None known. A lastScheduleTime that was set back, before the CronJob's creation or before one "
    "that it had, is a warning that says so: the runs themselves may all have been started.",
    "Set startingDeadlineSeconds; make up for what was not run.",
    42649, rank=9,
)  # fmt: skip

_SET_BACK = "See TK206 for who wrote lastScheduleTime."
_STARTS_NOTHING = (
    "With this release a CronJob starts nothing then until startingDeadlineSeconds bounds the "
    "count."
)


def _last_known_run(cron: CronJob, before: State) -> int:
    """The newest lastScheduleTime that a CronJob had had until then, else its creation."""
    had = [s.row["last_schedule_ns"] or 0 for s in cron.states if s.rv <= before.rv]
    return max([int(before.row["created_ns"] or 0), *had])


def missed_many(
    facts: Facts,
    cron: CronJob,
    job: Job,
    before: State,
    reading: tuple[Schedule, Zone],
    slot_ns: int,
) -> Iterator[Case]:
    """A start before which its controller counts more than 100 missed ones, if they truly were."""
    last_ns = before.row["last_schedule_ns"]
    missed = len(due_times(reading, last_ns, slot_ns - 1))
    if missed <= CRON_MISSED_RUNS_MAX:
        return
    known_ns = _last_known_run(cron, before)
    really = len(due_times(reading, max(last_ns, known_ns), slot_ns - 1))
    shown = f"{missed:,}" if missed < MOST_DUE else f"more than {MOST_DUE:,}"
    case = Case(
        TOO_MANY_MISSED,
        cron.target,
        "more than 100 starts were missed, and only the most recent one was made up for",
        slot_ns,
        job.first.at_ns,
        f"{shown} times were due from {clock(last_ns)} on; {job.name} was started for "
        f"{clock(slot_ns)}",
        evidence={"missed": really, "job": job.name, "last_schedule": clock(last_ns)},
        harm=Harm(missed_runs=really) if really else Harm(objects=1),
    )
    if really > CRON_MISSED_RUNS_MAX:
        yield case
        return
    stops = ": a polling controller starts nothing then until startingDeadlineSeconds bounds it"
    yield replace(
        case,
        claim="its controller counts more than 100 missed starts: lastScheduleTime was set back",
        detail=f"{shown} times of its schedule lie between lastScheduleTime {clock(last_ns)} and "
        f"{clock(slot_ns)}, when {job.name} was started; really missed since the run before, or "
        f"its creation: {really}",
        severity=Severity.WARNING,
        todo="Who wrote lastScheduleTime stands there"
        + (f"{stops}." if facts.generation is Generation.GEN1 else "."),
    )


def set_back(facts: Facts, cron: CronJob, case: Case) -> Case:
    """Missed starts, as a consequence of a lastScheduleTime that somebody has set back."""
    if case.rule is not TOO_MANY_MISSED:
        return case
    known = any(
        back.from_ns <= case.until_ns and back.severity is None for back in backwards(facts, cron)
    )
    if not known:
        return case
    return replace(case, cause=BACKWARDS, todo=case.todo or case.rule.todo, thread=case.rule.thread)
