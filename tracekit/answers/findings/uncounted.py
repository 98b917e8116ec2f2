"""TK439: ended pods that the Job's controller does not count, or has not yet, as it is behind."""

from __future__ import annotations

from tracekit.answers.endings import has_live_pod
from tracekit.answers.findings.controllers import BACKLOG, WAIT_NS, Spells
from tracekit.answers.harm import HOLDS
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import TRACKING, Facts, Job, Pod
from tracekit.answers.words import clock, named, off, shortened
from tracekit.base.durations import span
from tracekit.base.kube.actors import name_of
from tracekit.base.kube.timestamps import NS_PER_S

UNCOUNTED = Rule(
    "TK439", "an ended pod that its controller does not count", Severity.ERROR,
    "A pod of an unfinished Job ended (in a record: was reported as ended) 60 s or more before the "
    "last look at both, still has the tracking finalizer and stands in none of the Job's lists, "
    "though somebody led or nothing tells of leaders; or it stands in one "
    "(`.status.uncountedTerminatedPods`), and the finalizer is not taken off all the same. Not of "
    "Jobs with backoffLimitPerIndex (they keep a failed pod's finalizer until its successor is "
    "there). Where the controller was behind (TK207) it is a consequence of that, an info, and "
    "told of a Job none of whose pods runs, from 2 s on.",
    "A controller manager that comes back a moment later.",
    "See whether the controller manager runs and leads: kubectl -n kube-system get lease "
    "kube-controller-manager -o yaml; and what its log says of the Job.",
    rank=9, losses=HOLDS,
)  # fmt: skip
#: What to do where the rows of one Job cannot tell whether its controller was behind.
LOOK_AT_ALL = (
    "`tracekit diagnose TRACE` tells whether the controller was behind (TK207). If it was not: see "
    "whether the controller manager runs and leads (kubectl -n kube-system get lease "
    "kube-controller-manager -o yaml), and what its log says of the Job."
)
#: An ended pod is counted within so long, wherever a controller runs. A choice, as TK439 says it: a
#: controller that is slower for another reason than TK207's is told of falsely.
_COUNTED_NS = 60 * NS_PER_S


def uncounted(
    facts: Facts, job: Job, as_of_ns: int, *, for_ns: int = _COUNTED_NS
) -> list[tuple[int, Pod]]:
    """Ended pods that the Job has not counted for so long, with when they ended, oldest first."""
    if "backoffLimitPerIndex" in job.spec:
        return []
    return _tracked(facts, job, as_of_ns, for_ns, listed=False)


def unfreed(facts: Facts, job: Job, as_of_ns: int) -> list[tuple[int, Pod]]:
    """The same of those that stand in its lists, and whose finalizer is to be taken off next."""
    return _tracked(facts, job, as_of_ns, _COUNTED_NS, listed=True)


def _tracked(
    facts: Facts, job: Job, as_of_ns: int, for_ns: int, *, listed: bool
) -> list[tuple[int, Pod]]:
    uids = {
        *(job.last.row["uncounted_succeeded"] or ()), *(job.last.row["uncounted_failed"] or ()),
    }  # fmt: skip
    found = []
    for pod in job.pods:
        if pod.end is None or pod.last.gone or TRACKING not in pod.last.finalizers:
            continue
        since_ns = _reported_ns(pod)
        led_ns = as_of_ns - facts.led_since(since_ns, as_of_ns)
        if led_ns >= for_ns and (pod.uid in uids) == listed:
            found.append((since_ns, pod))
    return sorted(found, key=lambda entry: (entry[0], entry[1].name))


def _reported_ns(pod: Pod) -> int:
    """Since when its controller can have known: a kubelet that was away reports an end late."""
    if pod.end is None or pod.end is pod.first:
        return pod.over_ns
    return max(pod.over_ns, pod.end.at_ns)


