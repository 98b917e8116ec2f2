"""The explanations of the next write: under which cuts does a sync do what was observed?

The newest cut is tried first, then those whose pods go with the next status (`likely_cuts`), then
the rest; each at the latest time at which the sync can have run and just before each timer that it
asks about. An attempt that failed once is not made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec.structs import replace

from tracekit.base.kube.views import JobView
from tracekit.check.replay.attempts import Exhausted
from tracekit.check.replay.clock_readings import latest_readings
from tracekit.check.replay.cuts import Cut, Effort
from tracekit.check.replay.history import Revision, Write, WriteKind
from tracekit.check.replay.recorded_api import Assumptions
from tracekit.check.replay.refusals import EVENTS_LATE
from tracekit.check.replay.search_state import Explanation, State
from tracekit.check.replay.silent_syncs import SILENT_POSITIONS, SilentSyncs
from tracekit.ports.job.backoff import backoff_end_ns

#: Among so many writes a sync's later calls are looked for as refused, and done by the next.
REFUSED_AMONG = 8
#: The least that can be taken for granted.
_NOTHING = Assumptions()


class CutSearch(SilentSyncs):
    """Looks for the cuts of one key's syncs."""

    def explanations(self, state: State, effort: Effort) -> Iterator[Explanation]:
        """Every cut that explains the next write, the likeliest first."""
        if self.overlaps(state):
            return
        yield from self._plainly(state, effort)
        if effort is Effort.CUTS:
            return
        for job in self.job_candidates(state, effort):
            for cut in self.behind(state, job, effort):
                found = self.at_its_time(state, cut, _NOTHING)
                if found is not None:
                    yield found
        if effort >= Effort.SILENT:
            for silent in self.silent_states(state):
                yield from self._plainly(silent, effort)

    def _plainly(self, state: State, effort: Effort) -> Iterator[Explanation]:
        """By one sync whose handlers have kept up.

        That a sync was cut off, where it may have been, is likelier than old caches.
        """
        ends = self._may_be_cut_off(state)
        if ends:
            at_ns = self.history.writes[state.index].recv_ns
            yield from self._by_one_sync(state, effort, at_ns, ends=ends)
        yield from self._by_one_sync(state, effort, 0, ends=ends)

    def _by_one_sync(
        self, state: State, effort: Effort, shown_ns: int, *, ends: bool
    ) -> Iterator[Explanation]:
        """By one sync; its caches held at least what informers had certainly shown by then."""
        oldest = self.facts.jobs_shown(shown_ns) - 1
        for assume in self._assumptions(state, effort, ends=ends):
            for job in self.job_candidates(state, effort):
                if job.position >= oldest:
                    yield from self._under_job(state, job, assume, effort, shown_ns)

    def _may_be_cut_off(self, state: State) -> bool:
        """Whether the record may end, or the controller have died, inside the next sync."""
        write = self.history.writes[state.index]
        if self.facts.last_syncs(state.index):
            others = self.facts.may_be_foreign(write) and not self.facts.owned_up(write)
            if not others:
                return True
        return self.facts.interrupted(write)

    def _assumptions(self, state: State, effort: Effort, *, ends: bool) -> Iterator[Assumptions]:
        """What may be taken for granted at the next write, the fewest things first.

        Evidence is read only once nothing explains the write without.
        """
        yield _NOTHING
        write = self.history.writes[state.index]
        at_ns = write.recv_ns
        refusals = (False, True) if self.facts.refused.creations_within(state.index) else (False,)
        idle = effort is Effort.SILENT and self.facts.any_owned_up
        for second_deletes in (False, True) if idle else (False,):
            taken = [Assumptions(refused, second_deletes=second_deletes) for refused in refusals]
            # What else was refused, nobody has still to write.
            yield from taken if second_deletes else taken[1:]
            for assume in taken if ends else ():
                for until_index in self.facts.ends_within(write):
                    yield assume._replace(cuts_off=True, until_index=until_index)
        if refusals[-1] and effort is not Effort.CUTS:
            yield from self._refused_midway(state.index)
        for unseen in self._unseen(state.index):
            for refused in refusals:
                yield unseen._replace(refusals=refused)
                for until_index in self.facts.ends_within(write) if ends else ():
                    yield unseen._replace(refusals=refused, cuts_off=True, until_index=until_index)
        found = self.facts.refused.writes(at_ns)
        if found is None or (found.evidence == EVENTS_LATE and effort is not Effort.STALE):
            return
        yield Assumptions(refusals[-1], refused_writes=True)
        last = min(len(self.history.writes), state.index + REFUSED_AMONG)
        for index in range(last - 1, state.index, -1):
            yield Assumptions(refusals[-1], refused_writes=True, until_index=index)

    def _unseen(self, index: int) -> Iterator[Assumptions]:
        """What of a sync the record may not show, because of one of its streams; who was in it."""
        at_ns = self.history.writes[index].recv_ns
        if self.facts.released_within(index):
            yield Assumptions(released=True)
        if self.facts.unseen_writes(at_ns) is not None:
            yield Assumptions(unseen_after=self.facts.unseen_after(at_ns))
        if self.facts.unseen_status(at_ns) is not None:
            yield Assumptions(unseen_status=True)

    def _refused_midway(self, index: int) -> Iterator[Assumptions]:
        """A refusal ends the creations of a sync: those that follow are of the next one."""
        creations = 0
        for write in self.history.writes[index : index + REFUSED_AMONG]:
            if write.kind is WriteKind.POD_CREATE:
                creations += 1
                if creations > 1:
                    yield Assumptions(refusals=True, until_index=write.index)

    # One attempt.

    def _under_job(
        self,
        state: State,
        job: Revision[JobView],
        assume: Assumptions,
        effort: Effort,
        shown_ns: int,
    ) -> Iterator[Explanation]:
        """The likely cuts first; once one explains the write, only those that are as likely.

        On the way back from a dead end all: another cut of the same status leaves other back-offs.
        """
        floor, newest = self.window(state, effort)
        floor = max(floor, min(newest, self.facts.pods_shown(shown_ns)))
        if newest < floor:
            return
        if effort is not Effort.STALE:
            floor = max(floor, min(newest, self.facts.pods_shown(job.recv_ns)))
        for cut in self.cuts_at(state, job, [newest]):
            yield from self._with_guesses(state, cut, assume, effort)
        odds = self.odds(state, job, floor, newest)
        worst = max(odds, default=0)
        for level in range(worst + 1):
            positions = [p for p in range(newest - 1, floor - 1, -1) if odds[p - floor] == level]
            explained = False
            for cut in self.cuts_at(state, job, positions):
                for found in self._with_guesses(state, cut, assume, effort):
                    # The status that follows says nothing of a sync that met a conflict.
                    explained = explained or any(write.job is not None for write in found.writes)
                    yield found
            if explained and effort < Effort.HANDLERS:
                return

    def _with_guesses(
        self, state: State, cut: Cut, assume: Assumptions, effort: Effort
    ) -> Iterator[Explanation]:
        """With the memory that is known, then with what it may have been where it is not."""
        if effort is not Effort.STALE and self.stale(state, cut) is not None:
            return
        unreported = assume.refusals and self.lacks_own_status(state, cut.job)
        if unreported and self.facts.refused.unreported_within(state.index) is not None:
            return  # one excuse that leaves no trace is enough
        found = self.at_its_time(state, cut, assume)
        if found is not None:
            yield found
            yield from self._failed_earlier(state, cut, found)
        if not assume.refusals and self.facts.refused.creations_within(state.index) is not None:
            return  # refusals that are told come before guesses
        for guessed in self.guesses(state, cut, self.history.writes[state.index].recv_ns):
            found = self.at_its_time(state, guessed, assume)
            if found is not None:
                yield found

    def _failed_earlier(self, state: State, cut: Cut, found: Explanation) -> Iterator[Explanation]:
        """The same with the latest failure after which the next pod could be created when it was.

        Up to 1.27.4 a pod without an end of its containers fails when a sync looks at it: the
        record shows that moment only as between what the sync had seen and its first write.
        """
        record = found.state.memory.backoff
        if self.rules.finish_time_from_pod_status or not self.rules.pod_backoff_base_ns:
            return
        taken_ns = record.last_failure_ns
        if taken_ns is None or taken_ns // 2 != found.now_ns // 2:  # not from this sync's clock
            return
        end_ns = backoff_end_ns(
            record,
            base_ns=self.rules.pod_backoff_base_ns,
            limit_ns=self.rules.pod_backoff_limit_ns,
        )
        for write in self.history.writes[found.writes[-1].index + 1 :]:
            if write.kind is WriteKind.POD_CREATE:
                over_ns = (end_ns or 0) - write.recv_ns
                if 0 < over_ns <= taken_ns - self.earliest_ns(state, cut):
                    memory = found.state.memory.copy()
                    memory.backoff = record._replace(last_failure_ns=taken_ns - over_ns)
                    yield replace(found, state=replace(found.state, memory=memory))
                return

    def at_its_time(self, state: State, cut: Cut, assume: Assumptions) -> Explanation | None:
        """Try the latest time at which the sync can have run, and just before each timer."""
        attempt = self.recall.attempt(state, cut, assume)
        if self.recall.failed(attempt) or self.contradicted(state, cut):
            return None
        known = self.recall.known(attempt, state, cut)
        if known is not None:
            return known
        found = self._at_any_time(state, cut, assume)
        return self.recall.keep(attempt, state, cut, found)

    def _at_any_time(self, state: State, cut: Cut, assume: Assumptions) -> Explanation | None:
        asked: set[int] = set()
        tried: set[int] = set()
        context, writes = self.facts.run_context, self.history.writes
        for latest_ns in latest_readings(context, cut.job.view, writes, state.index):
            queue = [latest_ns]
            while queue:
                now_ns = queue.pop()
                if now_ns in tried:
                    continue
                tried.add(now_ns)
                found, timers = self.attempt(state, cut, now_ns, assume)
                if found is not None:
                    return found
                earliest_ns = self.began_after_ns(state, cut) if timers else 0
                for timer in timers:
                    if timer not in asked and earliest_ns <= timer <= now_ns:
                        asked.add(timer)
                        queue.append(timer - 1)
        return None

    def on_job(
        self, sync: Explanation, position: int, *, whatever_before: bool = False
    ) -> Explanation | None:
        """The same sync on another revision of the Job, if that explains its writes as well.

        `whatever_before`: also one older than the syncs before it are put down to.
        """
        began, job = sync.began, self.history.jobs[position]
        if began is None or job.type == "DELETED":
            return None
        state = began.state
        if position < state.job_floor and not whatever_before:
            return None
        state = replace(state, job_floor=min(state.job_floor, position))
        for cut in self.cuts_at(state, job, [sync.pod_cut]):
            seen = replace(cut, memory=began.memory, handled=began.handled)
            return self._the_same(sync, state, seen, began.assume)
        return None

    def on_older_pods(
        self, sync: Explanation, newest: int, after: Explanation | None = None
    ) -> Iterator[Explanation]:
        """The same sync on fewer pod revisions, where these explain its writes as well.

        `after`: where the one before it had seen fewer, too.
        """
        began = sync.began
        if began is None or sync.job is None:
            return
        state = began.state
        if after is not None:
            state = replace(after.state, index=state.index, done=state.done)
        for cut in self.cuts_back(state, sync.job, newest, SILENT_POSITIONS):
            found = self._the_same(sync, state, cut, began.assume)
            if found is not None:
                yield found

    def broken_off(self, sync: Explanation, position: int) -> Iterator[Explanation]:
        """Syncs on an older Job that made its first writes only: their status met a conflict."""
        began, job = sync.began, self.history.jobs[position]
        if began is None or job.type == "DELETED":
            return
        state = began.state
        if position < max(state.job_floor, self._own_write_floor(state, Effort.HANDLERS)):
            return
        with suppress(Exhausted):
            for cut in self.cuts_back(state, job, sync.pod_cut, SILENT_POSITIONS):
                first = self.at_its_time(state, cut, began.assume)
                made = 0 if first is None else len(first.writes)
                if first is None or made >= len(sync.writes):
                    continue
                if first.writes == sync.writes[:made] and self._may_follow(
                    first.state, sync.writes[made:]
                ):
                    yield first

    def _may_follow(self, state: State, writes: tuple[Write, ...]) -> bool:
        """Whether a sync after this state makes just these writes."""
        state = replace(state, index=writes[0].index)
        return any(f.writes == writes for f in self.explanations(state, Effort.HANDLERS))

    def _the_same(
        self, sync: Explanation, state: State, cut: Cut, assume: Assumptions
    ) -> Explanation | None:
        """A sync on another cut, if it makes the same writes; not asked once attempts are spent."""
        try:
            found = self.at_its_time(state, cut, assume)
        except Exhausted:
            return None
        return found if found is not None and found.writes == sync.writes else None

    # What a dead end tells.

    def older_job(self, state: State) -> Revision[JobView] | None:
        """The Job that explains the next write, if it is older than those that syncs had seen.

        Where a status is put over whatever the server holds (up to 1.17), many syncs in a row may
        have seen the same old Job: each of their statuses fits newer ones as well, but for this.
        """
        if not self.rules.overwrites_status or not state.job_floor:
            return None
        floor, newest = self.window(state, Effort.CUTS)
        if (newest - floor + 1) * (state.job_floor + 1) > self.allowance(state):
            return None  # that would take more than turning back may cost
        for effort in (Effort.CUTS, Effort.HANDLERS):
            for found in self.explanations(replace(state, job_floor=0), effort):
                older = found.job is not None and found.job.position < state.job_floor
                return found.job if older else None
        return None

    def ended_by_retries(self, ended: Revision[JobView]) -> bool:
        """Whether so many retries in the queue's count ended the Job with this status.

        Up to 1.19 that is what backoffLimit is compared with, and a sync that finds a new failure
        fails on purpose, on an old cache again and again.
        """
        before = ended.previous
        if before is None or before.view.status.finished is not None:
            return False
        limited = any(c.reason == "BackoffLimitExceeded" for c in ended.view.status.conditions)
        return limited and self._counts_retries(ended.view)

    def _counts_retries(self, job: JobView) -> bool:
        """Whether it is the queue's count of retries that backoffLimit is compared with."""
        counting = self.rules.counting
        by_count = (
            counting.backoff_limit_ignores_active_pods or counting.backoff_limit_counts_failed_pods
        )
        return not by_count and job.spec.restart_policy != "OnFailure"

    def beyond_retries(self, state: State) -> bool:
        """Whether the queue's count would end the Job, and it goes on.

        Then a sync without a write had made the queue forget: it saw an old end of the Job, or
        nothing new.
        """
        if not self.history.jobs:
            return False
        job = self.history.jobs[state.job_floor].view
        limit = job.spec.backoff_limit
        return (
            limit is not None and 0 < limit <= state.memory.requeues and self._counts_retries(job)
        )

    def forgotten(self, state: State) -> Iterator[State]:
        """The states after a sync without a write that made the queue forget its retries.

        Of equal memories the one that the oldest caches lead to leaves the most open.
        """
        met = set()
        for after in self.silently(state):
            if not after.memory.requeues and after.memory.identity not in met:
                met.add(after.memory.identity)
                yield after

    def failed_again(self, state: State, retries: int) -> Iterator[State]:
        """The states after more syncs failed without a write, each of them once more than before.

        The last sync again on the same caches, else any that they may have held: so many retries
        are looked for.
        """
        while state.memory.requeues < retries:
            failed = next(self._failing(state), None)
            if failed is None:
                return
            state = failed
            yield state

    def alike(self, state: State, found: Iterable[Explanation]) -> Iterator[Explanation]:
        """The explanations of the next write by caches that explained it with fewer retries.

        A sync asks for their count only to compare it with the limit: no other caches will do.
        """
        floor, _ = self.window(state, Effort.SILENT)
        for known in found:
            job, began = known.job, known.began
            if job is None or began is None or job.position < state.job_floor:
                continue
            if known.pod_cut < floor or began.handled < state.handled:
                continue
            memory = self.memory_at(state, began.handled, job.view.uid)
            for cut in self.cuts_at(state, job, [known.pod_cut]):
                seen = replace(cut, memory=memory, handled=began.handled)
                again = self.at_its_time(state, seen, began.assume)
                if again is not None:
                    yield again

    def _failing(self, state: State) -> Iterator[State]:
        """The state after each sync that fails and leaves no write."""
        if not self.history.jobs or self.history.jobs[state.job_floor].type == "DELETED":
            return
        at_ns = self.history.writes[state.index].recv_ns
        assume = self._silent_assumptions(at_ns)
        for cut in self.cuts_at(state, self.history.jobs[state.job_floor], [state.pod_floor]):
            yield from self._counting(self.silent_syncs(state, cut, at_ns, assume), state)
        yield from self._counting(self.silently(state), state)

    def _counting(self, found: Iterator[State], state: State) -> Iterator[State]:
        return (after for after in found if after.memory.requeues > state.memory.requeues)
