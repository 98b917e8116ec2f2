"""Depth-first search through the syncs of a key: turning back from dead ends, within a bound.

What a sync can have seen is a choice; a later write may show that an earlier choice was wrong. From
a dead end the search goes back to the choices before it, first with little effort and then, nearer
to the dead end, with more. A state from which a dead end was reached once is not entered again. The
bound is counted in attempts, not in time, so that runs agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


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


def next_open(index: int, done: frozenset[int]) -> tuple[int, frozenset[int]]:
    """The next write from `index` on that is not done, and those done that lie beyond it."""
    if index not in done:
        return index, done
    while index in done:
        index += 1
    return index, frozenset([position for position in done if position > index])


@dataclass(slots=True)
class Choice(Generic[S, E]):
    """A state, and the explanations of its next write that have not been tried."""

    state: S
    options: Iterator[E]
    length: int  # of the trail before it


@dataclass(slots=True)
class Trail(Generic[S, E]):
    """The way so far, and the choices on it that can still be made otherwise."""

    entries: list[E] = field(default_factory=list)
    choices: list[Choice[S, E]] = field(default_factory=list)
    #: Those that the last dead end without a way past it had.
    left: list[Choice[S, E]] = field(default_factory=list)

    def choose(self, choice: Choice[S, E]) -> E | None:
        """Take the next option of a choice; None if there is none left."""
        found = next(choice.options, None)
        if found is not None:
            del self.entries[choice.length :]
            self.entries.append(found)
        return found

    def keep(self, before: Sequence[Choice[S, E]], length: int) -> None:
        """Go on with the choices before a place, too: the next dead end may ask for these."""
        self.choices[:0] = [choice for choice in before if choice.length < length]


@dataclass(slots=True)
class DeadEnd(Generic[S, E]):
    """A state whose next write nothing explains, and the way that led there."""

    state: S
    entries: list[E]
    on_the_way: list[tuple[S, int]]  # each with how many entries came before it; itself last
    #: Efforts of which it is known that nothing leads past it with them.
    closed: set[int] = field(default_factory=set)

    def near(self, reach: int) -> list[tuple[S, int]]:
        """It, and so many states before it."""
        return self.on_the_way[-1 - reach :]

    def choices(self, reach: int, options: Callable[[S], Iterator[E]]) -> list[Choice[S, E]]:
        """All that can be made otherwise, from as far back."""
        return [Choice(state, options(state), length) for state, length in self.near(reach)]


class Backtracking(Generic[S, E]):
    """The search; a controller's walk says what may become of a write and what a sync leaves.

    `efforts` are levels of what is taken into account, the least first; `reach` says for each how
    many earlier choices a dead end may ask for another way.
    """

    efforts: Sequence[int] = ()
    reach: Mapping[int, int] = {}

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
        choice = Choice(state, self.options(state, least), len(trail.entries))
        found = trail.choose(choice)
        if found is None:
            return self._turn_back(trail, state)
        trail.choices.append(choice)
        del trail.choices[: -self.reach[least]]
        return self.after(found, state, trail.entries)

    def doubted(self, trail: Trail[S, E]) -> Choice[S, E] | None:
        """The choice that is the likeliest to have been wrong before a dead end, if one stands out.

        It is made otherwise before all others.
        """
        del trail
        return None

    def otherwise(self, state: S, effort: int) -> Iterator[E]:
        """What may become of the next write instead of what was doubted."""
        return self.options(state, effort)

    def heuristics(self, trail: Trail[S, E], dead: S) -> Sequence[Choice[S, E]]:
        """Choices to begin at with the options of a heuristic: the dead end says what lacks."""
        del trail, dead
        return ()

    def by_heuristic(self, state: S) -> Iterator[E]:
        """What may become of the next write, first what leads to what was missing."""
        return self.options(state, self.efforts[0])

    def _by_a_heuristic(self, trail: Trail[S, E], dead: S) -> S | None:
        """Past the dead end by what it tells itself; the trail is left where that went."""
        entries, before = trail.entries, trail.choices
        for choice in self.heuristics(trail, dead):
            trail.entries, trail.choices = list(entries), [choice]
            allowed = self.attempts_made() + self.allowance(dead) // 2
            found = self._descend(trail, self.by_heuristic, dead.index, allowed)
            if found is not None:
                trail.keep(before, choice.length)
                return found
        trail.entries = entries
        return None

    def _turn_back(self, trail: Trail[S, E], dead: S) -> S | None:
        """From a dead end to another way past it; None, with the trail as it was, if none is.

        Its choices are then `left`, for a walk that finds the write to be nobody's.
        """
        entries, before = list(trail.entries), trail.choices
        states = [(choice.state, choice.length) for choice in trail.choices]
        doubted = self.doubted(trail)
        guessed = self._by_a_heuristic(trail, dead)
        if guessed is not None:
            return guessed
        allowed = self.attempts_made() + self.allowance(dead)
        if doubted is not None:
            for effort in self.efforts:
                trail.entries = list(entries)
                options = self.otherwise(doubted.state, effort)
                trail.choices = [Choice(doubted.state, options, doubted.length)]
                half = (allowed + self.attempts_made()) // 2
                found = self._descend(trail, self._options(effort), dead.index, half)
                if found is not None:
                    trail.keep(before, doubted.length)
                    return found
        trail.choices = before
        end = DeadEnd(dead, entries, [*states, (dead, len(entries))])
        found = self.past(trail, end, allowed - self.attempts_made())
        if found is not None:
            return found
        trail.entries, trail.choices = entries, []
        trail.left = [Choice(state, iter(()), length) for state, length in states]
        return None

    def past(self, trail: Trail[S, E], end: DeadEnd[S, E], allowed: int) -> S | None:
        """From the choices before a dead end past it, with one effort after the other."""
        before = trail.choices
        # None may use up what the others need: the first goes on with what they left.
        shares = [(effort, number + 1) for number, effort in enumerate(self.efforts)]
        began = self.attempts_made()
        for effort, share in [*shares, (self.efforts[0], len(shares))]:
            if effort in end.closed:
                continue
            limit = began + allowed * share // len(shares)
            found = self.from_choices(trail, end, effort, limit)
            if found is not None:
                trail.keep(before, end.near(self.reach[effort])[0][1])
                return found
            if self.learned():
                break
        return None

    def from_choices(
        self,
        trail: Trail[S, E],
        end: DeadEnd[S, E],
        effort: int,
        limit: int,
        leads: Callable[[S], bool] | None = None,
    ) -> S | None:
        """Past a dead end with one effort; if nothing is left to be tried, that is noted."""
        options = self._options(effort)
        trail.entries = list(end.entries)
        trail.choices = end.choices(self.reach[effort], options)
        found = self._descend(trail, options, end.state.index, limit, leads)
        if found is None and not trail.choices:
            end.closed.add(effort)
        return found

    def _options(self, effort: int) -> Callable[[S], Iterator[E]]:
        return lambda state: self.options(state, effort)

    def _descend(
        self,
        trail: Trail[S, E],
        options: Callable[[S], Iterator[E]],
        goal: int,
        allowed: int,
        leads: Callable[[S], bool] | None = None,
    ) -> S | None:
        """Depth first, until the write at `goal` is explained; at most `allowed` attempts.

        Where it is known which states lead there, the others are not gone on from.
        """
        entered: set[object] = set()
        shut = {id(c) for c in trail.choices if leads is not None and not leads(c.state)}
        while trail.choices and self.attempts_made() < allowed:
            choice = trail.choices[-1]
            found = trail.choose(choice) if id(choice) not in shut else None
            if found is None:
                trail.choices.pop()
                continue
            state = self.after(found, choice.state, trail.entries)
            if state.index > goal:
                return state
            if state.identity not in entered and (leads is None or leads(state)):
                entered.add(state.identity)
                trail.choices.append(Choice(state, options(state), len(trail.entries)))
        return None
