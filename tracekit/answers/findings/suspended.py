"""TK413: Jobs that are suspended, and who holds them back."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tracekit.answers.admission import Admission, why_it_waits
from tracekit.answers.harm import HOLDS
from tracekit.answers.holders import holder_of
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job
from tracekit.answers.words import clock, shortened

SUSPENDED = Rule(
    "TK413", "suspended to the end", Severity.INFO,
    "spec.suspend is true in the last revision of an unfinished Job, for 30 s or more.",
    "A Job that a queue (Kueue, Volcano) or its owner (JobSet) holds back until it is its turn: "
    "its label or owner names it; why is told where Kueue's Workload or its Events are there.",
    "kubectl patch job NAME -p '{\"spec\":{\"suspend\":false}}' if that is not intended.",
    rank=62, losses=HOLDS,
)  # fmt: skip

#: What Kueue's scheduling gates begin with (upstream: kueue, pkg/controller/constants).
_KUEUE: Final = "kueue.x-k8s.io/"


def kueue_holds(facts: Facts, job: Job, gates: str) -> tuple[str, str, str] | None:
    """Why Kueue leaves its gate on a Job's pods, by the Workload: claim, detail, what to do."""
    seen = facts.admissions.get(job.uid) or facts.admissions.get(job.last.row["owner_uid"] or "")
    if seen is None or _KUEUE not in gates:
        return None
    waits = why_it_waits(seen, job.namespace)
    at = "" if waits.since_ns is None else f" (since {clock(waits.since_ns)})"
    return f": Kueue {waits.claim}{at}", f"Workload {seen.name}: {waits.detail}", waits.todo


def suspended(facts: Facts, job: Job) -> Case:
    """The case of a Job that is suspended as the record ends, with who holds it back."""
    shown = job.last.true("Suspended")
    since_ns = None if shown is None else shown["last_transition_ns"]
    since = f"since {clock(since_ns or job.created_ns)}" + ("" if since_ns else " or later")
    since += facts.suspension(job.uid)
    holder = holder_of(job)
    admission = facts.admissions.get(job.uid) or facts.admissions.get(
        job.last.row["owner_uid"] or ""
    )
    if admission is not None:
        return _not_admitted(facts, job, admission, since, since_ns)
    if holder is None:
        claim = "is suspended at the end of the record"
        return _case(facts, job, claim, since, since_ns)
    case = _case(
        facts,
        job,
        f"is suspended: {holder.name} holds it back ({holder.what})",
        f"{since}; known by its {'owner' if holder.what == 'its owner' else 'label'}",
        since_ns,
    )
    if said := facts.queue_words.get((job.namespace, job.name)):
        row = said[-1].row
        case = replace(
            case,
            detail=f"{case.detail}; Event {row['reason']} of {row['involved_kind']} "
                   f"{row['involved_name']}: {shortened(str(row['message'] or ''))}",
        )  # fmt: skip
    todo = (
        f"`{holder.look}` says what it waits for. Do not set spec.suspend yourself: {holder.name} "
        "sets it back."
    )
    return replace(case, todo=todo)


def _not_admitted(
    facts: Facts, job: Job, admission: Admission, since: str, since_ns: int | None
) -> Case:
    """A Job that Kueue holds back, as its Workload says."""
    waits = why_it_waits(admission, job.namespace)
    at = "" if waits.since_ns is None else f" (since {clock(waits.since_ns)})"
    case = _case(
        facts,
        job,
        f"is suspended: Kueue (queue {admission.queue or 'unknown'}) {waits.claim}{at}",
        f"Workload {admission.name}: {waits.detail}; suspended {since}",
        since_ns,
    )
    todo = f"{waits.todo} Do not set spec.suspend yourself: Kueue sets it back."
    return replace(case, todo=todo)


def _case(facts: Facts, job: Job, claim: str, detail: str, since_ns: int | None) -> Case:
    """A case from then on, else from the Job's creation on, to the end."""
    from_ns = since_ns or job.created_ns
    return Case(SUSPENDED, job.target, claim, from_ns, facts.end_ns, detail, job.cronjob)
