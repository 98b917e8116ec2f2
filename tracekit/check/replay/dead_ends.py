"""Which states lead past a dead end: all of them are looked through, each class of them once.

A sync decides by its memory and by what its caches hold. Of two states with the same memory, the
one whose caches may be older admits every sync that the other one does: of each memory class only
the oldest states are gone on from. What none of these leads to, no choice of caches explains.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from tracekit.check.replay.handlers import may_tell
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.recall import MemoryAsked
from tracekit.check.replay.search_state import State

#: In so many pod revisions the next one is looked for that changes the memory. Where it comes later
#: two states may count as different that are not: that costs time and nothing else.
_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class Leads:
    """Which states lead past a write, by their memory classes."""

    class_of: Callable[[State], Hashable]
    known: frozenset[Hashable]
    leading: frozenset[Hashable]

    def __call__(self, state: State) -> bool:
        """Whether a state leads there, or may: nothing is known of classes that were not met."""
        same = self.class_of(state)
        return same in self.leading or same not in self.known


def look_ahead(
    starts: Sequence[State],
    following: Callable[[State], Iterator[State]],
    class_of: Callable[[State], Hashable],
    may_go_on: Callable[[], bool],
) -> Leads | None:
    """Which states lead past the next write of the last of `starts`.

    `following` gives all states that may come next after one; `may_go_on` is asked after each.
    None if it said no: then nothing is known.
    """
    goal = starts[-1].index
    known: set[Hashable] = set()
    leading: set[Hashable] = set()
    before: defaultdict[Hashable, set[Hashable]] = defaultdict(set)
    ahead: defaultdict[int, _Oldest] = defaultdict(_Oldest)
    for state in starts:
        ahead[state.index].add(class_of(state), state)
    while ahead:
        index = min(ahead)
        for same, state in ahead[index].each():
            known.add(same)
            for after in following(state):
                if not may_go_on():
                    return None
                if after.index > goal:
                    leading.add(same)
                    continue
                later = class_of(after)
                before[later].add(same)
                ahead[after.index].add(later, after)
        del ahead[index]
    back = list(leading)
    while back:
        earlier = before[back.pop()] - leading
        leading |= earlier
        back += earlier
    return Leads(class_of, frozenset(known), frozenset(leading))


class _Oldest:
    """The states at one write for which no other one of their class stands."""

    def __init__(self) -> None:
        self._oldest: defaultdict[Hashable, list[State]] = defaultdict(list)
        self._ahead: deque[tuple[Hashable, State]] = deque()

    def add(self, same: Hashable, state: State) -> None:
        """Add a state of this class, if none stands for it."""
        oldest = self._oldest[same]
        if any(stands_for(known, state) for known in oldest):
            return
        oldest[:] = [known for known in oldest if not stands_for(state, known)]
        oldest.append(state)
        self._ahead.append((same, state))

    def each(self) -> Iterator[tuple[Hashable, State]]:
        """All of them, those among them that are added on the way."""
        while self._ahead:
            same, state = self._ahead.popleft()
            if any(known is state for known in self._oldest[same]):
                yield same, state


def stands_for(one: State, other: State) -> bool:
    """Whether a state admits all syncs that another one of its memory class does."""
    return (
        one.job_floor <= other.job_floor
        and one.pod_floor <= other.pod_floor
        and len(one.silent) <= len(other.silent)
    )


def memory_class(facts: KeyEvidence, asked: MemoryAsked, state: State) -> Hashable:
    """All by which syncs can tell two states apart, but for how old their caches may be."""
    pods, handled = facts.history.pods, state.handled
    end = min(len(pods), handled + _LOOKED_AT)
    while handled < end and not may_tell(pods[handled], state.memory):
        handled += 1
    own, jobs = state.own_status, facts.history.jobs
    return (
        state.index,
        state.done,
        handled,
        # Whether handlers that were behind are so still depends on how old the caches are.
        (state.handled, state.pod_floor) if state.handled < state.pod_floor else None,
        own.position if own is not None else -1,
        jobs[state.job_floor].view.uid if jobs else "",
        state.own_pods,
        max(0, state.written - state.index),
        state.not_before_ns,
        state.restarts_seen,
        state.listings_seen,
        state.certain,
        state.backoff_known,
        asked(state.memory),
        state.heuristic,
    )
