"""Lies about whole status writes: one removed, repeated, undone, in another order."""

from __future__ import annotations

import random

from .record import NS_PER_S, Edit, Lie, Record, copy_of, pick, told
from .status import STATUS, grew, still_writes, writes


def write_removed(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """One status write is not in the record, the next one is."""
    choices = [(job, p) for job, p in writes(record) if job.write_after(p) < len(job.rows)]
    rng.shuffle(choices)
    for job, p in choices:
        edit.drop([job.rows[p]])
        if job.write_after(p) == p + 1 and still_writes(edit, job):
            what = "a status write removed from the record"
            doubt = "one sync whose cut is later may write the same in one go"
            return told("status-write-removed", job, what, STATUS, rv=job.rv(p), doubt=doubt)
        edit.dropped.clear()
    return None


def writes_swapped(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """Two consecutive status writes change places."""
    choices = [(job, p) for job, p in writes(record) if job.write_after(p) == p + 1 < len(job.rows)]
    rng.shuffle(choices)
    for job, p in choices:
        first, second = job.rows[p], job.rows[p + 1]
        edit.obj(first)["status"] = copy_of(job.status(p + 1))
        edit.obj(second)["status"] = copy_of(job.status(p))
        if still_writes(edit, job):
            what = "two consecutive status writes changed places"
            return told("status-writes-swapped", job, what, STATUS, rv=job.rv(p))
        edit.replaced.clear()
    return None


def counted_twice(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A further status write counts a pod again; later revisions carry it on."""
    choices = []
    for job, p in writes(record):
        for name in ("succeeded", "failed"):
            if grew(name)(job, p) and job.kind(len(job.rows) - 1) != "DELETED":
                choices.append((job, p, name))
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, p, name = choice
    obj = edit.insert_beside(record.rows[job.rows[p]], job.rows[p], ns=3_000_000)
    obj["status"][name] += 1
    for i in job.rows[p + 1 :]:
        edit.obj(i)["status"][name] = edit.obj(i)["status"].get(name, 0) + 1
    what = f"status.{name} is raised a second time by a write of its own"
    return told("status-counted-twice", job, what, STATUS, rv=job.rv(p))


def write_after_finish(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A finished Job's status is written again."""
    choices = [
        (job, f)
        for job in record.jobs
        if (f := job.finished_at()) is not None and f == len(job.rows) - 1
    ]
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, p = choice
    obj = edit.insert_beside(record.rows[job.rows[p]], job.rows[p], ns=NS_PER_S)
    name = rng.choice(("failed", "succeeded"))
    obj["status"][name] = obj["status"].get(name, 0) + 1
    what = f"after the Job finished, a write raises status.{name}"
    return told("status-after-finish", job, what, STATUS, rv=job.rv(p))


def write_reverted(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A status write is followed by one that undoes it, and by one that does it again."""
    choices = [(job, p) for job, p in writes(record) if job.writes()[0] < p]
    choice = pick(rng, choices)
    if choice is None:
        return None
    job, p = choice
    row = record.rows[job.rows[p]]
    edit.insert_beside(row, job.rows[p], ns=2_000_000)["status"] = copy_of(job.status(p - 1))
    edit.insert_beside(row, job.rows[p], ns=4_000_000)
    what = "a status write is undone and done again"
    return told("status-reverted", job, what, STATUS, rv=job.rv(p))


KINDS = {
    "status-write-removed": write_removed,
    "status-writes-swapped": writes_swapped,
    "status-counted-twice": counted_twice,
    "status-after-finish": write_after_finish,
    "status-reverted": write_reverted,
}
