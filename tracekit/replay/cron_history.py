"""Everything that a record knows about one CronJob: its revisions, its Jobs', the Events about it.

From neighbouring revisions the *writes* follow: a Job of the CronJob appeared, one was deleted, the
status changed. resourceVersions order revisions across kinds because all kinds share one etcd;
Events may live in another and keep the order in which they arrived.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from tracekit.controllers.cronjob.children import OWNER_KIND
from tracekit.kube.cronjob_views import CronJobView
from tracekit.kube.views import JobView, job_from_raw
from tracekit.replay.history import Actor

V = TypeVar("V", CronJobView, JobView)

#: An object that a later list lacks: it went in a gap, nobody saw when or how.
VANISHED = "VANISHED"
STATE_TYPES = frozenset({"LIST", "ADDED", "MODIFIED", "DELETED", VANISHED})
COMPONENT = "cronjob-controller"
#: What a Job of a slot is called: the CronJob's name and minutes or seconds since 1970.
SLOT_NAME = re.compile(r".+-[0-9]{8,10}", re.ASCII)


class WatchRow(NamedTuple):
    """One line of a watch log."""

    recv_ns: int
    resource: str
    type: str
    object: Mapping[str, Any]
    actor: Actor | None = None  # who made it, where the record tells


@dataclass(slots=True, eq=False)
class CronRevision(Generic[V]):
    """One observed state of a CronJob or of a Job."""

    rv: int
    recv_ns: int
    type: str
    view: V
    raw: Mapping[str, Any]
    actor: Actor | None = None
    previous: CronRevision[V] | None = None  # of the same uid

    @property
    def gone(self) -> bool:
        """Whether this is the object's end."""
        return self.type in {"DELETED", VANISHED}


class WriteKind(Enum):
    """What a write did, as the reports name it."""

    JOB_CREATE = "job-create"
    JOB_DELETE = "job-delete"
    STATUS_UPDATE = "status-update"


@dataclass(slots=True, eq=False)
class CronWrite:
    """One change of the record that the CronJob controller may have made."""

    index: int
    kind: WriteKind
    rv: int
    recv_ns: int
    job: CronRevision[JobView] | None = None
    cron_job: CronRevision[CronJobView] | None = None

    @property
    def actor(self) -> Actor | None:
        """Who made it, where the record tells."""
        revision = self.job or self.cron_job
        return revision.actor if revision is not None else None

    @property
    def subject(self) -> str:
        """What was written, for people."""
        return self.job.view.name if self.job is not None else "status"


@dataclass(frozen=True, slots=True)
class CronEvent:
    """One observed state of an Event about the CronJob."""

    recv_ns: int
    type: str
    uid: str
    event_type: str
    reason: str
    message: str
    count: int
    component: str
    rv: str


