"""Judges what the TTL-after-finished controller did to the Jobs of a record, and what it owed.

The ported worker runs on the Jobs of each history, as an informer that had seen all would show them
and on a queue of its own: so the record tells since when a deletion was due. The deletion itself is
looked up in the record. It is requested in the foreground, so that the Job first shows the
finalizer `foregroundDeletion`: that tells the work of this controller from most others'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.cron.gotime import rfc3339
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.base.sim.clock import VirtualClock
from tracekit.check.diff.cross_key_timing import CrossKeyTiming, TimingSummary
from tracekit.check.diff.key_queue import FirstWrite
from tracekit.check.diff.lateness import CALL_LATENCY_NS, KeyTiming, PendingAction, Seen, Service
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS
from tracekit.check.replay.feed import RowGroup
from tracekit.check.replay.history import History, Revision
from tracekit.check.replay.run_context import RunContext
from tracekit.check.verdict import Judgement, ObjectRef, Reason, Verdict
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import OK, Answer
from tracekit.ports.ttl.controller import (
    DeleteExpiredJob,
    NoFinishTimeError,
    TtlResult,
    add_job,
    expires_at_ns,
    finished_at_ns,
    job_seen,
    needs_cleanup,
    process,
    process_next_work_item,
)
from tracekit.ports.workqueue.rate_limiters import default_controller_rate_limiter
from tracekit.ports.workqueue.rate_limiting import RateLimitingQueue
from tracekit.versions.constants import Constants
from tracekit.versions.cronjob import CronJobEra

CONTROLLER = "ttl"
#: What the controller is called by its user name or agent.
CONTROLLER_NAME = "ttl-after-finished-controller"
FOREGROUND = "foregroundDeletion"
ACTION = "job-delete"
#: So often it reads a Job from the API server before it deletes it (upstream:
#: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go:processJob).
_READS = 1
_CONSTANTS = Constants()


@dataclass(slots=True)
class _Server:
    """The API server while one state of a Job is the newest; it takes every deletion."""

    live: JobView | None = None
    asked: DeleteExpiredJob | None = None

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        del namespace
        if self.live is None:
            return Answer(Outcome.NOT_FOUND, f'jobs.batch "{name}" not found')
        return self.live

    def delete_job(self, intent: DeleteExpiredJob) -> Answer:
        self.asked = intent
        return OK


@dataclass(slots=True)
class _Due:
    """A time in which the worker, had it looked, would have deleted the Job."""

    since_ns: int
    timed: bool  # a timer of its own brought the worker back, not a change of the Job
    until_ns: int | None = None  # when that ended; None: never


class _Worker:
    """The ported worker on one Job, looking at each change and whenever its timer goes off."""

    def __init__(self) -> None:
        self._clock = VirtualClock()
        limiter = default_controller_rate_limiter(self._clock, _CONSTANTS)
        self._queue: RateLimitingQueue[str] = RateLimitingQueue(self._clock, limiter)
        self._server = _Server()
        self._timed = False
        self.due: list[_Due] = []

    def shown(self, job: JobView, at_ns: int, until_ns: int) -> None:
        """The informer shows a state, which is the newest until the next."""
        self._clock.advance_to(max(at_ns, self._clock.now_ns))
        self._server.live, self._timed = job, False
        if not job_seen(job):
            self._ended()
        add_job(job, self._queue)
        self._work()
        self._timed = True
        while (timer_ns := self._queue.next_ready_ns()) is not None and timer_ns < until_ns:
            self._clock.advance_to(max(timer_ns, self._clock.now_ns))
            self._work()

    def gone(self, at_ns: int) -> None:
        """The Job is on its way out."""
        self._clock.advance_to(max(at_ns, self._clock.now_ns))
        self._ended()

    def _work(self) -> None:
        while process_next_work_item(self._queue, self._look):
            pass

    def _look(self, key: str) -> TtlResult:
        del key
        self._server.asked = None
        result = process(self._server.live, self._clock.now_ns, self._server)
        if self._server.asked is None:
            self._ended()
        elif not self.due or self.due[-1].until_ns is not None:
            self.due.append(_Due(self._clock.now_ns, self._timed))
        return result

    def _ended(self) -> None:
        if self.due and self.due[-1].until_ns is None:
            self.due[-1].until_ns = self._clock.now_ns


class TtlSummary(Struct, frozen=True):
    """What some Jobs have told, as it is sent from one process to another."""

    judgements: list[Judgement]
    stray: list[Judgement]
    runs: bool
    summary: TimingSummary


@dataclass(slots=True)
class TtlOfKey:
    """What the Jobs of one name tell of the TTL controller."""

    judgements: list[Judgement] = field(default_factory=list)
    #: Deletions in the foreground that no TTL asks for: users' mostly, this controller's at times.
    stray: list[Judgement] = field(default_factory=list)
    timings: list[KeyTiming] = field(default_factory=list)
    #: Whether a deletion shows that the gate was on; before 1.21 a trace may not say so.
    runs: bool = False


@dataclass(slots=True)
class TtlJudge:
    """Takes the histories of all Jobs, one by one, and judges the TTL controller's part in them."""

    era: CronJobEra
    context: RunContext
    #: What the Jobs tell of the process; it shares the informers with other controllers'.
    cross_key: CrossKeyTiming = field(default_factory=CrossKeyTiming)
    _judgements: list[Judgement] = field(default_factory=list)
    _runs: bool = False
    _stray: list[Judgement] = field(default_factory=list)

    def passing(self, groups: Iterable[RowGroup]) -> Iterable[RowGroup]:
        """The groups of a trace: the histories of its Jobs are all that it needs."""
        return groups

    def job(self, history: History) -> None:
        """Judge the Jobs of one name."""
        self.take(ttl_of_key(history, self.context))

    def take(self, found: TtlOfKey) -> None:
        """Take in what was found of the Jobs of one name."""
        self._judgements += found.judgements
        self._stray += found.stray
        self._runs = self._runs or found.runs
        for timing in found.timings:
            self.cross_key.add(timing)

    def summary(self) -> TtlSummary:
        """What was found of its Jobs."""
        return TtlSummary(self._judgements, self._stray, self._runs, self.cross_key.summary())

    def merge(self, summary: TtlSummary) -> None:
        """Take in what was found of other Jobs."""
        self._judgements += summary.judgements
        self._stray += summary.stray
        self._runs = self._runs or summary.runs
        self.cross_key.merge(summary.summary)

    def report(self) -> list[Judgement]:
        """The judgements of all Jobs, once every history was added."""
        if not (self.era.ttl or self._runs):
            why = f"the TTL controller does not run in {self.era.version} with these gates"
            return [replace(j, verdict=Verdict.FOREIGN, why=why) for j in self._judgements]
        settled = self.cross_key.settled(self.context)
        found = [*map(settled.of, self._judgements), *settled.missing]
        missing = [judgement for judgement in found if judgement.verdict is Verdict.MISSING]
        return [*found, *self._wrong(missing)]

    def _wrong(self, missing: Sequence[Judgement]) -> Iterator[Judgement]:
        """Deletions that may be of a wrong Job: one that had expired was left instead."""
        for stray in self._stray:
            for pending in missing:
                if 0 <= stray.time_ns - pending.time_ns <= CALL_LATENCY_NS + CLOCK_SLACK_NS:
                    due = f"{pending.object.namespace}/{pending.object.name}"
                    why = (
                        f"{stray.why}; yet {due}, due at {rfc3339(pending.time_ns)}, was not "
                        "deleted: a user's deletion, or this controller's of the wrong Job, which "
                        "only an audit log tells"
                    )
                    reason = Reason.NOT_RECORDED
                    verdict = Verdict.UNKNOWABLE
                    yield replace(stray, verdict=verdict, why=why, ambiguous=True, reason=reason)
                    break


