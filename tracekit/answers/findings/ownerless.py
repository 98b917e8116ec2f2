"""TK204, TK423, TK452: what is left of an owner that is not there: held, or left to itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tracekit.answers.findings.controllers import FINALIZER_LEFT
from tracekit.answers.looks import looked_at
from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.trace_model import TRACKING, Facts, Job, Pod
from tracekit.answers.words import clock, in_kubectl, off
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S

#: So long after its deletion a pod is held. A choice: the controller takes the finalizer off within
#: seconds, and comes back to what it did not reach within minutes.
_HELD_NS = 300 * NS_PER_S
#: So old a pod is when its Job is missed. A choice: above what a server's clock and the time of a
#: file differ by, and what the garbage collector takes.
_MISSED_NS = 60 * NS_PER_S

OUTLIVED = Rule(
    "TK423", "pods that outlive their Job, Jobs that outlive their CronJob", Severity.WARNING,
    "5 s or more after the Job was gone a pod of it is still there that nobody has asked to go; "
    "or 30 s after, one that a finalizer (not the Job controller's) holds. Not where the deletion "
    "was to orphan the pods. Or lists that tell what they asked for have a pod, 60 s old or more "
    "and not being deleted, and not the Job that owns it; only info where those pods have ended. "
    "The same of Jobs and the CronJob that owns them. Only info where one other is all that was "
    "listed: it may have been asked for by its name.",
    "A garbage collector with a long queue.",
    "Check that the garbage collector runs (kube-controller-manager --controllers) and reaches "
    "every API group; delete the pods by hand.",
    118834, rank=12,
)  # fmt: skip


#: Upstream: pkg/registry/batch/job/strategy.go (DefaultGarbageCollectionPolicy of batch/v1).
_PROPAGATION = (
    "Who deletes a Job through the API without a propagationPolicy (or with --cascade=orphan) "
    "leaves its pods so: pass Background, as kubectl does."
)
ORPHANED = Rule(
    "TK452", "pods that a deleted Job left without an owner", Severity.WARNING,
    "Lists that tell what they asked for have a pod, 60 s old or more and not being deleted, with "
    "the labels that the Job controller gives and no owner, and no Job of that name; only info "
    "where it has ended.",
    "Somebody who copied a pod with its labels.",
    f"Nothing deletes it by itself: kubectl delete pod NAME. {_PROPAGATION}", rank=12,
)  # fmt: skip


def ownerless(facts: Facts) -> Iterator[Case]:
    """The cases about pods whose Job is not in a record that lists Jobs."""
    yield from _held(facts)
    yield from _left(facts)
    yield from _left_jobs(facts)
    yield from _orphans(facts)


def _strays(facts: Facts) -> Iterator[tuple[Pod, str]]:
    """Pods whose owner is no Job of the record, with that owner's name."""
    names = {(job.namespace, job.name) for job in facts.jobs}
    for pod in facts.strays:
        if not any(state.row["job"] for state in pod.states):
            continue  # of no Job at all
        owner = str(pod.last.row["owner_name"] or "")
        if (pod.namespace, owner) not in names:
            yield pod, owner


def _left(facts: Facts) -> Iterator[Case]:
    """Pods that nobody has asked to go: the garbage collector deletes those of an absent owner."""
    absent = _absent(facts, "jobs")
    for pod, owner in _strays(facts):
        row = pod.last.row
        if pod.last.gone or row["deleted_ns"] is not None or row["owner_kind"] != "Job":
            continue
        as_of_ns = facts.as_of(pod.namespace, "jobs", "pods")
        listed = facts.coverage.sees("jobs", pod.namespace)
        if not listed or as_of_ns - pod.created_ns < _MISSED_NS:
            continue
        if facts.as_of(pod.namespace, "pods") < facts.as_of(pod.namespace, "jobs"):
            continue  # its Job may have gone, and the pod with it, after the pods were looked at
        ended = pod.phase in ("Succeeded", "Failed")
        is_still = "still waits" if pod.phase == "Pending" else "is still running"
        yield Case(
            OUTLIVED,
            Target("Pod", pod.namespace, pod.name, pod.uid),
            f"{'is still there' if ended else is_still}, and its Job is {absent.is_said}",
            pod.created_ns,
            as_of_ns,
            f"{pod.phase}, created at {clock(pod.created_ns)}; its owner, Job {owner}, is not "
            f"among the Jobs that were listed (as of {clock(as_of_ns)})",
            severity=Severity.INFO if ended else absent.severity,
            evidence={"pods": [pod.name], "job": owner},
            todo=f"{absent.todo} kubectl delete pod {in_kubectl(pod.namespace, pod.name)}",
        )