@dataclass(slots=True)
class CronHistory:
    """One CronJob's name with all that happened under it, in the order of the store."""

    namespace: str
    name: str
    cron_jobs: list[CronRevision[CronJobView]] = field(default_factory=list)
    jobs: list[CronRevision[JobView]] = field(default_factory=list)
    events: list[CronEvent] = field(default_factory=list)
    writes: list[CronWrite] = field(default_factory=list)
    #: Jobs of other owners, or of none, whose name a slot of this CronJob may want.
    strangers: list[CronRevision[JobView]] = field(default_factory=list)
    _job_rvs: list[int] = field(default_factory=list)
    _cron_rvs: list[int] = field(default_factory=list)
    _states: list[tuple[JobView, ...]] = field(default_factory=list)

    def finish(self) -> None:
        """Sort, link and derive the writes; once, after everything was added."""
        _place_vanished([*self.cron_jobs, *self.jobs])
        self.cron_jobs.sort(key=lambda revision: revision.rv)
        self.jobs.sort(key=lambda revision: revision.rv)
        _link(self.cron_jobs)
        _link(self.jobs)
        self._job_rvs = [revision.rv for revision in self.jobs]
        self._cron_rvs = [revision.rv for revision in self.cron_jobs]
        self._states = [()]
        for revision in self.jobs:
            kept = tuple(v for v in self._states[-1] if v.uid != revision.view.uid)
            self._states.append(kept if revision.gone else (*kept, revision.view))
        found = [*self._job_writes(), *self._status_writes()]
        found.sort(key=lambda write: write.rv)
        for index, write in enumerate(found):
            write.index = index
        self.writes = found

    def jobs_below(self, rv: int) -> int:
        """How many revisions of Jobs are older than `rv`."""
        return bisect_left(self._job_rvs, rv)

    def jobs_at(self, position: int) -> tuple[JobView, ...]:
        """The Jobs after that many of their revisions."""
        return self._states[position]

    def cron_jobs_below(self, rv: int) -> int:
        """How many revisions of the CronJob are older than `rv`."""
        return bisect_left(self._cron_rvs, rv)

    def live_cron_job(self, rv: int) -> CronRevision[CronJobView] | None:
        """The CronJob as it was right after `rv`."""
        position = bisect_right(self._cron_rvs, rv)
        if position == 0 or self.cron_jobs[position - 1].gone:
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

    def _stranger(
        self, name: str, is_past: Callable[[CronRevision[JobView]], bool]
    ) -> JobView | None:
        found = None
        for revision in self.strangers:
            if revision.view.name == name and is_past(revision):
                found = None if revision.gone else revision.view
        return found

    def _job_writes(self) -> Iterable[CronWrite]:
        for revision in self.jobs:
            before = revision.previous
            if revision.type == "ADDED" and before is None:
                yield CronWrite(0, WriteKind.JOB_CREATE, revision.rv, revision.recv_ns, revision)
            going = revision.gone or revision.view.deleted_ns is not None
            if going and revision.type not in {"LIST", VANISHED}:
                was_going = before is not None and before.view.deleted_ns is not None
                if not was_going:
                    yield CronWrite(
                        0, WriteKind.JOB_DELETE, revision.rv, revision.recv_ns, revision
                    )

    def _status_writes(self) -> Iterable[CronWrite]:
        for revision in self.cron_jobs:
            before = revision.previous
            if before is None or revision.type != "MODIFIED":
                continue
            if revision.view.status != before.view.status:
                yield CronWrite(
                    0,
                    WriteKind.STATUS_UPDATE,
                    revision.rv,
                    revision.recv_ns,
                    cron_job=revision,
                )


def _link(revisions: list[CronRevision[V]]) -> None:
    last: dict[str, CronRevision[V]] = {}
    for revision in revisions:
        revision.previous = last.get(revision.view.uid)
        last[revision.view.uid] = revision


def cron_histories(rows: Iterable[WatchRow]) -> list[CronHistory]:
    """The history of every CronJob of a watch log, sorted by namespace and name.

    Lists that repeat a known revision add nothing; Jobs whose CronJob was never seen are left out.
    """
    return _Builder().build(rows)


