"""Attempts that need not be made again: what one explained, or that it explained nothing.

What an attempt at a cut finds does not depend on how old the caches of the syncs before it were.
On the way back from a dead end the same cuts are met after many of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from msgspec.structs import replace

from tracekit.check.replay.cuts import Cut
from tracekit.check.replay.history import History
from tracekit.check.replay.recorded_api import Assumptions
from tracekit.check.replay.search_state import Explanation, State
from tracekit.ports.cache.pods import PodCache
from tracekit.ports.job.memory import JobMemory
from tracekit.versions.job import JobRules


class MemoryAsked:
    """What of a memory the syncs of one key ask for."""

    def __init__(self, history: History, rules: JobRules) -> None:
        counting = rules.counting
        self._history = history
        self._by_retries = not (
            counting.backoff_limit_ignores_active_pods or counting.backoff_limit_counts_failed_pods
        )

    @cached_property
    def retries(self) -> bool:
        """Whether they ask how often the key was retried: up to 1.19, where a pod has failed."""
        return self._by_retries and any(
            revision.view.phase == "Failed" for revision in self._history.pods
        )

    def __call__(self, memory: JobMemory) -> tuple[object, ...]:
        """All by which a sync can tell memories apart, hashable."""
        return memory.identity if self.retries else memory.identity_without_requeues


class Recall:
    """The attempts of one key."""

    def __init__(self, asked: MemoryAsked) -> None:
        self.asked = asked
        self._failed: set[object] = set()
        self._explained: dict[object, Explanation] | None = None
        #: How many explanations were known already.
        self.hits = 0

    def attempt(self, state: State, cut: Cut, assume: Assumptions) -> tuple[object, ...]:
        """What an attempt is known by: all that decides whether it explains something."""
        return (state.index, state.done, state.not_before_ns, cut.job.position, cut.pods,
                self.asked(cut.memory), assume, cut.handled == cut.pods)  # fmt: skip

    @contextmanager
    def turning_back(self) -> Iterator[None]:
        """Keep the explanations, too, which are large: the way forward seldom asks for them."""
        self._explained = {}
        try:
            yield
        finally:
            self._explained = None

    def failed(self, attempt: tuple[object, ...]) -> bool:
        """Whether this attempt explained nothing."""
        return attempt in self._failed

    def known(self, attempt: tuple[object, ...], state: State, cut: Cut) -> Explanation | None:
        """What this attempt explained after a state that differs in its floors at most."""
        if not self._explained:
            return None
        found = self._explained.get((*attempt, *_context(state, cut)))
        if found is None or found.began is None:
            return None
        self.hits += 1
        after = replace(found.state, cache=cut.cache.copy())
        return replace(found, began=replace(found.began, state=state), state=after)

    def keep(
        self, attempt: tuple[object, ...], state: State, cut: Cut, found: Explanation | None
    ) -> Explanation | None:
        """Remember what an attempt explained, which is returned."""
        if found is None:
            self._failed.add(attempt)
        elif self._explained is not None:
            # What the cache holds follows from the cut.
            kept = replace(found, state=replace(found.state, cache=PodCache()))
            self._explained[(*attempt, *_context(state, cut))] = kept
        return found


def _context(state: State, cut: Cut) -> tuple[object, ...]:
    """What else shows in an explanation and in the state after it."""
    own = state.own_status
    silent = [
        (sync.job.position, sync.pod_cut, sync.error, sync.timer_ns, sync.events, sync.refused,
         sync.earliest_ns, sync.retries)
        for sync in state.silent
    ]  # fmt: skip
    return (own.position if own is not None else -1, state.own_pods, state.certain,
            state.backoff_known, state.retries, state.restarts_seen, state.listings_seen,
            state.heuristic, state.memory.backoff, cut.memory.requeues, cut.handled, cut.guess,
            tuple(silent))  # fmt: skip
