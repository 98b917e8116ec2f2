"""How one Job went: its ending, its pods, its counters; recorded, or by other rules."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobStatus, JobView
from tracekit.check.replay.history import History


class JobCourse(Struct, frozen=True):
    """The end of a Job's life; the keys of the JSON contract."""

    ended: str | None  # Complete, Failed, or None: neither condition is True
    reason: str
    pods: int  # distinct pods that the Job ever controlled
    succeeded: int
    failed: int
    finished_after_s: float | None

    @classmethod
    def of(cls, status: JobStatus, created_ns: int, pods: int) -> JobCourse:
        """From the Job's last status."""
        finished = status.finished
        after = None
        if finished is not None and finished.last_transition_ns is not None:
            after = (finished.last_transition_ns - created_ns) / NS_PER_S
        return cls(
            finished.type if finished is not None else None,
            finished.reason if finished is not None else "",
            pods,
            status.succeeded,
            status.failed,
            after,
        )


class RecordedJob(Struct, frozen=True):
    """One Job of a record: who it was and how it went."""

    job: JobView  # its last state
    course: JobCourse
    listed: bool  # it was there before the record began
    deleted: bool
    pods: frozenset[str]


def recorded_jobs(history: History) -> Iterator[RecordedJob]:
    """The Jobs of one key, in order: a name can be used again."""
    last: dict[str, int] = {}
    first: dict[str, int] = {}
    for place, revision in enumerate(history.jobs):
        last[revision.view.uid] = place
        first.setdefault(revision.view.uid, place)
    owned: dict[str, set[str]] = {uid: set() for uid in last}
    for pod in history.pods:
        owner = pod.view.controller
        if owner is not None and owner.uid in owned:
            owned[owner.uid].add(pod.view.uid)
    for uid, place in last.items():
        revision = history.jobs[place]
        job = revision.view
        yield RecordedJob(
            job,
            JobCourse.of(job.status, job.created_ns, len(owned[uid])),
            listed=history.jobs[first[uid]].type == "LIST",
            deleted=revision.type == "DELETED",
            pods=frozenset(owned[uid]),
        )


def counted(course: JobCourse) -> tuple[str | None, str, int, int, int]:
    """What two courses have in common that went alike."""
    return course.ended, course.reason, course.pods, course.succeeded, course.failed
