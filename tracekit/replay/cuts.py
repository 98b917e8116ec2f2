"""The search for a cut: under which state of the caches does a sync do what was observed?

A cut is a revision of the Job and a position in the pod stream, as the informers' caches had them.
The newest is tried first, then those whose pods go with the next status (`likely_cuts`), then the
rest; each at the latest time at which the sync can have run and just before each timer that it asks
about. The ported controller then runs against the record (`recorded_api`): a cut explains the
writes if it does exactly what was observed. An attempt that failed once is not made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple

from tracekit.cache.pods import PodCache
from tracekit.controllers.job.backoff import BackoffRecord
from tracekit.controllers.job.context import SyncClock, SyncResult
from tracekit.controllers.job.memory import JobMemory, PodExpectations
from tracekit.controllers.job.sync import sync_job
from tracekit.kube.timestamps import NS_PER_S
from tracekit.kube.views import JobView, PodView
from tracekit.replay.handlers import pod_observed
from tracekit.replay.history import Revision, Write, WriteKind
from tracekit.replay.key_facts import CLOCK_SLACK_NS, INFORMER_LAG_NS, KeyFacts
from tracekit.replay.likely_cuts import PodCounts
from tracekit.replay.recorded_api import (
    Assumptions,
    Mismatch,
    Problem,
    RecordedApi,
    RecordEnds,
)
from tracekit.replay.search_state import Explanation, SilentSync, State
from tracekit.verdict import Assumption

#: How many attempts a key may cost: so many, and so many more for each of its writes. Counted, not
#: timed, so that runs agree. Beyond it the verdict is `unknowable`, reason `undecided`.
ATTEMPTS = 20_000
ATTEMPTS_PER_WRITE = 60
#: How many of them one write may cost before it counts as not explained.
ATTEMPTS_AT_A_DEAD_END = 4_000
#: So many states of the memory are tried that handlers behind the cache can have left.
MEMORIES_BEHIND = 4
#: Syncs without a write: so many in a row, memories, and positions of each Job revision.
SILENT_ROW = 4
SILENT_MEMORIES = 12
SILENT_POSITIONS = 16
#: So many pod revisions back is a sync looked for that left nothing but an Event or a timer.
SILENT_PODS = 200
#: Failures that a record of unknown length stands for: the longest back-off.
_MANY_FAILURES = 12


class Effort(IntEnum):
    """What the search takes into account; the rarer only where nothing else explains a write."""

    CUTS = 0  # handlers keep up with the caches, every sync writes
    HANDLERS = 1  # handlers may be behind, a sync may not have seen the last one's status write
    SILENT = 2  # syncs may have left no write
    STALE = 3  # an informer may be further behind than they are taken to be


class Exhausted(Exception):  # noqa: N818 - a signal of the search, not an error
    """The key has cost as many attempts as it may."""


class Cut(NamedTuple):
    """What the controller's caches held when a sync began, and its memory of the key."""

    job: Revision[JobView]
    pods: int  # how many revisions of the pod stream had arrived
    cache: PodCache  # at that position
    memory: JobMemory  # a run changes it: runs get copies
    handled: int  # of `pods`, those about which the handlers had told the memory when it began
    #: What of the memory is a guess, because the record could not see what led to it.
    guess: str = ""