def ttl_of_key(history: History, context: RunContext) -> TtlOfKey:
    """Judge the TTL controller's part in the Jobs of one name, each alone."""
    judge = _KeyJudge(context)
    if all(s.view.spec.ttl_s is None and FOREGROUND not in s.view.finalizers for s in history.jobs):
        return judge.found  # they do not concern it
    states: dict[str, list[Revision[JobView]]] = {}
    for revision in history.jobs:
        states.setdefault(revision.view.uid, []).append(revision)
    for revisions in states.values():
        if any(needs_cleanup(s.view) or FOREGROUND in s.view.finalizers for s in revisions):
            judge.job(revisions)
    return judge.found


class _KeyJudge:
    """Judges the Jobs of one name."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.found = TtlOfKey()

    def job(self, states: Sequence[Revision[JobView]]) -> None:
        """Judge one Job."""
        end = next((i for i, state in enumerate(states) if _going(state)), len(states))
        worker: _Worker | None = None
        latest_ns = 0
        for index, state in enumerate(states[:end]):
            latest_ns = max(latest_ns, state.shown_ns)
            if worker is None and job_seen(state.view):
                worker = _Worker()
            if worker is not None:  # before that the queue is empty
                following = states[index + 1] if index + 1 < len(states) else None
                until_ns = self.context.end_ns if following is None else following.shown_ns
                worker.shown(state.view, latest_ns, until_ns)
        services: list[Service] = []
        gone = states[end] if end < len(states) else None
        if worker is not None and gone is not None:
            worker.gone(gone.shown_ns)
        due = worker.due if worker is not None else []
        observed = gone if end and gone is not None and not _unseen(gone) else None
        if observed is not None:
            services = list(self._deletion(states[end - 1], observed, due))
        missed = due[:-1] if services else due
        if observed is None and gone is not None:
            missed = []  # nobody saw who deleted it, or when
        if states[0].view.namespace in self.context.namespaces_ending:
            missed = []
        pending = tuple(self._pending(states[end - 1], due) for due in missed)
        calls = tuple(service.served_ns for service in services)
        seen = tuple(self._seen(states[:end], service) for service in services)
        timing = KeyTiming(tuple(services), calls, (), pending, seen, ())
        self.found.timings.append(timing)

    def _deletion(
        self, before: Revision[JobView], gone: Revision[JobView], due: Sequence[_Due]
    ) -> Iterator[Service]:
        """Judge the deletion that was observed; its service if it is this controller's."""
        foreign = self._foreign(gone)
        if foreign is not None:
            if needs_cleanup(before.view):
                self.found.judgements.append(_judged(gone, Verdict.FOREIGN, foreign))
            return
        server = _Server(before.view)
        own = gone.actor is not None and gone.actor.controller == CONTROLLER_NAME
        result = process(before.view, gone.recv_ns + CLOCK_SLACK_NS, server)
        if not needs_cleanup(before.view):
            why = f"the worker leaves it alone: {_not_due(before.view)}"
            kept = self.found.judgements if own else self.found.stray
            kept.append(_judged(gone, Verdict.EXTRA, why))
            return
        if result.error is not None:
            self.found.judgements.append(_asked(gone, Verdict.EXTRA, result.error, own=own))
            return
        expires_ns = expires_at_ns(before.view)
        why = _arithmetic(before.view)
        if result.rearm_after_ns is not None:
            ahead_s = (expires_ns - gone.recv_ns) / NS_PER_S
            why += f"; deleted {ahead_s:.3f} s before that"
            self.found.judgements.append(_asked(gone, Verdict.EARLY, why, own=own))
            return
        self.found.runs = True
        late_s = (gone.recv_ns - max(expires_ns, before.recv_ns)) / NS_PER_S
        why += f"; deleted {late_s:.3f} s after it could be"
        self.found.judgements.append(_judged(gone, Verdict.MATCH, why))
        since = due[-1] if due else _Due(gone.recv_ns, timed=True)
        yield Service(
            first=FirstWrite(before.view.key, ACTION, str(gone.rv)),
            served_ns=gone.called_ns,
            earliest_ns=max(expires_ns, before.recv_ns) - CLOCK_SLACK_NS,
            certain_ns=since.since_ns,
            timed=since.timed,
            judged=not self.context.interrupted(since.since_ns, gone.recv_ns),
            idle=_READS,
        )

    def _seen(self, states: Sequence[Revision[JobView]], service: Service) -> Seen:
        """How far the informer had got: to the first state that its worker deletes."""
        now_ns = service.served_ns + CLOCK_SLACK_NS
        server = _Server(states[-1].view)
        for state in states:
            process(state.view, now_ns, server)
            if server.asked is not None:
                break
        return Seen(service.served_ns, "jobs", state.rv)

    def _certain_ns(self, due: _Due) -> int:
        """By then the key was in the queue of the process that runs, or of its successor."""
        until_ns = self.context.last_interrupted_ns
        return due.since_ns if until_ns is None else max(due.since_ns, until_ns)

    def _pending(self, last: Revision[JobView], due: _Due) -> PendingAction:
        why = f"{_arithmetic(last.view)}; not deleted"
        judged = replace(_judged(last, Verdict.MISSING, why), time_ns=due.since_ns)
        return PendingAction(self._certain_ns(due), judged, due.timed, due.until_ns, idle=_READS)

    def _foreign(self, gone: Revision[JobView]) -> str | None:
        """Who else deleted the Job; None where it may have been this controller."""
        actor = gone.actor
        if actor is not None and actor.controller is not None:
            if actor.controller == CONTROLLER_NAME:
                return None
            return f"the audit log names {actor} as the writer"
        if FOREGROUND not in gone.view.finalizers:
            return (
                f"deleted without the finalizer {FOREGROUND}, which this controller's deletion "
                "sets: the history limits of a CronJob, a user or the garbage collector"
            )
        ending = self.context.namespaces_ending.get(gone.view.namespace)
        return "the namespace terminates" if ending is not None and ending <= gone.rv else None