@dataclass(slots=True)
class _Builder:
    """Sorts the lines of a watch log into histories."""

    found: dict[tuple[str, str], CronHistory] = field(default_factory=dict)
    jobs: dict[tuple[str, str], list[CronRevision[JobView]]] = field(default_factory=dict)
    strangers: dict[tuple[str, str], list[CronRevision[JobView]]] = field(default_factory=dict)
    seen: set[tuple[str, str, int, bool]] = field(default_factory=set)
    events: list[tuple[tuple[str, str], CronEvent]] = field(default_factory=list)
    alive_cron_jobs: dict[str, CronRevision[CronJobView]] = field(default_factory=dict)
    alive_jobs: dict[str, CronRevision[JobView]] = field(default_factory=dict)
    listed: dict[str, set[str]] = field(default_factory=dict)  # by resource, while a list is read

    def build(self, rows: Iterable[WatchRow]) -> list[CronHistory]:
        for row in rows:
            if row.type == "LIST_BEGIN":
                self.listed[row.resource] = set()
            elif row.type == "LIST_END":
                self._end_of_list(row)
            elif row.type in STATE_TYPES:
                self._state(row)
        for key, about in self.events:
            if key in self.found:
                self.found[key].events.append(about)
        for key, history in self.found.items():
            history.jobs = self.jobs.get(key, [])
            history.strangers = sorted(self.strangers.get(key, []), key=lambda r: r.rv)
            history.finish()
        return [self.found[key] for key in sorted(self.found)]

    def _state(self, row: WatchRow) -> None:
        if row.resource == "cronjobs":
            view = CronJobView.from_raw(row.object)
            if self._is_new(row, view.uid, view.rv):
                self._add_cron_job(
                    CronRevision(view.rv, row.recv_ns, row.type, view, row.object, row.actor)
                )
        elif row.resource == "jobs":
            job = job_from_raw(row.object)
            if not self._is_new(row, job.uid, job.rv):
                return
            revision = CronRevision(job.rv, row.recv_ns, row.type, job, row.object, row.actor)
            if job.controller is not None and job.controller.kind == OWNER_KIND:
                self._add_job(revision)
            elif SLOT_NAME.fullmatch(job.name):
                key = (job.namespace, job.name.rpartition("-")[0])
                self.strangers.setdefault(key, []).append(revision)
        elif row.resource == "events":
            event = _event(row)
            if event is not None:
                self.events.append(event)

    def _add_cron_job(self, revision: CronRevision[CronJobView]) -> None:
        view = revision.view
        key = (view.namespace, view.name)
        self.found.setdefault(key, CronHistory(*key)).cron_jobs.append(revision)
        self.alive_cron_jobs[view.uid] = revision
        if revision.gone:
            del self.alive_cron_jobs[view.uid]

    def _add_job(self, revision: CronRevision[JobView]) -> None:
        owner = revision.view.controller
        assert owner is not None  # noqa: S101 - only owned Jobs come here
        self.jobs.setdefault((revision.view.namespace, owner.name), []).append(revision)
        self.alive_jobs[revision.view.uid] = revision
        if revision.gone:
            del self.alive_jobs[revision.view.uid]

    def _is_new(self, row: WatchRow, uid: str, rv: int) -> bool:
        if row.type == "LIST" and row.resource in self.listed:
            self.listed[row.resource].add(uid)
        key = (row.resource, uid, rv, row.type in {"DELETED", VANISHED})
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def _end_of_list(self, row: WatchRow) -> None:
        """What was known and is not listed any more went unseen, at the latest by the list."""
        listed = self.listed.pop(row.resource, None)
        if listed is None:
            return
        if row.resource == "cronjobs":
            for gone in [r for uid, r in self.alive_cron_jobs.items() if uid not in listed]:
                self._add_cron_job(
                    CronRevision(gone.rv + 1, row.recv_ns, VANISHED, gone.view, gone.raw)
                )
        elif row.resource == "jobs":
            for lost in [r for uid, r in self.alive_jobs.items() if uid not in listed]:
                self._add_job(CronRevision(lost.rv + 1, row.recv_ns, VANISHED, lost.view, lost.raw))


def _place_vanished(revisions: Sequence[CronRevision[Any]]) -> None:
    """Put what only a relist showed to be gone behind everything that had arrived by then."""
    for revision in revisions:
        if revision.type == VANISHED:
            revision.rv = max(r.rv for r in revisions if r.recv_ns <= revision.recv_ns)


def _event(row: WatchRow) -> tuple[tuple[str, str], CronEvent] | None:
    about = row.object.get("involvedObject") or row.object.get("regarding") or {}
    if not isinstance(about, dict) or about.get("kind") != OWNER_KIND or row.type == "DELETED":
        return None
    meta = row.object.get("metadata") or {}
    source = row.object.get("source") or {}
    event = CronEvent(
        recv_ns=row.recv_ns,
        type=row.type,
        uid=str(meta.get("uid") or meta.get("name") or ""),
        event_type=str(row.object.get("type") or ""),
        reason=str(row.object.get("reason") or ""),
        message=str(row.object.get("message") or row.object.get("note") or ""),
        count=int(row.object.get("count") or 1),
        component=str(source.get("component") or row.object.get("reportingComponent") or ""),
        rv=str(meta.get("resourceVersion") or ""),
    )
    return (str(about.get("namespace") or ""), str(about.get("name") or "")), event
