"""Everything that a record knows about one CronJob: its revisions, its Jobs', the Events about it.

From neighbouring revisions the *writes* follow: a Job of the CronJob appeared, one was deleted, the
status changed. The revisions of its Jobs are those of the Jobs' own histories, decoded once.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from msgspec.structs import replace

from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.views import JobView
from tracekit.base.spans import Spans
from tracekit.check.replay.history import (
    EventRow,
    History,
    Revision,
    V,
    Write,
    WriteKind,
    as_arrived,
    linked,
    place_synthesized,
    write_of,
)
from tracekit.ports.cronjob.children import OWNER_KIND

COMPONENT = "cronjob-controller"
#: What a Job of a slot is called: the CronJob's name and minutes or seconds since 1970.
SLOT_NAME = re.compile(r".+-[0-9]{8,10}", re.ASCII)


@dataclass(slots=True)
class CronHistory:
    """One CronJob's name with all that happened under it, in the order of the store."""

    namespace: str
    name: str
    cron_jobs: list[Revision[CronJobView]] = field(default_factory=list)
    jobs: list[Revision[JobView]] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    #: Jobs of other owners, or of none, whose name a slot of this CronJob may want.
    strangers: list[Revision[JobView]] = field(default_factory=list)
    #: When pods of its Jobs were asked to go, by whomever.
    pods_deleted_ns: list[int] = field(default_factory=list)
    _job_rvs: list[int] = field(default_factory=list)
    _cron_rvs: list[int] = field(default_factory=list)
    _states: list[tuple[JobView, ...]] = field(default_factory=list)
    _job_times: Spans = field(default_factory=lambda: Spans(()))
    _cron_times: Spans = field(default_factory=lambda: Spans(()))
    #: When revisions of Jobs came, of strangers too, and the newest of all until then.
    _newest: tuple[list[int], list[int]] = ([], [])
    #: When revisions of the CronJob and of its Jobs came, sorted.
    _changed_ns: list[int] = field(default_factory=list)
    _strangers_by_name: dict[str, list[Revision[JobView]]] = field(default_factory=dict)

    def finish(self) -> CronHistory:
        """Sort, link and derive the writes; once, after everything was added."""
        place_synthesized([*self.cron_jobs, *self.jobs])
        self.cron_jobs, self.jobs = linked(self.cron_jobs), linked(self.jobs)
        self.strangers.sort(key=lambda revision: revision.rv)
        for stranger in self.strangers:
            self._strangers_by_name.setdefault(stranger.view.name, []).append(stranger)
        self._job_times = Spans((r.recv_ns, r.recv_ns) for r in self.jobs)
        self._cron_times = Spans((r.recv_ns, r.recv_ns) for r in self.cron_jobs)
        self._changed_ns = sorted(
            [*(r.recv_ns for r in self.cron_jobs), *(r.recv_ns for r in self.jobs)]
        )
        came = sorted((r.recv_ns, r.rv) for r in (*self.jobs, *self.strangers))
        self._newest = [at for at, _ in came], list(accumulate((rv for _, rv in came), max))
        self.events = as_arrived(self.events)
        self._job_rvs = [revision.rv for revision in self.jobs]
        self._cron_rvs = [revision.rv for revision in self.cron_jobs]
        self._states = [()]
        for revision in self.jobs:
            kept = tuple(v for v in self._states[-1] if v.uid != revision.view.uid)
            gone = revision.type == "DELETED"
            self._states.append(kept if gone else (*kept, revision.view))
        self.writes = sorted([*self._job_writes(), *self._status_writes()], key=lambda w: w.rv)
        for index, write in enumerate(self.writes):
            write.index = index
        return self

    @property
    def key(self) -> str:
        """The work-queue key."""
        return f"{self.namespace}/{self.name}"

    def jobs_below(self, rv: int) -> int:
        """How many revisions of Jobs are older than `rv`."""
        return bisect_left(self._job_rvs, rv)

    def jobs_at(self, position: int) -> tuple[JobView, ...]:
        """The Jobs after that many of their revisions."""
        return self._states[position]

    def jobs_came_by(self, at_ns: int) -> int:
        """So many revisions of Jobs there are up to the last one that had come by then."""
        return self._job_times.last_before(at_ns + 1) + 1

    def changes_between(self, after_ns: int, until_ns: int) -> int:
        """How many revisions of the CronJob and its Jobs came after one time and by another."""
        return bisect_right(self._changed_ns, until_ns) - bisect_right(self._changed_ns, after_ns)

    def newest_rv(self, at_ns: int) -> int:
        """The newest revision of a Job, a stranger's too, of those that had come; 0 for none."""
        times, newest = self._newest
        came = bisect_right(times, at_ns)
        return newest[came - 1] if came else 0

    def current_between(self, from_ns: int, until_ns: int) -> list[Revision[CronJobView]]:
        """The revisions of the CronJob that came in a time, after the last one before it."""
        older = self._cron_times.last_before(from_ns)
        near = (self.cron_jobs[place] for place in self._cron_times.near(from_ns, until_ns))
        found = [r for r in near if from_ns <= r.recv_ns <= until_ns]
        return [*([self.cron_jobs[older]] if older >= 0 else []), *found]

    def cron_jobs_below(self, rv: int) -> int:
        """How many revisions of the CronJob are older than `rv`."""
        return bisect_left(self._cron_rvs, rv)

    def live_cron_job(self, rv: int) -> Revision[CronJobView] | None:
        """The CronJob as it was right after `rv`."""
        position = bisect_right(self._cron_rvs, rv)
        if position == 0 or self.cron_jobs[position - 1].type == "DELETED":
            return None
        return self.cron_jobs[position - 1]

    def live_job(self, name: str, rv: int) -> JobView | None:
        """The Job of that name as it was right after `rv`, whoever owns it."""
        state = self._states[bisect_right(self._job_rvs, rv)]
        own = next((view for view in state if view.name == name), None)
        return own if own is not None else self._stranger(name, lambda revision: revision.rv <= rv)

    def stranger_at(self, name: str, at_ns: int) -> JobView | None:
        """The Job of that name and of another owner as it was at an instant."""
        return self._stranger(name, lambda revision: revision.recv_ns <= at_ns)

    def _stranger(self, name: str, is_past: Callable[[Revision[JobView]], bool]) -> JobView | None:
        found = None
        for revision in self._strangers_by_name.get(name, ()):
            if is_past(revision):
                found = None if revision.type == "DELETED" else revision.view
        return found

    def _job_writes(self) -> Iterator[Write]:
        for revision in self.jobs:
            before, job = revision.previous, revision.view
            if revision.type == "ADDED" and before is None and _owner_name(job) is not None:
                yield write_of(WriteKind.JOB_CREATE, job.uid, job=revision)
            going = revision.type == "DELETED" or job.deleted_ns is not None
            was_going = before is not None and before.view.deleted_ns is not None
            if going and not was_going and revision.type != "LIST" and not revision.synthesized:
                yield write_of(WriteKind.JOB_DELETE, job.uid, job=revision)

    def _status_writes(self) -> Iterator[Write]:
        for revision in self.cron_jobs:
            before = revision.previous
            changed = before is not None and revision.view.status != before.view.status
            if changed and revision.type == "MODIFIED":
                yield write_of(WriteKind.STATUS_UPDATE, revision.view.uid, cron_job=revision)