def _going(state: Revision[JobView]) -> bool:
    return state.type == "DELETED" or state.view.deleted_ns is not None


def _unseen(state: Revision[JobView]) -> bool:
    """Whether only a list told of the deletion."""
    return state.synthesized or state.type == "LIST"


def _not_due(job: JobView) -> str:
    if job.spec.ttl_s is None:
        return "it has no ttlSecondsAfterFinished"
    return "it has not finished"


def _arithmetic(job: JobView) -> str:
    try:
        since_ns = finished_at_ns(job)
    except NoFinishTimeError as error:
        return str(error)
    finished = job.status.finished
    state = finished.type if finished is not None else "finished"
    return (
        f"{state} since {rfc3339(since_ns)} + ttlSecondsAfterFinished {job.spec.ttl_s} s = "
        f"{rfc3339(expires_at_ns(job))}"
    )


def _asked(gone: Revision[JobView], verdict: Verdict, why: str, *, own: bool) -> Judgement:
    """A deletion against the rules: a divergence only where it is known to be this controller's.

    Users, and tools of theirs, delete in the foreground too, and leave the very same trace.
    """
    if own:
        return _judged(gone, verdict, why)
    why += ": a user's, or this controller's against its rules, which only an audit log tells"
    judged = _judged(gone, Verdict.UNKNOWABLE, why)
    return replace(judged, ambiguous=True, reason=Reason.NOT_RECORDED)


def _judged(state: Revision[JobView], verdict: Verdict, why: str) -> Judgement:
    job = state.view
    ref = ObjectRef("Job", job.namespace, job.name, job.uid)
    return Judgement(CONTROLLER, ref, ACTION, verdict, state.recv_ns, str(state.rv), job.name, why)
