"""Syncs that left no write: what of the memory they may have changed, and which Events they told.

They are run on what the caches can have held between the syncs that are explained.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tracekit.base.kube.views import JobView
from tracekit.check.replay.attempts import Attempts
from tracekit.check.replay.clock_readings import sync_clock
from tracekit.check.replay.cuts import Cut, Effort
from tracekit.check.replay.history import Revision
from tracekit.check.replay.interruptions import follows
from tracekit.check.replay.recorded_api import Assumptions, Mismatch, RecordEnds
from tracekit.check.replay.search_state import Explanation, SilentSync, State
from tracekit.ports.cache.pods import PodCache
from tracekit.ports.job.context import SyncClock, SyncResult
from tracekit.ports.job.memory import JobMemory

#: Syncs without a write: so many in a row, memories, and positions of each Job revision.
SILENT_ROW = 4
SILENT_MEMORIES = 12
SILENT_POSITIONS = 16
#: So many pod revisions back is a sync looked for that left nothing but an Event or a timer.
SILENT_PODS = 200


class SilentSyncs(Attempts):
    """Runs syncs of one key that must leave no write."""

    def silent_states(self, state: State) -> Iterator[State]:
        """The states that syncs without a write can have led to before the next one.

        Only what they change in the memory can be told; of equal memories the one that the oldest
        caches lead to leaves the most open.
        """
        met = {state.memory.identity}
        ahead = [state]
        while ahead and len(met) <= SILENT_MEMORIES:
            before = ahead.pop(0)
            if len(before.silent) - len(state.silent) >= SILENT_ROW:
                continue
            for after in self.silently(before):
                if after.memory.identity not in met:
                    met.add(after.memory.identity)
                    ahead.append(after)
                    yield after

    def silently(self, state: State) -> Iterator[State]:
        """The state after each sync that leaves no write and changes the memory."""
        floor, newest = self.window(state, Effort.SILENT)
        half = SILENT_POSITIONS // 2
        positions = sorted({*range(floor, min(floor + half, newest + 1)),
                            *range(max(floor, newest - half + 1), newest + 1)})  # fmt: skip
        at_ns = self.history.writes[state.index].recv_ns
        assume = self._silent_assumptions(at_ns)
        for job in reversed(list(self.job_candidates(state, Effort.SILENT))):
            for cut in self.cuts_at(state, job, positions):
                cuts = [cut]
                if state.memory != cut.memory and self.still_behind(state, cut):
                    cuts.append(replace(cut, memory=state.memory, handled=state.handled))
                for seen in cuts:
                    for found in self.silent_syncs(state, seen, at_ns, assume):
                        if found.memory.identity != seen.memory.identity:
                            yield found

    def _silent_assumptions(self, at_ns: int) -> Assumptions:
        return Assumptions(
            refusals=self.facts.refused.creations_or_unreported(at_ns, at_ns) is not None,
            refused_writes=self.facts.refused.writes(at_ns) is not None,
            silent=True,
        )

    def silent_between(
        self,
        before: Explanation | None,
        sync: Explanation | None,
        *,
        served: Sequence[tuple[int, int]] = (),
        in_a_row: bool = False,
        cut_off: bool = False,
        ended: bool = False,
    ) -> Iterator[SilentSync]:
        """Syncs without a write that there may have been between two that are explained.

        None stands for the beginning of the key, and for the end of the record. Also those that met
        the server as it was at the times and revisions that are `served`; `in_a_row` also those
        that follow another one, which changed the memory; `cut_off` also those in whose midst the
        process died, and `ended` the record did, before a status that was not written.
        """
        history = self.history
        jobs, seen = history.jobs, len(history.pods)
        state = before.state if before is not None else State(0, JobMemory(), PodCache(), 0, 0)
        oldest = before.job.position if before is not None and before.job is not None else 0
        if sync is not None and sync.job is not None:
            state = replace(state, index=sync.writes[0].index)
            at_ns, jobs, seen = sync.writes[0].recv_ns, jobs[: sync.job.position + 1], sync.pod_cut
        else:
            state = replace(state, index=len(history.writes))
            at_ns = self.facts.run_context.end_ns
        # They were over when the next one began: what the record shows from there on came later.
        assume = self._silent_assumptions(at_ns)._replace(until_index=state.index)
        moments = [(at_ns, assume)]
        moments += [(met_ns, assume._replace(served_rv=rv)) for met_ns, rv in served]
        if cut_off:
            since_ns = before.writes[-1].recv_ns if before is not None else 0
            moments += [
                (min(restart.until_ns, at_ns), assume._replace(cuts_off=True))
                for restart in self.facts.run_context.restarts
                if since_ns <= restart.until_ns and restart.from_ns <= at_ns
            ]
        if ended and sync is None:
            moments.append((at_ns, assume._replace(cuts_off=True)))
        ahead = [state, *self._begun_anew(state, before, at_ns)]
        unseen = self.after_blind_times(state, at_ns)
        if unseen is not state:
            ahead.append(unseen)
        met = {start.memory.identity for start in ahead}
        while ahead:
            start = ahead.pop(0)
            for found in self._silent_at(start, jobs[oldest:], seen, moments, at_ns):
                yield found.silent[-1]
                more = in_a_row and len(found.silent) < SILENT_ROW and len(met) < SILENT_MEMORIES
                if more and found.memory.identity not in met:
                    met.add(found.memory.identity)
                    ahead.append(found)

    def idle_at(self, before: Explanation, sync: Explanation, at_ns: int) -> bool:
        """Whether a sync that ran at a time between two others may have left no write.

        Also where its caches may have had more than `SILENT_POSITIONS` states: that is not asked.
        """
        history, facts = self.history, self.facts
        assert sync.job is not None  # noqa: S101 - it is explained
        state = replace(before.state, index=sync.writes[0].index)
        assume = self._silent_assumptions(at_ns)
        newest = min(bisect_right(history.pods_latest_ns, at_ns), sync.pod_cut)
        floor = max(before.pod_cut, min(newest, facts.pods_shown(at_ns)))
        if newest - floor > SILENT_POSITIONS:
            return True
        oldest = max(before.state.job_floor, facts.jobs_shown(at_ns) - 1)
        for job in history.jobs[oldest : sync.job.position + 1]:
            if job.recv_ns > at_ns or job.type == "DELETED":
                continue
            for cut in self.cuts_at(state, job, range(floor, newest + 1)):
                if self._silent_sync(state, cut, sync_clock(at_ns), at_ns, assume) is not None:
                    return True
        return False

    def _begun_anew(
        self, state: State, before: Explanation | None, until_ns: int
    ) -> Iterator[State]:
        """The state with the empty memory of a process that began between a sync and then."""
        if before is None:
            return
        began = [
            restart.until_ns
            for restart in self.facts.run_context.restarts
            if restart.until_ns <= until_ns and not follows(before.writes[-1], restart)
        ]
        if began:
            yield state.in_a_new_process(max(began), state.restarts_seen + 1)

    def _silent_at(
        self,
        state: State,
        jobs: Sequence[Revision[JobView]],
        seen: int,
        moments: Sequence[tuple[int, Assumptions]],
        until_ns: int,
    ) -> Iterator[State]:
        """The states after one sync without a write, on each of these revisions and moments.

        Where the memory is not known also with what it may have held until then.
        """
        positions = range(max(state.pod_floor, seen - SILENT_PODS), seen + 1)
        for job in jobs:
            if job.type == "DELETED" or job.position < state.job_floor:
                continue
            for cut in self.cuts_at(state, job, positions):
                for seen_cut in (cut, *self.guesses(state, cut, until_ns)):
                    for served_ns, served in moments:
                        yield from self.silent_syncs(state, seen_cut, served_ns, served)

    def silent_syncs(
        self, state: State, cut: Cut, at_ns: int, assume: Assumptions
    ) -> Iterator[State]:
        """The states after a sync at this cut that leaves no write, by then or before a timer."""
        earliest_ns = max(cut.job.recv_ns, self.shown_ns(cut), state.not_before_ns)
        tried, ahead = {at_ns}, [at_ns]
        while ahead:
            clock = sync_clock(ahead.pop())
            found = self._silent_sync(state, cut, clock, earliest_ns, assume)
            if found is not None:
                yield found
            for timer_ns in clock.asked:
                if earliest_ns < timer_ns <= clock.now_ns and timer_ns - 1 not in tried:
                    tried.add(timer_ns - 1)
                    ahead.append(timer_ns - 1)

    def _silent_sync(
        self, state: State, cut: Cut, clock: SyncClock, earliest_ns: int, assume: Assumptions
    ) -> State | None:
        self.attempts += 1
        api = self.facts.api(state.index, clock, cut.job.recv_ns, assume, state.done)
        memory = cut.memory.copy()
        result = SyncResult(error=True)
        try:
            result = self._run(replace(cut, memory=memory), api)
        except Mismatch:
            return None
        except RecordEnds:
            pass  # it died before its status, and nobody goes on with it
        if api.rest is not None:
            return None
        wake_ns = result.wake_after_ns
        retries = memory.requeues
        if self.rules.tracks(cut.job.view) and state.retries is not None:
            retries = state.retries.least + result.error
        sync = SilentSync(
            cut.job,
            cut.pods,
            result.error,
            clock.now_ns + wake_ns if wake_ns is not None else None,
            tuple(api.events),
            api.refused,
            earliest_ns,
            retries,
        )
        return replace(
            state,
            memory=memory,
            cache=cut.cache.copy(),
            pod_floor=cut.pods,
            job_floor=cut.job.position,
            handled=cut.handled,
            silent=(*state.silent, sync),
        )
