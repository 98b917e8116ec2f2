"""What the caches of the controller can have held when a sync began.

A cut is a revision of the Job and a position in the pod stream, as the informers' caches had them,
with the memory that the handlers had by then. Neither goes back from one sync to the next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import IntEnum

import msgspec
from msgspec.structs import replace

from tracekit.base.kube.views import JobView, PodView
from tracekit.check.replay.clock_readings import not_before_ns
from tracekit.check.replay.handlers import may_tell
from tracekit.check.replay.history import Revision
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.likely_cuts import PodCounts
from tracekit.check.replay.run_context import INFORMER_LAG_NS
from tracekit.check.replay.search_state import State
from tracekit.ports.cache.pods import PodCache
from tracekit.ports.job.backoff import BackoffRecord
from tracekit.ports.job.memory import JobMemory, PodExpectations

#: So many states of the memory are tried that handlers behind the cache can have left.
MEMORIES_BEHIND = 4
#: Failures that a record of unknown length stands for: the longest back-off.
_MANY_FAILURES = 12


class Effort(IntEnum):
    """What the search takes into account; the rarer only where nothing else explains a write."""

    CUTS = 0  # handlers keep up with the caches, every sync writes
    HANDLERS = 1  # handlers may be behind, a sync may not have seen the last one's status write
    SILENT = 2  # syncs may have left no write
    STALE = 3  # an informer may be further behind than they are taken to be


class Cut(msgspec.Struct, frozen=True, gc=False):
    """What the controller's caches held when a sync began, and its memory of the key."""

    job: Revision[JobView]
    pods: int  # how many revisions of the pod stream had arrived
    cache: PodCache  # at that position
    memory: JobMemory  # a run changes it: runs get copies
    handled: int  # of `pods`, those about which the handlers had told the memory when it began
    #: What of the memory is a guess, because the record could not see what led to it.
    guess: str = ""


