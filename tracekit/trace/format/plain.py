"""Plain segments: what a recorder writes first, raw text without the typed columns.

Typing a row costs many times what storing it costs, so a recorder that must keep up with a busy
cluster stores first. Compaction rewrites plain segments as typed ones; until then `SegmentFile`
types them as they are read, so that every reader sees the same rows either way. A plain segment is
one row group in order of arrival, and says so under `PLAIN_KEY` in the file's metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracekit.trace.format.derived import DERIVATION
from tracekit.trace.format.extract import Row, extract
from tracekit.trace.format.limits import NESTING_MAX, TOO_DEEP, is_nested_deeper
from tracekit.trace.format.model import LOG_DIR, STATE_TYPES, WIDE_VERSION, RowType
from tracekit.trace.format.opening import new_file
from tracekit.trace.format.rows import MEMORY_SCHEMA, RowBuffer
from tracekit.trace.format.schema import SCHEMA
from tracekit.trace.format.seal import SEAL_KEY, seal_file, unsealed
from tracekit.trace.format.segments import (
    DERIVED_KEY,
    FORMAT_KEY,
    Segment,
    put_in_place,
    segment_name,
    temporary_path,
)
from tracekit.trace.format.typed import decoded

PLAIN_KEY = b"tracekit.plain"
#: At most this many rows in a plain segment: readers type one whole.
PLAIN_ROWS = 8192
PLAIN_RAW_BYTES = 8 * 1024 * 1024

_LEVEL = 1
_TYPED_AT_ONCE = 512
#: Columns of every row.
_OBJECT_NAMES = ("seq", "stream_pos", "stream", "type", "recv_ns", "synthesized", "raw")
#: Columns of rows that have no object to be typed by.
_OTHER_NAMES = (
    "raw_bytes",
    "reason",
    "gap_last_rv",
    "gap_next_rv",
    "gap_from_ns",
    "gap_until_ns",
    "gap_reason",
)
PLAIN_NAMES = (*_OBJECT_NAMES, *_OTHER_NAMES)
_PLAIN_SCHEMA = pa.schema([SCHEMA.field(name) for name in PLAIN_NAMES])
_METADATA = {
    FORMAT_KEY: str(WIDE_VERSION).encode(),
    PLAIN_KEY: b"1",
    SEAL_KEY: unsealed(groups=1),
}
_STANDING = ("seq", "stream_pos", "type", "recv_ns", "synthesized")
_STATES = frozenset(kind.value for kind in STATE_TYPES)
_UNTYPED = frozenset({RowType.GAP.value, RowType.UNPARSED.value})


def derivation_of(metadata: Mapping[bytes, bytes]) -> bytes | None:
    """By what the columns of the states in a segment are filled; None: that is not known."""
    return DERIVATION if PLAIN_KEY in metadata else metadata.get(DERIVED_KEY)


class PlainBuffer:
    """Rows on their way into a plain segment: columns, and one text that `raw` is cut from."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {
            name: [] for name in PLAIN_NAMES if name not in {"raw", "seq"}
        }
        self._others = [self._columns[name] for name in _OTHER_NAMES]
        self._first_seq = 0
        self._text = bytearray()
        #: Length of each row's text; None for rows without.
        self._lengths: list[int | None] = []
        self.rows = 0

    @property
    def raw_bytes(self) -> int:
        """Bytes of text so far."""
        return len(self._text)

    def append_objects(
        self,
        seq: int,
        position: int,
        stream: str,
        kinds: Sequence[str],
        recv_ns: int,
        *,
        synthesized: bool,
        raws: Sequence[bytes],
    ) -> None:
        """Add rows that have an object each; the fields are those of `_OBJECT_NAMES`."""
        count = len(raws)
        columns = self._columns
        if self.rows == 0:
            self._first_seq = seq
        columns["stream_pos"] += range(position, position + count)
        columns["stream"] += repeat(stream, count)
        columns["type"] += kinds
        columns["recv_ns"] += repeat(recv_ns, count)
        columns["synthesized"] += repeat(synthesized, count)
        self._text += b"".join(raws)
        self._lengths += map(len, raws)
        self.rows += count

    def append(self, row: Row, raw_bytes: int) -> None:
        """Add one row."""
        del raw_bytes
        get = row.get
        if self.rows == 0:
            self._first_seq = row["seq"]
        for name in _OBJECT_NAMES:
            if name not in {"raw", "seq"}:
                self._columns[name].append(get(name))
        if row["type"] in _UNTYPED or "raw_bytes" in row:
            for name, values in zip(_OTHER_NAMES, self._others, strict=True):
                values.extend([None] * (self.rows - len(values)))
                values.append(get(name))
        raw = get("raw")
        if raw is not None:
            raw = raw.encode() if isinstance(raw, str) else raw
            self._text += raw
        self._lengths.append(None if raw is None else len(raw))
        self.rows += 1

    def take(self) -> pa.Table:
        """All rows as a table, in order; the buffer is empty afterwards."""
        arrays = []
        for field in _PLAIN_SCHEMA:
            if field.name == "raw":
                arrays.append(self._take_text())
            elif field.name == "seq":
                seqs = range(self._first_seq, self._first_seq + self.rows)
                arrays.append(pa.array(seqs, field.type))
            else:
                values = self._columns[field.name]
                values.extend([None] * (self.rows - len(values)))
                arrays.append(pa.array(values, field.type))
                values.clear()
        self.rows = 0
        return pa.Table.from_arrays(arrays, schema=_PLAIN_SCHEMA)

    def _take_text(self) -> pa.Array:
        # Whoever appended has checked that it is UTF-8: to do so again is most of a flush's work.
        lengths, text = self._lengths, self._text
        self._lengths, self._text = [], bytearray()
        offsets = pa.array(accumulate((n or 0 for n in lengths), initial=0), pa.int32())
        valid = pa.array([n is not None for n in lengths], pa.bool_())
        buffers = [valid.buffers()[1], offsets.buffers()[1], pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.string(), len(lengths), buffers)


