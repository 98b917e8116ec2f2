"""The order of writes whose revision a log does not tell."""

from __future__ import annotations

import random

import pytest

from tracekit.trace.importers.audit.revisions import RevisionClock

MS = 1_000_000


def writes(seed: int, count: int):
    """Real requests: revision, arrival, answer; a commit lies in between, in order."""
    rng = random.Random(seed)
    at, found = 0, []
    for revision in range(100, 100 + count):
        at += rng.randint(0, 3 * MS)
        found.append((revision, at - rng.randint(0, 9 * MS), at + rng.randint(0, 9 * MS)))
    return found


@pytest.mark.parametrize(("chunk", "steps_max"), [(1 << 17, 1 << 19), (64, 1 << 19), (64, 50)])
def test_bounds_hold_however_few_steps_are_kept(tmp_path, chunk, steps_max):
    known, hidden = [], []
    for number, write in enumerate(writes(7, 1000)):
        if number % 5 == 0:
            hidden.append(write)
        elif number % 2:  # the rest are writes that the log leaves out
            known.append(write)
    clock = RevisionClock(tmp_path, chunk=chunk, steps_max=steps_max)
    random.Random(1).shuffle(known)
    for revision, received, answered in known:
        clock.learn(revision, received, answered, revision)
    assert clock.settle() is None
    chosen = set()
    for revision, received, answered in hidden:
        low, high = clock.bounds(received, answered)
        assert low < revision
        assert high is None or revision < high
        near = clock.likely(received, answered)
        rv = clock.choose(low, high, near=near)
        assert low < rv
        assert high is None or rv < high
        chosen.add(rv)
    assert len(chosen) == len(hidden)
    assert not chosen & {revision for revision, _, _ in known}
    assert not list(tmp_path.iterdir())


def test_a_write_without_effect_bounds_nothing(tmp_path):
    clock = RevisionClock(tmp_path)
    clock.learn(10, 0, 5, 1)
    clock.learn(20, 30, 35, 2)
    clock.learn(10, 50, 55, 1)  # answered with what was there
    clock.settle()
    assert clock.bounds(40, 45) == (20, None)


def test_one_revision_of_two_objects_is_told_across_chunks(tmp_path):
    clock = RevisionClock(tmp_path, chunk=2)
    for revision in (1, 2, 3, 4):
        clock.learn(revision, revision, revision, revision)
    clock.learn(2, 9, 9, 77)
    assert clock.settle() == 2
