"""TK412, TK440: Jobs that are being deleted and do not go, or are going to be deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracekit.answers.findings.controllers import FINALIZER_LEFT
from tracekit.answers.harm import HOLDS
from tracekit.answers.holders import controller_of, domain_of
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import TRACKING, Facts, Job, Pod
from tracekit.answers.waits import Wait, held_by
from tracekit.answers.words import clock, in_kubectl, named, off
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S

#: A deletion that finalizers hold for so long is stuck. A choice, as TK412 says it: with less a
#: deletion that goes on is told, with more the finding comes later.
HELD_NS = 30 * NS_PER_S
_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"
#: Finalizers that the garbage collector takes off.
_GARBAGE_COLLECTORS = frozenset({_FOREGROUND, _ORPHAN})

HELD = Rule(
    "TK412", "being deleted, and held by a finalizer", Severity.WARNING,
    "The Job has a deletionTimestamp for 30 s or more and finalizers that nobody takes off.",
    "A foreground deletion whose pods have a long grace period.",
    "Find out whose finalizer it is and why its owner does not take it off.",
    rank=22, losses=HOLDS,
)  # fmt: skip
INVALID_OWNER = Rule(
    "TK440", "an owner that is not in the namespace", Severity.WARNING,
    "The garbage collector tells of the Job (Event OwnerRefInvalidNamespace) that the object which "
    "an ownerReference of it names is not in its namespace: it takes such an owner for absent, and "
    "deletes the Job.",
    "None known.",
    "Create the Job in the namespace of its owner, or without that ownerReference.",
    65200, rank=9,
)  # fmt: skip
RULES = (HELD, INVALID_OWNER)


def held(facts: Facts, job: Job) -> Iterator[Case]:
    """A Job whose deletion was asked for, and that finalizers keep."""
    asked = job.first_at(lambda s: s.row["deleted_ns"] is not None and not s.gone)
    if asked is None:
        return
    until_ns = job.gone_ns or facts.as_of(job.namespace, "jobs")
    holders = [f for f in job.last.finalizers if f != _FOREGROUND] or list(asked.finalizers)
    asked_ns = asked.at_ns
    if asked is job.first:  # the look came later: the object tells when
        grace_ns = int(asked.row["deletion_grace_s"] or 0) * NS_PER_S
        asked_ns = min(asked_ns, int(asked.row["deleted_ns"]) - grace_ns)
    since_ns = asked_ns
    if set(holders) <= _GARBAGE_COLLECTORS:
        since_ns = facts.led_since(since_ns, until_ns)  # it leads and rests with the others
        if any(w.wait is Wait.TERMINATING for w in held_by(facts, job)):
            return  # TK430 names the pod that it waits for
    if until_ns - since_ns >= HELD_NS:
        left = [pod.name for pod in job.pods if not pod.last.gone]
        tracked = [pod for pod in job.pods if pod.end is not None and _is_held(pod)]
        cause = FINALIZER_LEFT if tracked and _FOREGROUND in holders and job.end else None
        yield Case(
            HELD,
            job.target,
            f"was asked to go, and is held by the finalizer {named(holders)}",
            asked_ns,
            until_ns,
            f"for {span(until_ns - asked_ns)} from {clock(asked_ns)} on",
            job.cronjob,
            evidence={"finalizers": holders, "pods": left},
            todo=_todo(job, holders, left) if cause is None else _WAITS_FOR_PODS,
            cause=cause,
        )


def _is_held(pod: Pod) -> bool:
    """Whether a pod that was asked to go has the Job controller's finalizer still."""
    asked = pod.last.row["deleted_ns"] is not None and not pod.last.gone
    return asked and TRACKING in pod.last.finalizers


_WAITS_FOR_PODS = "The Job goes once these pods have."


def _todo(job: Job, holders: Sequence[str], pods: list[str]) -> str | None:
    """Whom to ask about a finalizer: one that is taken off by hand leaves its work undone."""
    if _ORPHAN in holders or _FOREGROUND in holders:
        waits = f" It waits for {named(pods)}." if pods and _FOREGROUND in holders else ""
        return (
            "The garbage collector of the controller manager takes it off: see whether that runs "
            f"and reaches every API group (kubectl api-resources).{waits}"
        )
    domains = {domain for name in holders if (domain := domain_of(name))}
    if not domains:
        return None
    owners = [controller_of(domain) for domain in sorted(domains)]
    theirs = next(name for name in holders if domain_of(name))
    return (
        f"See whether {named(owners)} runs, and what its log says of the Job. "
        "Only if it is gone for good: kubectl patch job "
        f"{in_kubectl(job.namespace, job.name)} {off(theirs, job.last.finalizers)}"
    )


def invalid_owner(facts: Facts, job: Job) -> Iterator[Case]:
    """A Job of which the garbage collector says that its owner is not in its namespace."""
    events = facts.owner_events_of.get(job.uid, ())
    if not events:
        return
    event = events[-1].row
    since_ns = events[0].first_ns
    what = "was" if job.gone_ns is not None else "is to be"
    yield Case(
        INVALID_OWNER,
        job.target,
        f"{what} deleted by the garbage collector: its owner is not in its namespace",
        since_ns,
        job.gone_ns or facts.end_ns,
        f"{clock(since_ns)}: {event['message']}",
        job.cronjob,
        evidence={"message": event["message"]},
    )