class CacheCuts:
    """The cuts of one key's syncs."""

    def __init__(self, facts: KeyEvidence) -> None:
        self.facts = facts
        self.history = facts.history
        self.rules = facts.rules
        self._counts: dict[str, PodCounts] = {}
        #: Where the memories begin that were asked for last, and they.
        self._begun: tuple[JobMemory, int, str, str] | None = None
        self._memories: list[JobMemory] = []

    def job_candidates(self, state: State, effort: Effort) -> Iterator[Revision[JobView]]:
        """Revisions of the Job that its cache can have held at the next write, newest first."""
        newest = self.history.job_before(self.history.writes[state.index].rv)
        if newest is None:
            return
        floor = max(state.job_floor, self._own_write_floor(state, effort))
        if effort is not Effort.STALE:
            floor = max(floor, self.facts.jobs_shown(state.not_before_ns) - 1)
        at_ns = self.history.writes[state.index].recv_ns
        floor = max(
            floor, self.facts.process_shown("jobs", at_ns) - 1, self.facts.job_reported(at_ns)
        )
        last = newest.position
        heuristic = state.heuristic
        if heuristic is not None and heuristic.seen is not None and state.index <= heuristic.until:
            last = min(last, heuristic.seen)
        for position in range(last, floor - 1, -1):
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

    def lacks_own_status(self, state: State, job: Revision[JobView]) -> bool:
        """Whether a Job is older than the key's last status write, which a PUT would not take."""
        own = state.own_status
        return own is not None and job.position < own.position and not self.rules.overwrites_status

    def window(self, state: State, effort: Effort) -> tuple[int, int]:
        """The positions of the pod stream that the cache can have had at the next write."""
        newest = self.history.pods_below(self.history.writes[state.index].rv)
        floor = state.pod_floor
        if effort is not Effort.STALE:
            floor = max(floor, min(newest, self.facts.pods_shown(state.not_before_ns)))
        at_ns = self.history.writes[state.index].recv_ns
        floor = max(floor, min(newest, self.facts.process_shown("pods", at_ns)))
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
        floor, newest = self.window(state, Effort.STALE)
        if deepest is not None:
            floor = max(floor, newest - deepest)
        yield from self.cuts_at(state, job, range(newest, floor - 1, -1))

    def cuts_back(
        self, state: State, job: Revision[JobView], newest: int, deepest: int
    ) -> Iterator[Cut]:
        """Those at one position and so many before it that the next sync may have seen."""
        oldest = max(state.pod_floor, newest - deepest)
        return self.cuts_at(state, job, range(newest, oldest - 1, -1))

    def cuts_at(
        self, state: State, job: Revision[JobView], positions: Sequence[int]
    ) -> Iterator[Cut]:
        """The cuts at some positions of the pod stream; they share one cache, which moves."""
        if not positions:
            return
        cache = state.cache.copy()
        memories = self.memories(state, max(positions), job.view.uid)
        for position in positions:
            cache.move_to(self.history.pods, position)
            yield Cut(job, position, cache, memories[position - state.handled], position)

    def memories(
        self, state: State, upto: int, job_uid: str, *, kept: bool = False
    ) -> list[JobMemory]:
        """The key's memory after each pod revision from the handlers' position, to `upto` at least.

        A Job's end clears it for the next one of the same name, if a sync found the key without a
        Job in between; else it is `kept`, as pods of the old Job left it. Revisions that tell it
        nothing share one memory: runs get copies. A write is looked at under many caches, one
        after the other: what is known of the last state is gone on with.
        """
        before = self._uid_before(state, job_uid)
        memory_of = before if kept else job_uid
        begun = self._begun
        if (
            begun is None
            or begun[0] is not state.memory
            or begun[1:] != (state.handled, memory_of, before)
        ):
            self._begun = (state.memory, state.handled, memory_of, before)
            self._memories = [state.memory if memory_of == before else JobMemory()]
        found = self._memories
        memory = found[-1]
        for revision in self.history.pods[state.handled + len(found) - 1 : upto]:
            if may_tell(revision, memory):
                updated = memory.copy()
                self.facts.pod_handlers.tell(updated, revision, memory_of)
                if updated != memory:
                    memory = updated
            found.append(memory)
        return found

    def memory_at(self, state: State, handled: int, job_uid: str) -> JobMemory:
        """The key's memory when its handlers had told it of so many pod revisions."""
        return self.memories(state, handled, job_uid)[handled - state.handled]

    def _uid_before(self, state: State, job_uid: str) -> str:
        """Which Job the key's last sync was about."""
        return self.history.jobs[state.job_floor].view.uid if self.history.jobs else job_uid

    def behind(self, state: State, job: Revision[JobView], effort: Effort) -> Iterator[Cut]:
        """Cuts between an informer's change of its cache and its handlers' running."""
        floor, newest = self.window(state, effort)
        kept = self._uid_before(state, job.view.uid) != job.view.uid
        for cut in self.cuts_at(state, job, range(newest, floor - 1, -1)):
            memories = self.memories(state, cut.pods, job.view.uid, kept=kept)
            left, last = MEMORIES_BEHIND, memories[cut.pods - state.handled]
            if kept:
                yield replace(cut, memory=last)
            first = state.handled if self.still_behind(state, cut) else state.pod_floor
            for handled in range(cut.pods - 1, first - 1, -1):
                memory = memories[handled - state.handled]
                if memory is not last and _awaited(memory) != _awaited(last):
                    last = memory
                    yield replace(cut, memory=memory, handled=handled)
                    left -= 1
                    if not left:
                        break

    def guesses(self, state: State, cut: Cut, at_ns: int) -> Iterator[Cut]:
        """What the memory may have held then of a time that the record did not see.

        In back-off, or waiting for pods; none where the memory is known.
        """
        if state.certain and state.backoff_known:
            return
        waiting = cut.memory.copy()
        if self.rules.pod_backoff_base_ns:
            waiting.backoff = BackoffRecord(_MANY_FAILURES, at_ns)
            yield replace(cut, memory=waiting, guess="failures before the record could see")
        elif cut.job.view.spec.backoff_limit:
            waiting.requeues += cut.job.view.spec.backoff_limit
            yield replace(cut, memory=waiting, guess="retries before the record could see")
        if not state.certain:
            unseen = cut.memory.copy()
            unseen.expectations = PodExpectations(1, 0, at_ns)
            yield replace(cut, memory=unseen, guess="creations before the record could see")
            if cut.memory.finalizers:
                refused = cut.memory.copy()
                refused.finalizers = frozenset()
                yield replace(cut, memory=refused, guess="removals refused out of sight")

    def after_blind_times(self, state: State, at_ns: int) -> State:
        """The same after the blind times that had ended by then: the memory is not known."""
        listed = self.facts.blind.passed(at_ns)
        if listed <= state.listings_seen:
            return state
        known = not self.facts.may_have_failed(at_ns)
        return state.out_of_sight(listed, backoff_known=known)

    def odds(self, state: State, job: Revision[JobView], floor: int, newest: int) -> list[int]:
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
            counts = self._counts[uid] = PodCounts.of(self.history.pods, job.view)
        return [counts.odds(position, following) for position in range(floor, newest + 1)]

    def overlaps(self, state: State) -> bool:
        """Whether the next write lies in the midst of the last sync's: no later sync made it.

        One key is served by one worker. Only what a process had sent when it died may come between
        the writes of the next one.
        """
        if state.index >= state.written:
            return False
        last = self.history.writes[state.written - 1]
        return not self.facts.interrupted(last)

    def earliest_ns(self, state: State, cut: Cut) -> int:
        """When a sync that had seen so much can have begun at the earliest."""
        latest_ns = self.history.writes[state.index].recv_ns
        return min(max(cut.job.recv_ns, self.shown_ns(cut), state.not_before_ns), latest_ns)

    def began_after_ns(self, state: State, cut: Cut) -> int:
        """The same, as closely as clocks, and times where streams were late, are known."""
        return not_before_ns(self.facts.run_context, self.earliest_ns(state, cut))

    def stale(self, state: State, cut: Cut) -> Revision[JobView] | Revision[PodView] | None:
        """The oldest revision that the caches lack and must have had, were informers prompt."""
        history = self.history
        began_ns = max(cut.job.recv_ns, self.shown_ns(cut), state.not_before_ns)
        if cut.job.position + 1 < self.facts.jobs_shown(began_ns):
            return history.jobs[cut.job.position + 1]
        if cut.pods < min(self.facts.pods_shown(began_ns), len(history.pods)):
            return history.pods[cut.pods]
        return None

    def contradicted(self, state: State, cut: Cut) -> bool:
        """Whether other keys' syncs had seen more before one that saw this cut can have begun."""
        if self.facts.run_context.shown is None:
            return False
        at_ns = self.history.writes[state.index].recv_ns
        began_ns = max(cut.job.recv_ns, self.shown_ns(cut))
        jobs = self.facts.process_shown("jobs", at_ns, began_ns)
        return cut.job.position < jobs - 1 or cut.pods < self.facts.process_shown(
            "pods", at_ns, began_ns
        )

    def still_behind(self, state: State, cut: Cut) -> bool:
        """Whether handlers that were behind at the last sync may be so at the next one.

        They run as soon as the cache has changed, which is known to within the clocks' difference.
        """
        since_ns = self.began_after_ns(state, cut)
        return (
            bisect_right(self.history.pods_latest_ns, since_ns) <= state.handled < state.pod_floor
        )

    def shown_ns(self, cut: Cut) -> int:
        """When the newest pod revision of a cut was there."""
        return self.history.pods[cut.pods - 1].recv_ns if cut.pods else 0


def _awaited(memory: JobMemory) -> tuple[object, ...]:
    """All by which a sync can tell memories apart: below zero, nobody waits for deletions."""
    row = memory.expectations
    if row is not None and row.deletions < 0:
        row = PodExpectations(row.creations, 0, row.set_at_ns)
    return row, *memory.identity[1:]
