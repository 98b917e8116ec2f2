"""What the CronJob controller had to do, by when, and did not.

The controller is woken by every change of a CronJob or of its Jobs (the polling one comes by
anyway) and by a timer at each slot. So where nothing relevant changed for longer than a sync may
take (the *bound*) after such a trigger, it must have come to rest: run on that very state, the
ported controller must have nothing left to do. What it still wants to do then is missing.

Nothing is said of times in which the controller or the recorder was blind, of refused writes that
an Event tells of, nor of the time between a changed schedule and its next slot (upstream only arms
a timer then).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tracekit.controllers.cronjob.actions import (
    CreateJob,
    DeleteJob,
    Intent,
    SyncResult,
    UpdateCronJobStatus,
)
from tracekit.kube.cronjob_views import CronJobView
from tracekit.kube.timestamps import NS_PER_S
from tracekit.kube.views import JobView
from tracekit.replay.cron_api import DryCronApi
from tracekit.replay.cron_history import CronHistory, WriteKind
from tracekit.replay.cron_run_context import BlindTime
from tracekit.replay.cron_runner import RETRY_NS_MAX, CronRunner, throttled_ns
from tracekit.replay.cron_walk import job_signature

TRIGGERS_MAX = 2_000
_REFUSALS = frozenset({"FailedCreate", "FailedDelete", "FailedGet", "FailedUpdate", "FailedList"})


@dataclass(frozen=True, slots=True)
class Duty:
    """Something the controller had to do and did not."""

    kind: WriteKind
    intent: Intent
    trigger_ns: int  # what woke the controller: a change, or a slot
    deadline_ns: int
    slot_ns: int | None
    cron_job: CronJobView
    rv: int

    @property
    def subject(self) -> str:
        """What was not written."""
        return self.intent.name if isinstance(self.intent, CreateJob | DeleteJob) else "status"


@dataclass(frozen=True, slots=True)
class _Rest:
    """A stretch of time in which nothing that matters changed."""

    from_ns: int
    until_ns: int
    cron_job: CronJobView
    jobs: tuple[JobView, ...]
    rv: int
    opens_with_list: bool
    schedule_changed: bool


@dataclass(slots=True)
class DutyCheck:
    """Looks for duties of one CronJob that were not met."""

    history: CronHistory
    runner: CronRunner
    end_ns: int
    blind: Sequence[BlindTime] = ()
    #: When the controller's writes were seen, over all CronJobs, sorted: they share one throttle.
    writes_ns: Sequence[int] = ()
    _found: dict[tuple[WriteKind, str, int | None], Duty] = field(default_factory=dict)
    #: Since when every sync has ended in an error, to be retried ever more rarely.
    _failing_since_ns: int | None = None

    def run(self) -> list[Duty]:
        """Every duty that was not met, in order of time."""
        for rest in _rests(self.history, self.end_ns):
            self._check_rest(rest)
        return list(self._found.values())

    def _check_rest(self, rest: _Rest) -> None:
        """Check each time at which the controller is woken while the state rests."""
        at_ns = rest.from_ns
        armed = True
        if not (rest.opens_with_list or (rest.schedule_changed and not self.runner.polls)):
            armed = self._check(rest, at_ns)
        for _ in range(TRIGGERS_MAX):
            slot_ns = self.runner.next_slot_ns(rest.cron_job, at_ns)
            if not armed or slot_ns is None or slot_ns >= rest.until_ns:
                return
            armed = self._check(rest, slot_ns)
            at_ns = slot_ns

    def _check(self, rest: _Rest, trigger_ns: int) -> bool:
        """Check one trigger; whether the controller is sure to come back at the next slot."""
        early, woken = self._left_to_do(rest, trigger_ns + NS_PER_S)
        retry_ns = self._retry_ns(rest, trigger_ns)
        if woken.forgets:
            self._failing_since_ns = None
        elif woken.error is not None and self._failing_since_ns is None:
            self._failing_since_ns = trigger_ns
        armed = self.runner.polls or woken.requeue_after_ns is not None or woken.error is not None
        deadline_ns = trigger_ns + self._bound_ns(trigger_ns) + retry_ns
        if not early or deadline_ns >= rest.until_ns or self._is_blind(trigger_ns, deadline_ns):
            return armed
        late, result = self._left_to_do(rest, deadline_ns)
        wanted = {_subject(intent) for intent in early}
        for intent in late:
            if _subject(intent) not in wanted:
                continue
            kind = _KINDS[type(intent)]
            slot_ns = result.due_ns if kind is WriteKind.JOB_CREATE else None
            self._found.setdefault(
                (kind, _subject(intent), slot_ns),
                Duty(kind, intent, trigger_ns, deadline_ns, slot_ns, rest.cron_job, rest.rv),
            )
        return armed

    def _retry_ns(self, rest: _Rest, trigger_ns: int) -> int:
        """How long after a slot the next retry of a failing CronJob may come.

        A sync that fails arms no timer for the next slot. Each retry waits twice as long as the
        one before, so none is further away than the first error lies back.
        """
        if self._may_have_failed_before(trigger_ns):
            return RETRY_NS_MAX
        since_ns = self._failing_since_ns
        if since_ns is None or trigger_ns == rest.from_ns or self.runner.polls:
            return 0
        return min(trigger_ns - since_ns, RETRY_NS_MAX)

    def _may_have_failed_before(self, trigger_ns: int) -> bool:
        """Whether a CronJob that was listed may have failed over a taken name until then."""
        first = self.history.cron_jobs[0] if self.history.cron_jobs else None
        if first is None or first.type != "LIST" or not self.history.strangers:
            return False
        return not any(first.recv_ns < w.recv_ns <= trigger_ns for w in self.history.writes)

    def _bound_ns(self, trigger_ns: int) -> int:
        """The runner's bound, and the time that the client's throttle may take for other keys."""
        bound_ns = self.runner.bound_ns
        return throttled_ns(bound_ns, self.writes_ns, trigger_ns, trigger_ns + bound_ns)

    def _left_to_do(self, rest: _Rest, now_ns: int) -> tuple[list[Intent], SyncResult]:
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

    def _job_then(self, rest: _Rest, name: str, at_ns: int) -> JobView | None:
        own = next((job for job in rest.jobs if job.name == name), None)
        return own if own is not None else self.history.stranger_at(name, at_ns)

    def _is_taken(self, intent: CreateJob, rest: _Rest) -> bool:
        """Whether a Job of that name stood in the way at some time of the rest."""
        if self.history.live_job(intent.name, rest.rv) is not None:
            return True
        return any(
            r.view.name == intent.name and r.recv_ns <= rest.until_ns
            for r in self.history.strangers
        )

    def _is_blind(self, from_ns: int, until_ns: int) -> bool:
        if any(time.from_ns <= until_ns and from_ns <= time.until_ns for time in self.blind):
            return True
        return any(
            event.reason in _REFUSALS
            and from_ns - NS_PER_S <= event.recv_ns <= until_ns + self.runner.bound_ns
            for event in self.history.events
        )


_KINDS = {
    CreateJob: WriteKind.JOB_CREATE,
    DeleteJob: WriteKind.JOB_DELETE,
    UpdateCronJobStatus: WriteKind.STATUS_UPDATE,
}


def _subject(intent: Intent) -> str:
    return intent.name if isinstance(intent, CreateJob | DeleteJob) else "status"


def _rests(history: CronHistory, end_ns: int) -> Iterable[_Rest]:
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
            new_cron = None if revision.gone else history.cron_jobs[index].view
        else:
            new_jobs = history.jobs_at(index + 1)
        new_signature = _signature(new_cron, new_jobs)
        if new_signature == signature:
            cron_job, jobs = new_cron, new_jobs
            continue
        if before is not None:
            yield _Rest(
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
        yield _Rest(opened_ns, end_ns, cron_job, jobs, opened_rv, opens_with_list, schedule_changed)


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
