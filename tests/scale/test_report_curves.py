"""What a report makes of revisions: each is held against the one before, where they differ."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from random import Random
from typing import Any

import orjson
import pytest

from tests.support.operations import growth, operations
from tracekit.report.html.diffs import changed_leaves, changes, flatten


def _revisions(count: int, fields: int = 20) -> list[tuple[str, bytes]]:
    spec = {f"field{number}": {"value": number} for number in range(fields)}
    return [
        ("uid", orjson.dumps({"spec": spec, "status": {"active": number}}))
        for number in range(count)
    ]


def _told(rows: list[tuple[str, bytes]]) -> Callable[[], object]:
    return lambda: list(changes(rows, 1, itemgetter(0), 10**9, pytest.fail))


def test_revisions_of_one_object_are_linear() -> None:
    assert growth(lambda count: _told(_revisions(count)), 50) < 1.1


def test_what_stays_as_it_is_is_not_taken_apart() -> None:
    """A pod template of any size costs no step in a revision that changes the status alone."""
    assert operations(_told(_revisions(50, fields=400))) == operations(_told(_revisions(50)))


def test_what_changed_is_told_in_the_order_of_the_leaves() -> None:
    draw = Random(3)
    for _ in range(300):
        old, now = _drawn(draw, 3), _drawn(draw, 3)
        before, after = flatten(old), flatten(now)
        assert changed_leaves(old, now) == [
            [path, before.get(path), after.get(path)]
            for path in dict.fromkeys([*before, *after])
            if before.get(path) != after.get(path)
        ]


def _drawn(draw: Random, depth: int) -> Any:
    """An object like those of the API: maps, lists of named things, lists of values."""
    kind = draw.choice(("map", "map", "named", "values", "value")) if depth else "value"
    match kind:
        case "map":
            keys = draw.sample(("metadata", "managedFields", "a", "b", "c"), draw.randrange(4))
            return {key: _drawn(draw, depth - 1) for key in keys}
        case "named":
            names = draw.sample("xyz", draw.randrange(3))
            return [{"name": name, "v": _drawn(draw, depth - 1)} for name in names]
        case "values":
            return [draw.randrange(3) for _ in range(draw.randrange(3))]
    return draw.choice((None, 1, 2, "text"))
