"""Everything that a trace knows about one work-queue key, in the order of the store.

A history holds the revisions of the Job (or Jobs: a name can be used again), of the pods that it
owned or could have adopted, and the Events about it. From neighbouring revisions of an object it
derives the *writes*: what somebody did to it, of which kinds, when.

resourceVersions order revisions across kinds because all kinds share one etcd; this module and
`feed` are the only ones that compare them as numbers. Events may live in another etcd: they keep
the order in which they arrived, and revisions order only those that arrived at the same time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate, islice
from operator import attrgetter, lt
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct

from tracekit.base.kube.actors import controller_of
from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.views import JobView, OwnerRef, PodView

V = TypeVar("V", JobView, PodView, CronJobView)

#: What the Event of a deletion says before the name of the pod.
DELETED_POD = "Deleted pod: "


class Manager(NamedTuple):
    """One entry of metadata.managedFields: who wrote, and when last."""

    manager: str
    operation: str
    subresource: str
    time_ns: int | None


class Evidence(Protocol):
    """The parts of a row that are looked at rarely; fetched when they are."""

    def managers(self) -> tuple[Manager, ...]:
        """The managedFields entries."""
        ...

    def has_others_status(self) -> bool:
        """Whether somebody else than a controller manager has set fields of a Job's status."""
        ...

    def pod_spec(self) -> Mapping[str, Any]:
        """The decoded spec of a pod."""
        ...

    def generate_name(self) -> str:
        """metadata.generateName."""
        ...

    def owners(self) -> tuple[OwnerRef, ...]:
        """Every owner reference."""
        ...


class Actor(NamedTuple):
    """Who made a write, where the record tells: an audit log does, a watch does not."""

    user: str
    agent: str

    @property
    def controller(self) -> str | None:
        """The controller of the controller manager that it is; "" if none, None if unknown."""
        return controller_of(self.user, self.agent)

    def __str__(self) -> str:
        """As the audit log names it."""
        client = self.agent.partition(" ")[0]
        return f"{self.user} ({client})" if client else self.user


class RefusedCall(NamedTuple):
    """A request about the Job or its pods that the API server refused."""

    recv_ns: int
    verb: str
    stream: str
    code: int
    message: str
    actor: Actor | None


class Revision(msgspec.Struct, Generic[V], eq=False, gc=False):
    """One observed state of one object."""

    rv: int
    recv_ns: int
    seq: int
    type: str  # LIST, ADDED, MODIFIED, DELETED
    view: V
    evidence: Evidence
    synthesized: bool = False  # a deletion that a relist told, not the watch
    actor: Actor | None = None
    #: Between these its revision was chosen, where no answer tells it (an audit log).
    rv_after: int | None = None
    rv_before: int | None = None
    #: When the request for it came, where the source tells (an audit log).
    came_ns: int | None = None
    #: So much later than it had been written its stream showed it, as the others tell: `recv_ns` is
    #: without it.
    late_ns: int = 0
    previous: Revision[V] | None = None
    position: int = 0  # in its list of the history

    @property
    def called_ns(self) -> int:
        """When the write was asked for, as far as is known; of what was listed nobody knows."""
        came_ns = self.came_ns if self.type != "LIST" else None
        return self.recv_ns if came_ns is None else min(came_ns, self.recv_ns)

    @property
    def shown_ns(self) -> int:
        """When its stream showed it: the controller's may have been as late."""
        return self.recv_ns + self.late_ns


class EventRow(Struct, frozen=True, gc=False):
    """One observed state of an Event about the Job."""

    seq: int
    recv_ns: int
    type: str  # ADDED, MODIFIED, LIST
    name: str
    uid: str
    rv: int
    involved_uid: str
    involved_rv: int
    event_type: str
    reason: str
    message: str
    count: int
    component: str
    first_ns: int | None = None  # when the controller told it first, by its own clock