def uncounted_case(facts: Facts, job: Job, stale: list[tuple[int, Pod]]) -> Case:
    """The case of a Job with what `uncounted` found."""
    ended_ns, pod = stale[0]
    as_of_ns = facts.as_of(job.namespace, "jobs", "pods")
    claim = "its controller does not count pods that ended"
    if not facts.is_whole:
        claim = "its controller has not counted pods that ended"
    return Case(
        UNCOUNTED,
        job.target,
        claim,
        ended_ns,
        as_of_ns,
        f"{named([p.name for _, p in stale])}: {pod.phase} at {clock(ended_ns)}, still not counted "
        f"{span(as_of_ns - ended_ns)} later (as of {clock(as_of_ns)})",
        job.cronjob,
        severity=None if facts.is_whole else Severity.WARNING,
        evidence={"pods": [p.name for _, p in stale]},
        todo=None if facts.is_whole else LOOK_AT_ALL,
    )


_UNFREED_TODO = (
    "See which admission webhook refuses or changes updates of pods: kubectl get "
    "validatingwebhookconfigurations,mutatingwebhookconfigurations. It should ask for CREATE "
    "alone. The error is in the controller manager's log, and met by hand, too: kubectl patch pod "
    f"NAME {off(TRACKING)} (which also frees the pod)."
)


def unfreed_case(facts: Facts, job: Job, stuck: list[tuple[int, Pod]]) -> Case:
    """The case of a Job whose controller has pods in its lists and leaves the finalizer on them."""
    ended_ns, pod = stuck[0]
    as_of_ns = facts.as_of(job.namespace, "jobs", "pods")
    names = [p.name for _, p in stuck]
    refused = _refusal(facts, job, names)
    why = "" if refused is None else f"; {refused}"
    return Case(
        UNCOUNTED,
        job.target,
        "its controller does not get its finalizer off pods that ended, and so does not end it",
        ended_ns,
        as_of_ns,
        f"{named(names)}: {pod.phase} at {clock(ended_ns)}, in uncountedTerminatedPods, "
        f"{TRACKING} still on it {span(as_of_ns - ended_ns)} later (as of {clock(as_of_ns)}){why}",
        job.cronjob,
        thread=121605,
        evidence={"pods": names, "refused": refused},
        todo=_UNFREED_TODO,
    )


def _refusal(facts: Facts, job: Job, names: list[str]) -> str | None:
    """How the API server refused a change of one of these pods last, as an audit log has it."""
    for call in reversed(facts.refused_calls):
        mine = call["stream"] == "pods" and call["namespace"] == job.namespace
        if mine and call["name"] in names:
            who = name_of(call["username"], None)
            return (
                f"{call['verb']} by {who} was refused ({call['code']}): "
                f"{shortened(str(call['message'] or ''))}"
            )
    return None


def behind(spells: Spells, from_ns: int, until_ns: int) -> bool:
    """Whether many waited for the Job controller in that time."""
    return any(since < until_ns and from_ns < until for since, until, _ in spells)


def waits_for_its_turn(facts: Facts, job: Job, spells: Spells) -> Case | None:
    """A Job none of whose pods lives, with ended ones that its controller has not come to count."""
    if has_live_pod(job):
        return None
    as_of_ns = facts.as_of(job.namespace, "jobs", "pods")
    found = uncounted(facts, job, as_of_ns, for_ns=WAIT_NS)
    if not found or not behind(spells, found[0][0], as_of_ns):
        return None
    ended_ns = found[0][0]
    return Case(
        UNCOUNTED,
        job.target,
        "its pods ended, and its controller was behind (TK207)",
        ended_ns,
        as_of_ns,
        f"{named([p.name for _, p in found])}: not counted {span(as_of_ns - ended_ns)} after the "
        f"first ended at {clock(ended_ns)} (as of {clock(as_of_ns)})",
        job.cronjob,
        severity=Severity.INFO,
        evidence={"pods": [p.name for _, p in found]},
        cause=BACKLOG,
    )
