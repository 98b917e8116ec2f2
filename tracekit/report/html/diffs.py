"""What changed between the revisions of an object: for Jobs and for pods alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

from tracekit.report.html.scope import Scope
from tracekit.sql.diagnosed import Spaces
from tracekit.sql.session import Session

#: Fields that the server keeps; they differ in each revision and tell nothing.
_NOISE = ("metadata.managedFields", "metadata.resourceVersion")

#: Objects are read until there are so many, of whole namespaces.
_AT_A_TIME = 4_096

Change = list[Any]
"""Path, value before, value after."""


def revisions(
    session: Session, scope: Scope, stream: str, columns: str, order: str
) -> Iterator[tuple[Any, ...]]:
    """The revisions of a stream's objects, by namespace and then as `order` says.

    Who takes the first ones reads no more than these namespaces: most of a record are its objects.
    """
    where = f"stream = '{stream}' AND {scope.where()}"
    for spaces in _turns(session, where, scope):
        yield from session.tuples(
            f"SELECT {columns} FROM internal._states WHERE {where} AND {spaces.where} "  # noqa: S608 - our own words
            f"ORDER BY namespace, {order}",
            **scope.values,
            **spaces.values,
        )


def _turns(session: Session, where: str, scope: Scope) -> Iterator[Spaces]:
    """Namespaces that are read one after the other."""
    counts = session.tuples(
        f"SELECT namespace, count(*) FROM internal._states WHERE {where} "  # noqa: S608 - our own words
        "GROUP BY namespace ORDER BY namespace",
        **scope.values,
    )
    first, rows = None, 0
    for namespace, count in counts:
        if rows >= _AT_A_TIME and namespace is not None:
            yield Spaces(first, namespace)
            first, rows = namespace, 0
        rows += count
    yield Spaces(first)


def changes(
    rows: Iterable[Any], raw: int, key: Callable[[Any], Any], most: int, full: Callable[[], None]
) -> Iterator[tuple[Any, list[Change]]]:
    """Each row of a revision with the fields that changed since the one before of the same object.

    Args:
        rows: The revisions of one object in order.
        raw: The place of a row's object, as JSON.
        key: Which object a row is of.
        most: So many changed fields; what comes after them is left out.
        full: Called where that happens.
    """
    before: dict[Any, Any] = {}
    entries = 0
    for row in rows:
        try:
            now = orjson.loads(row[raw])
        except (TypeError, ValueError):
            continue
        of = key(row)
        known, old = of in before, before.get(of)
        before[of] = now
        if not known:
            continue
        changed = changed_leaves(old, now)
        entries += len(changed)
        if entries > most:
            full()
            return
        yield row, changed


def changed_leaves(old: Any, now: Any) -> list[Change]:
    """The leaves that differ; most of an object stays as it is, and is not taken apart."""
    was: dict[str, Any] = {}
    comes: dict[str, Any] = {}
    _put_differing(old, now, "", was, comes)
    return [
        [path, was.get(path), comes.get(path)]
        for path in dict.fromkeys([*was, *comes])
        if was.get(path) != comes.get(path)
    ]


def flatten(obj: Any) -> dict[str, Any]:
    """The leaves of an object by path; lists whose items have a `type` or `name` go by that."""
    found: dict[str, Any] = {}
    _put_leaves(obj, "", found)
    return found


def _put_differing(
    old: Any, now: Any, path: str, was: dict[str, Any], comes: dict[str, Any]
) -> None:
    """The leaves of both but for those of parts that both have, each in its object's own order."""
    if path in _NOISE:
        return
    if not (old and now and isinstance(old, dict) and isinstance(now, dict)):
        _put_leaves(old, path, was)
        _put_leaves(now, path, comes)
        return
    within = f"{path}." if path else ""
    came: dict[str, dict[str, Any]] = {}
    for key, item in old.items():
        if key not in now:
            _put_leaves(item, within + key, was)
        elif item != now[key]:
            came[key] = {}
            _put_differing(item, now[key], within + key, was, came[key])
    for key, item in now.items():
        if key in came:
            comes.update(came[key])
        elif key not in old:
            _put_leaves(item, within + key, comes)


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
