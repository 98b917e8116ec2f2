"""Types of DuckDB that Arrow has not, or has with less in them, as the text that DuckDB writes.

Arrow's time has no offset, its intervals nanoseconds of 292 years, its largest decimal 38 digits;
bits, large numbers and variants come as the bytes that DuckDB keeps them in.
"""

from __future__ import annotations

from typing import Any, Final

import duckdb

#: What every output gets as it is, as it does a HUGEINT that is in nothing else: a sum.
_CARRIED: Final = frozenset({
    "boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger",
    "ubigint", "float", "double", "decimal", "varchar", "blob", "date", "time",
    "time_ns", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns",
    "timestamp with time zone", "uuid", "enum", "null",
})  # fmt: skip
_NESTED: Final = frozenset({"list", "array", "struct", "map", "union", "tuple"})


def carried_whole(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The relation with texts for what Arrow would not carry whole; itself where it carries all."""
    wanted = [_as_text(kind) if kind.id != "hugeint" else None for kind in relation.types]
    if not any(wanted):
        return relation
    columns = (
        f"CAST(#{place} AS {kind}) AS {_quoted(name)}" if kind else f"#{place} AS {_quoted(name)}"
        for place, (name, kind) in enumerate(zip(relation.columns, wanted, strict=True), 1)
    )
    return relation.project(", ".join(columns))


def _as_text(kind: Any) -> str | None:  # noqa: PLR0911 - one return per type
    """The type to cast to; None where Arrow carries all of it."""
    if kind.id in _CARRIED:
        return None
    if kind.id not in _NESTED:
        return "VARCHAR"
    parts = [(name, part) for name, part in kind.children if not isinstance(part, int)]
    wanted = [_as_text(part) for _, part in parts]
    if not any(wanted):
        return None
    if kind.id in ("union", "tuple"):
        return "VARCHAR"
    inner = [text or str(part) for text, (_, part) in zip(wanted, parts, strict=True)]
    if kind.id == "struct":
        names = (_quoted(name) for name, _ in parts)
        fields = (f"{name} {text}" for name, text in zip(names, inner, strict=True))
        return f"STRUCT({', '.join(fields)})"
    if kind.id == "map":
        return f"MAP({', '.join(inner)})"
    return f"{inner[0]}[]"


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
