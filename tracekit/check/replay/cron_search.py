"""The search for one CronJob: does a sync under some admissible cut explain each write?

A cut is how far into the CronJob's and its Jobs' revisions the caches (for the polling controller:
its lists) had got, and what the clock said. Neither goes back from one sync to the next. The newest
cut is tried first, at the time of the write and just before each slot that its sync may not have
reached yet. Turning back from dead ends, and the bound on it, is `backtracking`, as for Jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.events import SPAM_REFILL_NS
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.base.spans import Spans
from tracekit.check.replay.attempts import (
    ATTEMPTS,
    ATTEMPTS_AT_A_DEAD_END,
    ATTEMPTS_PER_WRITE,
    Exhausted,
)
from tracekit.check.replay.backtracking import Backtracking, Trail, next_open
from tracekit.check.replay.blind_times import BlindTimes
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS, slack_ns
from tracekit.check.replay.cron_api import CronMismatch, CronProblem, RecordedCronApi
from tracekit.check.replay.cron_history import CronHistory
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.check.replay.history import EventRow, Revision, Write, WriteKind
from tracekit.check.replay.interruptions import cut_off, record_ends
from tracekit.check.replay.key_facts import STATUS_WRITES_PER_SYNC
from tracekit.check.replay.reported_events import EVENT_LAG_NS
from tracekit.check.replay.run_context import INFORMER_LAG_NS, RunContext
from tracekit.check.replay.search_state import WithoutSync, WriteWithoutSync
from tracekit.check.verdict import Assumption, Reason
from tracekit.ports.cronjob.actions import Intent, RecordEvent, SyncResult
from tracekit.versions.constants import Constants

#: The longest wait between two retries of a failing CronJob, in every version.
RETRY_NS_MAX = Constants().default_backoff_ns_max
REFUSALS = frozenset({"FailedCreate", "FailedDelete", "FailedGet", "FailedUpdate", "FailedList"})


class CronEffort(IntEnum):
    """What the search takes into account; the rarer only where nothing else explains a write."""

    CUTS = 0  # informers are not further behind than they are taken to be
    STALE = 1


class CronState(msgspec.Struct, frozen=True):
    """Where the search stands after some syncs of a CronJob."""

    index: int  # the next write to explain
    done: frozenset[int]
    cron_floor: int = 0  # no later sync can have seen an older revision
    jobs_floor: int = 0  # nor fewer revisions of its Jobs
    clock_floor_ns: int = 0
    last_write_ns: int = 0
    listings_seen: int = 0
    #: False after the record could not see the CronJob, until a sync is explained again.
    certain: bool = True

    @property
    def identity(self) -> tuple[object, ...]:
        """All by which two states can be told apart."""
        return msgspec.structs.astuple(self)


class CronExplanation(msgspec.Struct, frozen=True):
    """One sync under one cut, and the writes that it explains."""

    writes: tuple[Write, ...]
    intents: dict[int, Intent]  # by index of the write
    cron_job: Revision[CronJobView]
    jobs_cut: int
    now_ns: int
    result: SyncResult
    events: tuple[RecordEvent, ...]
    problems: tuple[CronProblem, ...]
    rest: CronProblem | None  # what was still to be written when the record or the process ended
    unseen: int  # revisions older than the first write that the sync had not seen
    lag_ns: int  # age of the oldest of them
    assumptions: tuple[Assumption, ...]
    state: CronState  # after the sync


class Unexplained(NamedTuple):
    """A write that no cut explains, with the sync at the newest cut and what does not fit."""

    write: Write
    diagnosis: CronExplanation | None


CronEntry = CronExplanation | WriteWithoutSync | Unexplained


class Others(Struct, frozen=True):
    """Who else may have written, with the evidence; evidence is dear to read."""

    named: Mapping[int, str]  # by the record itself, by index of the write
    find: Callable[[], Mapping[int, str]]
    deletion: Callable[[Write], str | None]  # of a Job, where nothing says that it was not another


class _Taken(NamedTuple):
    """What an attempt takes for granted."""

    refused: Assumption | None = None
    cuts_off: bool = False


class CronWalker(Backtracking[CronState, CronEntry]):
    """Walks through the writes of one CronJob."""

    efforts = tuple(CronEffort)

    def __init__(
        self, history: CronHistory, runner: CronRunner, context: RunContext, others: Others
    ) -> None:
        self.history = history
        self.runner = runner
        self.context = context
        super().__init__(others.named, others.find)
        self._deletion = others.deletion
        self._attempts = 0
        self._failed: set[object] = set()
        listed = [r.recv_ns for r in history.cron_jobs if r.type == "LIST"]
        #: Ends of the times in the CronJob's life that the record did not see.
        self.blind = BlindTimes(listed, context.gap_ends_ns, born_ns=-1)
        self._refusals = list(_refusals_of(history.events))
        self._refusal_spans = Spans((found.from_ns, found.until_ns) for found in self._refusals)

    def run(self) -> list[CronEntry]:
        """What became of every write that nobody else is known to have made."""
        found = self._walk()
        return found if found is not None else self._walk() or []

    def _walk(self) -> list[CronEntry] | None:
        """None if it turned out that others made some of the writes."""
        trail: Trail[CronState, CronEntry] = Trail()
        state = self._settled(CronState(0, frozenset(self.foreign)))
        while state.index < len(self.history.writes):
            known = len(self.foreign)
            try:
                found = self.step(trail, state)
            except Exhausted:
                return [*trail.entries, *self._undecided(state)]
            if found is None:
                if len(self.foreign) > known:
                    return None
                write = self.history.writes[state.index]
                entry = Unexplained(write, self._diagnosis(state))
                trail.entries.append(entry)
                found = self.after(entry, state, trail.entries)
            state = found
        return trail.entries

    # What the search asks.

    def options(self, state: CronState, effort: int) -> Iterator[CronEntry]:
        """The explanations of the next write, then what else it may be."""
        for prompt in (True, False):  # that a sync was cut off is likelier than old caches
            for taken in self._assumptions(state):
                for revision, cut in self.cuts(state, effort, prompt=prompt):
                    found = self._at_its_time(state, revision, cut, taken)
                    if found is not None:
                        yield found
        write = self.history.writes[state.index]
        evidence = self._deletion(write) if write.kind is WriteKind.JOB_DELETE else None
        if evidence is not None:
            yield WriteWithoutSync(WithoutSync.FOREIGN, write, evidence)
        elif not state.certain:
            yield self._unseen(write)

    def after(self, found: CronEntry, state: CronState, entries: list[CronEntry]) -> CronState:
        """The state that an entry leads to."""
        del entries
        if isinstance(found, CronExplanation):
            return self._settled(found.state)
        return self._settled(replace(state, done=state.done | {found.write.index}))

    def attempts_made(self) -> int:
        """How many attempts the CronJob has cost."""
        return self._attempts

    def allowance(self, dead: CronState) -> int:
        """How many more turning back from one write may cost."""
        del dead
        return ATTEMPTS_AT_A_DEAD_END

    def _settled(self, state: CronState) -> CronState:
        """At the next write that is not done; a blind time leaves it open what came before."""
        index, done = next_open(state.index, state.done)
        if index != state.index:
            state = replace(state, index=index, done=done)
        if index < len(self.history.writes):
            at_ns = self.history.writes[index].recv_ns
            listed = self.blind.passed(at_ns)
            if listed > state.listings_seen:
                state = replace(state, listings_seen=listed, certain=False)
        return state

    # Cuts.

    def cuts(
        self, state: CronState, effort: int, *, prompt: bool = False
    ) -> Iterator[tuple[Revision[CronJobView], int]]:
        """Every cut that may have led to the next write, newest first; equal states once.

        `prompt`: only those of a sync that began right before the write.
        """
        history, write = self.history, self.history.writes[state.index]
        began_ns = write.recv_ns if prompt else state.last_write_ns
        shown_ns = began_ns - INFORMER_LAG_NS - self.context.width_ns(began_ns)
        positions = list(self._job_cuts(state, write, effort, shown_ns))
        newest = history.cron_jobs_below(write.rv) - 1
        for index in range(newest, state.cron_floor - 1, -1):
            revision = history.cron_jobs[index]
            following = history.cron_jobs[index + 1] if index < newest else None
            if effort == CronEffort.CUTS and following and following.shown_ns < shown_ns:
                return
            if revision.type == "DELETED":
                continue
            changed = write.cron_job
            if changed is not None and changed.previous is not revision:
                continue  # a status PUT succeeds on the revision before it only
            for cut in positions:
                if not (following and self.runner.polls and self._listed_later(cut, following)):
                    yield revision, cut

    def _listed_later(self, cut: int, following: Revision[CronJobView]) -> bool:
        """Whether the Jobs would be listed after the CronJobs: a pass lists the Jobs first."""
        return cut > 0 and self.history.jobs[cut - 1].rv > following.rv

    def _job_cuts(
        self, state: CronState, write: Write, effort: int, shown_ns: int
    ) -> Iterator[int]:
        jobs = self.history.jobs
        newest = self.history.jobs_below(write.rv)
        last: tuple[object, ...] | None = None
        for cut in range(newest, state.jobs_floor - 1, -1):
            if effort == CronEffort.CUTS and cut < newest and jobs[cut].shown_ns < shown_ns:
                return
            signature = tuple(job_signature(job) for job in self.history.jobs_at(cut))
            if signature != last:
                last = signature
                yield cut

    # One attempt.

    def _at_its_time(
        self, state: CronState, revision: Revision[CronJobView], cut: int, taken: _Taken
    ) -> CronExplanation | None:
        """Try the latest time at which the sync can have run, and just before each slot."""
        same = (state.index, state.done, state.clock_floor_ns, revision.position, cut, taken)
        if same in self._failed:
            return None
        for now_ns in self._clocks(state, revision, cut):
            for begun_rv in self._begun(state, revision, cut):
                found = self.attempt(state, revision, cut, now_ns, taken, begun_rv=begun_rv)
                if found is not None:
                    return found
        self._failed.add(same)
        return None

    def _begun(self, state: CronState, revision: Revision[CronJobView], cut: int) -> Iterator[int]:
        """What the server may have come to when the sync made its first call, the newest first.

        The polling controller begins with a status write, mostly one that changes nothing, and a
        slow client waits for a token before the next: somebody may change the CronJob meanwhile.
        A DELETE may have met a Job on its way out, which was gone by the sync's next write.
        """
        before_rv = self.history.writes[state.index].rv
        yield before_rv - 1
        for following in self.history.cron_jobs[revision.position + 1 : revision.position + 2]:
            others = following.view.status == revision.view.status  # it writes nothing else
            if self.runner.polls and others and following.rv < before_rv:
                yield following.rv - 1
        for gone in self.history.jobs[cut : self.history.jobs_below(before_rv)]:
            if gone.type == "DELETED" and gone.previous and gone.previous.view.deleted_ns:
                yield gone.rv - 1

    def _clocks(self, state: CronState, revision: Revision[CronJobView], cut: int) -> Iterator[int]:
        at_ns = self.history.writes[state.index].recv_ns
        shown_ns = self.history.jobs[cut - 1].recv_ns if cut else 0
        earliest_ns = max(revision.recv_ns, shown_ns, state.clock_floor_ns)
        earliest_ns -= slack_ns(self.context, at_ns)
        yield at_ns
        deadline_s = revision.view.spec.starting_deadline_s
        for slot_ns in self.runner.slots_ns(revision.view, earliest_ns, at_ns):
            too_late_ns = None if deadline_s is None else slot_ns + deadline_s * NS_PER_S
            if too_late_ns is not None and too_late_ns < at_ns:
                yield too_late_ns - 1
            yield slot_ns - 1

    def attempt(
        self,
        state: CronState,
        revision: Revision[CronJobView],
        cut: int,
        now_ns: int,
        taken: _Taken,
        *,
        begun_rv: int | None = None,
        lenient: bool = False,
    ) -> CronExplanation | None:
        """Run one sync; None where a strict run does not make the write."""
        self._attempts += 1
        if self._attempts > ATTEMPTS + ATTEMPTS_PER_WRITE * len(self.history.writes):
            raise Exhausted
        write = self.history.writes[state.index]
        api = RecordedCronApi(
            self.history,
            write.index,
            write.rv - 1 if begun_rv is None else begun_rv,
            lenient,
            state.done,
            cut_off=taken.cuts_off,
            refuses=taken.refused is not None,
        )
        try:
            result = self.runner.run(revision.view, self.history.jobs_at(cut), now_ns, api)
        except CronMismatch:
            return None
        if not lenient and not any(found.index == write.index for found in api.consumed):
            return None
        ending = None
        if api.rest is not None:
            ending = self._ending(state, api.consumed)
            if ending is None:
                return None
        assumed = [a for a in (taken.refused, ending) if a is not None]
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
            api.rest,
            unseen,
            lag_ns,
            tuple(assumed),
            self._left(state, revision, cut, now_ns, api.consumed),
        )

    def _left(
        self,
        state: CronState,
        revision: Revision[CronJobView],
        cut: int,
        now_ns: int,
        consumed: Sequence[Write],
    ) -> CronState:
        """The state after a sync."""
        return CronState(
            state.index,
            state.done | {write.index for write in consumed},
            revision.position,
            cut,
            max(state.clock_floor_ns, now_ns),
            max([state.last_write_ns, *(write.recv_ns for write in consumed)]),
            state.listings_seen,
            certain=True,
        )

    def _diagnosis(self, state: CronState) -> CronExplanation | None:
        """The sync at the newest cut, with what does not fit."""
        at_ns = self.history.writes[state.index].recv_ns
        for revision, cut in self.cuts(state, CronEffort.STALE):
            return self.attempt(state, revision, cut, at_ns, _Taken(), lenient=True)
        return None

    def _lag(self, write: Write, revision: Revision[CronJobView], cut: int) -> tuple[int, int]:
        history = self.history
        unseen = history.cron_jobs[revision.position + 1 : history.cron_jobs_below(write.rv)]
        times = [r.recv_ns for r in unseen]
        times += [r.recv_ns for r in history.jobs[cut : history.jobs_below(write.rv)]]
        return len(times), max(0, write.recv_ns - min(times)) if times else 0

    # What may be taken for granted.

    def _assumptions(self, state: CronState) -> Iterator[_Taken]:
        at_ns = self.history.writes[state.index].recv_ns
        refused = self.refusals(at_ns)
        yield _Taken()
        if refused is not None:
            yield _Taken(refused)
        writes = self.history.writes
        left = (writes[index] for index in range(state.index, len(writes)))
        statuses = (write for write in left if write.kind is WriteKind.STATUS_UPDATE)
        is_last = len(list(islice(statuses, STATUS_WRITES_PER_SYNC + 1))) <= STATUS_WRITES_PER_SYNC
        if cut_off(self.context, at_ns) is not None or is_last:
            yield _Taken(cuts_off=True)
            if refused is not None:
                yield _Taken(refused, cuts_off=True)

    def refusals(self, at_ns: int) -> Assumption | None:
        """Why creations and deletions may have been refused at that time; None if nothing says so.

        Each refusal hands out an Event, which may be posted late, and the spam filter drops all but
        one in 300 s; between two refusals lies at most the key's longest back-off.
        """
        if not self.context.events_recorded:
            end_ns = self.context.end_ns
            return Assumption("refused-creations", 0, end_ns, "Events were not recorded")
        for place in self._refusal_spans.near(at_ns, at_ns):
            found = self._refusals[place]
            if found.from_ns <= at_ns <= found.until_ns:
                return found
        return None

    def _ending(self, state: CronState, consumed: Sequence[Write]) -> Assumption | None:
        """Why a sync has no more writes; None where it must have gone on."""
        last = max(consumed, key=lambda write: write.index)
        found = cut_off(self.context, last.recv_ns)
        taken = state.done | {write.index for write in consumed}
        following = [w for w in self.history.writes[state.index :] if w.index not in taken]
        if found is None and not following:
            found = record_ends(self.context, last.recv_ns)
        return found

    # What cannot be told.

    def _unseen(self, write: Write) -> WriteWithoutSync:
        at_ns = self.blind.of(write.recv_ns)
        for gap in self.context.gaps_touching(at_ns - CLOCK_SLACK_NS, at_ns):
            why = f"no cut explains it, but its sync may have begun in a {gap.why}"
            return WriteWithoutSync(WithoutSync.UNKNOWABLE, write, why, Reason.GAP)
        why = "no cut explains it, but its sync may have begun before the record"
        return WriteWithoutSync(WithoutSync.UNKNOWABLE, write, why, Reason.BEFORE_RECORD)

    def _undecided(self, state: CronState) -> Iterator[WriteWithoutSync]:
        why = f"the search gave up after {self._attempts} attempts"
        for write in self.history.writes[state.index :]:
            if write.index not in state.done:
                yield WriteWithoutSync(WithoutSync.UNKNOWABLE, write, why, Reason.UNDECIDED)


def _refusals_of(events: Iterable[EventRow]) -> Iterator[Assumption]:
    """When creations and deletions may have been refused, by the Events of such."""
    for event in events:
        if event.reason in REFUSALS:
            from_ns = 0 if event.type == "LIST" else event.recv_ns - EVENT_LAG_NS
            until_ns = event.recv_ns + SPAM_REFILL_NS + RETRY_NS_MAX
            yield Assumption("refused-creations", from_ns, until_ns, f"an Event {event.reason}")


def job_signature(job: JobView) -> tuple[object, ...]:
    """What of a Job can change what the CronJob controller does."""
    finished = job.status.finished
    return (
        job.uid,
        job.controller,
        finished.type if finished is not None else None,
        job.status.completion_ns,
        job.status.start_ns,
        job.deleted_ns is not None,
    )