def write_plain_segment(
    trace: Path, table: pa.Table, *, first: int, last: int, identity: str | None = None
) -> Segment:
    """Write the rows as they are under a temporary name, and put the file in place durably."""
    log = trace / LOG_DIR
    name = segment_name(first, last)
    temporary = temporary_path(log / name)
    with (
        new_file(temporary) as file,
        pq.ParquetWriter(
            file,
            _PLAIN_SCHEMA,
            version="2.6",
            compression="zstd",
            compression_level=_LEVEL,
            use_dictionary=["stream", "type"],
            write_statistics=["seq", "recv_ns"],
            store_schema=False,
        ) as writer,
    ):
        writer.write_table(table, row_group_size=max(1, table.num_rows))
        writer.add_key_value_metadata(_METADATA)
    seal_file(temporary, identity)
    put_in_place(temporary, log / name)
    return Segment(first, last, log / name)


def typed(table: pa.Table) -> pa.Table:
    """Fill the typed columns of a plain segment's rows, in order of arrival.

    The raw text stays where it is: only one batch of it at a time becomes Python's.
    """
    buffer = RowBuffer()
    for batch in table.to_batches(_TYPED_AT_ONCE):
        for row in batch.to_pylist():
            if row["type"] not in _UNTYPED and row["raw"] is not None:
                found = decoded(row["stream"], row["raw"]) if row["type"] in _STATES else None
                if found is not None and not is_nested_deeper(row["raw"], NESTING_MAX):
                    stands = (row[name] for name in _STANDING)
                    buffer.append_typed(row["stream"], (*stands, None, found), 0)
                    continue
                for name in _OTHER_NAMES:
                    del row[name]
                _type_row(row)
            del row["raw"]
            buffer.append(row, 0)
    result = buffer.take()
    result = result.take(pc.sort_indices(result["seq"]))
    position = result.schema.get_field_index("raw")
    return result.set_column(position, MEMORY_SCHEMA.field("raw"), table["raw"])


def _type_row(row: Row) -> None:
    try:
        parsed = orjson.loads(row["raw"])
    except orjson.JSONDecodeError as error:
        row["type"] = RowType.UNPARSED.value
        row["reason"] = f"it is not JSON ({error})"
        return
    if is_nested_deeper(row["raw"], NESTING_MAX):
        row["type"] = RowType.UNPARSED.value
        row["reason"] = TOO_DEEP
        return
    extract(row["stream"], RowType(row["type"]), parsed, row)
