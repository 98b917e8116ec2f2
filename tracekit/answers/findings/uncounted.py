"""TK439: ended pods that the Job's controller does not count."""

from __future__ import annotations

from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import TRACKING, Facts, Job, Pod
from tracekit.answers.words import clock, named
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S

UNCOUNTED = Rule(
    "TK439", "an ended pod that its controller does not count", Severity.ERROR,
    "A pod of an unfinished Job ended 60 s or more before the last look at both, still has the "
    "tracking finalizer and stands in none of the Job's lists, though somebody led or nothing "
    "tells of leaders. Not of Jobs with backoffLimitPerIndex (they keep a failed pod's finalizer "
    "until its successor is there), nor where the controller was behind (TK207).",
    "A controller manager that comes back a moment later.",
    "See whether the controller manager runs and leads: kubectl -n kube-system get lease "
    "kube-controller-manager -o yaml; and what its log says of the Job.", rank=9,
)  # fmt: skip
#: An ended pod is counted within so long, wherever a controller runs. A choice, as TK439 says it: a
#: controller that is slower for another reason than TK207's is told of falsely.
_COUNTED_NS = 60 * NS_PER_S


def uncounted(facts: Facts, job: Job, as_of_ns: int) -> list[tuple[int, Pod]]:
    """Ended pods that the Job does not count, with when they ended."""
    if "backoffLimitPerIndex" in job.spec:
        return []
    counted_uids = {
        *(job.last.row["uncounted_succeeded"] or ()), *(job.last.row["uncounted_failed"] or ()),
    }  # fmt: skip
    found = []
    for pod in job.pods:
        if pod.end is None or pod.last.gone or TRACKING not in pod.last.finalizers:
            continue
        ends = [int(c["finished_ns"] or 0) for c in pod.last.row["containers"] or ()]
        ended_ns = min(max(ends, default=0) or pod.end.at_ns, pod.end.at_ns)
        led_ns = as_of_ns - facts.led_since(ended_ns, as_of_ns)
        if led_ns >= _COUNTED_NS and pod.uid not in counted_uids:
            found.append((ended_ns, pod))
    return sorted(found, key=lambda entry: entry[0])


def uncounted_case(facts: Facts, job: Job, stale: list[tuple[int, Pod]]) -> Case:
    """The case of a Job with what `uncounted` found."""
    ended_ns, pod = stale[0]
    as_of_ns = facts.as_of(job.namespace, "jobs", "pods")
    return Case(
        UNCOUNTED,
        job.target,
        "its controller does not count pods that ended",
        ended_ns,
        as_of_ns,
        f"{named([p.name for _, p in stale])}: {pod.phase} at {clock(ended_ns)}, still not counted "
        f"{span(as_of_ns - ended_ns)} later (as of {clock(as_of_ns)})",
        job.cronjob,
        evidence={"pods": [p.name for _, p in stale]},
    )
