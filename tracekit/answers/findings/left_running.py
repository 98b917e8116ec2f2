"""TK449: Jobs that have ended while a pod of them has not, or while their status counts one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tracekit.answers.holders import goes_when
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import TRACKING, Facts, Job, Pod
from tracekit.answers.words import agreed, clock, counted, in_kubectl, named, of_job_in_kubectl
from tracekit.base.kube.timestamps import NS_PER_S

#: So long after the end of its Job a pod that runs is told. A choice: above the grace period that
#: most pods have, so that one which ends with its Job is not.
_LEFT_NS = 60 * NS_PER_S
#: Of kubernetes/kubernetes: a Complete Job that counts an active pod.
_THREAD = 64037

LEFT_RUNNING = Rule(
    "TK449", "a Job that has ended while pods of it have not", Severity.WARNING,
    "The Job is Complete or Failed, and 60 s or more later a pod of it has not ended and nobody "
    "has asked for its deletion, or its deletion is overdue by as much. Only info where that pod "
    "has ended, where no pod is left and its last status counts active pods nevertheless, or where "
    "pods were not looked at.",
    "Pods that were listed before the Job ended.",
    "kubectl delete pod, or the Job with its pods: its controller does nothing more for it.",
    rank=22,
)  # fmt: skip


def left_running(facts: Facts, job: Job) -> Iterator[Case]:
    """The case, if the Job is one and still there."""
    ended = job.last.true("Complete") or job.last.true("Failed")
    if ended is None or job.deletion_ns is not None or not job.managed:
        return
    ended_ns = int(ended["last_transition_ns"] or job.ended_ns or 0)
    as_of_ns = facts.as_of(job.namespace, "jobs", "pods")
    live = [pod for pod in job.pods if pod.last.is_live_pod_of(job.uid)]
    if live and as_of_ns - ended_ns >= _LEFT_NS:
        yield _case_of_pods(job, ended, ended_ns, as_of_ns, live)
    elif not any(_is_there(pod) for pod in job.pods) and (active := job.last.number("active")):
        yield _case_of_count(facts, job, ended, ended_ns, as_of_ns, active)
    overdue = [pod for pod in job.pods if _is_overdue(pod, as_of_ns)]
    if overdue:
        yield _case_of_overdue(job, ended, as_of_ns, overdue)


def _is_there(pod: Pod) -> bool:
    """Whether it has not ended, also while it is being deleted."""
    return pod.end is None and not pod.last.gone


def _is_overdue(pod: Pod, as_of_ns: int) -> bool:
    """Whether a deletion should be over; that the tracking finalizer holds it is told as TK204."""
    deleted_ns = pod.last.row["deleted_ns"]
    held = TRACKING in pod.last.finalizers
    return (
        not pod.last.gone
        and not held
        and deleted_ns is not None
        and as_of_ns - int(deleted_ns) >= _LEFT_NS
    )


def _succeeded(ended: Mapping[str, Any]) -> str:
    """What is said first of pods of which a successPolicy made their Job independent."""
    if ended["reason"] != "SuccessPolicy":
        return ""
    return "The Job has succeeded by its successPolicy: nothing of that waits for its other pods. "


def _case_of_overdue(job: Job, ended: Mapping[str, Any], as_of_ns: int, pods: list[Pod]) -> Case:
    first = pods[0]
    node, holders = first.last.row["node_name"], list(first.last.finalizers)
    since_ns = int(first.last.row["deleted_ns"])
    running = any(pod.end is None for pod in pods)
    names = [pod.name for pod in pods]
    force = f"kubectl delete pod {in_kubectl(job.namespace, first.name)} --force --grace-period=0"
    todo = f"{_succeeded(ended)}If {'its node' if node is None else node} is gone for good: {force}"
    if holders:
        todo = goes_when(holders)
    return Case(
        LEFT_RUNNING,
        job.target,
        f"is {ended['type']}, and {'a pod' if len(pods) == 1 else 'pods'} of it that "
        f"{agreed('was', names)} deleted {agreed('does', names)} not go",
        since_ns,
        as_of_ns,
        f"{named(names)}: {first.phase}"
        + (f" on node {node}" if node else "")
        + f", should be gone since {clock(since_ns)} (as of {clock(as_of_ns)})"
        + (f"; finalizers: {named(holders)}" if holders else ""),
        job.cronjob,
        severity=None if running else Severity.INFO,
        evidence={"pods": names, "finalizers": holders},
        todo=todo,
    )


def _case_of_pods(
    job: Job, ended: Mapping[str, Any], ended_ns: int, as_of_ns: int, live: list[Pod]
) -> Case:
    names = [pod.name for pod in live]
    first = live[0]
    node = first.last.row["node_name"]
    where = f"{named(names)}: {first.phase}" + (f" on node {node}" if node else "")
    remove = (
        f"kubectl delete pod {in_kubectl(job.namespace, first.name)}"
        if len(live) == 1
        else f"kubectl delete job {in_kubectl(job.namespace, job.name)} takes its pods along"
    )
    return Case(
        LEFT_RUNNING,
        job.target,
        f"is {ended['type']}, and {'a pod' if len(live) == 1 else 'pods'} of it "
        f"{agreed('has', names)} not ended",
        ended_ns,
        as_of_ns,
        f"{ended['type']} since {clock(ended_ns)}; {where}, created at {clock(first.created_ns)} "
        f"(as of {clock(as_of_ns)}); status.active {job.last.number('active')}",
        job.cronjob,
        thread=_THREAD,
        evidence={"pods": names, "active": job.last.number("active")},
        todo=f"{_succeeded(ended)}The controller does nothing more for a Job that has ended: the "
        f"pod goes on, and holds its resources, until it ends by itself. {remove}",
    )


def _case_of_count(
    facts: Facts, job: Job, ended: Mapping[str, Any], ended_ns: int, as_of_ns: int, active: int
) -> Case:
    looked = facts.coverage.sees("pods", job.namespace) and as_of_ns
    pods = (
        f"no pod of it that has not ended is there (as of {clock(as_of_ns)})"
        if looked
        else "pods were not looked at: whether one runs is not known"
    )
    look = f"kubectl get pods {of_job_in_kubectl(job.namespace, job.name)}"
    return Case(
        LEFT_RUNNING,
        job.target,
        f"is {ended['type']}, and its status still counts {counted(active, 'active pod')}",
        ended_ns,
        facts.end_ns,
        f"{ended['type']} since {clock(ended_ns)}; status.active {active}; {pods}",
        job.cronjob,
        severity=Severity.INFO,
        thread=_THREAD,
        evidence={"pods": [], "active": active},
        todo="The controller writes no status of a Job that has ended, so the number stays: go by "
        f"the condition {ended['type']}." + ("" if looked else f" See whether a pod runs: {look}"),
    )
