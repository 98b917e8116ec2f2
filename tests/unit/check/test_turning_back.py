"""The way back from a dead end: a small record in, what is known of its states and at what cost."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.traces import import_log
from tracekit.check.replay.backtracking import Choice, Trail
from tracekit.check.replay.cuts import Effort
from tracekit.check.replay.dominance import memory_class
from tracekit.check.replay.feed import COLUMNS, histories
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.recall import MemoryAsked
from tracekit.check.replay.recorded_api import Assumptions
from tracekit.check.replay.search import KeyWalker
from tracekit.check.replay.search_state import Entry, Explanation, State
from tracekit.judge.judged import resolve_era
from tracekit.judge.run_context import run_context_of
from tracekit.ports.cache.pods import PodCache
from tracekit.ports.job.memory import JobMemory
from tracekit.versions.job import JobRules

SMALL = Path(__file__).parents[2] / "data" / "replay"
#: A user took a pod's owner reference off in the midst of a sync, and nobody signed that: whether it
#: was the controller is asked of all caches first, in vain.
RECORD, JOB = "released-by-another-in-a-sync", "c0068-mixed"


class Watched(KeyWalker):
    """Keeps how many attempts each way back cost, and how many it might have."""

    def __init__(self, facts: KeyEvidence) -> None:
        super().__init__(facts, dict)
        self.cost: list[tuple[bool, int, int]] = []

    def past(
        self, trail: Trail[State, Entry], way: Sequence[Choice[State]], most: int
    ) -> State | None:
        before = self.attempts_made()
        found = super().past(trail, way, most)
        self.cost.append((found is not None, self.attempts_made() - before, most))
        return found


class OneByOne(KeyWalker):
    """No state stands for another one."""

    def class_of(self, state: State) -> Hashable:
        return state.identity


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> KeyEvidence:
    place = tmp_path_factory.mktemp("small") / "trace"
    reader = import_log(SMALL / RECORD / "watch.jsonl.zst", place, SMALL / RECORD)
    rules = JobRules.of(resolve_era(reader, None, None))
    context = run_context_of(reader).watching("jobs", "pods")
    history = next(h for h in histories(reader.groups(COLUMNS)) if h.name == JOB)
    return KeyEvidence(history, rules, context)


def syncs_of(walker: KeyWalker) -> list[tuple[int, int, bool]]:
    found = walker.run()
    return [(s.writes[0].index, s.pod_cut, bool(s.problems)) for s in found.syncs]


def test_that_nothing_leads_past_a_dead_end_is_known_before_attempts_are_used_up(
    facts: KeyEvidence,
) -> None:
    walker = Watched(facts)
    walker.run()
    [(found, cost, most)] = walker.cost
    assert not found
    assert cost < most


def test_states_that_stand_for_others_save_attempts(
    facts: KeyEvidence,
) -> None:
    by_class, one_by_one = KeyWalker(facts, dict), OneByOne(facts, dict)
    assert syncs_of(by_class) == syncs_of(one_by_one)
    assert by_class.search.attempts * 3 < one_by_one.search.attempts * 2


def test_states_that_differ_in_the_age_of_their_caches_are_of_one_class(
    facts: KeyEvidence,
) -> None:
    asked = MemoryAsked(facts.history, facts.rules)
    one, newer = (State(0, JobMemory(), PodCache(), pods, 0, handled=pods) for pods in (0, 2))
    other = State(0, JobMemory(finalizers=frozenset({"uid"})), PodCache(), 0, 0)
    assert memory_class(facts, asked, one) == memory_class(facts, asked, newer)
    assert memory_class(facts, asked, one) != memory_class(facts, asked, other)


def test_no_sync_asks_for_retries_that_no_limit_is_compared_with(facts: KeyEvidence) -> None:
    asked = MemoryAsked(facts.history, facts.rules)
    assert asked(JobMemory(requeues=1)) == asked(JobMemory(requeues=2))


def test_an_attempt_that_explained_a_write_is_not_made_again(facts: KeyEvidence) -> None:
    search = KeyWalker(facts, dict).search
    first = State(0, JobMemory(), PodCache(), 0, 0)
    job = next(search.job_candidates(first, Effort.CUTS))
    _, newest = search.window(first, Effort.CUTS)

    def explained(state: State) -> Explanation:
        (cut,) = search.cuts_at(state, job, [newest])
        found = search.at_its_time(state, cut, Assumptions())
        assert found is not None
        return found

    with search.recall.turning_back():
        once, made = explained(first), search.attempts
        again = explained(replace(first, pod_floor=newest))
    assert (search.attempts, search.recall.hits) == (made, 1)
    assert again.began is not None
    assert again.began.state.pod_floor == newest
    assert (again.writes, again.notes, again.state.memory) == (
        once.writes,
        once.notes,
        once.state.memory,
    )
    assert again.state.cache.pods() == once.state.cache.pods()
    explained(first)
    assert search.attempts > made  # on the way forward explanations are not kept
