"""Lies about the TTL-after-finished controller."""

from __future__ import annotations

import random
from typing import Any

from .cron import undeleted
from .record import NS_PER_S, Edit, JobLife, Lie, Record, deleting, pick, told

#: Only an audit log tells a deletion that comes before its time from one by hand.
_BY_A_USER = "a user may delete a Job in the foreground"


def collected(record: Record) -> list[tuple[JobLife, int]]:
    """Finished Jobs with a TTL that were deleted, and where the deletion shows first."""
    found = []
    for job in record.jobs:
        f = job.finished_at()
        if f is None or job.spec.get("ttlSecondsAfterFinished") is None or deleting(job.obj(f)):
            continue
        for p in range(f + 1, len(job.rows)):
            if deleting(job.obj(p)) or job.kind(p) == "DELETED":
                found.append((job, p))
                break
    return found


def _ttl(kind: str, what: str, seconds: int | None) -> Any:
    def plant(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
        choices = [
            (job, p)
            for job, p in collected(record)
            if seconds is None or job.spec["ttlSecondsAfterFinished"] + seconds >= 0
        ]
        choice = pick(rng, choices)
        if choice is None:
            return None
        job, p = choice
        for i in job.rows:
            spec = edit.obj(i)["spec"]
            if seconds is None:
                del spec["ttlSecondsAfterFinished"]
            else:
                spec["ttlSecondsAfterFinished"] += seconds
        verdicts = ("early", "late", "extra", "missing")
        doubt = _BY_A_USER
        if seconds is not None and seconds < 0:
            doubt = "queue and throttle may delay a deletion as much"
        return told(
            kind, job, what, ("job-delete",), verdicts, rv=job.rv(p), controller="ttl", doubt=doubt
        )

    return plant


def ttl_missing(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """A Job whose TTL is over is not deleted."""
    choice = pick(rng, collected(record))
    if choice is None:
        return None
    job, p = choice
    undeleted(edit, job)
    what = "the Job is not deleted although its TTL is over"
    return told(
        "ttl-missing", job, what, ("job-delete",), ("missing",), rv=job.rv(p), controller="ttl"
    )


def ttl_early(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The deletion comes well before the TTL is over."""
    choices = [
        (job, p) for job, p in collected(record) if job.recv(p) - job.recv(p - 1) > 3 * NS_PER_S
    ]
    return _moved("ttl-early", record, edit, pick(rng, choices), -2, "early")


def ttl_late(record: Record, edit: Edit, rng: random.Random) -> Lie | None:
    """The deletion comes long after the TTL is over."""
    return _moved("ttl-late", record, edit, pick(rng, collected(record)), 12, "late")


def _moved(
    kind: str,
    record: Record,
    edit: Edit,
    choice: tuple[JobLife, int] | None,
    seconds: int,
    verdict: str,
) -> Lie | None:
    """The deletion and what follows of it at another time."""
    if choice is None:
        return None
    job, p = choice
    rows = list(job.rows[p:])
    for pod in job.pods():
        rows += [i for i in pod.rows if record.rv_of(i) > job.rv(p)]
    edit.move(rows, seconds * NS_PER_S)
    what = f"the Job is deleted {seconds:+d} s from when its TTL was over"
    doubt = _BY_A_USER if seconds < 0 else ""
    return told(
        kind, job, what, ("job-delete",), (verdict,), rv=job.rv(p), controller="ttl", doubt=doubt
    )


KINDS = {
    "ttl-longer": _ttl("ttl-longer", "the Job is deleted too early: TTL +5 s", 5),
    "ttl-shorter": _ttl("ttl-shorter", "the Job is deleted too late: TTL -2 s", -2),
    "ttl-none": _ttl("ttl-none", "the Job is deleted without a TTL", None),
    "ttl-missing": ttl_missing,
    "ttl-early": ttl_early,
    "ttl-late": ttl_late,
}
