"""What changed between the revisions of an object: for Jobs and for pods alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

#: Fields that the server keeps; they differ in each revision and tell nothing.
_NOISE = ("metadata.managedFields", "metadata.resourceVersion")

Change = list[Any]
"""Path, value before, value after."""


def changes(
    rows: Iterable[Any], key: Callable[[Any], Any], most: int, full: Callable[[], None]
) -> Iterator[tuple[Any, list[Change]]]:
    """Each row of a revision with the fields that changed since the one before of the same object.

    Args:
        rows: With `raw`, the object as JSON; the revisions of one object in order.
        key: Which object a row is of.
        most: So many changed fields; what comes after them is left out.
        full: Called where that happens.
    """
    before: dict[Any, dict[str, Any]] = {}
    entries = 0
    for row in rows:
        try:
            now = flatten(orjson.loads(row["raw"]))
        except (TypeError, ValueError):
            continue
        of = key(row)
        old, before[of] = before.get(of), now
        if old is None:
            continue
        changed = [
            [path, old.get(path), now.get(path)]
            for path in dict.fromkeys([*old, *now])
            if old.get(path) != now.get(path)
        ]
        entries += len(changed)
        if entries > most:
            full()
            return
        yield row, changed


def flatten(obj: Any) -> dict[str, Any]:
    """The leaves of an object by path; lists whose items have a `type` or `name` go by that."""
    found: dict[str, Any] = {}
    _put_leaves(obj, "", found)
    return found


def _put_leaves(obj: Any, path: str, found: dict[str, Any]) -> None:
    if path in _NOISE:
        return
    if isinstance(obj, dict) and obj:
        for key, item in obj.items():
            _put_leaves(item, f"{path}.{key}" if path else key, found)
    elif isinstance(obj, list) and obj and all(isinstance(item, dict) for item in obj):
        for place, item in enumerate(obj):
            name = item.get("type") or item.get("name") or place
            _put_leaves(item, f"{path}[{name}]", found)
    else:
        found[path] = obj
