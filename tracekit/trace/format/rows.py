"""Rows on their way into a segment: Python values in, Arrow batches out.

Values are turned into Arrow a few thousand rows at a time, which is what keeps the memory of a
writer bounded; long repeating text is kept once per batch. Rows are gathered by stream, because
the rows of one stream fill the same third of the columns; a segment is sorted anyway.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tracekit.trace.format.extract import Row
from tracekit.trace.format.schema import COLUMNS, SCHEMA

_BATCH_ROWS = 2048
_TEXT_TYPE = pa.dictionary(pa.int32(), pa.string())

#: The table in memory: as the schema, with repeating text as dictionaries.
MEMORY_SCHEMA = pa.schema([pa.field(c.name, _TEXT_TYPE if c.text else c.type) for c in COLUMNS])


class RowBuffer:
    """Rows that are not in a segment yet."""

    def __init__(self) -> None:
        self._rows: dict[str | None, list[Row]] = {}
        self._unconverted = 0
        self._batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.raw_bytes = 0

    def append(self, row: Row, raw_bytes: int) -> None:
        """Add one row; its values have the types of the schema, absent ones are null."""
        stream = row["stream"]
        rows = self._rows.get(stream)
        if rows is None:
            rows = self._rows[stream] = []
        rows.append(row)
        self.rows += 1
        self.raw_bytes += raw_bytes
        self._unconverted += 1
        if self._unconverted >= _BATCH_ROWS:
            self._convert()

    def take(self) -> pa.Table:
        """All rows as a table, in no order; the buffer is empty afterwards."""
        self._convert()
        batches, self._batches = self._batches, []
        self.rows = self.raw_bytes = 0
        return pa.Table.from_batches(batches, MEMORY_SCHEMA).unify_dictionaries()

    def _convert(self) -> None:
        for rows in self._rows.values():
            filled = set().union(*rows)
            arrays = [
                _array([row.get(c.name) for row in rows], c.type, text=c.text)
                if c.name in filled
                else pa.nulls(len(rows), MEMORY_SCHEMA.field(c.name).type)
                for c in COLUMNS
            ]
            self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=MEMORY_SCHEMA))
        self._rows = {}
        self._unconverted = 0


def column_of(name: str, values: list[Any] | None, rows: int) -> pa.Array:
    """One column as `MEMORY_SCHEMA` has it, of the values of all rows; None: none has one."""
    field = MEMORY_SCHEMA.field(name)
    if values is None:
        return pa.nulls(rows, field.type)
    return _array(values, SCHEMA.field(name).type, text=field.type == _TEXT_TYPE)


def _array(values: list[Any], kind: pa.DataType, *, text: bool) -> pa.Array:
    if text:
        codes: dict[str, int] = {}
        indices = [None if v is None else codes.setdefault(v, len(codes)) for v in values]
        return pa.DictionaryArray.from_arrays(
            pa.array(indices, pa.int32()), pa.array(list(codes), pa.string())
        )
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        return _structs(values, kind)
    return pa.array(values, kind)


def _structs(values: list[list[tuple[Any, ...]] | None], kind: pa.DataType) -> pa.Array:
    """Lists of tuples, built column by column: many times faster than one struct at a time."""
    offsets: list[int | None] = []
    flat: list[tuple[Any, ...]] = []
    for value in values:
        offsets.append(None if value is None else len(flat))  # a null offset is a null list
        if value:
            flat += value
    offsets.append(len(flat))
    fields = list(kind.value_type)
    columns = zip(*flat, strict=True) if flat else ((),) * len(fields)
    children = [pa.array(column, field.type) for field, column in zip(fields, columns, strict=True)]
    structs = pa.StructArray.from_arrays(children, fields=fields)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=kind)
