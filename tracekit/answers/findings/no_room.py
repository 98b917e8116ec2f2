"""TK454: Jobs without a pod, of which a ResourceQuota has no room for one."""

from __future__ import annotations

from tracekit.answers.endings import pod_spec
from tracekit.answers.findings.unplaced import BEGIN_NS
from tracekit.answers.harm import HOLDS
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.quotas import no_room
from tracekit.answers.refusals import ADVICE, Refusal
from tracekit.answers.trace_model import Facts, Job
from tracekit.answers.words import clock
from tracekit.base.durations import span
from tracekit.base.escaping import for_shell

NO_ROOM = Rule(
    "TK454", "no room in its namespace's quota", Severity.WARNING,
    "30 s or more after its creation an unfinished Job that is not suspended has no living pod (by "
    "its status, where pods were not looked at), no refusal of its pods was seen (TK405), and a "
    "ResourceQuota without scopes has less left than its containers ask for.",
    "A quota that was freed after the look.",
    ADVICE[Refusal.QUOTA], rank=16, losses=HOLDS,
)  # fmt: skip


def without_room(facts: Facts, job: Job) -> Case | None:
    """The case of a Job that wants pods and has none that lives; None where there is room."""
    quotas = facts.quotas.get(job.namespace)
    as_of_ns = facts.as_of(job.namespace, "jobs", "resourcequotas")
    if not quotas or as_of_ns - job.created_ns < BEGIN_NS:
        return None
    if job.spec.get("parallelism") == 0 or _has_one(facts, job):
        return None
    full = [found for quota in quotas for found in no_room(quota, pod_spec(job))]
    if not full:
        return None
    first = full[0]
    amounts = ", ".join(f"{f.resource} {f.used} of {f.hard} used" for f in full)
    never = any(found.never_fits for found in full)
    todo = ADVICE[Refusal.NEVER_FITS if never else Refusal.QUOTA]
    return Case(
        NO_ROOM,
        job.target,
        f"has no pod: ResourceQuota {first.quota} has no room for one ({amounts})",
        job.created_ns,
        facts.end_ns,
        f"{span(as_of_ns - job.created_ns)} after its creation at {clock(job.created_ns)} (as of "
        f"{clock(as_of_ns)}); each try is refused for as long as that is so",
        job.cronjob,
        evidence={"quota": first.quota, "resources": [found.resource for found in full]},
        todo=f"{todo} `kubectl -n {for_shell(job.namespace)} describe resourcequota "
        f"{for_shell(first.quota)}` shows what is used.",
    )


def _has_one(facts: Facts, job: Job) -> bool:
    """Whether a pod of it lives; by its status, where nobody looked at pods."""
    if facts.as_of(job.namespace, "jobs", "pods"):
        return any(pod.end is None for pod in job.pods)
    return job.last.number("active") > 0
