"""TK435 of pods that nobody saw: Events say who took them off their node after their Job ended."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.answers.endings import job_over_ns
from tracekit.answers.findings.evictors import evictions_unseen
from tracekit.answers.findings.unplaced import quoted
from tracekit.answers.model import Case, Rule
from tracekit.answers.trace_model import Facts, Job
from tracekit.answers.words import clock


def pods_gone_unseen(facts: Facts, job: Job, rule: Rule, claim: str) -> Iterator[Case]:
    """The case of a Job that is Complete, if Events tell of it."""
    over_ns = job_over_ns(job)
    if over_ns is None or job.pods:
        return
    events = [event for event in evictions_unseen(facts, job) if event.first_ns > over_ns]
    if events:
        yield Case(
            rule, job.target, claim, over_ns, events[-1].last_ns,
            f"Complete at {clock(over_ns)}; at {clock(events[0].first_ns)}: {quoted(events[0])}",
            job.cronjob, evidence={"pods": [event.row["involved_name"] for event in events]},
        )  # fmt: skip
