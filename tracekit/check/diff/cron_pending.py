"""Since when the CronJob controller had to do something, and until when.

The controller is woken by every change of a CronJob or of its Jobs (the polling one comes by
anyway), by a timer at each slot, and by the start of a process, which has no timers yet. The ported
controller is run on the state at each of these times: what it would do then is *wanted* until it is
done, or until a later run no longer asks for it. Whether a write came late, or never, is then for
the proofs of `lateness` to say.

Nothing is wanted of refused writes that an Event tells of, nor between a changed schedule and its
next slot (upstream only arms a timer then).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.check.replay.cron_api import DryCronApi
from tracekit.check.replay.cron_history import CronHistory
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.check.replay.cron_search import RETRY_NS_MAX, job_signature
from tracekit.check.replay.history import WriteKind
from tracekit.check.replay.run_context import INFORMER_LAG_NS
from tracekit.ports.cronjob.actions import (
    CreateJob,
    DeleteJob,
    Intent,
    SyncResult,
    UpdateCronJobStatus,
)

#: So many slots are looked at while nothing changes: what was missed first is told by then.
TRIGGERS_MAX = 2_000
#: So many of each state, past the hundred after which the controller says that it missed too many;
#: what more there are of all states of a CronJob are `TRIGGERS_MAX`, as rows cost nothing to write.
TRIGGERS_A_STATE = 128
#: A wait that was doubled so often is the longest in any case.
_DOUBLED_MAX = 20


@dataclass(slots=True)
class Wanted:
    """Something that the controller had to do for some time."""

    kind: WriteKind
    intent: Intent
    since_ns: int  # what woke the controller: a change, or a slot
    certain_ns: int  # by then its key was in the queue, unless it waited for a retry
    timed: bool  # a slot's timer woke it, not a change
    slot_ns: int | None
    cron_job: CronJobView
    rv: int
    until_ns: int | None = None  # None: to the end of the record

    @property
    def subject(self) -> str:
        """What was not written."""
        return subject_of(self.intent)


class Rest(Struct, frozen=True):
    """A stretch of time in which nothing that matters changed."""

    from_ns: int
    until_ns: int
    cron_job: CronJobView
    jobs: tuple[JobView, ...]
    rv: int
    opens_with_list: bool
    schedule_changed: bool


@dataclass(slots=True)
class WantedCheck:
    """Runs the port on one CronJob at every time at which its controller was woken."""

    history: CronHistory
    runner: CronRunner
    end_ns: int
    started_ns: Sequence[int] = ()  # when new processes of the controller led, sorted
    found: list[Wanted] = field(default_factory=list)
    _open: dict[object, Wanted] = field(default_factory=dict)
    #: Since when every sync has ended in an error, to be retried ever more rarely.
    _failing_since_ns: int | None = None
    #: When the timer goes off that an earlier state has armed: the queue keeps the earliest of a
    #: key, be it armed for another CronJob of that name.
    _timer_ns: int | None = None
    _changed_ns: int = 0  # the last change
    #: When that timer goes off if a retry took its place, and it was armed anew.
    _rearmed_ns: int = 0
    #: How long after a slot the timer may go off that was armed before the record began.
    _out_of_step_ns: int = 0
    #: Slots that may still be looked at, beyond those of each state.
    _spare: int = field(default_factory=lambda: TRIGGERS_MAX)

    def run(self) -> list[Wanted]:
        """All that was wanted, in order of time."""
        uid = ""
        for rest in rests(self.history, self.end_ns):
            if rest.cron_job.uid != uid:
                self._close(rest.from_ns)
                uid = rest.cron_job.uid
            self._rest(rest)
        if self.history.cron_jobs and self.history.cron_jobs[-1].type == "DELETED":
            self._close(self.history.cron_jobs[-1].recv_ns)
        return self.found

    def _rest(self, rest: Rest) -> None:
        """Look at each time at which the controller is woken while the state rests."""
        at_ns = rest.from_ns
        armed = True
        if at_ns - self._changed_ns <= INFORMER_LAG_NS and self.runner.drifts(rest.cron_job):
            # A sync on a cache without the change before fails, and its retry may take the place
            # of the timer in the queue: the next that succeeds counts from then.
            self._rearmed_ns = self.runner.timer_ns(rest.cron_job, at_ns) or 0
        self._changed_ns = at_ns
        if not (rest.opens_with_list or (rest.schedule_changed and not self.runner.polls)):
            armed = self._look(rest, at_ns, timed=False)
        else:
            self._close(at_ns)
            if rest.opens_with_list and self.runner.drifts(rest.cron_job):
                self._out_of_step_ns = (self.runner.timer_ns(rest.cron_job, at_ns) or at_ns) - at_ns
        for number in range(TRIGGERS_MAX):
            if number >= TRIGGERS_A_STATE:
                if not self._spare:
                    return
                self._spare -= 1
            timer_ns = self._next_timer_ns(rest, at_ns) if armed else None
            started = bisect_right(self.started_ns, at_ns)
            started_ns = (*self.started_ns[started : started + 1], rest.until_ns)[0]
            looked_ns, at_ns = at_ns, started_ns if timer_ns is None else min(timer_ns, started_ns)
            self._end_too_late(rest, looked_ns, min(at_ns, rest.until_ns))
            if at_ns >= rest.until_ns:
                return
            if at_ns == started_ns:
                self._timer_ns, self._out_of_step_ns = None, 0  # it died with its process
            armed = self._look(rest, at_ns, timed=at_ns != started_ns)

    def _end_too_late(self, rest: Rest, from_ns: int, until_ns: int) -> None:
        """Starts for which startingDeadlineSeconds run out between two looks are wanted no more."""
        deadline_s = rest.cron_job.spec.starting_deadline_s
        if deadline_s is None:
            return
        for key, wanted in tuple(self._open.items()):
            if wanted.slot_ns is not None:
                over_ns = wanted.slot_ns + deadline_s * NS_PER_S
                if over_ns < until_ns:
                    self._open.pop(key).until_ns = max(from_ns, over_ns)

    def _next_timer_ns(self, rest: Rest, at_ns: int) -> int | None:
        """When the controller comes back by itself, having looked at the state at that time."""
        armed_ns = self.runner.timer_ns(rest.cron_job, at_ns)
        times = [t for t in (self._timer_ns, armed_ns) if t is not None and t > at_ns]
        self._timer_ns = min(times, default=None)
        return self._timer_ns

    def _look(self, rest: Rest, at_ns: int, *, timed: bool) -> bool:
        """Run the port once; whether the controller is sure to come back at the next slot."""
        # A slot just ahead is the timer's to find, which need not go off there.
        left, result = self._left_to_do(rest, at_ns + timed * NS_PER_S)
        retry_ns = self._retry_ns(rest, at_ns)
        if result.forgets and not retry_ns:  # else nobody knows whether it has looked
            self._failing_since_ns = None
        elif result.error is not None and self._failing_since_ns is None:
            self._failing_since_ns = at_ns
        wanted = {_target(intent): intent for intent in left}
        for key in [key for key in self._open if key not in wanted]:
            self._open.pop(key).until_ns = at_ns
        for key, intent in wanted.items():
            if key not in self._open:
                kind, certain_ns = _KINDS[type(intent)], at_ns + retry_ns
                slot_ns = result.due_ns if kind is WriteKind.JOB_CREATE else None
                if timed:
                    out_of_step_ns = (slot_ns or at_ns) + self._out_of_step_ns
                    certain_ns = max(certain_ns, self._rearmed_ns, out_of_step_ns)
                new = Wanted(
                    kind, intent, at_ns, certain_ns, timed, slot_ns, rest.cron_job, rest.rv
                )
                self._open[key] = new
                self.found.append(new)
        return self.runner.polls or result.requeue_after_ns is not None or result.error is not None

    def _close(self, at_ns: int) -> None:
        for wanted in self._open.values():
            wanted.until_ns = at_ns
        self._open.clear()

    def _retry_ns(self, rest: Rest, at_ns: int) -> int:
        """How long after a slot the next retry of a failing CronJob may come.

        A sync that fails arms no timer for the next slot. Each retry waits twice as long as the
        one before, so none is further away than the first error lies back; each change that wakes
        the key meanwhile fails too, and doubles what is waited for.
        """
        if self._may_have_failed_before(at_ns):
            return RETRY_NS_MAX
        since_ns = self._failing_since_ns
        if since_ns is None or at_ns == rest.from_ns or self.runner.polls:
            return 0
        changes = self.history.changes_between(since_ns, at_ns)
        return min((at_ns - since_ns) << min(changes, _DOUBLED_MAX), RETRY_NS_MAX)

    def _may_have_failed_before(self, at_ns: int) -> bool:
        """Whether a CronJob that was listed may have failed until then, over a taken name or so.

        A slot that had passed without a start, or a Job of others under its names, shows it.
        """
        first = self.history.cron_jobs[0] if self.history.cron_jobs else None
        if first is None or first.type != "LIST":
            return False
        slot_ns = self.runner.next_slot_ns(first.view, first.view.base_ns)
        passed = slot_ns is not None and slot_ns <= first.recv_ns
        if not (passed or self.history.strangers):
            return False
        return not any(first.recv_ns < w.recv_ns <= at_ns for w in self.history.writes)

    def _left_to_do(self, rest: Rest, now_ns: int) -> tuple[list[Intent], SyncResult]:
        """The writes that would change something, were the controller to look at the state."""
        api = DryCronApi(rest.cron_job, lambda name: self._job_then(rest, name, now_ns))
        result = self.runner.run(rest.cron_job, rest.jobs, now_ns, api)
        starts = [intent for intent in api.writes if isinstance(intent, CreateJob)]
        found: list[Intent] = [i for i in api.writes if isinstance(i, DeleteJob)]
        found += [intent for intent in starts if not self._is_taken(intent, rest)]
        puts = [i for i in api.writes if isinstance(i, UpdateCronJobStatus)]
        # A start or a deletion that is missing takes its status write with it.
        if not found and not starts and puts and puts[-1].status != rest.cron_job.status:
            found.append(puts[-1])
        return found, result

    def _job_then(self, rest: Rest, name: str, at_ns: int) -> JobView | None:
        own = next((job for job in rest.jobs if job.name == name), None)
        return own if own is not None else self.history.stranger_at(name, at_ns)

    def _is_taken(self, intent: CreateJob, rest: Rest) -> bool:
        """Whether a Job of that name stood in the way at some time of the rest."""
        if self.history.live_job(intent.name, rest.rv) is not None:
            return True
        return any(
            r.view.name == intent.name and r.recv_ns <= rest.until_ns
            for r in self.history.strangers
        )


_KINDS = {
    CreateJob: WriteKind.JOB_CREATE,
    DeleteJob: WriteKind.JOB_DELETE,
    UpdateCronJobStatus: WriteKind.STATUS_UPDATE,
}


def _target(intent: Intent) -> object:
    """What makes two wishes the same: the Job, or the very status."""
    return (
        intent.status
        if isinstance(intent, UpdateCronJobStatus)
        else (type(intent), subject_of(intent))
    )


def subject_of(intent: Intent) -> str:
    """What a write is about, as its judgement names it."""
    return intent.name if isinstance(intent, CreateJob | DeleteJob) else "status"


def rests(history: CronHistory, end_ns: int) -> Iterable[Rest]:
    """The stretches of time between the changes that matter, while the CronJob exists."""
    changes = sorted(
        [(r.rv, 0, i) for i, r in enumerate(history.cron_jobs)]
        + [(r.rv, 1, i) for i, r in enumerate(history.jobs)]
    )
    cron_job: CronJobView | None = None
    jobs: tuple[JobView, ...] = ()
    opened_ns, opened_rv = 0, 0
    opens_with_list = schedule_changed = False
    signature: object = None
    for rv, stream, index in changes:
        revision = (history.cron_jobs if stream == 0 else history.jobs)[index]
        before = cron_job
        new_cron = cron_job
        new_jobs = jobs
        if stream == 0:
            new_cron = None if revision.type == "DELETED" else history.cron_jobs[index].view
        else:
            new_jobs = history.jobs_at(index + 1)
        new_signature = _signature(new_cron, new_jobs)
        if new_signature == signature:
            cron_job, jobs = new_cron, new_jobs
            continue
        if before is not None:
            yield Rest(
                opened_ns,
                max(opened_ns, revision.recv_ns),
                before,
                jobs,
                opened_rv,
                opens_with_list,
                schedule_changed,
            )
        schedule_changed = (
            before is not None
            and new_cron is not None
            and (before.spec.schedule, before.spec.time_zone)
            != (new_cron.spec.schedule, new_cron.spec.time_zone)
        )
        cron_job, jobs, signature = new_cron, new_jobs, new_signature
        opened_ns, opened_rv = max(opened_ns, revision.recv_ns), rv
        opens_with_list = revision.type == "LIST"
    if cron_job is not None:
        yield Rest(opened_ns, end_ns, cron_job, jobs, opened_rv, opens_with_list, schedule_changed)


def _signature(cron_job: CronJobView | None, jobs: Iterable[JobView]) -> object:
    if cron_job is None:
        return None
    return (
        cron_job.uid,
        cron_job.spec,
        cron_job.status,
        cron_job.deleted_ns,
        frozenset(job_signature(job) for job in jobs),
    )
