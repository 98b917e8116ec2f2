"""TK450: pods of a Job that others ended, while the Job went on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tracekit.answers.endings import (
    Cause,
    Ending,
    ending_of,
    had_succeeded,
    how_disrupted,
    job_over_ns,
    pod_spec,
    toward_limit,
    went_on,
)
from tracekit.answers.findings.evictors import ended_by, evictions_unseen, off_node, taken_by
from tracekit.answers.findings.job_failures import EVICTED, against_disruption
from tracekit.answers.findings.nodes import also, signs_of_pods, signs_of_unseen
from tracekit.answers.findings.preempted import PREEMPTIONS
from tracekit.answers.findings.unplaced import quoted
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.remedies import DONE_AGAIN, READMITTED, of_refusal
from tracekit.answers.trace_model import Facts, Job, Pod
from tracekit.answers.words import clock, counted, named, shortened

TAKEN = Rule(
    "TK450", "pods of a Job that goes on which others ended", Severity.INFO,
    "A pod of a Job that did not fail was refused by its kubelet, went with its node, or has the "
    "condition DisruptionTarget (not by preemption: TK448); the Job is Complete or has another pod "
    "that lives.",
    "None: the Job went on. What those pods had done is lost, and each may count toward "
    "backoffLimit.",
    EVICTED.todo, rank=64,
)  # fmt: skip
_BY_POLICY: Final = (
    "Nothing has to be done: the Job went on, and its podFailurePolicy decides whether that counts."
)
_BY_OTHERS: Final = (Cause.REFUSED_BY_KUBELET, Cause.NODE_SHUTDOWN, Cause.DISRUPTED)


def taken_pods(facts: Facts, job: Job) -> Iterator[Case]:
    """A case for each cause; why a Job failed or has no pod is told elsewhere."""
    if not went_on(job):
        return
    found: dict[tuple[Cause, str, bool], list[tuple[Pod, Ending]]] = {}
    for pod in job.pods:
        ending = ending_of(pod)
        if ending is not None and ending.cause in _BY_OTHERS and pod.disruption not in PREEMPTIONS:
            key = (ending.cause, ending.reason, had_succeeded(pod))
            found.setdefault(key, []).append((pod, ending))
    for (cause, reason, succeeded), entries in found.items():
        pods = [pod for pod, _ in entries]
        message = entries[0][1].message
        yield _case(facts, job, pods, Ending(cause, reason, message, entries[0][1].evidence),
                    succeeded=succeeded and cause is Cause.REFUSED_BY_KUBELET)  # fmt: skip


def _case(facts: Facts, job: Job, pods: list[Pod], ending: Ending, *, succeeded: bool) -> Case:
    by = taken_by(facts, job, pods)
    said = f": {shortened(ending.message)}" if ending.message else ""
    said += off_node(pods) + also(signs_of_pods(facts, pods)) if by is None else f"; {by.said}"
    known_ns = [at_ns for pod in pods if (at_ns := _ended_ns(pod))]
    seen_ns = [pod.end.at_ns for pod in pods if pod.end is not None]
    when = f", {clock(min(known_ns))}" if known_ns else ""
    return Case(
        TAKEN,
        job.target,
        _claim(ending, succeeded=succeeded),
        min(known_ns or seen_ns),
        max(known_ns or seen_ns),
        f"{counted(len(pods), 'pod')} ({named([pod.name for pod in pods])}{when}){said}"
        + _counts(job, succeeded=succeeded),
        job.cronjob,
        thread=126341 if succeeded else None,
        evidence={
            "pods": [pod.name for pod in pods],
            "cause": ending.cause.value,
            "reason": ending.reason,
            "message": ending.message,
            "from": ending.evidence.value,
        },
        todo=_todo(job, pods, ending, succeeded=succeeded) if by is None else by.todo,
    )


def _ended_ns(pod: Pod) -> int | None:
    """When it was ended; None where the first look came later, and nothing tells it."""
    shown = pod.last.true("DisruptionTarget") or {}
    if shown.get("last_transition_ns"):
        return int(shown["last_transition_ns"])
    finished = [int(c["finished_ns"] or 0) for c in pod.last.row["containers"] or ()]
    if any(finished):
        return max(finished)
    return pod.ended_ns if pod.end is not pod.first else None


def _claim(ending: Ending, *, succeeded: bool) -> str:
    if ending.cause is not Cause.REFUSED_BY_KUBELET:
        return f"went on after a disruption: {how_disrupted(ending)}"
    if succeeded:
        return f"had pods that the kubelet refused after they had succeeded ({ending.reason})"
    return f"went on after the kubelet refused pods of it ({ending.reason})"


def _counts(job: Job, *, succeeded: bool) -> str:
    if job.ended_ns is not None and succeeded:
        return f"; the Job is Complete all the same ({job.last.number('succeeded')} succeeded)"
    return toward_limit(job)


def _todo(job: Job, pods: list[Pod], ending: Ending, *, succeeded: bool) -> str | None:
    if succeeded:
        return READMITTED if job.ended_ns is not None else f"{DONE_AGAIN} {READMITTED}"
    if ending.cause is Cause.REFUSED_BY_KUBELET:
        return of_refusal(ending.reason, ending.message)
    if job.spec.get("podFailurePolicy"):
        return _BY_POLICY
    return against_disruption(pods, never=pod_spec(job).get("restartPolicy") == "Never")


def taken_unseen(facts: Facts, job: Job) -> Iterator[Case]:
    """The same of pods that nobody saw: Events say that others ended them before their Job did."""
    if not went_on(job):
        return
    over_ns = job_over_ns(job) or facts.end_ns
    events = [event for event in evictions_unseen(facts, job) if event.first_ns <= over_ns]
    if not events:
        return
    first = events[0]
    reason, names = str(first.row["reason"]), [str(e.row["involved_name"]) for e in events]
    signs = signs_of_unseen(facts, facts.events_of_named(job), first.last_ns)
    by = ended_by(first.row)
    taken = taken_by(facts, job, ())
    todo = _BY_POLICY if job.spec.get("podFailurePolicy") else None
    yield Case(
        TAKEN,
        job.target,
        f"went on after {by.name if by else 'others'} ended pods of it, as Events tell ({reason})",
        first.first_ns,
        max(event.last_ns for event in events),
        f"{named([*dict.fromkeys(names)])}; {quoted(first)}{also(signs)}"
        + _counts(job, succeeded=False),
        job.cronjob,
        evidence={"pods": names, "reason": reason, "message": first.row["message"]},
        todo=todo or (taken.todo if taken else None),
    )