#: Rows of a list that has one object: its begin, that, and its end.
_ONE_LISTED = 3
_COLLECTED = (
    "garbage collector deletes what an absent owner had: see whether it runs "
    "(kube-controller-manager --controllers), else"
)


class _Absent(NamedTuple):
    """An owner that is not listed: what it is said to be, how severe that is, and what to do."""

    is_said: str
    severity: Severity | None
    todo: str


def _absent(facts: Facts, stream: str) -> _Absent:
    """Where one object is all that a record has of a stream, it may have been asked for by name."""
    if facts.streams.get(stream) != _ONE_LISTED:
        return _Absent("gone", None, f"The {_COLLECTED}")
    only = "If it is gone (it may be that only one was asked for): the"
    return _Absent("not the one that is listed", Severity.INFO, f"{only} {_COLLECTED}")


def _left_jobs(facts: Facts) -> Iterator[Case]:
    """Jobs of a CronJob that is not there: nothing starts more of them, nor cleans up."""
    uids = {cron.uid for cron in facts.cronjobs}
    for job in facts.jobs:
        row, space = job.last.row, job.namespace
        if row["owner_kind"] != "CronJob" or row["owner_uid"] in uids:
            continue
        as_of_ns = facts.as_of(space, "jobs")
        crons_ns = facts.as_of(space, "cronjobs") or as_of_ns
        if job.deletion_ns is not None or not _lists(facts, "cronjobs", space, job.created_ns):
            continue
        if as_of_ns - job.created_ns < _MISSED_NS or as_of_ns < crons_ns:
            continue  # its CronJob may have gone, and the Job with it, after Jobs were looked at
        yield _left_job(job, as_of_ns, _absent(facts, "cronjobs"))


def _left_job(job: Job, as_of_ns: int, absent: _Absent) -> Case:
    over, owner = job.ended_ns is not None, job.last.row["owner_name"]
    return Case(
        OUTLIVED, job.target,
        f"is still {'there' if over else 'at work'}, and its CronJob is {absent.is_said}",
        job.created_ns, as_of_ns,
        f"created at {clock(job.created_ns)}; its owner, CronJob {owner}, is not among the "
        f"CronJobs that were listed (as of {clock(as_of_ns)})",
        severity=Severity.INFO if over else absent.severity,
        evidence={"pods": [pod.name for pod in job.pods], "cronjob": owner},
        todo=f"{absent.todo} kubectl delete job {in_kubectl(job.namespace, job.name)}. "
             "No history limit cleans it up any more.",
    )  # fmt: skip


#: The second is what releases before 1.27 set alone.
_JOB_LABELS = ("batch.kubernetes.io/job-name", "job-name")


def labelled_job(pod: Pod) -> str | None:
    """The Job whose name stands in the labels of a pod, that the Job controller gave it."""
    return next((str(pod.labels[name]) for name in _JOB_LABELS if pod.labels.get(name)), None)


