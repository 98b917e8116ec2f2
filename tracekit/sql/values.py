"""Values that a query compares with and that a column never has: a slip that would answer nothing.

Columns with a closed set of values (the views' files name them) compare without regard to case; a
value outside of the set is refused with the one that was probably meant. A name that the query
gives to something of its own is left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import duckdb
import orjson

from tracekit.base.suggest import closest
from tracekit.sql.catalog import View
from tracekit.sql.messages import QueryError

_COMPARISONS = {
    "COMPARE_EQUAL",
    "COMPARE_NOTEQUAL",
    "COMPARE_IN",
    "COMPARE_NOT_IN",
    "COMPARE_DISTINCT_FROM",
    "COMPARE_NOT_DISTINCT_FROM",
}


def check_values(
    connection: duckdb.DuckDBPyConnection, query: str, views: Collection[View]
) -> None:
    """Raise if the query compares a column of the views with what it never is."""
    tree = _parsed(connection, query)
    nodes = list(_nodes(tree))
    tables = _lowered(nodes, "table_name")
    own = _lowered(nodes, "alias")
    known = _known([view for view in views if view.name in tables])
    for node in nodes:
        kind = node.get("type")
        if not isinstance(kind, str) or kind not in _COMPARISONS:
            continue  # a literal's type is a mapping
        column, literals = _sides(node)
        if column in known and column not in own:
            for value in literals:
                _check(column, value, known[column])


def _lowered(nodes: Iterable[Mapping[str, Any]], key: str) -> set[str]:
    """The texts that the nodes have under this key."""
    return {text.lower() for node in nodes if isinstance(text := node.get(key), str)}


def _check(column: str, value: str, known: Collection[str]) -> None:
    if value.lower() in {name.lower() for name in known}:
        return
    close = closest(value, known, count=1)
    meant = f"did you mean '{close}'? It" if close else "it"
    raise QueryError(f"{column} is never '{value}'; {meant} is one of {', '.join(known)}")


def _known(views: Collection[View]) -> Mapping[str, list[str]]:
    """What each column can be; nothing for one that another of the views has without bounds."""
    found: dict[str, list[str]] = {}
    open_ended: set[str] = set()
    for view in views:
        for column in view.columns:
            values = view.values.get(column.name)
            if values is None:
                open_ended.add(column.name)
            else:
                known = found.setdefault(column.name, [])
                known += [value for value in values if value not in known]
    return {name: values for name, values in found.items() if name not in open_ended}


def _parsed(connection: duckdb.DuckDBPyConnection, query: str) -> Any:
    try:
        row = connection.cursor().execute("SELECT json_serialize_sql(?)", [query]).fetchone()
    except duckdb.Error:
        return {}  # no SELECT: what it says is told when it runs
    return orjson.loads(row[0]) if row else {}


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        if isinstance(node, dict):
            yield node
            ahead += node.values()
        elif isinstance(node, list):
            ahead += node


def _sides(node: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The column of a comparison and the texts that it is compared with."""
    parts = node.get("children") or [node.get("left"), node.get("right")]
    column = ""
    texts = []
    for part in parts:
        if not isinstance(part, dict):
            continue
        if part.get("class") == "COLUMN_REF":
            column = str(part["column_names"][-1]).lower()
        elif part.get("class") == "CONSTANT":
            literal = part.get("literal") or part.get("value") or {}
            text = literal.get("text", literal.get("value"))
            if isinstance(text, str) and literal.get("kind", "STRING") == "STRING":
                texts.append(text)
    return column, texts
