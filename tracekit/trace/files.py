"""One opened segment: which of its row groups may hold wanted rows, and reading them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from tracekit.errors import TraceFormatError
from tracekit.trace.migrate import migrate_table
from tracekit.trace.model import FORMAT_VERSION
from tracekit.trace.plain import PLAIN_KEY, typed
from tracekit.trace.rows import MEMORY_SCHEMA
from tracekit.trace.schema import FILE_ORDER, NAMES, SCHEMA, TEXT_COLUMNS
from tracekit.trace.segments import FORMAT_KEY, sorted_order

if TYPE_CHECKING:
    from pathlib import Path

    from tracekit.trace.segments import Segment


class RowFilter(Protocol):
    """What of a selection is needed to skip row groups."""

    def equals(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Columns that must have one of some values."""

    def ranges(self) -> Iterator[tuple[str, int | None, int | None]]:
        """Columns that must lie between two values, both included."""


class SegmentFile:
    """A segment's file; once opened it stays readable even when compaction deletes it."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        source = pa.PythonFile(segment.path.open("rb"), mode="r")
        metadata = pq.read_metadata(source)
        present = set(metadata.schema.names)
        self._parquet = pq.ParquetFile(
            source,
            metadata=metadata,
            # A plain segment has none of them, and Arrow refuses what is not there.
            read_dictionary=[name for name in TEXT_COLUMNS if name in present],
        )
        self.row_groups: int = metadata.num_row_groups
        schema = metadata.schema
        self._leaves = {schema.column(i).path: i for i in range(metadata.num_columns)}
        self._names = set(self._parquet.schema_arrow.names)
        self._version = self._format_version()
        self.is_plain = PLAIN_KEY in (metadata.metadata or {})
        if metadata.num_rows != segment.rows:
            raise pa.ArrowInvalid(f"it has {metadata.num_rows} rows, its name says {segment.rows}")

    def _format_version(self) -> int:
        text = (self._parquet.metadata.metadata or {}).get(FORMAT_KEY, b"")
        if not text.isdigit():
            raise pa.ArrowInvalid("it does not say which trace format it has")
        version = int(text)
        if version > FORMAT_VERSION:
            raise TraceFormatError(
                f"{self.segment.path} was written by a newer tracekit (format {version}; this one "
                f"reads up to {FORMAT_VERSION}): upgrade with pip install -U kube-tracekit"
            )
        return version

    @property
    def raw_bytes(self) -> int:
        """Bytes of raw text before compression."""
        metadata = self._parquet.metadata
        leaf = self._leaves["raw"]
        return sum(
            metadata.row_group(group).column(leaf).total_uncompressed_size
            for group in range(self.row_groups)
        )

    def rows_in(self, group: int) -> int:
        """Rows of one row group."""
        rows: int = self._parquet.metadata.row_group(group).num_rows
        return rows

    def may_match(self, group: int, selection: RowFilter) -> bool:
        """False only if the statistics rule out that the row group holds a wanted row."""
        for name, values in selection.equals():
            low, high = self._bounds(group, name)
            if low is not None and not any(low <= value <= high for value in values):
                return False
        for name, least, most in selection.ranges():
            low, high = self._bounds(group, name)
            if low is None:
                continue
            if (least is not None and high < least) or (most is not None and low > most):
                return False
        return True

    def _bounds(self, group: int, name: str) -> tuple[Any, Any]:
        leaf = self._leaves.get(name)
        if leaf is None:
            return None, None
        statistics = self._parquet.metadata.row_group(group).column(leaf).statistics
        if statistics is None or not statistics.has_min_max:
            return None, None
        return statistics.min, statistics.max

    def read(self, group: int, columns: Sequence[str]) -> pa.Table:
        """The columns of one row group; columns that the file does not know are null."""
        if self.is_plain and not self._names.issuperset(columns):
            whole = self._parquet.read_row_group(group, use_threads=False)
            rows = typed(whole)
            return conform(rows, columns).take(sorted_order(rows, FILE_ORDER))
        present = [name for name in columns if name in self._names]
        if self._version != FORMAT_VERSION:
            present = sorted(self._names)
        table = self._parquet.read_row_group(group, columns=present, use_threads=False)
        table = migrate_table(table, self._version)
        return conform(table, columns)

    def unsorted(self) -> pa.Table:
        """All columns of all rows, in any order: what a compaction sorts anyway."""
        if self.is_plain:
            whole = typed(self._parquet.read_row_group(0, use_threads=False))
            return conform(whole, NAMES)
        return pa.concat_tables([self.read(group, NAMES) for group in range(self.row_groups)])

    def damage(self, error: Exception) -> str:
        """The sentence for a file that turned out to be unreadable."""
        return (
            f"{self.segment.path} is damaged ({error}): restore it from a copy of the trace, or "
            "move it away to read the rest"
        )


def plain_rows(path: Path) -> pa.Table | None:
    """All rows of a segment file with their typed columns if it is plain, else nothing.

    For readers that go to the files by themselves: a plain file has only some of the columns.
    """
    try:
        metadata = pq.read_metadata(path).metadata or {}
    except (OSError, pa.ArrowException):
        return None  # gone or damaged: whoever opens it next will say so
    if PLAIN_KEY not in metadata:
        return None
    return typed(pq.read_table(path, partitioning=None)).cast(SCHEMA)


def conform(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The table with just these columns, in this order, in the types of memory."""
    arrays = []
    for name in columns:
        kind = MEMORY_SCHEMA.field(name).type
        if name in table.schema.names:
            column = table[name]
            arrays.append(column if column.type == kind else column.cast(kind))
        else:
            arrays.append(pa.nulls(table.num_rows, kind))
    return pa.table(arrays, schema=memory_schema(columns))


def memory_schema(columns: Sequence[str]) -> pa.Schema:
    """The types that readers hand out for these columns."""
    return pa.schema([MEMORY_SCHEMA.field(name) for name in columns])


def empty(columns: Sequence[str]) -> pa.Table:
    """No rows of these columns."""
    return memory_schema(columns).empty_table()
