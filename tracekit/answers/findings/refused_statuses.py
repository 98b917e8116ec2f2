"""TK211 and TK212: statuses that the API server of this release must refuse, told from the spec."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.answers.harm import HOLDS
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job, State
from tracekit.answers.words import clock
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.versions.release_bugs import BUGS, Bug

#: A controller has written the next status long before, if it can be written. A choice: with less a
#: busy controller (see `INFORMER_LAG_NS`, tokens) is told as refused; with more the finding comes
#: later, and not at all of a record that ends before.
WAITED_NS = 30 * NS_PER_S

RESUMED = Rule(
    "TK211", "a resumed Job whose statuses are refused", Severity.WARNING,
    "30 s or more after spec.suspend became false the Job still has the condition Suspended and "
    "the startTime of its first run, under a release that refuses a startTime that moves.",
    "A controller manager that does not lead.",
    "Upgrade to 1.32.10, 1.33.6, 1.34.2 or later.",
    BUGS[Bug.RESUMED_JOB_REFUSED].thread, rank=10, losses=HOLDS,
)  # fmt: skip
EMPTY = Rule(
    "TK212", "a suspended Job without work whose end is refused", Severity.WARNING,
    "30 s or more after its creation a suspended Job with completions 0 has not ended, under a "
    "release that refuses an end without a startTime.",
    "A controller manager that does not lead.",
    "Upgrade to 1.32.7, 1.33.3, 1.34 or later.",
    BUGS[Bug.SUSPENDED_EMPTY_JOB_REFUSED].thread, rank=28, losses=HOLDS,
)  # fmt: skip
RULES = (RESUMED, EMPTY)


def find(facts: Facts) -> Iterator[Case]:
    """Every case of this family."""
    for job in facts.jobs:
        if job.ended_ns is None and job.gone_ns is None and job.managed:
            yield from _resumed(facts, job)
            yield from _empty(facts, job)


def refused(facts: Facts, job: Job) -> bool:
    """Whether one of these says why nothing of a Job's status moves."""
    return any(True for _ in (*_resumed(facts, job), *_empty(facts, job)))


def _resumed(facts: Facts, job: Job) -> Iterator[Case]:
    last = job.last
    if Bug.RESUMED_JOB_REFUSED not in facts.bugs or last.spec.get("suspend") is True:
        return
    if last.true("Suspended") is None or last.row["start_ns"] is None:
        return
    since_ns = _resumed_ns(job)
    as_of_ns = facts.as_of(job.namespace, "jobs")
    if as_of_ns - facts.led_since(since_ns, as_of_ns) < WAITED_NS:
        return
    yield _case(
        facts, job, RESUMED, Bug.RESUMED_JOB_REFUSED, since_ns,
        "was resumed, and each status is refused until it ends (startTime moves)",
        f"resumed at {clock(since_ns)} with startTime {clock(last.row['start_ns'])}; after "
        f"{span(as_of_ns - since_ns)} the condition Suspended is still True",
    )  # fmt: skip


def _resumed_ns(job: Job) -> int:
    """When suspend was first seen false again; its first look, where that was before."""
    since: State = job.first
    for state in job.states:
        if state.spec.get("suspend") is True:
            since = state
    later = (s for s in job.states if s.rv > since.rv and s.spec.get("suspend") is not True)
    found = next(later, since)
    return found.at_ns


def _empty(facts: Facts, job: Job) -> Iterator[Case]:
    spec = job.last.spec
    if Bug.SUSPENDED_EMPTY_JOB_REFUSED not in facts.bugs:
        return
    if spec.get("suspend") is not True or spec.get("completions") != 0:
        return
    as_of_ns = facts.as_of(job.namespace, "jobs")
    if as_of_ns - facts.led_since(job.created_ns, as_of_ns) < WAITED_NS:
        return
    yield _case(
        facts, job, EMPTY, Bug.SUSPENDED_EMPTY_JOB_REFUSED, job.created_ns,
        "has nothing to do and cannot end: its end is refused while it is suspended",
        f"completions 0, suspended, since {clock(job.created_ns)}",
    )  # fmt: skip


def _case(
    facts: Facts, job: Job, rule: Rule, bug: Bug, since_ns: int, claim: str, detail: str
) -> Case:
    known = facts.bugs[bug]
    return Case(
        rule, job.target, claim, since_ns, facts.end_ns, f"{detail}; hit are {known.who}",
        job.cronjob, evidence={"bug": bug.value}, todo=known.remedy,
    )  # fmt: skip
