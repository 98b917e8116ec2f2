"""Explains the observed writes of one CronJob, sync by sync, in the order of the store.

For the earliest write without an explanation a *cut* is searched under which the ported controller
makes exactly it and the writes that follow: how far into the CronJob's and the Jobs' revisions its
caches (for the polling controller: its lists) had got, and what its clock said. Cuts only move
forward. The newest cut is tried first, so an explanation's lag is the least that will do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tracekit.controllers.cronjob.actions import Intent, RecordEvent, SyncResult
from tracekit.kube.cronjob_views import CronJobView
from tracekit.kube.timestamps import NS_PER_S
from tracekit.kube.views import JobView
from tracekit.replay.cron_api import CronMismatch, CronProblem, ObservedCronApi
from tracekit.replay.cron_history import CronHistory, CronRevision, CronWrite, WriteKind
from tracekit.replay.cron_runner import LAG_NS, CronRunner, throttled_ns

#: How long before its first write was received a sync may have read its clock. Steps are fine near
#: the write, where a slot's boundary may lie between the two.
_MS = NS_PER_S // 1000
CLOCK_STEPS_NS = tuple(ms * _MS for ms in (0, 20, 60, 150, 400, 1000, 2000, 5000, 10_000, 20_000))


@dataclass(frozen=True, slots=True)
class CronExplanation:
    """One sync under one cut, and the writes that it explains."""

    writes: tuple[CronWrite, ...]
    intents: dict[int, Intent]  # by index of the write
    cron_job: CronRevision[CronJobView]
    jobs_cut: int
    now_ns: int
    result: SyncResult
    events: tuple[RecordEvent, ...]
    problems: tuple[CronProblem, ...]
    unseen: int  # revisions older than the first write that the sync had not seen
    lag_ns: int  # age of the oldest of them


@dataclass(slots=True)
class CronWalk:
    """What the walk found out about one CronJob."""

    history: CronHistory
    runner: CronRunner
    #: Times in which a sync may have been cut off: the end of the record, gaps, restarts.
    ends: Sequence[tuple[int, int]] = ()
    #: When the controller's writes were seen, over all CronJobs, sorted: they share one throttle.
    writes_ns: Sequence[int] = ()
    explanations: list[CronExplanation] = field(default_factory=list)
    #: Writes that no cut explains, each with the sync at the newest cut and what does not fit.
    unexplained: list[tuple[CronWrite, CronExplanation | None]] = field(default_factory=list)
    _cron_floor: int = 0
    _jobs_floor: int = 0
    _clock_floor_ns: int = 0

    def walk(self, skip: frozenset[int]) -> None:
        """Explain every write but those of `skip`, which others made."""
        done = set(skip)
        for write in self.history.writes:
            if write.index in done:
                continue
            found = self.explain(write, frozenset(done))
            if found is None:
                self.unexplained.append((write, self.diagnose(write, frozenset(done))))
                done.add(write.index)
                continue
            self.explanations.append(found)
            done |= {w.index for w in found.writes}
            self._cron_floor = self.history.cron_jobs.index(found.cron_job)
            self._jobs_floor = found.jobs_cut
            self._clock_floor_ns = max(self._clock_floor_ns, found.now_ns)

    def explain(self, write: CronWrite, skip: frozenset[int]) -> CronExplanation | None:
        """The sync that made a write, at the newest cut that will do."""
        for revision, cut in self.cuts(write):
            for now_ns in self._clocks(write):
                found = self.attempt(write, revision, cut, now_ns, skip, lenient=False)
                if found is not None:
                    return found
        return None

    def diagnose(self, write: CronWrite, skip: frozenset[int]) -> CronExplanation | None:
        """The sync at the newest cut, with what does not fit."""
        for revision, cut in self.cuts(write):
            return self.attempt(write, revision, cut, write.recv_ns, skip, lenient=True)
        return None

    def attempt(
        self,
        write: CronWrite,
        revision: CronRevision[CronJobView],
        cut: int,
        now_ns: int,
        skip: frozenset[int],
        *,
        lenient: bool,
    ) -> CronExplanation | None:
        """Run one sync; None where a strict run does not make the write."""
        cut_off = any(start <= write.recv_ns <= end for start, end in self.ends)
        api = ObservedCronApi(
            self.history, write.index, write.rv - 1, lenient, skip, cut_off=cut_off
        )
        try:
            result = self.runner.run(revision.view, self.history.jobs_at(cut), now_ns, api)
        except CronMismatch:
            return None
        if not lenient and not any(taken.index == write.index for taken in api.consumed):
            return None
        unseen, lag_ns = self._lag(write, revision, cut)
        return CronExplanation(
            tuple(api.consumed),
            api.intents,
            revision,
            cut,
            now_ns,
            result,
            tuple(api.events),
            tuple(api.problems),
            unseen,
            lag_ns,
        )

    def cuts(self, write: CronWrite) -> Iterator[tuple[CronRevision[CronJobView], int]]:
        """Every cut that may have led to a write, newest first; equal states once."""
        history = self.history
        positions = list(self._job_cuts(write))
        newest = history.cron_jobs_below(write.rv) - 1
        for index in range(newest, max(0, self._cron_floor) - 1, -1):
            revision = history.cron_jobs[index]
            if revision.gone:
                continue
            if index < newest and self._too_old(history.cron_jobs[index + 1].recv_ns, write):
                return
            if (
                write.kind is WriteKind.STATUS_UPDATE
                and write.cron_job is not None
                and write.cron_job.previous is not revision
            ):
                continue  # a status PUT succeeds on the revision before it only
            for cut in positions:
                yield revision, cut

    def _job_cuts(self, write: CronWrite) -> Iterator[int]:
        history = self.history
        newest = history.jobs_below(write.rv)
        last: tuple[object, ...] | None = None
        for cut in range(newest, self._jobs_floor - 1, -1):
            if cut < newest and self._too_old(history.jobs[cut].recv_ns, write):
                return
            state = tuple(job_signature(job) for job in history.jobs_at(cut))
            if state != last:
                last = state
                yield cut

    def _too_old(self, next_recv_ns: int, write: CronWrite) -> bool:
        """Whether a cut misses something that a sync of this write must have seen."""
        lag_ns = throttled_ns(LAG_NS, self.writes_ns, write.recv_ns - LAG_NS, write.recv_ns)
        return next_recv_ns < write.recv_ns - lag_ns

    def _clocks(self, write: CronWrite) -> Iterator[int]:
        for step_ns in CLOCK_STEPS_NS:
            now_ns = write.recv_ns - step_ns
            if now_ns < self._clock_floor_ns - NS_PER_S and step_ns:
                return
            yield now_ns

    def _lag(
        self,
        write: CronWrite,
        revision: CronRevision[CronJobView],
        cut: int,
    ) -> tuple[int, int]:
        history = self.history
        known = history.cron_jobs.index(revision) + 1
        unseen_crons = history.cron_jobs[known : history.cron_jobs_below(write.rv)]
        unseen_jobs = history.jobs[cut : history.jobs_below(write.rv)]
        times = [r.recv_ns for r in unseen_crons] + [r.recv_ns for r in unseen_jobs]
        return len(times), max(0, write.recv_ns - min(times)) if times else 0


def job_signature(job: JobView) -> tuple[object, ...]:
    """What of a Job can change what the CronJob controller does."""
    finished = job.status.finished
    return (
        job.uid,
        finished.type if finished is not None else None,
        job.status.completion_ns,
        job.status.start_ns,
        job.deleted_ns is not None,
    )
