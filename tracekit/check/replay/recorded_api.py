"""The API server as one sync met it, read off the record.

The `observed` schedule runs the ported controller against this port: each write that it makes is
looked up among the writes that were observed. A write that changed nothing on the server (a DELETE
of a pod that is being deleted, a PATCH without effect, a PUT of the same status) leaves no trace
and is granted; a PUT on an old revision is answered with a conflict, as the server did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tracekit.base.kube.views import JobStatus, JobView, PodView
from tracekit.check.compare.fields import FieldDifference
from tracekit.check.compare.pod_body import owner_differences, owner_of, pod_body_differences
from tracekit.check.compare.status import Interval, status_differences
from tracekit.check.replay.history import DELETED_POD, History, Revision, Write, WriteKind
from tracekit.ports.actions import Created, CreatePod, Outcome
from tracekit.ports.job.context import SyncClock
from tracekit.ports.job.status_validation import status_refusals
from tracekit.versions.job import JobRules

#: A revision that lies behind every other.
_AFTER_ALL = 1 << 62
#: Calls of these kinds are made side by side: they reach the server in any order.
_SIDE_BY_SIDE = (WriteKind.POD_CREATE, WriteKind.POD_DELETE, WriteKind.FINALIZER_REMOVAL)


class Problem(NamedTuple):
    """One way in which a run of the controller does not fit the record."""

    kind: WriteKind
    verdict: str  # different, missing, extra, early, late
    write: Write | None  # the observed write, if there is one
    what: str  # a sentence part: what was expected
    fields: tuple[FieldDifference, ...] = ()


class Mismatch(Exception):  # noqa: N818 - a signal of the search, not an error
    """This run cannot be what happened; raised only in a strict run."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.what)
        self.problem = problem


