"""Rows that are held in memory, read as a trace: for whoever judges parts of one many times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pyarrow as pa

from tracekit.trace.format.model import TraceHeader
from tracekit.trace.format.schema import FILE_ORDER, NAMES
from tracekit.trace.format.segments import Segment, sorted_order
from tracekit.trace.reading.files import SegmentFile, conform
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.snapshot import Snapshot


class HeldRows:
    """Stands among the files of a trace for rows that no file holds."""

    row_groups = 1
    is_plain = False
    is_sealed = True
    size_bytes = 0

    def __init__(self, table: pa.Table, path: Path) -> None:
        """`table` has the columns of a trace, in the order of a segment's rows."""
        seqs = table["seq"].to_pylist()
        self.segment = Segment(min(seqs, default=0), max(seqs, default=0), path)
        self._table = table

    def rows_in(self, group: int) -> int:
        """All of them."""
        del group
        return int(self._table.num_rows)

    def may_match(self, group: int, selection: object) -> bool:
        """Nothing is known to be ruled out."""
        del group, selection
        return True

    def read(self, group: int, columns: Sequence[str], selection: object = None) -> pa.Table:
        """The columns of the rows."""
        del group, selection
        return conform(self._table, columns)


def in_file_order(table: pa.Table) -> pa.Table:
    """Rows with all columns of a trace, as a segment has them."""
    return conform(table, NAMES).take(sorted_order(table, FILE_ORDER))


def read_held(table: pa.Table, header: TraceHeader, path: Path) -> TraceReader:
    """A reader of rows in file order; `path` is what its errors name."""
    files = [cast("SegmentFile", HeldRows(table, path))] if table.num_rows else []
    return TraceReader(Snapshot(path, header, files))
