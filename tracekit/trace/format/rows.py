"""Rows on their way into a segment: Python values in, Arrow batches out.

Values are turned into Arrow a few thousand rows at a time, which is what keeps the memory of a
writer bounded; long repeating text is kept once per batch. Rows are gathered by stream, because
the rows of one stream fill the same third of the columns; a segment is sorted anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec.structs import astuple

from tracekit.trace.format.api_fields import Typed
from tracekit.trace.format.extract import Row
from tracekit.trace.format.model import Origin
from tracekit.trace.format.schema import COLUMNS, STRUCTS
from tracekit.trace.format.texts import texts_of
from tracekit.trace.format.typed import Lists, columns_of

#: Rows are turned into Arrow when there are so many, or so much raw text of them.
_BATCH_ROWS = 8192
_BATCH_RAW_BYTES = 16 * 1024 * 1024
_TEXT_TYPE = pa.dictionary(pa.int32(), pa.string())

#: The table in memory: as the schema, with repeating text as dictionaries.
MEMORY_SCHEMA = pa.schema([pa.field(c.name, _TEXT_TYPE if c.text else c.type) for c in COLUMNS])


#: A row whose object is typed: the columns of `_ENVELOPE`, and the object.
TypedRow = tuple[int, int | None, str, int | None, bool, bytes | None, Typed]
_WATCHED = astuple(Origin())
_ENVELOPE = ("seq", "stream_pos", "type", "recv_ns", "synthesized", "raw")


class States(NamedTuple):
    """States of one stream in columns: those of `MEMORY_SCHEMA` but for what the writer gives."""

    stream: str
    batch: pa.RecordBatch
    #: Where each stands after the position of the next row.
    places: pa.Array
    raw_bytes: int


class RowBuffer:
    """Rows that are not in a segment yet."""

    def __init__(self) -> None:
        self._rows: defaultdict[str | None, list[Row]] = defaultdict(list)
        self._typed: defaultdict[str | None, list[TypedRow]] = defaultdict(list)
        #: Beside each typed row how it is known, None where a watch told it.
        self._origins: defaultdict[str | None, list[Origin | None]] = defaultdict(list)
        self._unconverted = 0
        self._unconverted_bytes = 0
        self._batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.raw_bytes = 0

    def append(self, row: Row, raw_bytes: int) -> None:
        """Add one row; its values have the types of the schema, absent ones are null."""
        self._rows[row["stream"]].append(row)
        self._added(raw_bytes)

    def append_typed(
        self, stream: str | None, row: TypedRow, raw_bytes: int, origin: Origin | None = None
    ) -> None:
        """Add one row whose object is typed; `origin` says how it is known, if no watch told it."""
        self._typed[stream].append(row)
        self._origins[stream].append(origin)
        self._added(raw_bytes)

    def append_states(
        self, batch: pa.RecordBatch, seqs: pa.Array, position: int, raw_bytes: int
    ) -> None:
        """Add states of one stream that are in columns already, from a position in it on."""
        rows = batch.num_rows
        reported = {
            "seq": seqs,
            "stream_pos": pa.array(range(position, position + rows), pa.int64()),
        }
        arrays = [reported[c.name] if c.name in reported else batch.column(c.name) for c in COLUMNS]
        self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=MEMORY_SCHEMA))
        self.rows += rows
        self.raw_bytes += raw_bytes

    def _added(self, raw_bytes: int) -> None:
        self.rows += 1
        self.raw_bytes += raw_bytes
        self._unconverted += 1
        self._unconverted_bytes += raw_bytes
        if self._unconverted >= _BATCH_ROWS or self._unconverted_bytes >= _BATCH_RAW_BYTES:
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
            self._batch(len(rows), {name: [row.get(name) for row in rows] for name in filled})
        for stream, typed_rows in self._typed.items():
            *envelope, objects = zip(*typed_rows, strict=True)
            columns: dict[str, Any] = dict(zip(_ENVELOPE, envelope, strict=True))
            columns["stream"] = [stream] * len(objects)
            columns["raw"] = _decoded_texts(columns["raw"])
            columns |= _columns_of(self._origins[stream])
            self._batch(len(objects), columns | columns_of(stream, objects))
        self._rows.clear()
        self._typed.clear()
        self._origins.clear()
        self._unconverted = self._unconverted_bytes = 0

    def _batch(self, rows: int, columns: dict[str, Any]) -> None:
        arrays = [column_of(c.name, columns.get(c.name), rows) for c in COLUMNS]
        self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=MEMORY_SCHEMA))


def _columns_of(origins: Sequence[Origin | None]) -> dict[str, Any]:
    if not any(origins):
        return {}
    rows = [_WATCHED if origin is None else astuple(origin) for origin in origins]
    return dict(zip(Origin.__struct_fields__, zip(*rows, strict=True), strict=True))


def _decoded_texts(raws: Sequence[bytes | str | None]) -> Any:
    """Texts that were decoded, so that nobody need look again whether they are UTF-8."""
    return texts_of(raws) if set(map(type, raws)) == {bytes} else raws  # type: ignore[arg-type]


def column_of(name: str, values: Any, rows: int) -> pa.Array:
    """One column as `MEMORY_SCHEMA` has it, of the values of all rows; None: none has one."""
    kind = _KINDS[name]
    if values is None:
        return pa.nulls(rows, kind)
    if type(values) is pa.StringArray:
        return values
    if kind is _TEXT_TYPE:
        return pa.array(values, pa.string()).dictionary_encode()
    if name in STRUCTS:
        if type(values) is not Lists:
            values = Lists.of(values, kind.value_type.num_fields)
        return _structs(values, kind)
    return pa.array(values, kind)


#: As in `MEMORY_SCHEMA`, which makes a new type at each question.
_KINDS = {c.name: _TEXT_TYPE if c.text else c.type for c in COLUMNS}


def _structs(lists: Lists, kind: pa.DataType) -> pa.Array:
    """Lists of structs, built field by field: many times faster than one struct at a time."""
    fields = list(kind.value_type)
    children = [
        pa.array(column, field.type) for field, column in zip(fields, lists.fields, strict=True)
    ]
    structs = pa.StructArray.from_arrays(children, fields=fields)
    return pa.ListArray.from_arrays(pa.array(lists.offsets, pa.int32()), structs, type=kind)