class RecordEnds(Exception):  # noqa: N818 - a signal of the search, not an error
    """The record stops (end of trace, gap, controller killed) before this write could show."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.what)
        self.problem = problem


class Assumptions(NamedTuple):
    """What an attempt takes for granted about things that leave no trace."""

    refusals: bool = False  # creations may have been refused
    refused_writes: bool = False  # so may every other write
    until_index: int = _AFTER_ALL  # what was observed from this index on, a later sync did
    cuts_off: bool = False  # the record may end, or the controller have died, inside the sync
    unseen_after: int | None = None  # writes to pods may be unseen beyond this revision
    unseen_status: bool = False  # so may status writes: the Jobs' stream was behind the others
    second_deletes: bool = False  # an Event may tell of a DELETE that came after another's
    released: bool = False  # others took owner references or finalizers off in its midst
    silent: bool = False  # the sync left no write at all
    served_rv: int | None = None  # ... and met the server as it was at this revision
    lenient: bool = False  # note what does not fit as a problem and go on


class PredictedEvent(msgspec.Struct, frozen=True):
    """An Event that the controller handed to its broadcaster."""

    type: str
    reason: str
    message: str
    after_rv: int  # the sync's last write before it; 0: none


class RecordedApi(msgspec.Struct):
    """The port for one attempt to explain the writes from `start` on."""

    history: History
    start: int
    clock: SyncClock
    earliest_ns: int  # the sync did not begin before
    assume: Assumptions
    skip: frozenset[int]  # writes that others made or that are explained already
    slack_ns: int
    rules: JobRules
    namespace_ends_rv: int | None = None  # the namespace takes no pods from this revision on
    consumed: list[Write] = []
    taken: set[int] = set()
    events: list[PredictedEvent] = []
    problems: list[Problem] = []
    refused: int = 0  # calls that were
    refused_writes: int = 0  # those of them that were no creations
    idle: int = 0  # calls before its first write that changed nothing
    unseen: int = 0  # calls that were made where the record could not see them
    #: What of a batch of calls side by side the record does not have: it ends within the batch.
    rest: Problem | None = None
    floor: int = 0  # writes before this index belong to an earlier step of the sync
    last_rv: int = 0

    def __post_init__(self) -> None:
        self.floor = self.start
        writes = self.history.writes
        self.last_rv = writes[self.start].rv if self.start < len(writes) else _AFTER_ALL

    # The port.

    def can_adopt(self, job: JobView) -> bool:
        """The live Job was not being deleted, as far as its revisions tell.

        It is asked for a call before the first PATCH, which tells that the answer was yes.
        """
        if _may_adopt(job, self.history.job_before(self._now_rv() + 1)):
            return True
        writes = self.history.writes
        if self.assume.silent or self.floor >= len(writes):
            return False
        patch = writes[self.floor]
        asked_ns = max(self.earliest_ns, patch.recv_ns - self.slack_ns)
        held = next((r for r in reversed(self.history.jobs) if r.recv_ns <= asked_ns), None)
        return patch.kind is WriteKind.POD_ADOPT and _may_adopt(job, held)

    def adopt_pod(self, job: JobView, pod: PodView, *, add_finalizer: bool) -> Outcome:
        """PATCH of ownerReferences (and the finalizer)."""
        self._goes_on()

        def is_mine(adopted: Revision[PodView]) -> bool:
            owned = owner_of(job) in adopted.evidence.owners()
            return owned and (adopted.view.has_tracking_finalizer or not add_finalizer)

        what = f"pod {pod.name} to be adopted"
        return self._pod_write(WriteKind.POD_ADOPT, pod, what, self._next_status(), is_mine)

    def release_pod(self, job: JobView, pod: PodView) -> Outcome:
        """PATCH that drops the owner reference, and the tracking finalizer with it."""
        self._goes_on()
        write = self._ended_by(pod)
        if write is not None:
            self._take(write)
            return Outcome.OK

        def is_mine(released: Revision[PodView]) -> bool:
            return not (released.view.has_tracking_finalizer and self.rules.tracks(job))

        what = f"pod {pod.name} to be released"
        return self._pod_write(WriteKind.POD_RELEASE, pod, what, self._next_status(), is_mine)

    def remove_finalizers(self, pods: Sequence[PodView]) -> list[Outcome]:
        """PATCHes that drop the tracking finalizer."""
        if not pods:
            return []
        self._goes_on()
        kind, until = WriteKind.FINALIZER_REMOVAL, self._next_status()
        return [
            self._pod_write(kind, pod, f"the tracking finalizer of pod {pod.name} to go", until)
            for pod in pods
        ]

    def delete_pods(self, job: JobView, pods: Sequence[PodView]) -> list[Outcome]:
        """DELETEs of pods."""
        if not pods:
            return []
        self._goes_on(WriteKind.FINALIZER_REMOVAL)
        until = self._next_status()
        return [self._delete_pod(job, pod, until) for pod in pods]

    def _delete_pod(self, job: JobView, pod: PodView, until: int) -> Outcome:
        what = f"pod {pod.name} to be deleted"
        outcome = self._pod_write(WriteKind.POD_DELETE, pod, what, until)
        if outcome is Outcome.OK or self._was_going(pod.uid):
            self.record_event(job, "Normal", "SuccessfulDelete", f"{DELETED_POD}{pod.name}")
        elif outcome is Outcome.REFUSED:
            self.record_event(job, "Warning", "FailedDelete", "")
        return outcome

    def create_pods(self, job: JobView, intents: list[CreatePod]) -> list[Created]:
        """One slow-start batch of POSTs."""
        self._goes_on()
        answers = []
        until = self._next_status()
        floor = self.floor
        for intent in intents:
            write = None
            if not self.assume.silent:
                write = self._find_create(job, intent, floor, until)
            if write is not None:
                self._take(write)
                self._check_body(job, intent, write)
                pod = _pod_of(write)
                text = f"Created pod: {pod.view.name}"
                # A batch creates side by side: each tells of its own as soon as it is there.
                self.events.append(PredictedEvent("Normal", "SuccessfulCreate", text, write.rv))
                answers.append(Created(Outcome.OK, pod.view.name))
                self.floor = max(self.floor, write.index)
            elif self.namespace_ends_rv is not None and self._now_rv() >= self.namespace_ends_rv:
                answers.append(Created(Outcome.NAMESPACE_TERMINATING))
            elif self.assume.refusals:
                self.refused += 1
                answers.append(Created(Outcome.REFUSED))
            elif self._ending_by(until):
                answers.append(Created(Outcome.NAMESPACE_TERMINATING))
            else:
                self._missing(WriteKind.POD_CREATE, _describe_create(intent))
                answers.append(Created(Outcome.OK))
        return answers

    def _ending_by(self, until: int) -> bool:
        """Whether the namespace was ending by this sync's status: a call takes its time."""
        if (
            self.namespace_ends_rv is None
            or self.assume.silent
            or until >= len(self.history.writes)
        ):
            return False
        return self.history.writes[until].rv > self.namespace_ends_rv

    def update_status(self, job: JobView, status: JobStatus) -> tuple[Outcome, JobView]:
        """PUT of the status, based on the Job that the sync holds."""
        self._goes_on()
        if self._is_gone_by_now(job):
            return Outcome.NOT_FOUND, job
        if self.rules.overwrites_status:
            return self._overwrite_status(job, status)
        if status == job.status:
            return Outcome.OK, job
        write = self._status_write()
        revision = write.job if write is not None else None
        base = revision.previous if revision is not None else None
        follows = revision if base is not None and base.rv == job.rv else None
        taken = follows is not None and follows.view.status == status
        if not taken and status_refusals(job, status, self.rules.status_validation):
            return Outcome.REFUSED, job
        if write is None or follows is None:
            return self._status_unseen(job, status)
        return self._status_seen(job, status, write, follows)

    def _status_seen(
        self, job: JobView, status: JobStatus, write: Write, revision: Revision[JobView]
    ) -> tuple[Outcome, JobView]:
        """The next status write continues this revision of the Job."""
        differences = self._differences(status, revision.view.status, write.recv_ns)
        if differences:
            if _same_apart_from_times(status, job.status, self.clock.now_ns):
                return Outcome.OK, job  # a PUT that changes nothing within the second
            problem = Problem(
                WriteKind.STATUS_UPDATE,
                "different",
                write,
                "another status",
                tuple(differences),
            )
            if self.assume.cuts_off and self.consumed:
                # The controller died before this write; another made the next.
                raise RecordEnds(problem)
            if self.assume.refused_writes:
                return self._refuse(), job
            self._report(problem)
        self._take_status(write)
        return Outcome.OK, revision.view

    def _differences(
        self, status: JobStatus, observed: JobStatus, until_ns: int
    ) -> list[FieldDifference]:
        if status == observed:
            return []
        return status_differences(
            status, observed, fresh_ns=self.clock.now_ns, window=self._window(until_ns)
        )

    def record_event(self, job: JobView, event_type: str, reason: str, message: str) -> None:
        """Hand an Event to the broadcaster."""
        del job  # the key's own
        after_rv = self.consumed[-1].rv if self.consumed else 0
        self.events.append(PredictedEvent(event_type, reason, message, after_rv))

    # The search for the observed counterpart.

    def _now_rv(self) -> int:
        if self.assume.served_rv is not None:
            return self.assume.served_rv
        writes = self.history.writes
        return writes[self.floor].rv if self.floor < len(writes) else self.last_rv

    def _take(self, write: Write) -> None:
        self.consumed.append(write)
        self.taken.add(write.index)

    def _take_status(self, write: Write) -> None:
        self._take(write)
        self.floor = write.index
        self.last_rv = write.rv

    def _free(self, index: int) -> bool:
        until = self.assume.until_index
        return index < until and index not in self.taken and index not in self.skip

    def _next_status(self) -> int:
        """Index of the next status write that this sync could have made, or past its end."""
        writes, kind = self.history.writes, WriteKind.STATUS_UPDATE
        end = min(len(writes), self.assume.until_index)
        for index in range(self.floor, end):
            if writes[index].kind is kind and index not in self.taken and index not in self.skip:
                return index
        return end

    def _status_write(self) -> Write | None:
        """The next status write that this sync could have made."""
        if self.assume.silent:
            return None
        position = self._next_status()
        found = position < min(len(self.history.writes), self.assume.until_index)
        return self.history.writes[position] if found else None

    def _find_create(self, job: JobView, intent: CreatePod, floor: int, until: int) -> Write | None:
        writes, kind = self.history.writes, WriteKind.POD_CREATE
        for index in range(floor, until):
            write = writes[index]
            if write.kind is not kind or not self._free(index):
                continue
            pod = _pod_of(write).view
            if pod.controller is None or pod.controller.uid != job.uid:
                continue
            if intent.completion_index is None or pod.completion_index == intent.completion_index:
                return write
        return None

    def _check_body(self, job: JobView, intent: CreatePod, write: Write) -> None:
        pod = _pod_of(write)
        differences = pod_body_differences(
            intent, pod.view, pod.evidence.pod_spec(), pod.evidence.generate_name()
        )
        differences += owner_differences(job, pod.evidence.owners())
        node = intent.spec.get("nodeName") or ""
        if write.pod is not None and write.pod.type == "ADDED" and pod.view.node_name != node:
            differences.append(FieldDifference("spec.nodeName", node, pod.view.node_name))
        if differences:
            # The creation itself stands: only its content is wrong.
            self.problems.append(
                Problem(
                    WriteKind.POD_CREATE,
                    "different",
                    write,
                    f"pod {pod.view.name} as the Job's template has it",
                    tuple(differences),
                )
            )

    def _pod_write(
        self,
        kind: WriteKind,
        pod: PodView,
        what: str,
        until: int,
        is_mine: Callable[[Revision[PodView]], bool] | None = None,
    ) -> Outcome:
        """A write to a pod, looked for before the next status write, which is `until`."""
        writes = self.history.writes
        for index in range(self.start, self.start if self.assume.silent else until):
            write = writes[index]
            if write.kind is kind and write.uid == pod.uid and self._free(index):
                if index < self.floor and kind is not WriteKind.POD_DELETE:
                    continue
                if is_mine is not None and not is_mine(_pod_of(write)):
                    continue
                self._take(write)
                marked_only = self.assume.refused_writes and self.history.left_marked(write, until)
                return self._refuse() if marked_only else Outcome.OK
        self.idle += not self.consumed
        state = self._pod_at(pod.uid, self._now_rv())
        if state is None or state.type == "DELETED":
            return Outcome.NOT_FOUND
        if _already_so(kind, state.view):
            return Outcome.OK
        return self._gone_before(pod.uid, kind, until) or self._missing(kind, what)

    def _ended_by(self, pod: PodView) -> Write | None:
        """The pod's end, where its tracking finalizer was all that held it.

        The store shows such an end with the state before it: the reference still there.
        """
        for write in self.history.writes[self.start : self._next_status()]:
            if write.kind is WriteKind.FINALIZER_REMOVAL and write.uid == pod.uid:
                ended = write.pod is not None and write.pod.type == "DELETED"
                if ended and self._free(write.index) and not self.assume.silent:
                    return write
        return None

    def _gone_before(self, uid: str, kind: WriteKind, until: int) -> Outcome | None:
        """The pod got there by somebody else's hand before this sync's next status write."""
        writes = self.history.writes
        limit_rv = writes[until].rv if until < len(writes) else None
        for revision in self.history.pods:
            if revision.view.uid != uid or revision.rv < self._now_rv():
                continue
            if limit_rv is not None and revision.rv >= limit_rv:
                break
            if revision.type == "DELETED":
                # Or by this very call, if it is no write of the Job's any more.
                own = revision.view.controller is None and (
                    revision.rv == self.assume.served_rv
                    or self.history.deletion_reported(revision.view.name)
                )
                return Outcome.OK if own else Outcome.NOT_FOUND
            if _already_so(kind, revision.view):
                return Outcome.OK
        return None

    def _was_going(self, uid: str) -> bool:
        """Whether a DELETE of this sync may have met a pod, gone by then, on its way out."""
        if self.assume.silent:
            return False
        end = self._pod_at(uid, self._now_rv())
        return (
            end is not None
            and end.type == "DELETED"
            and end.view.deleted_ns is not None
            and end.recv_ns > self.earliest_ns
        )

    def _pod_at(self, uid: str, rv: int) -> Revision[PodView] | None:
        """The last state of the pod below `rv`; its first one if it came later."""
        position = self.history.pods_below(rv)
        for index in range(position - 1, -1, -1):
            if self.history.pods[index].view.uid == uid:
                return self.history.pods[index]
        return next((r for r in self.history.pods[position:] if r.view.uid == uid), None)

    def _window(self, until_ns: int) -> Interval:
        """When the sync can have run: also after the timers that it found passed, before others."""
        clock = self.clock
        passed = [at for at in clock.asked if at <= min(clock.now_ns, until_ns)]
        ahead = [at for at in clock.asked if at > clock.now_ns]
        begun_ns = self.consumed[0].recv_ns if self.consumed else until_ns
        return Interval(
            max(self.earliest_ns, *passed) if passed else self.earliest_ns,
            min(until_ns, *ahead) if ahead else until_ns,
            self.slack_ns,
            max(0, until_ns - begun_ns),
        )

    def _overwrite_status(self, job: JobView, status: JobStatus) -> tuple[Outcome, JobView]:
        """PUT of the status over whatever the server holds, however old the sync's own Job is."""
        write, differences = self._status_write(), []
        met = write.job if write is not None else None
        own = met is not None and met.view.uid == job.uid
        # The Job is read by its name: it may be the next of that name.
        if write is not None and met is not None and (own or self.history.unserved(met)):
            differences = self._differences(status, met.view.status, write.recv_ns)
            if not differences:
                self._take_status(write)
                return Outcome.OK, met.view
        if met is not None and own:
            held = met.previous
        else:
            write, held = None, self._held()
        if held is None or held.type == "DELETED" or held.view.uid != job.uid:
            return Outcome.NOT_FOUND, job
        if not self._differences(status, held.view.status, self.clock.now_ns):
            return Outcome.OK, held.view  # a PUT that changes nothing within the second
        if write is None:
            answer = self._missing(WriteKind.STATUS_UPDATE, "a status update")
            return answer, replace(job, status=status)
        odd = tuple(differences)
        self._report(Problem(WriteKind.STATUS_UPDATE, "different", write, "another status", odd))
        self._take_status(write)
        return Outcome.OK, replace(job, status=status)

    def _is_gone_by_now(self, job: JobView) -> bool:
        """Whether a sync that met the server at a known time comes to its status after the Job."""
        if self.assume.served_rv is None:
            return False
        writes = self.history.writes
        until_rv = writes[self.start].rv if self.start < len(writes) else _AFTER_ALL
        ends = (r.rv for r in self.history.jobs if r.type == "DELETED" and r.view.uid == job.uid)
        return any(self.assume.served_rv < rv < until_rv for rv in ends)

    def _held(self) -> Revision[JobView] | None:
        """The Job that the server holds while this sync runs, of which no status write is left."""
        if self.assume.silent:
            return self.history.job_before(self._now_rv())
        return self.history.jobs[-1]

    def _status_unseen(self, job: JobView, status: JobStatus) -> tuple[Outcome, JobView]:
        """No observed status write continues this revision of the Job."""
        later = [r for r in self.history.jobs if r.rv > job.rv]
        if self.assume.unseen_status and (not later or later[0].type == "LIST"):
            self.unseen += 1
            return Outcome.OK, replace(job, status=status)
        if self.assume.silent:
            later = [r for r in later if r.rv < self._now_rv()]
            if later and later[0].view.uid == job.uid and later[0].type != "DELETED":
                return Outcome.CONFLICT, job
        if later:
            if later[0].type == "DELETED" or later[0].view.uid != job.uid:
                return Outcome.NOT_FOUND, job
            written = {w.rv for w in self.history.writes if w.kind is WriteKind.STATUS_UPDATE}
            foreign = later[0].rv not in written or any(
                w.rv == later[0].rv and w.index in self.skip for w in self.history.writes
            )
            ended = self.start >= len(self.history.writes)  # every later revision is there by now
            if foreign or ended or job.rv < self._base_rv():
                return Outcome.CONFLICT, job
        if _same_apart_from_times(status, job.status, self.clock.now_ns):
            return Outcome.OK, job
        answer = self._missing(WriteKind.STATUS_UPDATE, "a status update")
        return answer, job if answer is Outcome.REFUSED else replace(job, status=status)

    def _base_rv(self) -> int:
        """The Job's revision on the server when this sync makes its write."""
        current = self.history.job_before(self._now_rv())
        return current.rv if current is not None else 0

    def _missing(self, kind: WriteKind, what: str) -> Outcome:
        """The record does not have this write; the answer that the sync goes on with."""
        problem = Problem(kind, "missing", None, what)
        if kind is not WriteKind.STATUS_UPDATE and self._hidden():
            self.unseen += 1
            return Outcome.OK
        if self.assume.cuts_off:
            if kind not in _SIDE_BY_SIDE:
                raise RecordEnds(problem)
            self.rest = self.rest or problem
            return Outcome.OK
        if self.assume.refused_writes and kind is not WriteKind.POD_CREATE:
            return self._refuse()
        self._report(problem)
        return Outcome.OK

    def _hidden(self) -> bool:
        """Whether a write to a pod, before the next status write, may not have been seen."""
        after_rv = self.assume.unseen_after
        if after_rv is None:
            return False
        until = self._next_status()
        if until >= len(self.history.writes):
            return not self.assume.cuts_off
        return self.history.writes[until].rv > after_rv

    def _goes_on(self, after: WriteKind | None = None) -> None:
        """The next batch: after a call that the record does not have, only one beside that."""
        if self.rest is not None and self.rest.kind is not after:
            raise RecordEnds(self.rest)

    def _refuse(self) -> Outcome:
        self.refused += 1
        self.refused_writes += 1
        return Outcome.REFUSED

    def _report(self, problem: Problem) -> None:
        if not self.assume.lenient:
            raise Mismatch(problem)
        self.problems.append(problem)


