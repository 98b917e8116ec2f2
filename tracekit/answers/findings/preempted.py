"""TK448: pods of a Job that gave way to others, while the Job went on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tracekit.answers.endings import pod_spec, toward_limit, went_on
from tracekit.answers.evidence import Preemptor
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job, Pod
from tracekit.answers.words import clock, counted, named, shortened

#: Upstream: pkg/scheduler/framework/preemption (the condition's), pkg/kubelet/preemption (its own).
PREEMPTIONS: Final = ("PreemptionByScheduler", "Preempting")
_HIGHER: Final = "Give the template of the next Job a priorityClassName of a higher value"
_IGNORE: Final = (
    ", or a podFailurePolicy that ignores DisruptionTarget: then it does not count toward "
    "backoffLimit"
)
PREEMPTED = Rule(
    "TK448", "pods that gave way to others", Severity.INFO,
    "A pod of a Job that did not fail has the condition DisruptionTarget with the reason "
    "PreemptionByScheduler, or its own reason is Preempting (the kubelet's, for a critical pod); "
    "the Job is Complete or has another pod that lives.",
    "None: the Job went on. What those pods had done is lost.",
    f"{_HIGHER}.", rank=63,
)  # fmt: skip


def preempted(facts: Facts, job: Job) -> Iterator[Case]:
    """The case, if the Job is one; why a Job failed or has no pod is told elsewhere."""
    pods = [pod for pod in job.pods if pod.disruption in PREEMPTIONS]
    if not pods or not went_on(job):
        return
    since_ns = min(map(_since_ns, pods))
    spec = pod_spec(job)
    policy = job.spec.get("podFailurePolicy")
    priority = spec.get("priorityClassName") or "none"
    by = _reported(facts, pods)
    who = None if by is None else _preemptor(facts, by)
    yield Case(
        PREEMPTED,
        job.target,
        f"went on after {counted(len(pods), 'pod')} of it gave way to pods of higher priority",
        since_ns,
        max(map(_since_ns, pods)),
        f"{named([pod.name for pod in pods])} ({pods[0].disruption}, {clock(since_ns)})"
        + (f"; Event: {shortened(by)}" if by else "; the record does not tell to which")
        + (f" (that is {_of(who)})" if who else "")
        + f"; its priorityClassName: {priority}{toward_limit(job)}",
        job.cronjob,
        evidence={
            "pods": [pod.name for pod in pods],
            "reason": pods[0].disruption,
            "by": by,
            "preemptor": None if who is None else f"{who.namespace}/{who.pod}",
        },
        todo=_HIGHER
        + (_IGNORE if not policy and spec.get("restartPolicy") == "Never" else "")
        + ".",
    )


def _since_ns(pod: Pod) -> int:
    shown = pod.last.true("DisruptionTarget")
    return int((shown and shown["last_transition_ns"]) or pod.last.at_ns)


def _preemptor(facts: Facts, by: str) -> Preemptor | None:
    """The pod whose uid those words have."""
    return next((facts.preemptors[word] for word in by.split() if word in facts.preemptors), None)


def _of(who: Preemptor) -> str:
    owner = f" of {who.owner_kind} {who.owner}" if who.owner else ""
    return f"{who.namespace}/{who.pod}{owner}"


def _reported(facts: Facts, pods: list[Pod]) -> str | None:
    """The scheduler's or the kubelet's own words, of the first pod that has some."""
    return next(
        (
            str(event.row["message"])
            for pod in pods
            for event in facts.events_of_pod(pod)
            if event.row["reason"] in ("Preempted", "Preempting") and event.row["message"]
        ),
        None,
    )
