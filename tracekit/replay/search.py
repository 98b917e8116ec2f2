"""The `observed` schedule: does some admissible cut explain each write of one key?

Syncs are anchored at the observed writes. For each, the Job's revision and the position in the pod
stream that the controller's caches had reached are searched, newest first (`cuts`); the position
never goes back from one sync to the next. A cut explains a write when the ported controller, with
the memory that the earlier syncs left it, does exactly what was observed: the same creations,
deletions and patches, and the same status, down to the field.

The search is a depth-first walk over the syncs of one key: when a sync finds no cut, the one before
it is asked for an earlier one. What no cut explains is a divergence; the walk then takes the
nearest attempt as what happened and goes on, so that one lie is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tracekit.cache.pods import PodCache
from tracekit.controllers.job.memory import JobMemory
from tracekit.replay.cuts import CutSearch
from tracekit.replay.history import Write, WriteKind
from tracekit.replay.key_facts import KeyFacts
from tracekit.replay.nearest import nearest
from tracekit.replay.search_state import Apart, KeyReplay, State, Trail, WriteApart


class KeyWalker:
    """Walks through the writes of one key."""

    def __init__(
        self,
        facts: KeyFacts,
        find_foreign: Callable[[], Mapping[int, str]],
        named: Mapping[int, str] | None = None,
    ) -> None:
        """`find_foreign` names the writes that somebody else made, by index, with the evidence.

        It is asked only when something cannot be explained: evidence is dear to read. `named` are
        those of which the record itself says so.
        """
        self.facts = facts
        self.history = facts.history
        self.search = CutSearch(facts)
        self.foreign: Mapping[int, str] = named or {}
        self._find_foreign = find_foreign

    def run(self) -> KeyReplay:
        """Explain every write of the key."""
        found = self._walk()
        if found is None:
            # Something is not explained: perhaps because it is somebody else's work.
            found_foreign = self._find_foreign()
            self.foreign = {**found_foreign, **self.foreign}
            found = self._walk() if found_foreign else None
        if found is None:
            # Rare enough to be no reason for a cut as long as any other is left.
            found = self._walk(handlers_lag=True)
        if found is None:
            found = self._walk(stop_at_divergence=False)
            assert found is not None  # noqa: S101 - it does not stop
        return found

    def _walk(
        self, *, handlers_lag: bool = False, stop_at_divergence: bool = True
    ) -> KeyReplay | None:
        """Walk through the writes; None if a divergence stopped it."""
        writes = self.history.writes
        hidden = {write.index for write in writes if write.hidden}
        state = State(0, JobMemory(), PodCache(), 0, 0, frozenset(self.foreign) | hidden)
        trail = Trail()
        while True:
            state = self._skip_done(state)
            if state.index >= len(writes):
                return trail.result(self.history, state)
            state = self._restarted(state)
            write = writes[state.index]
            options = self.search.explanations(state, handlers_lag=handlers_lag)
            apart = self._without_sync(write)
            found = next(options, None) if apart is None else None
            if apart is None and found is None:
                apart = self._without_explanation(write, state)
            if apart is not None:
                trail.entries.append(apart)
                state = replace(state, done=state.done | {write.index})
                continue
            if found is None:
                found = trail.turn_back(state)
            else:
                trail.step(state, options, found)
            if found is None and stop_at_divergence:
                return None
            if found is None:
                found = nearest(self.search, trail.give_up(state))
                trail.entries.append(found)
            state = found.state

    def _skip_done(self, state: State) -> State:
        index = state.index
        while index < len(self.history.writes) and index in state.done:
            index += 1
        if index == state.index:
            return state
        done = frozenset(position for position in state.done if position >= index)
        return replace(state, index=index, done=done)

    def _restarted(self, state: State) -> State:
        """A new controller manager starts with an empty memory; a blind time leaves it unknown."""
        restarts, blind_until_ns = self.facts.run_context.restarts, self.facts.blind_until_ns
        if not restarts and not blind_until_ns:
            return state
        at_ns = self.history.writes[state.index].recv_ns
        passed = sum(1 for restart in restarts if restart.until_ns <= at_ns)
        if passed != state.restarts_seen:
            state = replace(state, memory=JobMemory(), restarts_seen=passed, own_pods=0)
        listed = sum(1 for until_ns in blind_until_ns if until_ns <= at_ns)
        if listed != state.listings_seen:
            state = replace(state, memory=JobMemory(), listings_seen=listed, certain=False)
        return state

    def _without_sync(self, write: Write) -> WriteApart | None:
        """Writes that need no sync of the key: the orphan worker's, the garbage collector's."""
        if write.kind is WriteKind.POD_DELETE:
            job = self.history.job_before(write.rv)
            gone = job is not None and (job.type == "DELETED" or job.view.deleted_ns is not None)
            told = self.facts.owned_up(write)
            return WriteApart(Apart.FOREIGN, write) if gone and not told else None
        if write.kind is not WriteKind.FINALIZER_REMOVAL:
            return None
        why = self.facts.orphan_reason(write)
        return None if why is None else WriteApart(Apart.ORPHAN_WORKER, write, why)

    def _without_explanation(self, write: Write, state: State) -> WriteApart | None:
        """What else a write may be that no cut explains."""
        if self.facts.may_be_foreign(write):
            if self.facts.owned_up(write):
                early = nearest(self.search, state)
                if all(problem.verdict == "early" for problem in early.problems):
                    return None
            return WriteApart(Apart.FOREIGN, write)
        if not state.certain:
            return WriteApart(Apart.UNKNOWABLE, write, self.facts.why_uncertain(write))
        return None