def _may_adopt(job: JobView, held: Revision[JobView] | None) -> bool:
    """Whether the server held this very Job, and nobody had asked for its deletion."""
    if held is None or held.type == "DELETED":
        return False
    return held.view.uid == job.uid and held.view.deleted_ns is None


def _pod_of(write: Write) -> Revision[PodView]:
    assert write.pod is not None  # noqa: S101 - pod writes have one
    return write.pod


def _describe_create(intent: CreatePod) -> str:
    if intent.completion_index is None:
        return "a pod to be created"
    return f"a pod for index {intent.completion_index} to be created"


def _already_so(kind: WriteKind, pod: PodView) -> bool:
    """Whether the write would change nothing."""
    match kind:
        case WriteKind.POD_DELETE:
            return pod.deleted_ns is not None
        case WriteKind.FINALIZER_REMOVAL:
            return not pod.has_tracking_finalizer
        case WriteKind.POD_ADOPT:
            return pod.controller is not None
        case WriteKind.POD_RELEASE:
            return pod.controller is None
    return False


def _same_apart_from_times(left: JobStatus, right: JobStatus, now_ns: int) -> bool:
    """Whether a PUT of `left` over `right` could be a no-op: only times written now differ."""
    if left.start_ns == now_ns and right.start_ns is not None:
        left = replace(left, start_ns=right.start_ns)
    return left == right
