"""Blocks in which cycles are looked for seldom."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tracekit.base import collecting
from tracekit.base.collecting import collecting_rarely


@contextmanager
def _looks() -> Iterator[list[int]]:
    """The generations that are looked through meanwhile."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    try:
        yield seen
    finally:
        gc.callbacks.remove(note)


class _Ring:
    alive = 0

    def __init__(self) -> None:
        self.me = self
        _Ring.alive += 1

    def __del__(self) -> None:
        _Ring.alive -= 1


def test_what_a_block_made_is_not_looked_through_at_its_end():
    gc.collect()
    with collecting_rarely(), _looks() as inside:
        held = [[] for _ in range(20_000)]
    with _looks() as after:
        few = [[] for _ in range(10)]
    assert (inside, after) == ([], [])
    assert len(held) + len(few) == 20_010


def test_cycles_that_many_blocks_leave_go(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(collecting, "_OBJECTS_BETWEEN_COLLECTIONS", 5_000)
    monkeypatch.setattr(collecting._Inside, "left", 0)
    gc.collect()
    most = 0
    for _ in range(60):
        with collecting_rarely():
            for _ in range(1_000):
                _Ring()
        most = max(most, _Ring.alive)
    gc.collect()
    assert _Ring.alive == 0
    assert most < 30_000


def test_thresholds_are_as_before():
    before = gc.get_threshold()
    with collecting_rarely():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before
