"""TK427: a Job that failed, and whose controller left no failed pod that could be looked at."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.answers.endings import pod_spec
from tracekit.answers.harm import NO_HARM
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job, Pod
from tracekit.answers.words import clock, named
from tracekit.check.verdict import Verdict

VANISHED = Rule(
    "TK427", "a failed Job that left no pod to look at", Severity.WARNING,
    "The Job failed (not by its deadline), its controller deleted the pods that were active last, "
    "and no pod that had ended was left when the Job had failed and those were gone.",
    "None known.",
    "restartPolicy Never keeps failed pods; with OnFailure the pod that restarts is the one that "
    "is deleted. Keep logs outside the pod.",
    74848, rank=12,
)  # fmt: skip
#: With restartPolicy Never the controller deletes no pod that failed: others did that before.
_NEVER = (
    "Keep logs outside the pod. The controller deletes only pods that still run, so those that "
    "failed were gone before: `tracekit explain TRACE {object}` says who deleted them."
)


def vanished(facts: Facts, job: Job, failed_by: Rule | None) -> Iterator[Case]:
    """The case, if the Job is one; it follows from what the Job failed by."""
    failure, end = job.failure, job.end
    if failure is None or end is None or failure.get("reason") == "DeadlineExceeded":
        return
    since_rv = _last_active(job)
    deleted = [
        pod for pod in job.pods
        if _deletion_rv(pod) > since_rv and _deleted_by_controller(facts, job, pod)
    ]  # fmt: skip
    gone_ns = [pod.gone_ns for pod in deleted if pod.gone_ns is not None]
    if not gone_ns or len(gone_ns) < len(deleted):
        return
    over_ns = max(end.at_ns, *gone_ns)
    if any(_was_left(pod, over_ns) for pod in job.pods if pod not in deleted):
        return
    policy = pod_spec(job).get("restartPolicy")
    yield Case(
        VANISHED,
        job.target,
        "failed and left no pod to look at" + (f" (restartPolicy {policy})" if policy else ""),
        end.at_ns,
        over_ns,
        f"{failure.get('reason')} at {clock(end.at_ns)}; its controller deleted "
        f"{named([p.name for p in deleted])}",
        job.cronjob,
        evidence={"pods": [p.name for p in deleted]},
        todo=_NEVER if policy == "Never" else VANISHED.todo,
        thread=VANISHED.thread,
        cause=failed_by,
        harm=None if failed_by is None else NO_HARM,  # it counts with what it failed by
    )


def _last_active(job: Job) -> int:
    """The last revision before the failure that counted active pods: their deletion came after.

    Up to 1.30 the sync that fails a Job writes its status several times, so that the revision
    before the failure is no bound.
    """
    found = 0
    for state in job.states:
        if state.true("FailureTarget") or state.true("Failed"):
            break
        if state.number("active"):
            found = state.rv
    return found


def _deletion_rv(pod: Pod) -> int:
    """The revision with which its deletion began; 0 while nobody asked for it."""
    found = pod.deletion
    return 0 if found is None else int(found.rv)


def _was_left(pod: Pod, at_ns: int) -> bool:
    """Whether a pod that had ended was still there then."""
    ended = pod.ended_ns is not None and pod.ended_ns <= at_ns
    return ended and (pod.gone_ns is None or pod.gone_ns > at_ns)


def _deleted_by_controller(facts: Facts, job: Job, pod: Pod) -> bool:
    verdict = facts.judgements.verdict_of((job.namespace, job.name), "pod-delete", pod.name)
    return verdict in (Verdict.MATCH, Verdict.MATCH_LAGGED)
