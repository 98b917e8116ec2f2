"""Search through the syncs of a key: turning back from dead ends by price, within a bound.

What a sync can have seen is a choice; a later write may show that an earlier choice was wrong. From
a dead end all states on the way there are gone on from once more, and those that they lead to. One
queue holds them: those first whose way takes the least that is rare, and of these the nearest to
the dead end. What another state stands for is not gone on from. The bound is counted in attempts,
not in time, so that runs agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Generic, NamedTuple, Protocol, TypeVar


class SearchState(Protocol):
    """Where a search stands after some syncs."""

    @property
    def index(self) -> int:
        """The next write to explain."""
        ...

    @property
    def identity(self) -> tuple[object, ...]:
        """All by which two states can be told apart."""
        ...


S = TypeVar("S", bound=SearchState)
E = TypeVar("E")


#: How many earlier choices a dead end may ask for another way. One further back is never
#: reconsidered: what depends on it alone would be told as a divergence.
REACH = 64


def next_open(index: int, done: frozenset[int]) -> tuple[int, frozenset[int]]:
    """The next write from `index` on that is not done, and those done that lie beyond it."""
    if index not in done:
        return index, done
    while index in done:
        index += 1
    return index, frozenset([position for position in done if position > index])


class Choice(NamedTuple, Generic[S]):
    """A state whose next write may be explained otherwise."""

    state: S
    length: int  # of the trail before it


@dataclass(slots=True)
class Trail(Generic[S, E]):
    """The way so far, and the choices on it that can still be made otherwise."""

    entries: list[E] = field(default_factory=list)
    choices: list[Choice[S]] = field(default_factory=list)
    #: Those that the last dead end without a way past it had.
    left: list[Choice[S]] = field(default_factory=list)


@dataclass(slots=True)
class _Open(Generic[S, E]):
    """A state to go on from: the way there, what that costs, and what has not been tried yet."""

    state: S
    length: int  # of the trail before it
    efforts: Sequence[int]  # to go on with, one after the other
    before: _Open[S, E] | None = None
    entries: Sequence[E] = ()  # since the state before
    rarest: int = 0  # the rarest effort on the way
    number: int = 0  # of the effort that it is gone on with
    options: Iterator[E] | None = None

    @property
    def effort(self) -> int:
        """What it is gone on with."""
        return self.efforts[self.number]

    @property
    def price(self) -> int:
        """What a way through it costs: as much as the rarest effort that it takes."""
        return max(self.rarest, self.effort)

    def followed_by(self, state: S, entries: Sequence[E]) -> _Open[S, E]:
        """The state that these entries lead to from here."""
        length = self.length + len(entries)
        return _Open(state, length, self.efforts, self, entries, self.price)

    def option(self, options: Callable[[S, int], Iterator[E]]) -> E | None:
        """What has not been tried yet; None where nothing is left of this effort."""
        if self.options is None:
            self.options = options(self.state, self.effort)
        return next(self.options, None)

    def way(self) -> list[_Open[S, E]]:
        """The states that led here, itself last."""
        found, state = [self], self.before
        while state is not None:
            found.append(state)
            state = state.before
        return found[::-1]


class _Ahead(Generic[S, E]):
    """The states to go on from: the cheapest first, and of these the one that is farthest."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, int, int, _Open[S, E]]] = []
        self._order = count()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._queue)

    def add(self, node: _Open[S, E]) -> None:
        """Add a state."""
        heappush(self._queue, (node.price, -node.state.index, next(self._order), node))

    def cheapest(self) -> _Open[S, E]:
        """Take the one to go on from."""
        return heappop(self._queue)[-1]


