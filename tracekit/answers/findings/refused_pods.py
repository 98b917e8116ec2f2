"""TK405: Jobs whose pods the API server refuses, and in whose words."""

from __future__ import annotations

from tracekit.answers.endings import pod_spec
from tracekit.answers.harm import FAILS_OR_HOLDS
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.refusals import (
    Refusal,
    never_fits,
    objection,
    refusal_advice_for,
    refusal_of,
)
from tracekit.answers.trace_model import Facts, Job
from tracekit.answers.words import clock, shortened

REFUSED = Rule(
    "TK405", "its pods are refused", Severity.WARNING,
    "The Job failed or is not done, has fewer pods than it wants, and the API server refused "
    "creations (Events FailedCreate, an audit log's answers) after which no pod came.",
    "None known.",
    "Free or raise the quota, or repair what admission objects to.", rank=15, losses=FAILS_OR_HOLDS,
)  # fmt: skip


def refused_since(facts: Facts, job: Job) -> tuple[int, str] | None:
    """Refusals after which no pod came, of a Job that wants more: since when, the last message."""
    events = facts.refusals_of.get(job.uid, [])
    calls = [
        call
        for call in facts.refused_creations.get(("pods", job.namespace, job.name), ())
        if job.created_ns <= call["recv_ns"] <= (job.gone_ns or facts.end_ns)
    ]
    if not events and not calls:
        return None
    times = [e.first_ns for e in events] + [c["recv_ns"] for c in calls]
    first_ns = min(times)
    if any(p.first.at_ns > first_ns for p in job.pods):
        return None
    wanted = job.spec.get("parallelism", 1)
    live = [p for p in job.pods if p.end is None and p.deletion_ns is None]
    if not isinstance(wanted, int) or len(live) >= wanted:
        return None
    last = events[-1].row if events else calls[-1]
    return max(job.created_ns, first_ns), str(last["message"] or "no message")


def refused_to_the_end(facts: Facts, job: Job) -> bool:
    """Whether TK405 tells of a Job that its pods are refused."""
    if job.failure is not None:
        return not job.pods and refused_since(facts, job) is not None
    return job.gone_ns is None and job.managed and refused_since(facts, job) is not None


def _containers(job: Job) -> list[str]:
    """The names of its template's containers."""
    spec = pod_spec(job)
    both = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    return [str(each.get("name")) for each in both if isinstance(each, dict)]


def refused_case(facts: Facts, job: Job, until_ns: int) -> Case:
    """The case of a Job of which `refused_to_the_end` is true."""
    from_ns, message = refused_since(facts, job) or (job.created_ns, "")
    refusal = refusal_of(message)
    what = f"its pods are refused ({refusal.value})"
    if refusal is Refusal.OTHER:
        what = "the API server refuses its pods"
    elif refusal is Refusal.INVALID:
        what = f"its pods are refused (422): {objection(message)}"
    elif refusal is Refusal.QUOTA:
        what = refusal.value
    elif refusal is Refusal.NEVER_FITS:
        asked = [f"{name} {text}, it has {hard}" for name, text, hard in never_fits(message)]
        what = f"one pod asks for more than its quota has in all ({'; '.join(asked)})"
    state = "failed" if job.failure is not None else "cannot start"
    return Case(
        REFUSED,
        job.target,
        f"{state}: {what}",
        from_ns,
        until_ns,
        f"from {clock(from_ns)} on: {shortened(message)}",
        job.cronjob,
        evidence={"message": message, "refusal": refusal.value},
        todo=refusal_advice_for(message, _containers(job)),
    )
