"""Which states lead past a dead end: states in, the classes of them that lead on out."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.check.replay.dead_ends import Leads, look_ahead
from tracekit.check.replay.search_state import State
from tracekit.ports.cache.pods import PodCache
from tracekit.ports.job.memory import JobMemory

#: The write that nothing explains.
GOAL = 1


def state(index: int, memory: int, pods: int = 0, jobs: int = 0) -> State:
    """A state at a write; memories of different numbers differ."""
    return State(index, JobMemory(requeues=memory), PodCache(), pods, jobs)


def class_of(one: State) -> tuple[int, int]:
    return one.index, one.memory.requeues


class Ways:
    """Which states follow after those of a class, and after which states that was asked."""

    def __init__(self, ways: dict[tuple[int, int], list[State]], most: int = 100) -> None:
        self.ways = ways
        self.asked: list[State] = []
        self.left = most

    def following(self, one: State) -> Iterator[State]:
        self.asked.append(one)
        yield from self.ways.get(class_of(one), ())

    def may_go_on(self) -> bool:
        self.left -= 1
        return self.left >= 0

    def ahead(self, *starts: State) -> Leads | None:
        return look_ahead(starts, self.following, class_of, self.may_go_on)


def test_what_leads_past_the_dead_end_is_known_and_all_that_leads_there() -> None:
    ways = Ways({
        (0, 0): [state(1, 1), state(1, 2)],
        (1, 2): [state(GOAL + 1, 0)],
    })  # fmt: skip
    leads = ways.ahead(state(0, 0), state(GOAL, 1))
    assert leads is not None
    assert [leads(state(*one)) for one in ((0, 0), (1, 1), (1, 2))] == [True, False, True]


def test_a_dead_end_that_nothing_mends_is_known_as_one() -> None:
    leads = Ways({(0, 0): [state(1, 1), state(1, 2)]}).ahead(state(0, 0), state(GOAL, 1))
    assert leads is not None
    assert not leads.leading
    assert not leads(state(0, 0))


def test_of_one_memory_only_the_oldest_caches_are_gone_on_from() -> None:
    newer, oldest = state(1, 1, pods=5), state(1, 1, pods=3)
    ways = Ways({(0, 0): [newer, oldest, state(1, 1, pods=4)]})
    ways.ahead(state(0, 0), state(GOAL, 1, pods=9))
    assert [one.pod_floor for one in ways.asked] == [0, 3]


def test_caches_of_which_each_is_older_in_one_thing_are_both_gone_on_from() -> None:
    ways = Ways({})
    ways.ahead(state(1, 1, pods=5, jobs=1), state(GOAL, 1, pods=3, jobs=2))
    assert [(one.job_floor, one.pod_floor) for one in ways.asked] == [(1, 5), (2, 3)]


def test_a_sync_without_a_write_is_a_way_at_the_same_write() -> None:
    ways = Ways({(1, 1): [state(1, 2)], (1, 2): [state(GOAL + 1, 0)]})
    leads = ways.ahead(state(GOAL, 1))
    assert leads is not None
    assert leads(state(1, 1))


def test_ways_that_go_round_come_to_an_end() -> None:
    ways = Ways({(1, 1): [state(1, 2)], (1, 2): [state(1, 1)]})
    leads = ways.ahead(state(GOAL, 1))
    assert leads is not None
    assert not leads.leading


def test_of_states_that_were_not_met_nothing_is_said() -> None:
    leads = Ways({}).ahead(state(GOAL, 1))
    assert leads is not None
    assert leads(state(1, 7))


def test_what_takes_too_much_is_not_known() -> None:
    assert Ways({(0, 0): [state(1, 1), state(1, 2)]}, most=1).ahead(state(0, 0)) is None