class CutSearch:
    """Looks for the cuts of one key's syncs."""

    def __init__(self, facts: KeyFacts) -> None:
        self.facts = facts
        self.history = facts.history
        self.rules = facts.rules
        self.attempts = 0
        self._budget = ATTEMPTS + ATTEMPTS_PER_WRITE * len(self.history.writes)
        self._failed: set[object] = set()
        self._counts: dict[str, PodCounts] = {}

    def explanations(self, state: State, effort: Effort) -> Iterator[Explanation]:
        """Every cut that explains the next write, the likeliest first."""
        yield from self._plainly(state, effort)
        if effort is Effort.CUTS:
            return
        for job in self.job_candidates(state, effort):
            for cut in self._behind(state, job, effort):
                found = self._at_its_time(state, cut, Assumptions())
                if found is not None:
                    yield found
        if effort >= Effort.SILENT:
            for silent in self.silent_states(state):
                yield from self._plainly(silent, effort)

    def _plainly(self, state: State, effort: Effort) -> Iterator[Explanation]:
        """By one sync whose handlers have kept up."""
        for assume in self._assumptions(state, effort):
            for job in self.job_candidates(state, effort):
                yield from self._under_job(state, job, assume, effort)

    def _assumptions(self, state: State, effort: Effort) -> Iterator[Assumptions]:
        """What may be taken for granted at the next write, the fewest things first."""
        at_ns = self.history.writes[state.index].recv_ns
        refusals = (False, True) if self.facts.refusals(at_ns) is not None else (False,)
        write = self.history.writes[state.index]
        others = self.facts.may_be_foreign(write) and not self.facts.owned_up(write)
        ends = self.facts.interrupted(at_ns) or (self.facts.last_syncs(state.index) and not others)
        idle = effort is Effort.SILENT and self.facts.any_owned_up
        for second_deletes in (False, True) if idle else (False,):
            for refused in refusals:
                for cuts_off in (False, True) if ends else (False,):
                    yield Assumptions(refused, cuts_off, second_deletes=second_deletes)

    # What the caches may have held.

    def job_candidates(self, state: State, effort: Effort) -> Iterator[Revision[JobView]]:
        """Revisions of the Job that its cache can have held at the next write, newest first."""
        newest = self.history.job_before(self.history.writes[state.index].rv)
        if newest is None:
            return
        floor = max(state.job_floor, self._own_write_floor(state, effort))
        if effort is not Effort.STALE:
            floor = max(floor, self.facts.jobs_shown(state.last_write_ns) - 1)
        for position in range(newest.position, floor - 1, -1):
            revision = self.history.jobs[position]
            if revision.type != "DELETED":
                yield revision

    def _own_write_floor(self, state: State, effort: Effort) -> int:
        """The oldest revision of the Job that the controller's cache can still have held.

        A key is never synced twice at a time, so a sync begins after the last one's status write;
        from 1.36 on it is refused until the informer has shown that write, before it may come a
        moment earlier.
        """
        written = state.own_status
        if written is None or self.rules.overwrites_status:
            return 0
        at_ns = self.history.writes[state.index].recv_ns
        stale = effort is Effort.STALE or (
            effort is not Effort.CUTS and at_ns - written.recv_ns <= INFORMER_LAG_NS
        )
        if stale and not self.rules.refuses_stale_sync:
            return 0
        return written.position

    def _window(self, state: State, effort: Effort) -> tuple[int, int]:
        """The positions of the pod stream that the cache can have had at the next write."""
        newest = self.history.pods_below(self.history.writes[state.index].rv)
        floor = state.pod_floor
        if effort is not Effort.STALE:
            floor = max(floor, min(newest, self.facts.pods_shown(state.last_write_ns)))
        if self.rules.refuses_stale_sync:
            # From 1.36 on a sync is refused until the informer has shown what the last one wrote.
            floor = max(floor, state.own_pods)
        return floor, newest

    def cuts(
        self, state: State, job: Revision[JobView], *, deepest: int | None = None
    ) -> Iterator[Cut]:
        """The positions of the pod stream, newest first; at most `deepest` revisions back.

        All cuts share one cache, which moves with them.
        """
        floor, newest = self._window(state, Effort.STALE)
        if deepest is not None:
            floor = max(floor, newest - deepest)
        yield from self._cuts_at(state, job, range(newest, floor - 1, -1))

    def _cuts_at(
        self, state: State, job: Revision[JobView], positions: Sequence[int]
    ) -> Iterator[Cut]:
        if not positions:
            return
        cache = state.cache.copy()
        memories = self.memories(state, max(positions), job.view.uid)
        for position in positions:
            cache.move_to(self.history.pods, position)
            yield Cut(job, position, cache, memories[position - state.handled], position)

    def memories(self, state: State, upto: int, job_uid: str) -> list[JobMemory]:
        """The key's memory after each pod revision from the handlers' position to `upto`.

        A Job's end clears it for the next one of the same name. Revisions that tell it nothing
        share one memory: runs get copies.
        """
        before = self.history.jobs[state.job_floor].view.uid if self.history.jobs else job_uid
        memory = state.memory if before == job_uid else JobMemory()
        found = [memory]
        for revision in self.history.pods[state.handled : upto]:
            told = memory.copy()
            _tell(told, revision, job_uid)
            if told != memory:
                memory = told
            found.append(memory)
        return found

    def _behind(self, state: State, job: Revision[JobView], effort: Effort) -> Iterator[Cut]:
        """Cuts between an informer's change of its cache and its handlers' running."""
        floor, newest = self._window(state, effort)
        for cut in self._cuts_at(state, job, range(newest, floor - 1, -1)):
            memories = self.memories(state, cut.pods, job.view.uid)
            left, last = MEMORIES_BEHIND, memories[-1]
            for handled in range(cut.pods - 1, state.handled - 1, -1):
                memory = memories[handled - state.handled]
                if memory is not last:
                    last = memory
                    yield cut._replace(memory=memory, handled=handled)
                    left -= 1
                    if not left:
                        break

    # One attempt.

    def _under_job(
        self, state: State, job: Revision[JobView], assume: Assumptions, effort: Effort
    ) -> Iterator[Explanation]:
        """The likely cuts first; once one explains the write, only those that are as likely."""
        floor, newest = self._window(state, effort)
        if newest < floor:
            return
        if effort is not Effort.STALE:
            floor = max(floor, min(newest, self.facts.pods_shown(job.recv_ns)))
        for cut in self._cuts_at(state, job, [newest]):
            yield from self._with_guesses(state, cut, assume, effort)
        odds = self._odds(state, job, floor, newest)
        worst = max(odds, default=0)
        for level in range(worst + 1):
            positions = [p for p in range(newest - 1, floor - 1, -1) if odds[p - floor] == level]
            explained = False
            for cut in self._cuts_at(state, job, positions):
                for found in self._with_guesses(state, cut, assume, effort):
                    explained = True
                    yield found
            if explained:
                return

    def _odds(self, state: State, job: Revision[JobView], floor: int, newest: int) -> list[int]:
        """How little each position goes with the next status."""
        writes = self.history.writes
        uid = job.view.uid
        following = next(
            (
                write.job.view.status
                for write in writes[state.index :]
                if write.job is not None and write.index not in state.done
            ),
            None,
        )
        if following is None or newest - floor < 2:  # noqa: PLR2004 - nothing to put in order
            return [0] * (newest - floor + 1)
        counts = self._counts.get(uid)
        if counts is None:
            counts = self._counts[uid] = PodCounts.of(self.history.pods, uid)
        return [counts.odds(position, following) for position in range(floor, newest + 1)]

    def _with_guesses(
        self, state: State, cut: Cut, assume: Assumptions, effort: Effort
    ) -> Iterator[Explanation]:
        """With the memory that is known, then with what it may have been where it is not."""
        if effort is not Effort.STALE and self._stale(state, cut) is not None:
            return
        found = self._at_its_time(state, cut, assume)
        if found is not None:
            yield found
        if state.certain and state.backoff_known:
            return
        for guessed in self._guesses(state, cut):
            found = self._at_its_time(state, guessed, assume)
            if found is not None:
                yield found

    def _guesses(self, state: State, cut: Cut) -> Iterator[Cut]:
        """Memories of a time that the record did not see: in back-off, or waiting for pods."""
        at_ns = self.history.writes[state.index].recv_ns
        waiting = cut.memory.copy()
        if self.rules.pod_backoff_base_ns:
            waiting.backoff = BackoffRecord(_MANY_FAILURES, at_ns)
            yield cut._replace(memory=waiting, guess="failures before the record could see")
        elif cut.job.view.spec.backoff_limit:
            waiting.requeues += cut.job.view.spec.backoff_limit
            yield cut._replace(memory=waiting, guess="retries before the record could see")
        if not state.certain:
            unseen = cut.memory.copy()
            unseen.expectations = PodExpectations(1, 0, at_ns)
            yield cut._replace(memory=unseen, guess="creations before the record could see")

    def _at_its_time(self, state: State, cut: Cut, assume: Assumptions) -> Explanation | None:
        """Try the latest time at which the sync can have run, and just before each timer."""
        same = (state.index, state.done, state.last_write_ns, cut.job.position, cut.pods,
                cut.memory.identity, assume, cut.handled == cut.pods)  # fmt: skip
        if same in self._failed:
            return None
        earliest_ns = self._earliest_ns(state, cut)
        asked: set[int] = set()
        tried: set[int] = set()
        queue = [self.history.writes[state.index].recv_ns]
        while queue:
            now_ns = queue.pop()
            if now_ns in tried:
                continue
            tried.add(now_ns)
            found, timers = self.attempt(state, cut, now_ns, assume)
            if found is not None:
                return found
            for timer in timers:
                if timer not in asked and earliest_ns - CLOCK_SLACK_NS <= timer <= now_ns:
                    asked.add(timer)
                    queue.append(timer - 1)
        self._failed.add(same)
        return None

    def _earliest_ns(self, state: State, cut: Cut) -> int:
        """When a sync that had seen so much can have begun at the earliest."""
        latest_ns = self.history.writes[state.index].recv_ns
        return min(max(cut.job.recv_ns, self._shown_ns(cut), state.last_write_ns), latest_ns)

    def _stale(self, state: State, cut: Cut) -> Revision[JobView] | Revision[PodView] | None:
        """The oldest revision that the caches lack and must have had, were informers prompt."""
        history = self.history
        began_ns = max(cut.job.recv_ns, self._shown_ns(cut), state.last_write_ns)
        if cut.job.position + 1 < self.facts.jobs_shown(began_ns):
            return history.jobs[cut.job.position + 1]
        if cut.pods < min(self.facts.pods_shown(began_ns), len(history.pods)):
            return history.pods[cut.pods]
        return None

    def _shown_ns(self, cut: Cut) -> int:
        """When the newest pod revision of a cut was there."""
        return self.history.pods[cut.pods - 1].recv_ns if cut.pods else 0

    def attempt(
        self, state: State, cut: Cut, now_ns: int, assume: Assumptions
    ) -> tuple[Explanation | None, list[int]]:
        """Run the sync; what it explains, and the times that its decisions asked about."""
        self.attempts += 1
        if self.attempts > self._budget and not assume.lenient:
            raise Exhausted
        # A time that no API object can hold marks what the controller took from its clock.
        clock = SyncClock(now_ns if now_ns % NS_PER_S else now_ns + 1)
        api = self._api(state.index, clock, self._earliest_ns(state, cut), assume, state.done)
        known = cut.memory.backoff
        cut = cut._replace(memory=cut.memory.copy())
        result: SyncResult | None = None
        rest: Problem | None = None
        try:
            result = self._run(cut, api)
        except Mismatch:
            return None, clock.asked
        except RecordEnds as end:
            rest = end.problem
        if not api.consumed:
            return None, clock.asked
        consumed = sorted(api.consumed, key=lambda write: write.index)
        if rest is not None and self._lives_on(consumed[-1], api.taken, state):
            return None, clock.asked
        extra = self._left_over(state, consumed, api)
        if (extra or consumed[0].index != state.index) and not assume.lenient:
            return None, clock.asked
        api.problems += extra
        for revision in self.history.pods[cut.handled : cut.pods]:
            _tell(cut.memory, revision, cut.job.view.uid)
        if cut.guess:
            cut.memory.backoff = _without_guess(cut.memory.backoff, known, state.memory.backoff)
        return self._explanation(state, cut, api, consumed, now_ns, result, rest), clock.asked

    def after_the_record(self, cut: Cut, now_ns: int, assume: Assumptions) -> RecordedApi:
        """Run a sync for which no write is left: what it would do are the problems of the port."""
        api = self._api(len(self.history.writes), SyncClock(now_ns | 1), 0, assume, frozenset())
        self._run(cut, api)
        return api

    def _api(
        self,
        start: int,
        clock: SyncClock,
        earliest_ns: int,
        assume: Assumptions,
        skip: frozenset[int],
    ) -> RecordedApi:
        return RecordedApi(
            self.history,
            start,
            clock,
            earliest_ns,
            assume,
            skip,
            CLOCK_SLACK_NS,
            self.rules,
            self.facts.run_context.namespaces_ending.get(self.history.namespace),
        )

    def _run(self, cut: Cut, api: RecordedApi) -> SyncResult:
        return sync_job(
            cut.job.view,
            cut.cache.pods(),
            cut.memory,
            api,
            clock=api.clock,
            rules=self.rules,
            choices=self.facts.choices(api.start),
        )

    def _explanation(
        self,
        state: State,
        cut: Cut,
        api: RecordedApi,
        consumed: list[Write],
        now_ns: int,
        result: SyncResult | None,
        rest: Problem | None,
    ) -> Explanation:
        """What a run of the sync under this cut says, and the state that it leaves.

        `result` is None where the record or the process ends inside the sync.
        """
        history, clock, job = self.history, api.clock, cut.job
        first = history.writes[state.index]
        newest = history.pods_below(first.rv)
        unseen = history.pods[cut.pods : newest]
        input_ns = max(job.recv_ns, self._shown_ns(cut))
        timer_ns = max((at for at in clock.asked if at <= now_ns), default=0)
        return Explanation(
            writes=tuple(consumed),
            job=job,
            pod_cut=cut.pods,
            pods_unseen=len(unseen),
            lag_ns=max(0, first.recv_ns - unseen[0].recv_ns) if unseen else 0,
            now_ns=now_ns,
            due_ns=max(input_ns, timer_ns),
            timed=timer_ns > input_ns,
            events=tuple(api.events),
            problems=tuple(api.problems),
            refused=api.refused,
            rest=rest,
            notes=tuple(clock.notes),
            error=result is None or result.error,
            wake_after_ns=result.wake_after_ns if result is not None else None,
            state=self._state_after(state, cut, api, consumed),
            handlers_behind=cut.pods - cut.handled,
            silent=state.silent,
            assumptions=tuple(self._assumed(state, cut, api, rest)),
            stale=self._stale(state, cut),
        )

    def _state_after(
        self, state: State, cut: Cut, api: RecordedApi, consumed: list[Write]
    ) -> State:
        first = self.history.writes[state.index]
        wrote_status = consumed[-1].kind is WriteKind.STATUS_UPDATE
        own_status = [write.job for write in consumed if write.job is not None][-1:]
        # A DELETE answers with no revision to wait for, and so does a pod's last finalizer.
        own_pods = [
            write.pod.position + 1
            for write in consumed
            if write.pod is not None
            and write.kind is not WriteKind.POD_DELETE
            and write.pod.type != "DELETED"
        ]
        succeeded = any(note.numbers.get("new_succeeded") for note in api.clock.notes)
        return State(
            index=state.index,
            memory=cut.memory,
            cache=cut.cache.copy(),
            pod_floor=cut.pods,
            job_floor=cut.job.position,
            handled=cut.pods,
            done=state.done | api.taken,
            last_write_ns=consumed[-1].recv_ns,
            restarts_seen=state.restarts_seen,
            listings_seen=state.listings_seen,
            own_status=own_status[0] if own_status else state.own_status,
            own_pods=max(own_pods, default=state.own_pods),
            certain=state.certain
            or (wrote_status and cut.pods >= self.facts.pods_listed(first.recv_ns)),
            backoff_known=state.backoff_known or succeeded,
        )

    def _assumed(
        self, state: State, cut: Cut, api: RecordedApi, rest: Problem | None
    ) -> Iterator[Assumption]:
        """What the explanation takes for granted, with the time and the evidence."""
        at_ns = self.history.writes[state.index].recv_ns
        if api.refused:
            evidence = self.facts.refusals(at_ns)
            if evidence is not None:
                yield evidence
        if rest is not None:
            yield self.facts.ending(at_ns)
        if cut.guess:
            since_ns = max((t for t in self.facts.blind_until_ns if t <= at_ns), default=at_ns)
            yield Assumption("unknown-memory", since_ns, at_ns, cut.guess)
        stale = self._stale(state, cut)
        if stale is not None:
            text = f"nothing else explains it than caches without resourceVersion {stale.rv}"
            yield Assumption("stale-cache", stale.recv_ns, at_ns, text)
        for sync in state.silent:
            seen_ns = max(sync.job.recv_ns, state.last_write_ns)
            what = "failed" if sync.error else "had nothing to write"
            text = f"a sync of the Job at resourceVersion {sync.job.rv} {what}"
            yield Assumption("silent-sync", seen_ns, max(seen_ns, at_ns), text)

    def _lives_on(self, last: Write, taken: set[int], state: State) -> bool:
        """Whether the controller that a sync was cut off with goes on writing.

        A cut-off means that its process died: the key's next write is its successor's. At the end
        of a record nothing follows at all.
        """
        for write in self.history.writes[last.index + 1 :]:
            if write.index in taken or write.index in state.done:
                continue
            if not self.facts.may_be_foreign(write):
                return not self.facts.died_between(last, write)
        return False

    def _left_over(self, state: State, consumed: list[Write], api: RecordedApi) -> list[Problem]:
        """Writes in the midst of the sync that it does not explain."""
        problems = []
        for write in self.history.writes[state.index : consumed[-1].index]:
            if write.index in api.taken or write.index in state.done:
                continue
            if write.kind is WriteKind.FINALIZER_REMOVAL and self.facts.orphan_reason(write):
                continue
            others = self.facts.may_be_foreign(write) and (
                api.assume.second_deletes or api.assume.lenient or not self.facts.owned_up(write)
            )
            if not others:
                problems.append(Problem(write.kind, "extra", write, "nothing of the kind"))
        return problems

    # Syncs that left no write.

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
            for after in self._silently(before):
                if after.memory.identity not in met:
                    met.add(after.memory.identity)
                    ahead.append(after)
                    yield after

    def _silently(self, state: State) -> Iterator[State]:
        """The state after each sync that leaves no write and changes the memory."""
        floor, newest = self._window(state, Effort.SILENT)
        half = SILENT_POSITIONS // 2
        positions = sorted({*range(floor, min(floor + half, newest + 1)),
                            *range(max(floor, newest - half + 1), newest + 1)})  # fmt: skip
        at_ns = self.history.writes[state.index].recv_ns
        assume = Assumptions(refusals=self.facts.refusals(at_ns) is not None, silent=True)
        for job in reversed(list(self.job_candidates(state, Effort.SILENT))):
            for cut in self._cuts_at(state, job, positions):
                found = self.silent_sync(state, cut, at_ns, assume)
                if found is not None and found.memory.identity != cut.memory.identity:
                    yield found

    def silent_between(
        self, before: Explanation | None, sync: Explanation | None
    ) -> Iterator[SilentSync]:
        """Syncs without a write that there may have been between two that are explained.

        None stands for the beginning of the key, and for the end of the record.
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
        assume = Assumptions(refusals=self.facts.refusals(at_ns) is not None, silent=True)
        for job in jobs[oldest:]:
            if job.type == "DELETED":
                continue
            positions = range(max(state.pod_floor, seen - SILENT_PODS), seen + 1)
            for cut in self._cuts_at(state, job, positions):
                found = self.silent_sync(state, cut, at_ns, assume)
                if found is not None:
                    yield found.silent[-1]

    def silent_sync(self, state: State, cut: Cut, at_ns: int, assume: Assumptions) -> State | None:
        """The state after a sync at this cut, if it leaves no write."""
        self.attempts += 1
        clock = SyncClock(at_ns if at_ns % NS_PER_S else at_ns + 1)
        api = self._api(state.index, clock, cut.job.recv_ns, assume, state.done)
        memory = cut.memory.copy()
        try:
            result = self._run(cut._replace(memory=memory), api)
        except Mismatch:
            return None
        wake_ns = result.wake_after_ns
        sync = SilentSync(
            cut.job,
            cut.pods,
            result.error,
            clock.now_ns + wake_ns if wake_ns is not None else None,
            tuple(api.events),
            api.refused,
            max(cut.job.recv_ns, self._shown_ns(cut), state.last_write_ns),
            memory.requeues,
        )
        return State(
            index=state.index,
            memory=memory,
            cache=cut.cache.copy(),
            pod_floor=cut.pods,
            job_floor=cut.job.position,
            handled=cut.handled,
            done=state.done,
            last_write_ns=state.last_write_ns,
            restarts_seen=state.restarts_seen,
            listings_seen=state.listings_seen,
            own_status=state.own_status,
            own_pods=state.own_pods,
            certain=state.certain,
            backoff_known=state.backoff_known,
            silent=(*state.silent, sync),
        )


def _without_guess(
    after: BackoffRecord, guessed: BackoffRecord, before: BackoffRecord
) -> BackoffRecord:
    """The back-off record after a sync whose record was guessed: what it added stays."""
    if after == guessed:
        return before
    return BackoffRecord(min(after.failures_after_last_success, 1), after.last_failure_ns)


def _tell(memory: JobMemory, revision: Revision[PodView], job_uid: str) -> None:
    """Run the pod handlers on one revision."""
    old = revision.previous.view if revision.previous is not None else None
    pod_observed(memory, old, revision.view, deleted=revision.type == "DELETED", job_uid=job_uid)
