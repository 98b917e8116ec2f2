"""Judges what the TTL-after-finished controller did, and what it had to do and did not.

A finished Job with a TTL expires at its finish time plus the TTL, and the deletion is requested
right then: foreground, so that the Job first shows the finalizer `foregroundDeletion`. That makes
the deletions of this controller tell themselves from those of others, who delete in the background.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from tracekit.controllers.ttl.controller import NoFinishTimeError, expires_at_ns, needs_cleanup
from tracekit.cron.gotime import rfc3339
from tracekit.eras.cronjob import CronJobEra
from tracekit.kube.timestamps import NS_PER_S
from tracekit.kube.views import JobView, job_from_raw
from tracekit.replay.cron_history import STATE_TYPES, VANISHED, WatchRow
from tracekit.replay.cron_run_context import BlindTime, CronRunContext
from tracekit.replay.history import Actor
from tracekit.verdict import Judgement, ObjectRef, Verdict

CONTROLLER = "ttl"
#: What the controller is called by its user name or agent.
CONTROLLER_NAME = "ttl-after-finished-controller"
FOREGROUND = "foregroundDeletion"
#: How late a deletion may come: queue, throttle and cache lag together.
BOUND_NS = 5 * NS_PER_S
#: The recorder's clock against the controller manager's.
CLOCK_SLACK_NS = NS_PER_S
_REQUESTS_PER_DELETION = 2
_REQUESTS_PER_S = 20
_THROTTLE_WINDOW_NS = 30 * NS_PER_S


@dataclass(frozen=True, slots=True)
class _State:
    """One observed state of a Job."""

    rv: int
    recv_ns: int
    type: str
    job: JobView
    actor: Actor | None = None

    @property
    def going(self) -> bool:
        return self.type in {"DELETED", VANISHED} or self.job.deleted_ns is not None


@dataclass(slots=True)
class _JobHistory:
    """The states of one Job, in the order of the store."""

    states: list[_State] = field(default_factory=list)
    known: set[tuple[int, bool]] = field(default_factory=set)


def judge_ttl(
    rows: Iterable[WatchRow], era: CronJobEra, run_context: CronRunContext
) -> list[Judgement]:
    """One judgement per deletion of a finished Job with a TTL, made or owed."""
    histories: dict[str, _JobHistory] = {}
    for row in rows:
        if row.resource != "jobs" or row.type not in STATE_TYPES:
            continue
        job = job_from_raw(row.object)
        history = histories.setdefault(job.uid, _JobHistory())
        key = (job.rv, row.type in {"DELETED", VANISHED})
        if key not in history.known:
            history.known.add(key)
            history.states.append(_State(job.rv, row.recv_ns, row.type, job, row.actor))
    for history in histories.values():
        history.states.sort(key=lambda state: state.rv)
    if not era.ttl and any(_shows_controller(h.states) for h in histories.values()):
        era = replace(era, ttl=True)
    deletions_ns = sorted(
        state.recv_ns
        for history in histories.values()
        for state in history.states
        if FOREGROUND in state.job.finalizers
    )
    found = [
        judgement
        for history in histories.values()
        for judgement in _judge(history.states, era, run_context, deletions_ns)
    ]
    found.sort(key=lambda j: (j.time_ns, j.object, j.resource_version))
    return found


def _shows_controller(states: Sequence[_State]) -> bool:
    """Whether the Job was deleted as only this controller does: its gate was on after all.

    Before 1.21 the gate is off unless somebody turned it on, which a trace may not say.
    """
    for before, state in pairwise(states):
        if FOREGROUND in state.job.finalizers and needs_cleanup(before.job):
            try:
                return state.recv_ns >= expires_at_ns(before.job) - CLOCK_SLACK_NS
            except NoFinishTimeError:
                return False
    return False


def _judge(
    states: Sequence[_State],
    era: CronJobEra,
    run_context: CronRunContext,
    deletions_ns: Sequence[int],
) -> Iterator[Judgement]:
    """Judge one Job."""
    end = next((i for i, state in enumerate(states) if state.going), len(states))
    overdue = None
    if era.ttl:
        blind = [*run_context.blind, *_terminating(states, run_context)]
        for index in range(end):
            until_ns = states[index + 1].recv_ns if index + 1 < len(states) else None
            overdue = _overdue(states[index], until_ns, run_context.end_ns, blind, deletions_ns)
            if overdue is not None:
                break
    if end < len(states) and end > 0 and states[end].type not in {"LIST", VANISHED}:
        if needs_cleanup(states[end - 1].job):
            yield _deletion(states, end, era, run_context, overdue)
    elif end == len(states) and overdue is not None:
        why = f"{_arithmetic(overdue.state.job)}; not deleted by {rfc3339(overdue.deadline_ns)}"
        yield _judgement(overdue.state, Verdict.MISSING, overdue.due_ns, why)


@dataclass(frozen=True, slots=True)
class _Overdue:
    """A state in which the Job should have been deleted and was not."""

    state: _State
    due_ns: int
    deadline_ns: int


def _overdue(
    state: _State,
    until_ns: int | None,
    end_ns: int,
    blind: Sequence[BlindTime],
    deletions_ns: Sequence[int],
) -> _Overdue | None:
    """Whether a state outlived its expiry by more than the bound."""
    if not needs_cleanup(state.job):
        return None
    try:
        due_ns = max(expires_at_ns(state.job), state.recv_ns)
    except NoFinishTimeError:
        return None
    others = bisect_right(deletions_ns, due_ns + BOUND_NS) - bisect_left(
        deletions_ns, due_ns - _THROTTLE_WINDOW_NS
    )
    throttle_ns = others * _REQUESTS_PER_DELETION * NS_PER_S // _REQUESTS_PER_S
    deadline_ns = due_ns + BOUND_NS + throttle_ns
    if deadline_ns >= (end_ns if until_ns is None else until_ns):
        return None
    if any(b.from_ns <= deadline_ns and due_ns <= b.until_ns for b in blind):
        return None
    return _Overdue(state, due_ns, deadline_ns)


def _deletion(
    states: Sequence[_State],
    end: int,
    era: CronJobEra,
    run_context: CronRunContext,
    overdue: _Overdue | None,
) -> Judgement:
    """Judge the deletion that was observed."""
    state, before = states[end], states[end - 1]
    foreign = _foreign(states, state, era, run_context)
    if foreign is not None:
        return _judgement(state, Verdict.FOREIGN, state.recv_ns, foreign)
    try:
        expires_ns = expires_at_ns(before.job)
    except NoFinishTimeError as error:
        return _judgement(state, Verdict.EXTRA, state.recv_ns, str(error))
    verdict, why = Verdict.MATCH, _arithmetic(before.job)
    if state.recv_ns < expires_ns - CLOCK_SLACK_NS:
        verdict = Verdict.EARLY
        why += f"; deleted {(expires_ns - state.recv_ns) / NS_PER_S:.3f} s before that"
    else:
        late_s = (state.recv_ns - max(expires_ns, before.recv_ns)) / NS_PER_S
        why += f"; deleted {late_s:.3f} s after it could be"
    if overdue is not None:
        verdict = Verdict.LATE
        bound_s = (overdue.deadline_ns - overdue.due_ns) / NS_PER_S
        why += f", where at most {bound_s:.1f} s are explained"
    return _judgement(state, verdict, state.recv_ns, why)


def _foreign(
    states: Sequence[_State], state: _State, era: CronJobEra, run_context: CronRunContext
) -> str | None:
    """Who else deleted the Job, None where it was this controller."""
    if state.actor is not None and state.actor.controller is not None:
        if state.actor.controller == CONTROLLER_NAME:
            return None
        return f"the audit log names {state.actor} as the writer"
    if FOREGROUND not in state.job.finalizers:
        return (
            f"deleted without the finalizer {FOREGROUND}, which this controller's deletion sets: "
            "the history limits of a CronJob, a user or the garbage collector"
        )
    if not era.ttl:
        return f"the TTL controller does not run in {era.version} with these gates"
    for blind in _terminating(states, run_context):
        if blind.from_ns <= state.recv_ns:
            return blind.why
    return None


def _terminating(states: Sequence[_State], run_context: CronRunContext) -> Iterator[BlindTime]:
    for namespace, since_ns in run_context.terminating:
        if states and namespace == states[0].job.namespace:
            yield BlindTime(since_ns, run_context.end_ns, "the namespace terminates")


def _arithmetic(job: JobView) -> str:
    expires_ns = expires_at_ns(job)
    ttl_s = job.spec.ttl_s or 0
    finished = job.status.finished
    state = finished.type if finished is not None else "finished"
    return (
        f"{state} since {rfc3339(expires_ns - ttl_s * NS_PER_S)} + ttlSecondsAfterFinished "
        f"{ttl_s} s = {rfc3339(expires_ns)}"
    )


def _judgement(state: _State, verdict: Verdict, time_ns: int, why: str) -> Judgement:
    job = state.job
    ref = ObjectRef("Job", job.namespace, job.name, job.uid)
    return Judgement(CONTROLLER, ref, "job-delete", verdict, time_ns, str(state.rv), job.name, why)
