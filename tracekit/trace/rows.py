"""Rows on their way into a segment: Python values in, Arrow batches out.

Values are turned into Arrow a few thousand rows at a time, which is what keeps the memory of a
writer bounded; long repeating text is kept once per batch.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tracekit.trace.extract import Row
from tracekit.trace.schema import COLUMNS, SCHEMA

_BATCH_ROWS = 2048
_TEXT_TYPE = pa.dictionary(pa.int32(), pa.string())

#: The table in memory: as the schema, with repeating text as dictionaries.
MEMORY_SCHEMA = pa.schema([pa.field(c.name, _TEXT_TYPE if c.text else c.type) for c in COLUMNS])


class RowBuffer:
    """Rows that are not in a segment yet."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.raw_bytes = 0

    def append(self, row: Row, raw_bytes: int) -> None:
        """Add one row; its values have the types of the schema, absent ones are null."""
        self._rows.append(row)
        self.rows += 1
        self.raw_bytes += raw_bytes
        if len(self._rows) >= _BATCH_ROWS:
            self._convert()

    def take(self) -> pa.Table:
        """All rows as a table; the buffer is empty afterwards."""
        self._convert()
        table = pa.Table.from_batches(self._batches, MEMORY_SCHEMA).unify_dictionaries()
        self._batches = []
        self.rows = self.raw_bytes = 0
        return table

    def _convert(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            arrays = [_array([row.get(c.name) for row in rows], c.text, c.type) for c in COLUMNS]
            self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=MEMORY_SCHEMA))


def _array(values: list[Any], text: bool, kind: pa.DataType) -> pa.Array:
    if not text:
        return pa.array(values, kind)
    codes: dict[str, int] = {}
    indices = [None if v is None else codes.setdefault(v, len(codes)) for v in values]
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, pa.int32()), pa.array(list(codes), pa.string())
    )


def empty_table() -> pa.Table:
    """A table of the trace's columns with no row."""
    return SCHEMA.empty_table()