class CronHistories:
    """Collects what belongs to the CronJobs of one namespace."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], CronHistory] = {}
        self._jobs: dict[tuple[str, str], list[Revision[JobView]]] = defaultdict(list)
        self._strangers: dict[tuple[str, str], list[Revision[JobView]]] = defaultdict(list)
        self._events: dict[tuple[str, str], list[EventRow]] = defaultdict(list)
        self._pods_deleted_ns: dict[tuple[str, str], list[int]] = defaultdict(list)

    def cron_jobs(self, revisions: Iterable[Revision[CronJobView]]) -> None:
        """Take in revisions of CronJobs."""
        for revision in revisions:
            key = (revision.view.namespace, revision.view.name)
            self._found.setdefault(key, CronHistory(*key)).cron_jobs.append(revision)

    def events(self, namespace: str, about: Iterable[tuple[str, EventRow]]) -> None:
        """Take in Events, each with the name of its CronJob."""
        for name, event in about:
            self._events[namespace, name].append(event)

    def job(self, history: History) -> None:
        """Take in the Jobs of one name: a CronJob's, or those whose name a slot may want.

        A Job is followed to its end even if its CronJob was deleted from above it (the garbage
        collector drops the reference): only so is it seen to be a child no more.
        """
        owners: dict[str, dict[str, None]] = {}
        for revision in history.jobs:
            owner = _owner_name(revision.view)
            if owner is not None:
                owners.setdefault(revision.view.uid, {})[owner] = None
        if not owners and not any(SLOT_NAME.fullmatch(job.view.name) for job in history.jobs[:1]):
            return
        for revision in history.jobs:
            job = revision.view
            for owner in owners.get(job.uid, ()):
                self._jobs[job.namespace, owner].append(_copy(revision))
            name = job.name.rpartition("-")[0]
            if SLOT_NAME.fullmatch(job.name) and name not in owners.get(job.uid, ()):
                self._strangers[job.namespace, name].append(_copy(revision))
        for owner in {name for names in owners.values() for name in names}:
            self._pods_deleted_ns[history.namespace, owner] += _pods_deleted_ns(history)

    def take(self) -> Iterator[CronHistory]:
        """The histories, by namespace and name; Jobs whose CronJob was never seen are left out."""
        for key in sorted(self._found):
            history = self._found[key]
            history.jobs = self._jobs.get(key, [])
            history.strangers = self._strangers.get(key, [])
            history.events = self._events.get(key, [])
            history.pods_deleted_ns = self._pods_deleted_ns.get(key, [])
            yield history.finish()


def _owner_name(job: JobView) -> str | None:
    """The name of the CronJob that controls a Job."""
    owner = job.controller
    return owner.name if owner is not None and owner.kind == OWNER_KIND else None


def _pods_deleted_ns(history: History) -> Iterator[int]:
    for pod in history.pods:
        was_going = pod.previous is not None and pod.previous.view.deleted_ns is not None
        if not was_going and (pod.type == "DELETED" or pod.view.deleted_ns is not None):
            yield pod.recv_ns


def _copy(revision: Revision[V]) -> Revision[V]:
    """A revision of its own for each history: histories link their revisions."""
    return replace(revision, previous=None, position=0)
