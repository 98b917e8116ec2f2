"""What a file's footer tells of its rows, beside the rows.

A row group is passed over by the least and the greatest value that the footer tells of a column, by
tracekit and by DuckDB alike. Whoever writes a trace writes these, too, and can seal them: one that
tells otherwise would hide its rows from each question, so nothing is passed over by words that
were not compared with what they are about.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracekit.trace.format.narrow_file import NARROW_SCHEMA
from tracekit.trace.format.seal import DamageError

#: The header of a Bloom filter in Thrift's compact protocol: how many bytes of bits follow, and
#: that they are split into blocks, hashed by xxHash and not compressed (there is no other kind).
_BLOOM_HEADER = re.compile(
    rb"\x15([\x80-\xff]{0,4}[\x00-\x7f])\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0", re.DOTALL
)
#: As much of a file as has it: the longest is of 19 bytes.
_BLOOM_HEADER_BYTES = 32


def check_types(schema: pa.Schema) -> None:
    """`DamageError` if a column of the format has another type than the format says."""
    for field in schema:
        wanted = _SHAPES.get(field.name)
        if wanted is not None and _shape(field.type) != wanted:
            kind = NARROW_SCHEMA.field(field.name).type
            raise DamageError(f"its column {field.name} is {field.type}, not {kind}")


def _shape(kind: pa.DataType) -> object:
    """A type without the names of list elements and without how texts are held in memory."""
    if pa.types.is_dictionary(kind):
        return _shape(kind.value_type)
    if pa.types.is_list(kind):
        return ("list", _shape(kind.value_type))
    if pa.types.is_struct(kind):
        return tuple((field.name, _shape(field.type)) for field in kind)
    return kind


_SHAPES = {field.name: _shape(field.type) for field in NARROW_SCHEMA}


def check_statistics(
    name: str, values: pa.ChunkedArray, stated: pq.Statistics | None, *, whole: bool
) -> None:
    """`DamageError` if some of the values are not as the statistics of their column tell.

    `whole`: they are all of the row group's, so that the absent ones can be counted. By a column
    that the format does not have nobody passes anything over.
    """
    if stated is None or name not in _SHAPES:
        return
    if whole and stated.has_null_count and stated.null_count != values.null_count:
        raise _otherwise(name)
    if not stated.has_min_max or values.null_count == len(values):
        return
    if pa.types.is_dictionary(values.type):
        values = pc.unique(values).dictionary_decode()
    bounds = pc.min_max(values).as_py()
    if not stated.min <= bounds["min"] <= bounds["max"] <= stated.max:
        raise _otherwise(name)


def _otherwise(name: str) -> DamageError:
    return DamageError(f"its footer says other values of {name} than its rows have")


def bloom_filters(metadata: pq.FileMetaData, descriptor: int) -> Iterator[tuple[int, int]]:
    """Where the bits of a file's Bloom filters lie, as (from, to).

    That a filter passes rows over cannot be seen from its bits: readers are shown one of ones.
    """
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            place = row_group.column(number).bloom_filter_offset
            if place is None:
                continue
            header = _BLOOM_HEADER.match(os.pread(descriptor, _BLOOM_HEADER_BYTES, place))
            if header is None:
                raise DamageError("it has Bloom filters of a kind that nobody writes")
            start = place + header.end()
            yield start, start + _zigzag(header[1])


def _zigzag(data: bytes) -> int:
    """A number of Thrift's compact protocol."""
    number = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(data))
    return (number >> 1) ^ -(number & 1)


Ranges = Sequence[tuple[int, int]]


def with_ones(data: bytes, place: int, ranges: Ranges) -> bytes:
    """The bytes that stand at a place of a file, those in the ranges as ones."""
    for start, end in ranges:
        first, last = max(start, place) - place, min(end, place + len(data)) - place
        if first < last:
            data = data[:first] + b"\xff" * (last - first) + data[last:]
    return data
