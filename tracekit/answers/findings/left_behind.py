"""TK423, TK426: pods that a Job which is gone has left behind, also under a new Job of its name."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.answers.findings.deletions import HELD_NS
from tracekit.answers.findings.ownerless import OUTLIVED
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job, Pod
from tracekit.answers.words import clock, named
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S

#: Pods are collected within so long after their Job.
_OUTLIVED_NS = 5 * NS_PER_S

RECREATED = Rule(
    "TK426", "a Job under the name of one whose pods are still there", Severity.WARNING,
    "A Job was created while pods of an earlier Job of the same name (another uid) were not gone.",
    "None known.",
    "Delete with --cascade=foreground and wait, or use generateName.",
    131917, rank=21,
)  # fmt: skip


def outlived(facts: Facts, job: Job) -> Iterator[Case]:
    """The case, if pods of a Job that is gone are left behind."""
    gone_ns = job.gone_ns
    if gone_ns is None or "orphan" in job.last.finalizers or _orphaned(job):
        return
    left: list[tuple[Pod, str]] = []
    as_of_ns = facts.as_of(job.namespace, "pods")
    for pod in job.pods:
        there_ns = pod.gone_ns or as_of_ns
        if not pod.last.row["owner_uid"]:
            continue
        asked_ns = _asked_ns(pod)
        others = [f for f in pod.last.finalizers if not f.startswith("batch.kubernetes.io/")]
        if (asked_ns or as_of_ns) - gone_ns >= _OUTLIVED_NS:
            left.append((pod, "nobody asked them to go"))
        elif others and there_ns - gone_ns >= HELD_NS:
            left.append((pod, f"the finalizer {others[0]} holds them"))
    if left:
        names = [p.name for p, _ in left]
        until_ns = max(p.gone_ns or as_of_ns for p, _ in left)
        yield Case(
            OUTLIVED,
            job.target,
            f"left pods behind: {left[0][1]}",
            gone_ns,
            until_ns,
            f"gone at {clock(gone_ns)}; {named(names)} there for {span(until_ns - gone_ns)} more",
            job.cronjob,
            evidence={"pods": names},
        )


def _asked_ns(pod: Pod) -> int | None:
    """When its deletion was asked for: what the object says of it, if the look came later."""
    seen_ns, deadline_ns = pod.deletion_ns, pod.last.row["deleted_ns"]
    if seen_ns is None or deadline_ns is None:
        return seen_ns
    return min(seen_ns, int(deadline_ns) - int(pod.last.row["deletion_grace_s"] or 0) * NS_PER_S)


def _orphaned(job: Job) -> bool:
    """Whether the deletion was to leave the pods alone."""
    return any("orphan" in s.finalizers for s in job.states)


def recreated(jobs: list[Job]) -> Iterator[Case]:
    """The cases among the Jobs of one name."""
    for job in jobs:
        if not job.seen_from_birth:
            continue
        old = [
            pod
            for other in jobs
            if other.uid != job.uid and other.first.rv < job.first.rv
            for pod in other.pods
            if (state := pod.before(job.first.rv)) is not None and not state.gone
        ]
        if old:
            yield Case(
                RECREATED,
                job.target,
                "was created under the name of a Job whose pods were still there",
                job.first.at_ns,
                job.first.at_ns,
                f"at {clock(job.first.at_ns)}, beside {named([p.name for p in old])}",
                job.cronjob,
                evidence={"pods": [p.name for p in old]},
            )
