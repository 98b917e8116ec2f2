"""The API server as one CronJob sync met it, read off the record.

Each write of the ported controller is looked up among the observed ones. A write that changes
nothing on the server leaves no trace and is granted; a status PUT on an old revision is answered
with a conflict, a POST of a name that exists and a DELETE of a Job that is gone as the server does.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.views import JobView
from tracekit.check.replay.cron_history import CronHistory
from tracekit.check.replay.history import Write, WriteKind
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import (
    OK,
    Answer,
    CreateJob,
    DeleteJob,
    Intent,
    RecordEvent,
    UpdateCronJobStatus,
)

_CONFLICT = Answer(
    Outcome.CONFLICT,
    "the object has been modified; please apply your changes to the latest version and try again",
)


REFUSED = Answer(Outcome.REFUSED, "refused")


class CronProblem(NamedTuple):
    """A write of the controller that the record does not have as it should."""

    kind: WriteKind
    intent: Intent
    write: Write | None  # the observed write in its place, if there is one


class CronMismatch(Exception):  # noqa: N818 - a signal of the search, not an error
    """This run cannot be what happened; raised only in a strict run."""


@dataclass(slots=True)
class RecordedCronApi:
    """The port for one attempt to explain the writes from `first` on.

    `position` is the revision up to which the store is known to have got; it moves with each write.
    """

    history: CronHistory
    first: int
    position: int
    lenient: bool = False
    skip: Container[int] = frozenset()  # indexes of writes that are not this sync's
    #: The record may end, or the controller have died, inside this sync.
    cut_off: bool = False
    #: Creations and deletions that the record does not have may have been refused.
    refuses: bool = False
    #: What was still to be written when it was cut off.
    rest: CronProblem | None = None
    consumed: list[Write] = field(default_factory=list)
    intents: dict[int, Intent] = field(default_factory=dict)  # by index of the consumed write
    events: list[RecordEvent] = field(default_factory=list)
    problems: list[CronProblem] = field(default_factory=list)

    def perform(self, intent: Intent) -> Answer:
        """Look a write up in the record."""
        match intent:
            case RecordEvent():
                self.events.append(intent)
                return OK
            case CreateJob():
                return self._create(intent)
            case DeleteJob():
                return self._delete(intent)
            case UpdateCronJobStatus():
                return self._update_status(intent)
        return OK  # scaling down and deleting pods happen to Jobs and pods, which others judge

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        """The Job as it was then."""
        del namespace
        job = self.history.live_job(name, self.position)
        return job if job is not None else _not_found("jobs", name)

    def get_cron_job(self, namespace: str, name: str) -> CronJobView | Answer:
        """The CronJob as it was then."""
        del namespace
        live = self.history.live_cron_job(self.position)
        return live.view if live is not None else _not_found("cronjobs", name)

    def _pending(self) -> Sequence[Write]:
        """The writes that may come next: up to the first one that is not a deletion, included.

        Deletions can be others' and stand anywhere.
        """
        found = []
        taken = {write.index for write in self.consumed}
        for write in self.history.writes[self.first :]:
            if write.index in taken or write.index in self.skip:
                continue
            found.append(write)
            if write.kind is not WriteKind.JOB_DELETE:
                break
        return found

    def _take(self, write: Write, intent: Intent) -> None:
        self.consumed.append(write)
        self.intents[write.index] = intent
        self.position = max(self.position, write.rv)

    def _create(self, intent: CreateJob) -> Answer:
        for write in self._pending():
            if write.kind is WriteKind.JOB_CREATE and write.subject == intent.name:
                assert write.job is not None  # noqa: S101 - creations have one
                if write.job.view.controller is None:
                    continue
                self._take(write, intent)
                return Answer(uid=write.job.view.uid, rv=str(write.rv))
        if self.history.live_job(intent.name, self.position) is not None:
            text = f'jobs.batch "{intent.name}" already exists'
            return Answer(Outcome.ALREADY_EXISTS, text)
        if self.refuses:
            return REFUSED
        self._report(WriteKind.JOB_CREATE, intent)
        return Answer(uid=f"missing-{intent.name}")

    def _delete(self, intent: DeleteJob) -> Answer:
        """DELETE by name, without a precondition: it meets whatever Job bears the name by then."""
        for write in self._pending():
            gone = write.job if write.kind is WriteKind.JOB_DELETE else None
            if gone is not None and gone.view.name == intent.name:
                self._take(write, intent)
                return OK
        self._wait_for_another(intent)
        live = self.history.live_job(intent.name, self.position)
        if live is None:
            return _not_found("jobs", intent.name)
        if live.deleted_ns is None:
            if self.refuses:
                return REFUSED
            self._report(WriteKind.JOB_DELETE, intent)
        return OK

    def _wait_for_another(self, intent: DeleteJob) -> None:
        """If somebody else deletes the Job before this sync's next write, they came first."""
        open_ahead = self._pending()
        bounded = open_ahead and open_ahead[-1].kind is not WriteKind.JOB_DELETE
        until_rv = open_ahead[-1].rv if bounded else None
        for write in self.history.writes[self.first :]:
            if until_rv is not None and write.rv > until_rv:
                return
            is_done = write.index in self.skip and write.kind is WriteKind.JOB_DELETE
            if is_done and write.subject == intent.name:
                self.position = max(self.position, write.rv)

    def _update_status(self, intent: UpdateCronJobStatus) -> Answer:
        live = self.history.live_cron_job(self.position)
        if live is None or live.view.uid != intent.uid:
            return _not_found("cronjobs", intent.name)
        if live.rv > intent.base_rv:
            return _CONFLICT
        if live.view.status == intent.status:
            return Answer(rv=str(live.rv))
        write = next((w for w in self._pending() if w.kind is WriteKind.STATUS_UPDATE), None)
        if write is not None and write.cron_job is not None:
            before = write.cron_job.previous
            if (
                before is not None
                and before.rv == intent.base_rv
                and write.cron_job.view.status == intent.status
            ):
                self._take(write, intent)
                return Answer(rv=str(write.rv))
        following = self.history.cron_jobs_below(live.rv + 1)
        if following < len(self.history.cron_jobs):
            later = self.history.cron_jobs[following]
            if later.type == "DELETED" or write is None or write.cron_job is not later:
                return _CONFLICT  # somebody else's write came first
        self._report(WriteKind.STATUS_UPDATE, intent, write)
        return Answer(rv=str(live.rv))

    def _report(self, kind: WriteKind, intent: Intent, write: Write | None = None) -> None:
        if self.cut_off and self.consumed:
            self.rest = self.rest or CronProblem(kind, intent, write)
            return
        if not self.lenient:
            raise CronMismatch
        self.problems.append(CronProblem(kind, intent, write))


@dataclass(slots=True)
class DryCronApi:
    """A server in a given state that takes every write: what would the controller do now?"""

    cron_job: CronJobView
    #: A Job by name, whoever owns it.
    find_job: Callable[[str], JobView | None]
    refuses: bool = False  # what creates or deletes
    writes: list[Intent] = field(default_factory=list)

    def perform(self, intent: Intent) -> Answer:
        """Note the write."""
        self.writes.append(intent)
        if self.refuses and isinstance(intent, CreateJob | DeleteJob):
            return REFUSED
        if isinstance(intent, CreateJob):
            if self.find_job(intent.name) is not None:
                return Answer(Outcome.ALREADY_EXISTS, f'jobs.batch "{intent.name}" already exists')
            return Answer(uid=f"new-{intent.name}")
        return OK

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        """The Job of the given state."""
        del namespace
        job = self.find_job(name)
        return job if job is not None else _not_found("jobs", name)

    def get_cron_job(self, namespace: str, name: str) -> CronJobView | Answer:
        """The CronJob of the given state."""
        del namespace, name
        return self.cron_job


def _not_found(resource: str, name: str) -> Answer:
    return Answer(Outcome.NOT_FOUND, f'{resource}.batch "{name}" not found')
