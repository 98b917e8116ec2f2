"""TK210: statuses that a release refuses while a back-off holds creations back."""

from __future__ import annotations

from tracekit.findings.facts import Facts, Job
from tracekit.findings.model import Case, Rule, Severity
from tracekit.findings.words import clock, span
from tracekit.kube.timestamps import NS_PER_S

#: No back-off between failures and the next creation is longer.
BACKOFF_MOST_NS = 600 * NS_PER_S

REFUSED_IN_BACKOFF = Rule(
    "TK210", "a status that is refused while creations are in back-off", Severity.WARNING,
    "As TK201 for `.status.ready`, up to 10 minutes after a pod of the Job failed while another "
    "ran, under a release that refuses a status with more ready pods than active ones and counts "
    "active as 0 while the back-off holds creations back.",
    "A broken watch at the same time.",
    "Upgrade to 1.34.10, 1.35.7, 1.36.3 or later.",
    139428, rank=29,
)  # fmt: skip


def refused_in_backoff(facts: Facts, job: Job, from_ns: int, until_ns: int) -> Case:
    """The case of a time in which no status could be written."""
    return Case(
        REFUSED_IN_BACKOFF,
        job.target,
        "each status is refused during the back-off (active 0 < ready)",
        from_ns,
        until_ns,
        f"for {span(until_ns - from_ns)} from {clock(from_ns)} no status was written: "
        "this release tells active 0 while creations are held back",
        job.cronjob,
        evidence={"seconds": round((until_ns - from_ns) / NS_PER_S, 3)},
    )


def has_uncountable(job: Job) -> bool:
    """Whether a pod's uid stands in the list of the phase that it is no longer in."""
    done = frozenset(job.last.row["uncounted_succeeded"] or ())
    dead = frozenset(job.last.row["uncounted_failed"] or ())
    return any(
        (p.uid in done and p.phase == "Failed") or (p.uid in dead and p.phase == "Succeeded")
        for p in job.pods
    )


def hidden_by_backoff(facts: Facts, job: Job, at_ns: int) -> bool:
    """Whether a failure held creations back then, in a release that tells active 0 meanwhile."""
    if not facts.refuses_ready_in_backoff:
        return False
    failed = [p for p in job.pods if p.phase == "Failed" and p.ended_ns is not None]
    fresh = any(0 <= at_ns - (p.ended_ns or 0) <= BACKOFF_MOST_NS for p in failed)
    living = any(
        p.first.at_ns <= at_ns and (p.ended_ns is None or p.ended_ns > at_ns) for p in job.pods
    )
    return fresh and living
