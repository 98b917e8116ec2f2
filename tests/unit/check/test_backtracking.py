"""Past a dead end by the cheapest way: a graph of states in, the way that was taken out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tracekit.check.replay.backtracking import Backtracking, Choice, Trail

PLAIN, RARE, RARER = 0, 1, 2
REACH = 3


@dataclass(frozen=True)
class At:
    """A state: the next write, which state of these it is, and how old its caches are."""

    index: int
    name: str = ""
    age: int = 0

    @property
    def identity(self) -> tuple[object, ...]:
        return self.index, self.name, self.age


class Step(NamedTuple):
    """What may become of a write, and with which effort that is found."""

    to: At
    effort: int = PLAIN


class Ways(Backtracking[At, Step]):
    """Goes along a graph, and keeps what was asked for."""

    efforts = (PLAIN, RARE, RARER)
    reach = REACH

    def __init__(self, ways: Mapping[At, list[Step]], most: int = 100) -> None:
        super().__init__({}, self._ask)
        self.ways, self.most = ways, most
        self.asked: list[tuple[At, int]] = []
        self.trail: Trail[At, Step] = Trail()
        self.tried = self.evidence = 0

    def _ask(self) -> Mapping[int, str]:
        self.evidence += 1
        return {}

    def options(self, state: At, effort: int) -> Iterator[Step]:
        self.asked.append((state, effort))
        for step in self.ways.get(state, ()):
            if step.effort <= effort:
                self.tried += 1
                yield step

    def after(self, found: Step, state: At, entries: list[Step]) -> At:
        del state, entries
        return found.to

    def attempts_made(self) -> int:
        return self.tried

    def allowance(self, dead: At) -> int:
        del dead
        return self.most

    def class_of(self, state: At) -> tuple[int, str]:
        return state.index, state.name

    def stands_for(self, one: At, other: At) -> bool:
        return one.age >= other.age

    def past(self, trail: Trail[At, Step], way: Sequence[Choice[At]], most: int) -> At | None:
        self.asked.clear()
        return super().past(trail, way, most)

    def walk(self, until: int) -> list[At] | None:
        """The states on the way that explains all writes before `until`."""
        state: At | None = At(0)
        while state is not None and state.index < until:
            state = self.step(self.trail, state)
        return None if state is None else [entry.to for entry in self.trail.entries]


def along(*names: str) -> dict[At, list[Step]]:
    """The way that the likeliest options lead, to a dead end: a state a write, from the first."""
    states = [At(0), *(At(number, name) for number, name in enumerate(names, 1))]
    return {one: [Step(other)] for one, other in pairwise(states)}


def test_another_way_is_gone_from_the_nearest_state_that_has_one() -> None:
    ways = along("a", "b")
    ways[At(0)].append(Step(At(1, "far")))
    ways[At(1, "a")].append(Step(At(2, "near")))
    ways |= {At(1, "far"): [Step(At(2, "near"))], At(2, "near"): [Step(At(3))]}
    assert Ways(ways).walk(3) == [At(1, "a"), At(2, "near"), At(3)]


def test_what_is_rare_costs_more_than_to_go_back_far() -> None:
    ways = along("a", "b")
    ways[At(2, "b")] = [Step(At(3, "rare"), RARE)]
    ways[At(0)].append(Step(At(1, "far")))
    ways |= {At(1, "far"): [Step(At(2, "c"))], At(2, "c"): [Step(At(3, "plain"))]}
    assert Ways(ways).walk(3) == [At(1, "far"), At(2, "c"), At(3, "plain")]


def test_two_rare_steps_cost_less_than_one_that_is_rarer() -> None:
    ways = along("a")
    ways[At(1, "a")] = [Step(At(2, "rarer"), RARER)]
    ways[At(0)].append(Step(At(1, "b"), RARE))
    ways[At(1, "b")] = [Step(At(2, "c"), RARE)]
    assert Ways(ways).walk(2) == [At(1, "b"), At(2, "c")]


def test_what_is_farther_back_than_the_reach_is_not_asked() -> None:
    states = [At(0), *(At(number, "on the way") for number in range(1, 6))]
    for back in range(1, 6):
        ways = along(*(state.name for state in states[1:]))
        ways[states[5 - back]].append(Step(At(5, "end"), RARE))
        ways[At(5, "end")] = [Step(At(6))]
        assert (Ways(ways).walk(6) is not None) == (back <= REACH)


def test_a_state_is_gone_on_from_if_no_other_stands_for_it() -> None:
    newer, oldest, older = (At(1, "a", age) for age in (1, 3, 2))
    walker = Ways({At(0): [Step(newer), Step(oldest), Step(older)]})
    assert walker.walk(2) is None
    assert [state for state, effort in walker.asked if effort == PLAIN] == [newer, At(0), oldest]


def test_ways_that_go_round_come_to_an_end_and_leave_the_way_as_it_was() -> None:
    ways = along("a")
    ways[At(1, "a")] = [Step(At(1, "b"), RARE)]
    ways[At(1, "b")] = [Step(At(1, "a"), RARE)]
    walker = Ways(ways)
    assert walker.walk(2) is None
    assert walker.trail.entries == [Step(At(1, "a"))]
    assert walker.tried < walker.most
    assert [choice.state for choice in walker.trail.left] == [At(0), At(1, "a")]


def test_a_later_dead_end_may_go_back_beyond_an_earlier_one() -> None:
    ways = along("a", "b")
    ways[At(1, "a")].append(Step(At(2, "c")))
    ways[At(2, "c")] = [Step(At(3, "d"))]
    ways[At(0)].append(Step(At(1, "other")))
    ways |= {At(1, "other"): [Step(At(2, "e"))], At(2, "e"): [Step(At(3, "f"))]}
    ways[At(3, "f")] = [Step(At(4))]
    assert Ways(ways).walk(4) == [At(1, "other"), At(2, "e"), At(3, "f"), At(4)]


def test_no_effort_uses_up_what_the_rarer_one_needs() -> None:
    ways = along("a")
    ways[At(0)] += [Step(At(1, f"in vain {number}")) for number in range(40)]
    ways[At(1, "a")] = [Step(At(2), RARE)]
    assert Ways(ways, most=20).walk(2) == [At(1, "a"), At(2)]


def test_evidence_is_read_once_and_before_what_is_rare_is_tried() -> None:
    ways = along("a")
    ways[At(1, "a")] = [Step(At(2), RARE)]
    walker = Ways(ways)
    assert walker.walk(2) is not None
    assert walker.evidence == 1
    plain = along("a", "b")
    plain[At(1, "a")].append(Step(At(2, "c")))
    plain[At(2, "c")] = [Step(At(3))]
    walker = Ways(plain)
    assert walker.walk(3) is not None
    assert walker.evidence == 0