class Backtracking(Generic[S, E]):
    """The search; a controller's walk says what may become of a write and what a sync leaves.

    `efforts` are levels of what is taken into account, the least first; `reach` says how many
    earlier choices a dead end may ask for another way.
    """

    efforts: Sequence[int] = ()
    reach = REACH

    def __init__(
        self, named: Mapping[int, str], find_foreign: Callable[[], Mapping[int, str]]
    ) -> None:
        """Both give writes that somebody else made, by index, with the evidence.

        `named` are those of which the record itself says so; `find_foreign` is asked only when
        something cannot be explained: evidence is dear to read.
        """
        self.foreign = named
        self._find_foreign: Callable[[], Mapping[int, str]] | None = find_foreign

    def options(self, state: S, effort: int) -> Iterator[E]:
        """What may become of the next write, the likeliest first."""
        raise NotImplementedError

    def after(self, found: E, state: S, entries: list[E]) -> S:
        """The state that an option leads to; what needs no choice then joins the entries."""
        raise NotImplementedError

    def attempts_made(self) -> int:
        """How many attempts the key has cost."""
        raise NotImplementedError

    def allowance(self, dead: S) -> int:
        """How many more turning back from one write may cost."""
        raise NotImplementedError

    def class_of(self, state: S) -> Hashable:
        """What two states must have in common for one to stand for the other."""
        return state.identity

    def stands_for(self, one: S, other: S) -> bool:
        """Whether a state leads wherever another one of its class does."""
        del one, other
        return True

    def heuristics(self, trail: Trail[S, E], dead: S) -> Sequence[Choice[S]]:
        """States to begin at by heuristic: the dead end itself says what lacks."""
        del trail, dead
        return ()

    def by_heuristic(self, state: S, effort: int) -> Iterator[E]:
        """What may become of the next write, first what leads to what was missing."""
        return self.options(state, effort)

    def learned(self) -> bool:
        """Ask, once, whether others made some of the writes: then the walk begins anew."""
        if self._find_foreign is None:
            return False
        found, self._find_foreign = self._find_foreign(), None
        more = len(found.keys() - self.foreign.keys())
        self.foreign = {**found, **self.foreign}
        return more > 0

    def step(self, trail: Trail[S, E], state: S) -> S | None:
        """The state after the next write's explanation; None if it has none."""
        least = self.efforts[0]
        found = next(self.options(state, least), None)
        if found is None:
            return self._turn_back(trail, state)
        trail.choices.append(Choice(state, len(trail.entries)))
        del trail.choices[: -self.reach]
        trail.entries.append(found)
        return self.after(found, state, trail.entries)

    def _turn_back(self, trail: Trail[S, E], dead: S) -> S | None:
        """From a dead end to another way past it; None, with the entries as they were, if none is.

        Its choices are then `left`, for a walk that finds the write to be nobody's.
        """
        for choice in self.heuristics(trail, dead):
            most = self.allowance(dead) // 2
            found = self._cheapest(
                trail, [choice], dead.index, most, self.efforts[:1], self.by_heuristic
            )
            if found is not None:
                return found
        way = [*trail.choices, Choice(dead, len(trail.entries))]
        found = self.past(trail, way, self.allowance(dead))
        if found is None:
            self.learned()
            trail.left, trail.choices = way, []
        return found

    def past(self, trail: Trail[S, E], way: Sequence[Choice[S]], most: int) -> S | None:
        """From the choices before a dead end, the last of these, past it."""
        return self._cheapest(trail, way, way[-1].state.index, most, self.efforts, self.options)

    def _cheapest(
        self,
        trail: Trail[S, E],
        starts: Sequence[Choice[S]],
        goal: int,
        most: int,
        efforts: Sequence[int],
        options: Callable[[S, int], Iterator[E]],
    ) -> S | None:
        """The state after the cheapest way past the dead end.

        Each effort may use up its share of the attempts, and what those before it left.
        """
        began = self.attempts_made()
        met: defaultdict[Hashable, list[S]] = defaultdict(list)
        ahead = _Ahead[S, E]()
        for state, length in reversed(starts):
            met[self.class_of(state)].append(state)
            ahead.add(_Open(state, length, efforts))
        while ahead and (made := self.attempts_made() - began) < most:
            node = ahead.cheapest()
            if node.effort > efforts[0] and self.learned():
                return None
            share = 1 + efforts.index(node.price)
            option = node.option(options) if made < most * share // len(efforts) else None
            if option is None:
                node.number, node.options = node.number + 1, None
            if node.number < len(node.efforts):
                ahead.add(node)
            if option is None:
                continue
            entries = [option]
            state = self.after(option, node.state, entries)
            if state.index > goal:
                _go(trail, node, entries)
                return state
            # What was met before stays, though this one may stand for it: it is the likelier way.
            known = met[self.class_of(state)]
            if not any(self.stands_for(other, state) for other in known):
                known.append(state)
                ahead.add(node.followed_by(state, entries))
        return None


def _go(trail: Trail[S, E], last: _Open[S, E], entries: Sequence[E]) -> None:
    """Have the trail lead along a way, and by these entries from its end.

    The next dead end may ask for the choices before it, too.
    """
    way = last.way()
    del trail.entries[way[0].length :]
    for node in way:
        trail.entries += node.entries
    trail.entries += entries
    before = [choice for choice in trail.choices if choice.length < way[0].length]
    trail.choices = [*before, *(Choice(node.state, node.length) for node in way)]
