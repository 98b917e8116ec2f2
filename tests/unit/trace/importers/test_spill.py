"""Sorting more than memory holds: what is still in memory at the end is merged from there."""

from __future__ import annotations

import random
from pathlib import Path

from tracekit.trace.importers.spill import Spill

_KIND = tuple[int, str]


def test_the_records_come_by_key_and_those_held_are_not_written(tmp_path: Path) -> None:
    records = [((number, f"name-{number}"), b"x" * (number % 7)) for number in range(200)]
    mixed = random.Random(4).sample(records, len(records))
    spill: Spill[_KIND] = Spill(tmp_path, "some", _KIND, run_bytes=30_000)  # type: ignore[arg-type]
    for key, data in mixed:
        spill.add(key, data)
    assert len(list(tmp_path.iterdir())) == 2  # of about 98 records each
    found = spill.sorted()
    first = next(found)
    assert len(list(tmp_path.iterdir())) == 2
    assert [first, *found] == records
    assert not list(tmp_path.iterdir())


def test_no_file_is_made_of_what_memory_holds(tmp_path: Path) -> None:
    spill: Spill[_KIND] = Spill(tmp_path / "none", "some", _KIND)  # type: ignore[arg-type]
    for number in (3, 1, 2):
        spill.add((number, ""), b"")
    assert [number for (number, _), _ in spill.sorted()] == [1, 2, 3]
    assert not (tmp_path / "none").exists()
