"""How one CronJob went: what became of each time at which it was due, by `diff.cron_ticks`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.views import JobView
from tracekit.check.diff.cron_ticks import (
    SCHEDULED_AT,
    SeenCronJob,
    StartedJob,
    Surroundings,
    Tick,
    ticks_of_cron_job,
)
from tracekit.check.replay.cron_history import CronHistory
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.check.replay.run_context import RunContext
from tracekit.ports.cronjob.children import OWNER_KIND


class Start(NamedTuple):
    """A Job that a CronJob started, and the time for which it did."""

    due_ns: int
    started_ns: int  # the Job's creation, in whole seconds
    job: str


class CronCourse(Struct, frozen=True):
    """What became of a CronJob's ticks; the counts are the keys of the JSON contract."""

    started: int = 0
    missed: int = 0
    skipped: int = 0
    #: Each time at which it was due, by time.
    ticks: tuple[Tick, ...] = ()

    @classmethod
    def of(cls, ticks: Iterable[Tick]) -> CronCourse:
        """From what became of each tick; those that were suspended or not seen count nowhere."""
        counts = {"started": 0, "missed": 0, "skipped": 0}
        every = tuple(ticks)
        for tick in every:
            if tick.outcome in counts:
                counts[tick.outcome] += 1
        return cls(**counts, ticks=every)

    @property
    def starts(self) -> tuple[Start, ...]:
        """The ticks for which a Job was started."""
        return tuple(
            Start(tick.due_ns, tick.started_ns, tick.job)
            for tick in self.ticks
            if tick.job is not None and tick.started_ns is not None
        )

    @property
    def counts(self) -> dict[str, int]:
        """The counts by outcome."""
        return {"started": self.started, "missed": self.missed, "skipped": self.skipped}


class SeenJob(NamedTuple):
    """One revision of a Job of a CronJob, or of no CronJob."""

    recv_ns: int
    type: str
    view: JobView


class RecordedCronJob(Struct, frozen=True):
    """One CronJob of a record."""

    cron_job: CronJobView  # its last state
    course: CronCourse
    listed: bool  # it was there before the record began


def recorded_cron_jobs(
    history: CronHistory, context: RunContext, runner: CronRunner
) -> Iterator[RecordedCronJob]:
    """The CronJobs of one name, in order: a name can be used again."""
    by_uid: dict[str, list[SeenCronJob]] = {}
    for revision in history.cron_jobs:
        seen = SeenCronJob(revision.recv_ns, revision.type, revision.view)
        by_uid.setdefault(revision.view.uid, []).append(seen)
    around = surroundings_of(history, context)
    jobs = [SeenJob(r.recv_ns, r.type, r.view) for r in history.jobs]
    for uid, revisions in by_uid.items():
        course = course_of(revisions, started_jobs(jobs, uid), around, runner)
        yield RecordedCronJob(revisions[-1].view, course, revisions[0].type == "LIST")


def course_of(
    revisions: Sequence[SeenCronJob],
    jobs: Sequence[StartedJob],
    around: Surroundings,
    runner: CronRunner,
) -> CronCourse:
    """How a CronJob went whose revisions and Jobs these are."""
    return CronCourse.of(ticks_of_cron_job(revisions, jobs, around, runner))


def surroundings_of(history: CronHistory, context: RunContext) -> Surroundings:
    """What else decides about the ticks of a recorded CronJob."""
    others: dict[tuple[str, str], tuple[int, int]] = {}
    for revision in history.strangers:
        job = revision.view
        if job.controller is None or job.controller.kind != OWNER_KIND:
            gone_ns = revision.recv_ns if revision.type == "DELETED" else 1 << 62
            others[job.namespace, job.name] = (job.created_ns, gone_ns)
    gave_up = [event.recv_ns for event in history.events if event.reason == "FailedNeedsStart"]
    spans = {(history.namespace, history.name): [(min(gave_up), max(gave_up))]} if gave_up else {}
    return Surroundings(
        context.end_ns,
        context.coverage,
        [(outage.from_ns, outage.until_ns) for outage in context.restarts],
        spans,
        others,
    )


def started_jobs(jobs: Iterable[SeenJob], cron_uid: str) -> list[StartedJob]:
    """The Jobs of one CronJob, by the revisions of all."""
    names: dict[str, str] = {}
    scheduled: dict[str, str] = {}
    created: dict[str, int] = {}
    finished: dict[str, int] = {}
    gone: dict[str, int] = {}
    for recv_ns, kind, job in jobs:
        owner = job.controller
        if owner is None or owner.kind != OWNER_KIND or owner.uid != cron_uid:
            continue
        names[job.uid] = job.name
        created.setdefault(job.uid, job.created_ns)
        annotation = job.annotations.get(SCHEDULED_AT)
        if annotation:
            scheduled[job.uid] = annotation
        ending = job.status.finished
        if ending is not None and job.uid not in finished:
            at_ns = job.status.completion_ns or ending.last_transition_ns
            if at_ns is not None:
                finished[job.uid] = at_ns
        if kind == "DELETED":
            gone[job.uid] = recv_ns
    return [
        StartedJob.of(name, scheduled.get(uid), created[uid], finished.get(uid), gone.get(uid))
        for uid, name in names.items()
    ]