class WriteKind(Enum):
    """What a write did; the values are the action names of the report."""

    __hash__ = object.__hash__  # Enum's own hashes the name anew, at every question

    def __init__(self, action: str) -> None:
        self.action = action  # as `value`, which costs a call

    POD_CREATE = "pod-create"
    POD_DELETE = "pod-delete"
    FINALIZER_REMOVAL = "finalizer-removal"
    POD_ADOPT = "pod-adopt"
    POD_RELEASE = "pod-release"
    STATUS_UPDATE = "status-update"
    JOB_CREATE = "job-create"
    JOB_DELETE = "job-delete"


class Write(msgspec.Struct, eq=False, gc=False):
    """One mutation seen in the record, whoever did it."""

    kind: WriteKind
    rv: int
    recv_ns: int
    called_ns: int  # when it was asked for, as far as is known: of a slow answer long before
    uid: str  # of the object that was written
    pod: Revision[PodView] | None = None
    job: Revision[JobView] | None = None
    cron_job: Revision[CronJobView] | None = None
    index: int = 0
    #: It happened while the record could not see: only its result was listed.
    hidden: bool = False

    @property
    def actor(self) -> Actor | None:
        """Who made it, where the record tells."""
        revision = self.pod or self.job or self.cron_job
        return revision.actor if revision is not None else None

    @property
    def shown_ns(self) -> int:
        """When its stream showed it."""
        revision = self.pod or self.job or self.cron_job
        return self.recv_ns if revision is None else revision.shown_ns

    @property
    def subject(self) -> str:
        """What was written, for people: an object's name, or `status`."""
        if self.pod is not None:
            return self.pod.view.name
        is_status = self.kind is WriteKind.STATUS_UPDATE
        return "status" if is_status or self.job is None else self.job.view.name


