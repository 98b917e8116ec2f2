"""TK457: Jobs whose Workload Kueue has evicted, and that run on as nobody suspends them."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job
from tracekit.answers.words import clock, shortened
from tracekit.base.kube.timestamps import NS_PER_S

EVICTED = Rule(
    "TK457", "evicted by Kueue, and not suspended", Severity.WARNING,
    "The Workload of an unfinished Job has had the condition Evicted for 60 s or more, and the Job "
    "is not suspended: its pods hold what others were promised.",
    "Pods that end by themselves meanwhile.",
    "Look at the log of kueue-controller-manager and at the Job's Events: its change of the Job is "
    "refused, or it does not reconcile. Until the Job is suspended, who needs its quota waits.",
    rank=17,
)  # fmt: skip
#: Kueue suspends the Job of an evicted Workload within seconds. A choice, far above that.
_LATE_NS = 60 * NS_PER_S


def evicted(facts: Facts, job: Job) -> Iterator[Case]:
    """The case, if the Job is one."""
    seen = facts.admissions.get(job.uid)
    found = None if seen is None else seen.conditions.get("Evicted")
    if seen is None or found is None or not found.status or found.since_ns is None:
        return
    if job.ended_ns is not None or job.gone_ns is not None or job.spec.get("suspend") is True:
        return
    as_of_ns = facts.as_of(job.namespace, "jobs")
    if as_of_ns - found.since_ns < _LATE_NS:
        return
    live = [pod.name for pod in job.pods if pod.last.is_live_pod_of(job.uid)]
    yield Case(
        EVICTED, job.target,
        f"was evicted by Kueue ({found.reason}), and is not suspended",
        found.since_ns, as_of_ns,
        f"Workload {seen.name}: Evicted since {clock(found.since_ns)}: "
        f"{shortened(found.message)}; status.active {job.last.number('active')} (as of "
        f"{clock(as_of_ns)})",
        job.cronjob, evidence={"pods": live, "workload": seen.name},
    )  # fmt: skip
