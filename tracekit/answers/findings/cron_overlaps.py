"""TK318: runs of a CronJob that are there at once, more and more of them (Allow)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from tracekit.answers.findings.advice import advice_of
from tracekit.answers.findings.cron_stalls import job_waits
from tracekit.answers.findings.jobs import NOT_BEGUN
from tracekit.answers.harm import Harm
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import CronJob, Facts, Job
from tracekit.answers.words import clock, counted, in_kubectl, named
from tracekit.base.durations import span

#: So many runs at once are told. A choice, as TK318 says it: two are a run that took longer than
#: the interval once, three one that took longer than two of them.
_MANY = 3

PILED_UP = Rule(
    "TK318", "runs that pile up", Severity.WARNING,
    "concurrencyPolicy is Allow and three Jobs or more of the CronJob are unfinished at once, at "
    "the last look more than half of the time before; or, where no Jobs were looked at, its "
    "status.active names so many. Where the number does not grow it is only info.",
    "Runs that are meant to overlap.",
    "Let none start beside another: kubectl patch cronjob NAME -p "
    "'{\"spec\":{\"concurrencyPolicy\":\"Forbid\"}}' (Replace ends the older one).",
    rank=13,
)  # fmt: skip
RULES = (PILED_UP,)


def piled_up(facts: Facts, cron: CronJob, jobs: Sequence[Job]) -> Case | None:
    """The runs that are there at once, where nothing keeps them from it."""
    state = cron.last
    if state.gone or state.spec.get("concurrencyPolicy") not in (None, "Allow"):
        return None
    if not jobs:
        return _by_status(facts, cron)
    as_of_ns = facts.as_of(cron.namespace, "jobs") or facts.end_ns
    runs = sorted(jobs, key=lambda job: job.created_ns)
    crowd = _Crowd(runs, as_of_ns)
    at_once = [(crowd.at(job.created_ns), job.created_ns) for job in runs]
    most = max(number for number, _ in at_once)
    if most < _MANY:
        return None
    since_ns = _since(at_once, most)
    half_ns = (since_ns + as_of_ns) // 2
    before, now = crowd.at(half_ns), crowd.at(as_of_ns)
    grows = now >= _MANY and now > before
    unfinished = [job for job in runs if over_ns(job, as_of_ns) > as_of_ns]
    held = _held_alike(facts, unfinished)
    claim = f"its runs overlap, up to {most} at once (concurrencyPolicy Allow)"
    if grows:
        claim = "its runs pile up: each starts beside those before (concurrencyPolicy Allow)"
    return Case(
        PILED_UP, cron.target, claim, since_ns, as_of_ns,
        f"{now} at once as of {clock(as_of_ns)}, {before} at {clock(half_ns)}; more than one since "
        f"{clock(since_ns)} ({state.spec.get('schedule')}){_oldest(unfinished, as_of_ns)}",
        severity=None if grows else Severity.INFO,
        evidence={"at_once": now, "before": before, "most": most,
                  "jobs": [job.name for job in unfinished[:20]]},
        todo=_todo(unfinished, held), cause=None if held is None else held.rule,
        harm=Harm(objects=most - 1),
    )  # fmt: skip


def _since(at_once: Sequence[tuple[int, int]], most: int) -> int:
    """From when on a run began beside another one, in the last spell that had so many."""
    since_ns = begun_ns = 0
    for number, at_ns in at_once:
        if number == 1:
            begun_ns = 0
        begun_ns = begun_ns or (at_ns if number > 1 else 0)
        if number == most:
            since_ns = begun_ns
    return since_ns


class _Crowd:
    """How many of some runs, the oldest first, are unfinished at a time."""

    def __init__(self, runs: Sequence[Job], as_of_ns: int) -> None:
        self._begins = [job.created_ns for job in runs]
        self._ends = sorted(over_ns(job, as_of_ns) for job in runs)

    def at(self, at_ns: int) -> int:
        return bisect_right(self._begins, at_ns) - bisect_right(self._ends, at_ns)


def over_ns(job: Job, as_of_ns: int) -> int:
    """When a run ended, by its condition where the look came later; after the last look if not."""
    end = job.end
    if end is None:
        return as_of_ns + 1 if job.gone_ns is None else job.gone_ns
    condition = end.true("Complete") or end.true("Failed") or {}
    return int(condition.get("last_transition_ns") or end.at_ns)


def _oldest(unfinished: Sequence[Job], as_of_ns: int) -> str:
    if not unfinished:
        return ""
    ages = f"the oldest for {span(as_of_ns - unfinished[0].created_ns)}"
    return f"; {named([job.name for job in unfinished])} not ended, {ages}"


def _held_alike(facts: Facts, unfinished: Sequence[Job]) -> Case | None:
    """What all of them wait for, where that is one kind of thing."""
    found: Case | None = None
    for job in unfinished:
        case = job_waits(facts, job)
        if case is None and not any(pod.ran for pod in job.pods):
            case = Case(NOT_BEGUN, job.target, "", job.created_ns, facts.end_ns, "", job.cronjob)
        if case is None or (found is not None and case.rule is not found.rule):
            return None
        found = found or case
    return found


def _todo(unfinished: Sequence[Job], held: Case | None) -> str | None:
    """Advice by what the runs have already, and what they wait for."""
    if held is not None:
        return f"{advice_of(held)} concurrencyPolicy Forbid would keep more from coming meanwhile."
    if not unfinished:
        return None
    job = unfinished[0]
    place = in_kubectl(job.namespace, job.name)
    look = f" Look why they take so long: kubectl describe job {place}."
    if isinstance(job.spec.get("activeDeadlineSeconds"), int):
        return f"{PILED_UP.todo}{look}"
    ends = " An activeDeadlineSeconds in its jobTemplate would end a run that hangs."
    return f"{PILED_UP.todo}{look}{ends}"


def _by_status(facts: Facts, cron: CronJob) -> Case | None:
    """A crowd that only the CronJob's own status tells of."""
    counts = [(len(state.row["cron_active"] or ()), state.at_ns) for state in cron.states]
    now = counts[-1][0]
    if now < _MANY or facts.coverage.sees("jobs", cron.namespace):
        return None
    as_of_ns = facts.as_of(cron.namespace, "cronjobs") or facts.end_ns
    before = next(((n, ns) for n, ns in reversed(counts) if n < now), None)
    grew = "" if before is None else f"; {before[0]} at {clock(before[1])}"
    return Case(
        PILED_UP, cron.target, f"its status.active names {counted(now, 'Job')} (Allow)",
        counts[0][1], as_of_ns,
        f"as of {clock(as_of_ns)}{grew} ({cron.last.spec.get('schedule')})",
        evidence={"at_once": now}, harm=Harm(objects=now - 1),
    )  # fmt: skip
