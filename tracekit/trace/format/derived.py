"""The typed columns of rows that have nothing but their raw text."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.trace.format.extract import Row, extract
from tracekit.trace.format.model import RowType
from tracekit.trace.format.rows import column_of
from tracekit.trace.format.schema import TEXT_COLUMNS

#: Rows whose columns do not come from an object.
_NO_OBJECT = frozenset({RowType.GAP.value, RowType.UNPARSED.value, RowType.CALL.value})
_TYPES = {kind.value: kind for kind in RowType}


def derived_columns(
    streams: Sequence[str | None],
    types: Sequence[str],
    raws: Sequence[str | None],
    columns: Sequence[str],
) -> dict[str, pa.Array]:
    """The wanted ones of the columns that `extract` fills, by name; null where it fills none."""
    rows: list[Row] = []
    for stream, kind, raw in zip(streams, types, raws, strict=True):
        row: Row = {}
        if raw is not None and kind not in _NO_OBJECT:
            extract(stream, _TYPES[kind], _parsed(raw), row)
        rows.append(row)
    # The rows of one stream fill the same third of the columns.
    places: dict[str | None, list[int]] = {}
    for place, stream in enumerate(streams):
        places.setdefault(stream, []).append(place)
    parts = [[rows[place] for place in at] for at in places.values()]
    filled: list[set[str]] = [set().union(*part) for part in parts]
    order = pc.sort_indices(pa.array([p for at in places.values() for p in at], pa.int64()))
    found = {}
    for name in columns:
        if name in TEXT_COLUMNS or not rows:
            found[name] = column_of(name, [row.get(name) for row in rows], len(rows))
            continue
        arrays = [
            column_of(name, [row.get(name) for row in part] if name in names else None, len(part))
            for part, names in zip(parts, filled, strict=True)
        ]
        found[name] = pa.concat_arrays(arrays).take(order) if len(arrays) > 1 else arrays[0]
    return found


def _parsed(raw: str) -> object:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None  # whoever wrote the row had no columns for it either
