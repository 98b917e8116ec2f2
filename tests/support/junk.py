"""Objects that no API server would store: junk of every type, put into every place."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

JUNK: list[Any] = [None, True, 0, -1, 2.5, "", "text", [], [None, 1, "a", {}], {}, {"a": 1}]

Place = tuple[Any, ...]


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """The path of every part of a JSON value."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, part in value.items():
            yield from places(part, (*path, key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from places(part, (*path, number))


def with_part(value: Any, path: Place, part: Any) -> Any:
    """A copy of the value with another part in that place."""
    changed = copy.deepcopy(value)
    here = changed
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = part
    return changed


def spoiled(value: Any) -> Iterator[Any]:
    """The value with each piece of junk in each place."""
    for path in places(value):
        for junk in JUNK:
            yield with_part(value, path, junk)