def _orphans(facts: Facts) -> Iterator[Case]:
    """Pods with the labels of a Job that is gone, and without an owner: nobody deletes those."""
    names = {(job.namespace, job.name) for job in facts.jobs if job.gone_ns is None}
    absent = _absent(facts, "jobs")
    for pod in facts.strays:
        row, job = pod.last.row, labelled_job(pod)
        if job is None or row["owner_kind"] or pod.last.gone or row["deleted_ns"] is not None:
            continue
        as_of_ns = facts.as_of(pod.namespace, "jobs", "pods")
        if (
            (pod.namespace, job) in names
            or not facts.coverage.sees("jobs", pod.namespace)
            or as_of_ns - pod.created_ns < _MISSED_NS
        ):
            continue
        ended = pod.phase in ("Succeeded", "Failed")
        yield Case(
            ORPHANED, Target("Pod", pod.namespace, pod.name, pod.uid),
            f"is still {'there' if ended else 'at work'}, and has no owner: its Job is "
            f"{absent.is_said}",
            pod.created_ns, as_of_ns,
            f"{pod.phase}, created at {clock(pod.created_ns)}; it has the labels of Job {job}, "
            f"which is not among the Jobs that were listed (as of {clock(as_of_ns)})",
            severity=Severity.INFO if ended else absent.severity,
            evidence={"pods": [pod.name], "job": job},
            todo="Nothing deletes it by itself: kubectl delete pod "
                 f"{in_kubectl(pod.namespace, pod.name)}. {_PROPAGATION}",
        )  # fmt: skip


def _lists(facts: Facts, stream: str, namespace: str, since_ns: int) -> bool:
    """Whether a list that was asked for after a time would have the owner of what came then.

    One empty list that does not say what it asked for is taken to be of the same as the others.
    """
    if not facts.coverage.sees(stream):
        return bool(facts.streams.get(stream)) and stream not in facts.coverage.unseen
    return facts.as_of(namespace, stream) >= since_ns


def is_of_job(pod: Pod) -> bool:
    """Whether a Job owns it, or did."""
    return any(state.row["job"] for state in pod.states)


def held_since(facts: Facts, pod: Pod) -> int | None:
    """Since when an ended pod should be gone that the tracking finalizer keeps; None of others."""
    deleted_ns = pod.last.row["deleted_ns"]
    ended = pod.phase in ("Succeeded", "Failed")
    if not (ended and deleted_ns) or TRACKING not in pod.last.finalizers or pod.last.gone:
        return None
    late_ns = facts.as_of(pod.namespace, "pods") - int(deleted_ns)
    return int(deleted_ns) if late_ns >= _HELD_NS else None


def _held(facts: Facts) -> Iterator[Case]:
    """Ended pods with the tracking finalizer whose Job is not in the record."""
    for pod, owner in _strays(facts):
        since_ns, as_of_ns = held_since(facts, pod), facts.as_of(pod.namespace, "pods")
        born_ns, shown = int(pod.first.row["created_ns"] or 0), looked_at(facts, "jobs")
        if since_ns is None or (shown and not _lists(facts, "jobs", pod.namespace, born_ns)):
            continue
        patch = (
            f"kubectl patch pod {in_kubectl(pod.namespace, pod.name)} "
            f"{off(TRACKING, pod.last.finalizers)}"
        )
        space_ns = facts.terminating.get(pod.namespace)
        with_space = f"; its namespace is being deleted since {clock(space_ns)}" if space_ns else ""
        yield Case(
            FINALIZER_LEFT, Target("Pod", pod.namespace, pod.name, pod.uid),
            f"is held by the tracking finalizer, and its Job {owner} is gone" if shown
            else "was deleted, and is held by the tracking finalizer",
            since_ns, as_of_ns,
            f"{pod.phase}, deletionTimestamp {clock(since_ns)}, {span(as_of_ns - since_ns)} "
            f"ago (as of {clock(as_of_ns)}){with_space}; "
            + ("no such Job in the list" if shown else f"Job {owner} was not looked at"),
            evidence={"pods": [pod.name], "job": owner, "finalizer": TRACKING},
            todo=patch if shown
            else f"See whether its Job is there (kubectl get job {in_kubectl(pod.namespace, owner)}"
                 "): then the controller manager takes it off, if it runs and leads. Once the Job "
                 f"is gone: {patch}",
        )  # fmt: skip