@dataclass(slots=True)
class History:
    """The record of one key."""

    namespace: str
    name: str
    jobs: list[Revision[JobView]] = field(default_factory=list)
    pods: list[Revision[PodView]] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    status_indexes: list[int] = field(default_factory=list)  # which of the writes are of a status
    events: list[EventRow] = field(default_factory=list)
    refused: list[RefusedCall] = field(default_factory=list)
    jobs_rv: list[int] = field(default_factory=list)
    pods_rv: list[int] = field(default_factory=list)
    #: When the latest of the revisions up to each one was shown.
    jobs_latest_ns: list[int] = field(default_factory=list)
    pods_latest_ns: list[int] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The work-queue key."""
        return f"{self.namespace}/{self.name}"

    def job_before(self, rv: int) -> Revision[JobView] | None:
        """The last revision of the Job below `rv`."""
        position = self.jobs_below(rv)
        return self.jobs[position - 1] if position else None

    def listings(self) -> list[Revision[JobView]]:
        """Revisions of the Job that a LIST told: what led to them was not seen."""
        return [revision for revision in self.jobs if revision.type == "LIST"]

    def deletion_reported(self, pod: str) -> bool:
        """Whether an Event of the controller says that it deleted the pod of that name."""
        deletion = ("SuccessfulDelete", f"{DELETED_POD}{pod}")
        return any((event.reason, event.message) == deletion for event in self.events)

    def left_marked(self, write: Write, until: int) -> bool:
        """Whether a pod that is deleted at once was marked only, by the write of that index.

        Of a pod that has ended, or has no node, the API server sets the deletionTimestamp first and
        then deletes it, in one call; admission is asked before both. A webhook that refuses the
        second time leaves the pod marked, and the caller with an error. Upstream: Store.Delete in
        staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go, and
        podStrategy.CheckGracefulDelete in pkg/registry/core/pod/strategy.go.
        """
        marked = write.pod
        if write.kind is not WriteKind.POD_DELETE or marked is None or until >= len(self.writes):
            return False
        pod = marked.view
        if marked.type == "DELETED" or pod.finalizers or not (pod.terminal or not pod.node_name):
            return False
        before = self.pods[marked.position + 1 : self.pods_below(self.writes[until].rv)]
        return not any(other.view.uid == pod.uid for other in before)

    def next_status(self, index: int) -> int:
        """Index of the first status write from that write on, or past the end."""
        position = bisect_left(self.status_indexes, index)
        known = position < len(self.status_indexes)
        return self.status_indexes[position] if known else len(self.writes)

    def status_writes(self, first: int, until: int) -> int:
        """How many writes of a status there are from one index on and before another."""
        return bisect_left(self.status_indexes, until) - bisect_left(self.status_indexes, first)

    def jobs_below(self, rv: int) -> int:
        """How many revisions of the Job lie below `rv`."""
        return bisect_left(self.jobs_rv, rv)

    def pods_below(self, rv: int) -> int:
        """How many pod revisions lie below `rv`."""
        return bisect_left(self.pods_rv, rv)

    def unserved(self, job: Revision[JobView]) -> bool:
        """Whether no pod had been created for that Job by then: no sync of it came before."""
        return not any(
            write.kind is WriteKind.POD_CREATE
            and write.rv < job.rv
            and write.pod is not None
            and (owner := write.pod.view.controller) is not None
            and owner.uid == job.view.uid
            for write in self.writes
        )


def build_history(
    namespace: str,
    name: str,
    jobs: Iterable[Revision[JobView]],
    pods: Iterable[Revision[PodView]],
    events: Iterable[EventRow],
    refused: Iterable[RefusedCall] = (),
    written_ns: Mapping[int, int] | None = None,
) -> History:
    """Order the revisions, link each to the one before it, and derive the writes.

    `written_ns`: by resourceVersion, when that was written which its stream showed late.
    """
    history = History(namespace, name)
    job_list, pod_list = list(jobs), list(pods)
    place_synthesized([*job_list, *pod_list])
    if written_ns:
        written_in_time([*job_list, *pod_list], written_ns)
    history.jobs = linked(job_list)
    history.pods = linked(pod_list)
    history.jobs_rv = [revision.rv for revision in history.jobs]
    history.pods_rv = [revision.rv for revision in history.pods]
    history.jobs_latest_ns = _latest_ns(history.jobs)
    history.pods_latest_ns = _latest_ns(history.pods)
    history.events = as_arrived(events)
    history.refused = sorted(refused)
    uids = {revision.view.uid for revision in history.jobs}
    writes = [*_job_writes(history.jobs), *_pod_writes(history.pods, uids)]
    writes.sort(key=_RV)
    if not _rising(writes):
        writes.sort(key=lambda write: (write.rv, write.kind.value, write.uid))
    for index, write in enumerate(writes):
        write.index = index
    history.writes = writes
    history.status_indexes = [w.index for w in writes if w.kind is WriteKind.STATUS_UPDATE]
    return history


_RV, _SEQ = attrgetter("rv"), attrgetter("seq")


def _rising(items: Sequence[Revision[Any]] | Sequence[Write]) -> bool:
    """Whether each has a higher revision than the one before: then they are in order."""
    rvs = list(map(_RV, items))
    return all(map(lt, rvs, islice(rvs, 1, None)))


def _latest_ns(revisions: Sequence[Revision[Any]]) -> list[int]:
    return list(accumulate([known.recv_ns + known.late_ns for known in revisions], max))


def as_arrived(events: Iterable[EventRow]) -> list[EventRow]:
    """By arrival, repetitions dropped; a clock that went back makes the later row no earlier."""
    latest_ns = 0
    seen: set[tuple[str, int]] = set()
    keyed: list[tuple[int, int, int, EventRow]] = []
    for event in sorted(events, key=_SEQ):
        latest_ns = max(latest_ns, event.recv_ns)
        if event.rv and (event.uid, event.rv) in seen:
            continue  # listed again, or delivered twice
        seen.add((event.uid, event.rv))
        keyed.append((latest_ns, event.rv, event.seq, event))
    return [event for *_, event in sorted(keyed)]


def place_synthesized(revisions: Sequence[Revision[Any]]) -> None:
    """Give deletions that a relist told a place in the order.

    They carry the last revision that was known; the object went some time after it, at the latest
    when the relist came: they are put behind everything that had arrived by then.
    """
    for revision in revisions:
        if revision.synthesized:
            revision.rv = max(r.rv for r in revisions if r.shown_ns <= revision.recv_ns)


def written_in_time(revisions: Iterable[Revision[Any]], written_ns: Mapping[int, int]) -> None:
    """Give what its stream showed late the time by which it had been written."""
    for revision in revisions:
        at_ns = None if revision.synthesized else written_ns.get(revision.rv)
        if at_ns is not None and revision.type != "LIST":
            revision.recv_ns, revision.late_ns = at_ns, revision.shown_ns - at_ns


def linked(revisions: Sequence[Revision[V]]) -> list[Revision[V]]:
    """Sorted by resourceVersion, repetitions dropped, `previous` and `position` set."""
    last: dict[str, Revision[V]] = {}
    result: list[Revision[V]] = []
    if not _rising(revisions):
        revisions = sorted(revisions, key=lambda r: (r.rv, r.type == "DELETED", r.seq))
    for revision in revisions:
        uid = revision.view.uid
        before = last.get(uid)
        if before is not None and (
            before.type == "DELETED"
            # Listed again, or delivered twice.
            or (before.rv == revision.rv and revision.type != "DELETED")
        ):
            continue
        revision.previous = before
        revision.position = len(result)
        last[uid] = revision
        result.append(revision)
    return result


def _job_writes(jobs: list[Revision[JobView]]) -> Iterator[Write]:
    for revision in jobs:
        before = revision.previous
        if (
            before is not None
            and revision.type in ("MODIFIED", "LIST", "ADDED")
            and before.view.status != revision.view.status
        ):
            yield write_of(WriteKind.STATUS_UPDATE, revision.view.uid, job=revision)


def _pod_writes(pods: list[Revision[PodView]], job_uids: set[str]) -> Iterator[Write]:
    ever_owned: set[str] = set()
    for revision in pods:
        before, pod = revision.previous, revision.view
        uid, owner = pod.uid, pod.controller
        owned = owner is not None and owner.uid in job_uids
        if owned:
            ever_owned.add(uid)
        elif uid not in ever_owned:
            continue
        if before is None:
            if owned and revision.type == "ADDED":
                yield write_of(WriteKind.POD_CREATE, uid, pod=revision)
            continue
        old, over = before.view, revision.type == "DELETED"
        was_owned = old.controller is not None and old.controller.uid in job_uids
        if was_owned and old.deleted_ns is None and (over or pod.deleted_ns is not None):
            yield write_of(WriteKind.POD_DELETE, uid, pod=revision)
        if was_owned != owned:
            kind = WriteKind.POD_ADOPT if owned else WriteKind.POD_RELEASE
            yield write_of(kind, uid, pod=revision)
        elif old.has_tracking_finalizer and (
            # Taking the last finalizer off a pod that is being deleted ends it at once: the store
            # then shows the deletion only, with the state that it had before.
            over or not pod.has_tracking_finalizer
        ):
            yield write_of(WriteKind.FINALIZER_REMOVAL, uid, pod=revision)


def write_of(
    kind: WriteKind,
    uid: str,
    *,
    pod: Revision[PodView] | None = None,
    job: Revision[JobView] | None = None,
    cron_job: Revision[CronJobView] | None = None,
) -> Write:
    """A write, by the revision that it made."""
    revision = pod or job or cron_job
    assert revision is not None  # noqa: S101 - one of them is always given
    hidden = revision.synthesized or (revision.type == "LIST" and revision.previous is not None)
    rv, recv_ns, called_ns = revision.rv, revision.recv_ns, revision.called_ns
    return Write(kind, rv, recv_ns, called_ns, uid, pod, job, cron_job, hidden=hidden)
