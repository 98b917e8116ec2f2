"""Lies about which pods the controller deleted, and about when it acted.

A sync that comes early or late takes all that follows it in its Job along: pods answer a deletion,
later timers count from what happened before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from .pods import created_pods, twin_event
from .record import (
    FINALIZER,
    NS_PER_S,
    Edit,
    JobLife,
    Lie,
    Life,
    Record,
    active,
    copy_of,
    deleting,
    finalized,
    owner_uid,
    phase,
    pick,
    ready,
    shifted,
    stamp,
    told,
)

ACTIONS = ("pod-delete", "status-update", "finalizer-removal", "pod-create", "event")


def deletions(record: Record) -> Iterator[tuple[JobLife, Life, int, str]]:
    """Every deletion by the Job controller (an Event says so), and what it was for."""
    for job in record.jobs:
        for pod in job.pods():
            if not record.pod_event(job, "SuccessfulDelete", pod.name):
                continue
            for p in range(1, len(pod.rows)):
                gone = pod.kind(p) == "DELETED" or deleting(pod.obj(p))
                if gone and not deleting(pod.obj(p - 1)):
                    # One that had ended by then need not have been deleted: caches may show it.
                    if active(pod.obj(p - 1)):
                        yield job, pod, p, _purpose(job, pod.rv(p))
                    break


def _purpose(job: JobLife, rv: int) -> str:
    at = job.position_at(rv)
    if at >= 0 and job.obj(at)["spec"].get("suspend"):
        return "suspend"
    following = next((w for w in job.writes() if job.rv(w) > rv), None)
    if following is not None:
        for kind in ("FailureTarget", "Failed", "SuccessCriteriaMet", "Complete"):
            condition = job.condition(following, kind)
            if condition is not None:
                return str(condition.get("reason") or "success")
    return "scale"


def _removal_before(pod: Life, p: int) -> int:
    """The row from which on the deletion shows: the finalizer goes first in manageJob."""
    first = p
    while first > 1 and not finalized(pod.obj(first - 1)) and finalized(pod.obj(0)):
        if finalized(pod.obj(first - 2)):
            return first - 1
        first -= 1
    return p


def _missing(kind: str, purposes: tuple[str, ...]) -> Any:
    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = [d for d in deletions(record) if d[3] in purposes]
        choice = pick(rng, choices)
        if choice is None:
            return None
        job, pod, p, why = choice
        edit.drop(pod.rows[_removal_before(pod, p) :])
        edit.drop(record.pod_event(job, "SuccessfulDelete", pod.name))
        what = f"the deletion of pod {pod.name} ({why}) did not happen; the pod stays as it was"
        return told(kind, job, what, ACTIONS, rv=pod.rv(p))

    return plant


def _as(identity: Life, at: int, row: dict[str, Any]) -> dict[str, Any]:
    """The row's events in life, told of another pod."""
    theirs = copy_of(identity.obj(at))
    mine = row["object"]
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "finalizers"):
        theirs["metadata"].pop(key, None)
        if key in mine["metadata"]:
            theirs["metadata"][key] = mine["metadata"][key]
    theirs["metadata"]["resourceVersion"] = mine["metadata"]["resourceVersion"]
    theirs["status"] = mine["status"]
    if "nodeName" in mine["spec"]:
        theirs["spec"]["nodeName"] = mine["spec"]["nodeName"]
    return theirs


def _rank(pod: Life, p: int) -> tuple[bool, ...]:
    """How much the controller wants to keep a pod, as far as it is certain."""
    obj = pod.obj(p)
    return ("nodeName" in obj["spec"], phase(obj) == "Running", ready(obj))


