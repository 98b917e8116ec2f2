"""The typed columns of rows that have nothing but their raw text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.trace.format.extract import Row, extract
from tracekit.trace.format.model import STATE_TYPES, RowType
from tracekit.trace.format.rows import column_of
from tracekit.trace.format.schema import TEXT_COLUMNS
from tracekit.trace.format.typed import Columns, columns_of, decoded

#: Which columns `extract` fills with what; raised with every change of that. tests/unit/trace/
#: test_derived.py holds it to what comes of some objects.
DERIVATION = b"1"
#: Rows whose columns do not come from an object.
_NO_OBJECT = frozenset({RowType.GAP.value, RowType.UNPARSED.value, RowType.CALL.value})
_STATES = frozenset(kind.value for kind in STATE_TYPES)
_TYPES = {kind.value: kind for kind in RowType}


def follow(types: pa.ChunkedArray, raws: pa.Array) -> pa.Array:
    """Which rows are states with a text, whose columns `extract` has filled by nothing else."""
    return pc.and_(pc.is_in(types, pa.array(sorted(_STATES))), pc.is_valid(raws))


def derived_columns(
    streams: Sequence[str | None],
    types: Sequence[str],
    raws: Sequence[str | None],
    columns: Sequence[str],
) -> dict[str, pa.Array]:
    """The wanted ones of the columns that `extract` fills, by name; null where it fills none."""
    # The rows of one stream fill the same third of the columns.
    parts: dict[tuple[str | None, bool], tuple[list[int], list[Any]]] = {}
    for place, (stream, kind, raw) in enumerate(zip(streams, types, raws, strict=True)):
        found = decoded(stream, raw) if raw is not None and kind in _STATES else None
        rest = found if found is not None else _row(stream, kind, raw)
        places, rows = parts.setdefault((stream, found is not None), ([], []))
        places.append(place)
        rows.append(rest)
    filled = [_filled(stream, rows, typed=typed) for (stream, typed), (_, rows) in parts.items()]
    at = [place for places, _ in parts.values() for place in places]
    order = pc.sort_indices(pa.array(at, pa.int64()))
    columns_found = {}
    for name in columns:
        if name in TEXT_COLUMNS or len(parts) < 2:  # noqa: PLR2004 - nothing to put together
            columns_found[name] = _whole(name, filled, parts.values(), len(raws))
            continue
        arrays = [
            column_of(name, part.get(name), len(places))
            for part, (places, _) in zip(filled, parts.values(), strict=True)
        ]
        columns_found[name] = pa.concat_arrays(arrays).take(order)
    return columns_found


def _row(stream: str | None, kind: str, raw: str | None) -> Row:
    row: Row = {}
    if raw is not None and kind not in _NO_OBJECT:
        extract(stream, _TYPES[kind], _parsed(raw), row)
    return row


def _filled(stream: str | None, rows: Sequence[Any], *, typed: bool) -> Columns:
    if typed:
        return columns_of(stream, rows)
    names = set().union(*rows)
    return {name: [row.get(name) for row in rows] for name in names}


def _whole(
    name: str, filled: Sequence[Columns], parts: Iterable[tuple[list[int], list[Any]]], rows: int
) -> pa.Array:
    """A column in the order of the rows, out of what all parts have of it."""
    if len(filled) == 1:
        return column_of(name, filled[0].get(name), rows)
    values: list[Any] = [None] * rows
    for columns, (places, _) in zip(filled, parts, strict=True):
        for place, value in zip(places, columns.get(name) or (), strict=False):
            values[place] = value
    return column_of(name, values, rows)


def _parsed(raw: str) -> object:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None  # whoever wrote the row had no columns for it either
