"""Lies in which the controller leaves off: nothing of it is recorded after some moment."""

from __future__ import annotations

import random
from typing import Any

from .record import (
    FINALIZER,
    NS_PER_S,
    Edit,
    JobLife,
    Lie,
    Life,
    Record,
    copy_of,
    deleting,
    finalized,
    owner_uid,
    pick,
    terminal,
    told,
)

ACTIONS = ("status-update", "pod-create", "pod-delete", "finalizer-removal")


def _hush(record: Record, edit: Edit, job: JobLife, rv: int) -> None:
    """Drop every write of the Job controller for one Job above `rv`; others' stay."""
    last = job.position_at(rv)
    status = job.obj(last).get("status", {})
    for p in range(last + 1, len(job.rows)):
        if p in job.writes():
            edit.drop([job.rows[p]])
        else:
            edit.obj(job.rows[p])["status"] = copy_of(status)
    for i in job.events():
        if record.rv_of(i) > rv:
            edit.drop([i])
    for pod in job.pods():
        _hush_pod(record, edit, job, pod, rv)


def _hush_pod(record: Record, edit: Edit, job: JobLife, pod: Life, rv: int) -> None:
    if pod.rv(0) > rv:
        edit.drop(pod.rows)
        edit.drop(record.events_naming(pod, None))
        return
    ours = bool(record.pod_event(job, "SuccessfulDelete", pod.name))
    for p in range(1, len(pod.rows)):
        if pod.rv(p) <= rv:
            continue
        was, now = pod.obj(p - 1), pod.obj(p)
        if ours and deleting(now) and not deleting(was):
            edit.drop(pod.rows[p:])
            return
        if owner_uid(was) == job.uid and finalized(was) and not finalized(now):
            edit.drop([pod.rows[p]])
            edit.change(pod, p + 1, None, _held)
            if pod.deleted:
                edit.drop([pod.rows[-1]])


def _held(obj: dict[str, Any]) -> None:
    kept = obj["metadata"].get("finalizers", [])
    if FINALIZER not in kept:
        obj["metadata"]["finalizers"] = [*kept, FINALIZER]


def _quiet(record: Record, job: JobLife) -> bool:
    """Whether the record goes on for long after the Job's last row, and no one deletes it."""
    return not job.deleted and record.end_ns - job.recv(-1) > 30 * NS_PER_S


def from_start(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The controller never acts on a Job."""
    choices = [
        j
        for j in record.jobs
        if _quiet(record, j) and j.kind(0) == "ADDED" and j.pods() and not j.spec.get("suspend")
    ]
    job = pick(rng, choices)
    if job is None:
        return None
    _hush(record, edit, job, job.rv(0))
    what = "the controller never acts on the Job"
    return told("silent-from-start", job, what, ACTIONS, ("missing",), rv=job.rv(0))


def midway(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The controller leaves off while pods go on to finish."""
    choices = []
    for job in record.jobs:
        if not _quiet(record, job):
            continue
        for p in job.writes()[:-1]:
            rv = job.rv(p)
            pods = [q for q in job.pods() if q.position_at(rv) >= 0]
            moved = any(
                terminal(q.obj(-1)) and not terminal(q.obj(q.position_at(rv))) for q in pods
            )
            if moved:
                choices.append((job, rv))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, rv = choice
    _hush(record, edit, job, rv)
    what = f"nothing of the controller is recorded for the Job after resourceVersion {rv}"
    return told("silent-midway", job, what, ACTIONS, ("missing",), rv=rv)


def last_sync(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The last sync of a Job, from its first write to its last, is not recorded."""
    choices = []
    for job in record.jobs:
        f = job.finished_at()
        if not _quiet(record, job) or f is None:
            continue
        before = [w for w in job.writes() if job.recv(f) - job.recv(w) > NS_PER_S // 2]
        if before:
            choices.append((job, job.rv(before[-1])))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, rv = choice
    _hush(record, edit, job, rv)
    what = f"the last sync of the Job, after resourceVersion {rv}, is not recorded"
    return told("silent-last-sync", job, what, ACTIONS, ("missing",), rv=rv)


def ignores_edit(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The controller never answers a user's edit of the spec."""
    choices = []
    for job in record.jobs:
        for p in range(1, len(job.rows)):
            if job.obj(p)["spec"] != job.obj(p - 1)["spec"] and _quiet(record, job):
                choices.append((job, job.rv(p)))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, rv = choice
    _hush(record, edit, job, rv)
    what = f"the controller never answers the edit at resourceVersion {rv}"
    doubt = "the edit may ask for nothing"
    return told("silent-after-edit", job, what, ACTIONS, ("missing",), rv=rv, doubt=doubt)


KINDS = {
    "silent-from-start": from_start,
    "silent-midway": midway,
    "silent-last-sync": last_sync,
    "silent-after-edit": ignores_edit,
}