def wrong_pod(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """Scaling down deletes a pod that ranks higher than one that is kept."""
    choices = []
    for job, pod, p, why in deletions(record):
        if why != "scale":
            continue
        first = _removal_before(pod, p)
        for other in job.pods():
            at = other.position_at(pod.rv(first))
            if other is pod or at < 0 or not active(other.obj(at)) or other.kind(at) == "DELETED":
                continue
            if record.pod_event(job, "SuccessfulDelete", other.name):
                continue
            if not finalized(other.obj(at)):
                continue
            better = _rank(other, at) > _rank(pod, first - 1)
            if better or _index_rank(job, pod, other):
                choices.append((job, pod, first, other, at))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod, first, other, at = choice
    for i in pod.rows[first:]:
        edit.row(i)["object"] = _as(other, at, copy_of(record.rows[i]))
    for i in other.rows[at + 1 :]:
        edit.row(i)["object"] = _as(pod, first - 1, copy_of(record.rows[i]))
    for i in record.pod_event(job, "SuccessfulDelete", pod.name):
        edit.obj(i)["message"] = f"Deleted pod: {other.name}"
    swap = {pod.uid: other.uid, other.uid: pod.uid}
    for i in job.rows:
        lists = record.rows[i]["object"].get("status", {}).get("uncountedTerminatedPods")
        if lists:
            edit.obj(i)["status"]["uncountedTerminatedPods"] = {
                side: [swap.get(uid, uid) for uid in uids] for side, uids in lists.items()
            }
    what = f"scaling down deletes pod {other.name}, which ranks above {pod.name}"
    return told("deletion-wrong-pod", job, what, ACTIONS, rv=pod.rv(first))


def _index_rank(job: JobLife, pod: Life, other: Life) -> bool:
    """Whether the deleted pod's index is out of range and the other's is not."""
    from .pods import index_of  # noqa: PLC0415

    mine, theirs = index_of(pod), index_of(other)
    if mine is None or theirs is None:
        return False
    at = job.position_at(pod.rv(len(pod.rows) - 1))
    completions = job.obj(at)["spec"].get("completions") or 0
    return mine >= completions > theirs


def _extra(kind: str, *, event: bool, finalizer_first: bool) -> Any:
    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = []
        for job, pod in created_pods(record):
            for p in range(1, len(pod.rows) - 1):
                if active(pod.obj(p)) and finalized(pod.obj(p)) and ready(pod.obj(p)):
                    choices.append((job, pod, p))
        choice = pick(rng, choices)
        if choice is None:
            return None
        job, pod, p = choice
        i = pod.rows[p]
        edit.drop(pod.rows[p + 1 :])
        at = record.rows[i]["recv"]
        if finalizer_first:
            obj = edit.insert_beside(record.rows[i], i, ns=30_000_000)
            _unfinalized(obj)
        obj = edit.insert_beside(record.rows[i], i, ns=35_000_000)
        _doomed(obj, at)
        if finalizer_first:
            _unfinalized(obj)
            last = edit.insert_beside(record.rows[i], i, ns=40_000_000)
            _doomed(last, at)
            _unfinalized(last)
            edit.inserted[-1][3]["type"] = "DELETED"
        if event:
            model = record.pod_event(job, "SuccessfulCreate", pod.name)
            if not model:
                return None
            obj = twin_event(
                record,
                edit,
                rng,
                model[0],
                reason="SuccessfulDelete",
                message=f"Deleted pod: {pod.name}",
                count=1,
            )
            edit.inserted[-1][3]["recv"] = at + 50_000_000
        said = " and says so" if event else ", without an Event"
        what = f"the controller deletes pod {pod.name}{said}"
        doubt = "" if event else "a user could have deleted the pod"
        return told(kind, job, what, ACTIONS, rv=pod.rv(p), doubt=doubt)

    return plant


def _unfinalized(obj: dict[str, Any]) -> None:
    rest = [f for f in obj["metadata"].get("finalizers", ()) if f != FINALIZER]
    obj["metadata"]["finalizers"] = rest
    if not rest:
        del obj["metadata"]["finalizers"]


def _doomed(obj: dict[str, Any], at_ns: int) -> None:
    grace = obj["spec"].get("terminationGracePeriodSeconds", 30)
    obj["metadata"]["deletionTimestamp"] = shifted(stamp(at_ns), grace)
    obj["metadata"]["deletionGracePeriodSeconds"] = grace


def claimed(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A deletion by somebody else gets an Event of the Job controller."""
    ours = {pod.uid for _, pod, _, _ in deletions(record)}
    choices = []
    for job, pod in created_pods(record):
        for p in range(1, len(pod.rows)):
            if deleting(pod.obj(p)) and not deleting(pod.obj(p - 1)) and pod.uid not in ours:
                model = record.pod_event(job, "SuccessfulCreate", pod.name)
                at = job.position_at(pod.rv(p))
                gone = at < 0 or job.kind(at) == "DELETED" or deleting(job.obj(at))
                if model and not gone:
                    choices.append((job, pod, p, model[0]))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, pod, p, model = choice
    obj = edit.insert_beside(record.rows[model], pod.rows[p], ns=20_000_000)
    obj["reason"], obj["message"], obj["count"] = "SuccessfulDelete", f"Deleted pod: {pod.name}", 1
    obj["metadata"]["uid"] = f"{rng.getrandbits(32):08x}" + obj["metadata"]["uid"][8:]
    obj["metadata"]["name"] = f"{job.name}.{rng.getrandbits(60):016x}"
    obj["involvedObject"]["resourceVersion"] = str(job.rv(job.position_at(pod.rv(p))))
    what = f"the Job controller says that it deleted pod {pod.name}, which somebody else did"
    return told("deletion-claimed", job, what, ACTIONS, rv=pod.rv(p))


# Timing: a sync's writes, moved as a block.


def _mine(record: Record, job: JobLife) -> list[int]:
    """Rows of the Job, its pods and its Events, in time order."""
    rows = [*job.rows, *job.events()]
    for pod in job.pods():
        rows += pod.rows
    return sorted(rows, key=lambda i: (record.rows[i]["recv"], record.rv_of(i)))


def _controllers(record: Record, job: JobLife, i: int) -> bool:
    """Whether the row is a write of the Job controller, by its shape."""
    row = record.rows[i]
    if row["resource"] == "events":
        return True
    if row["resource"] == "jobs":
        return job.rows.index(i) in job.writes()
    pod = record.pods[row["object"]["metadata"]["uid"]]
    p = pod.rows.index(i)
    if p == 0:
        return owner_uid(pod.obj(0)) == job.uid
    was, now = pod.obj(p - 1), pod.obj(p)
    if row["type"] == "DELETED":
        return False
    return finalized(was) != finalized(now) or deleting(was) != deleting(now)


def tail_of(record: Record, job: JobLife, anchor: int) -> tuple[list[int], int]:
    """Every row of the Job from the sync of `anchor` on, and the free time before it."""
    rows = _mine(record, job)
    low = rows.index(anchor)
    recv = [record.rows[i]["recv"] for i in rows]
    while (
        low > 0
        and recv[low] - recv[low - 1] < NS_PER_S // 4
        and _controllers(record, job, rows[low - 1])
    ):
        low -= 1
    return rows[low:], recv[low] - recv[low - 1] if low else 0


def _moved(
    kind: str,
    what: str,
    seconds: float,
    anchors: Callable[[Record], Iterator[tuple[JobLife, int]]],
    *,
    verdicts: tuple[str, ...],
    doubt: str = "",
) -> Any:
    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = list(anchors(record))
        rng.shuffle(choices)
        delta = int(seconds * NS_PER_S)
        for job, anchor in choices:
            tail, before = tail_of(record, job, anchor)
            if before < NS_PER_S // 2 or before + delta < NS_PER_S // 50:
                continue
            if record.rows[tail[-1]]["recv"] + delta > record.end_ns - 20 * NS_PER_S:
                continue
            if record.handover_near(record.rows[anchor]["recv"], abs(delta) + 30 * NS_PER_S):
                continue  # a new process knows nothing of what the old one waited for
            edit.move(tail, delta)
            said = f"{what}: {len(tail)} rows from there on moved by {seconds:+g} s"
            return told(kind, job, said, ACTIONS, verdicts, rv=record.rv_of(anchor), doubt=doubt)
        return None

    return plant


def _deadlines(record: Record) -> Iterator[tuple[JobLife, int]]:
    for job in record.jobs:
        for p in job.writes():
            for kind in ("FailureTarget", "Failed"):
                condition = job.condition(p, kind)
                if (
                    condition
                    and condition.get("reason") == "DeadlineExceeded"
                    and not job.condition(p - 1, kind)
                    and not job.condition(p - 1, "FailureTarget")
                ):
                    yield job, job.rows[p]


def _retries(record: Record) -> Iterator[tuple[JobLife, int]]:
    """Creations that waited for a back-off of 10 s or more."""
    for job, pod in created_pods(record):
        at = pod.recv(0)
        if pod is job.pods()[0]:
            continue
        mine = [i for i in _mine(record, job) if record.rows[i]["recv"] < at]
        if not mine or at - record.rows[mine[-1]]["recv"] < 6 * NS_PER_S:
            continue
        here = job.position_at(pod.rv(0))
        if here >= 0 and job.status(here).get("failed"):
            yield job, pod.rows[0]


def _counting(record: Record) -> Iterator[tuple[JobLife, int]]:
    """Writes of a sync that pods' finishing woke, in a quiet Job."""
    for job in record.jobs:
        for p in job.writes():
            if p > job.writes()[0]:
                yield job, job.rows[p]


def _first_creates(record: Record) -> Iterator[tuple[JobLife, int]]:
    for job, pod in created_pods(record):
        first = job.writes()[0]
        if pod.rv(0) < job.rv(first):
            yield job, pod.rows[0]


def _batched(record: Record) -> Iterator[tuple[JobLife, int]]:
    """Status writes that follow a pod's change by about the batch period, and nothing else."""
    for job in record.jobs:
        rows = _mine(record, job)
        for p in job.writes()[1:]:
            i = job.rows[p]
            at = record.rows[i]["recv"]
            near = [
                k
                for k in rows
                if 0 < at - record.rows[k]["recv"] < 3 * NS_PER_S
                and record.rows[k]["resource"] != "events"
            ]
            if near and at - record.rows[near[-1]]["recv"] > 0.9 * NS_PER_S:
                yield job, i


KINDS = {
    "deletion-missing-suspend": _missing("deletion-missing-suspend", ("suspend",)),
    "deletion-missing-scale": _missing("deletion-missing-scale", ("scale",)),
    "deletion-missing-deadline": _missing("deletion-missing-deadline", ("DeadlineExceeded",)),
    "deletion-missing-backoff": _missing(
        "deletion-missing-backoff",
        ("BackoffLimitExceeded", "MaxFailedIndexesExceeded", "FailedIndexes"),
    ),
    "deletion-missing-policy": _missing(
        "deletion-missing-policy", ("PodFailurePolicy", "SuccessPolicy")
    ),
    "deletion-wrong-pod": wrong_pod,
    "deletion-extra": _extra("deletion-extra", event=True, finalizer_first=True),
    "deletion-extra-active": _extra("deletion-extra-active", event=True, finalizer_first=False),
    "deletion-extra-silent": _extra("deletion-extra-silent", event=False, finalizer_first=True),
    "deletion-extra-silent-active": _extra(
        "deletion-extra-silent-active", event=False, finalizer_first=False
    ),
    "deletion-claimed": claimed,
    "deadline-early": _moved(
        "deadline-early",
        "the deadline strikes too early",
        -2,
        _deadlines,
        verdicts=("early", "different"),
    ),
    "deadline-late": _moved(
        "deadline-late",
        "the deadline strikes too late",
        20,
        _deadlines,
        verdicts=("late", "missing"),
    ),
    "retry-early": _moved(
        "retry-early",
        "a creation before its back-off is over",
        -4,
        _retries,
        verdicts=("early", "extra"),
    ),
    "retry-late": _moved(
        "retry-late",
        "a creation long after its back-off",
        30,
        _retries,
        verdicts=("late", "missing"),
    ),
    "sync-late": _moved(
        "sync-late",
        "a sync long after what woke it",
        45,
        _counting,
        verdicts=("late", "missing"),
        doubt="a controller that is throttled or paused does act late",
    ),
    "first-sync-late": _moved(
        "first-sync-late",
        "the first sync long after the Job was created",
        45,
        _first_creates,
        verdicts=("late", "missing"),
        doubt="a controller that is throttled or paused does act late",
    ),
    "batch-early": _moved(
        "batch-early",
        "a sync before the batch period of 1 s is over",
        -0.85,
        _batched,
        verdicts=("early",),
        doubt="anything else that wakes the key unseen (a resync, an error retry)",
    ),
}
