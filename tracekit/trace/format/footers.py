"""What a Parquet footer says of column chunks, before Arrow believes it.

Asked for a chunk that it cannot make out, or for a least and a greatest value that are shorter than
a number is, Arrow throws through Python, and the process is aborted; longer ones DuckDB refuses.
Whoever writes a trace writes its footers, so each is looked at before it is asked.
"""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from tracekit.trace.format import thrift
from tracekit.trace.format.parquet import parquet_file
from tracekit.trace.format.seal import DamageError

#: Which checks these are: to be raised with each that is added, for footers that passed are known.
CHECKS = 1
#: Any: with a buffer, bytes are asked for once all chunks of a row group are open, and not before.
_BUFFER_BYTES = 4096
#: Bytes of the least and greatest values, by physical type; texts may be of any length.
_WIDTHS = {"INT64": 8, "DOUBLE": 8, "INT32": 4, "FLOAT": 4, "BOOLEAN": 1, "INT96": 12}


def check_chunks(metadata: pq.FileMetaData, footer: bytes, size: int) -> None:
    """`DamageError` if Arrow could not be asked for each column chunk of a file of that size."""
    lengths = _lengths(footer)
    if len(lengths) != metadata.num_row_groups * metadata.num_columns:
        raise DamageError("its footer describes columns that cannot be")
    for group in range(metadata.num_row_groups):
        _open(metadata, group, size)
        row_group, schema = metadata.row_group(group), metadata.schema
        first = group * metadata.num_columns
        for number in range(metadata.num_columns):
            chunk, column = row_group.column(number), schema.column(number)
            width = _WIDTHS.get(column.physical_type, column.length)
            is_odd = bool(width and lengths[first + number] - {width})
            counted = chunk.num_values == row_group.num_rows
            if column.max_repetition_level > 0:  # lists, of any number of values
                counted = chunk.num_values >= 0
            if chunk.physical_type != column.physical_type or not counted or is_odd:
                raise DamageError(f"its footer describes a column {column.path} that cannot be")


def _open(metadata: pq.FileMetaData, group: int, size: int) -> None:
    """Begin to read rows, where Arrow throws nothing that is not caught, of no bytes."""
    source = pa.PythonFile(_NoBytes(size), mode="r")
    file = parquet_file(source, metadata=metadata, buffer_size=_BUFFER_BYTES)
    try:
        next(file.iter_batches(1, row_groups=[group], use_threads=False), None)
    except _AskedForBytesError:
        pass
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DamageError(f"its footer describes columns that cannot be ({error})") from None


class _AskedForBytesError(Exception):
    pass


class _NoBytes(io.RawIOBase):
    """A file of which all is known but what is in it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._at = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, _size: int = -1) -> bytes:
        raise _AskedForBytesError


#### The fields are those of parquet.thrift ####

#: FileMetaData.row_groups, RowGroup.columns, ColumnChunk.meta_data, ColumnMetaData.statistics.
_WAY = (4, 1, 3, 12)
_CHUNK, _STATISTICS = 2, 4
#: Statistics.max, min, max_value, min_value.
_VALUES = (1, 2, 5, 6)


def _lengths(footer: bytes) -> list[set[int]]:
    """Of each column chunk how long its least and greatest values are."""
    found: list[set[int]] = []
    try:
        _walk(footer, 0, 0, found)
    except IndexError:
        raise DamageError("its footer is cut off") from None
    return found


def _walk(data: bytes, at: int, level: int, found: list[set[int]]) -> int:
    """Go through a struct on the way to the statistics; where what follows begins."""
    number = 0
    if level == _CHUNK:
        found.append(set())
    while True:
        kind, number, at = thrift.field_at(data, at, number)
        if kind == thrift.STOP:
            return at
        if level == _STATISTICS:
            if kind == thrift.BINARY and number in _VALUES:
                found[-1].add(thrift.varint(data, at)[0])
        elif number == _WAY[level] and kind in (thrift.STRUCT, thrift.LIST):
            count = 1
            if kind == thrift.LIST:
                count, _, at = thrift.list_at(data, at)
            for _ in range(count):
                at = _walk(data, at, level + 1, found)
            continue
        at = thrift.past(data, at, kind)
