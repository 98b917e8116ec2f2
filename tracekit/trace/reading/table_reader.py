"""Rows that are held in memory, read as a trace: for whoever judges parts of one many times."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.trace.format.model import TraceHeader
from tracekit.trace.format.schema import FILE_ORDER, NAMES
from tracekit.trace.format.segments import Segment, sorted_order
from tracekit.trace.reading.files import SegmentFile, conform
from tracekit.trace.reading.in_memory import RowsInMemory
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.snapshot import Snapshot


class HeldRows(RowsInMemory):
    """A file of a snapshot that is none."""

    is_plain = False
    is_sealed = True
    size_bytes = 0

    def __init__(self, table: pa.Table, path: Path) -> None:
        """`table` has the columns of a trace, in the order of a segment's rows."""
        seqs = pc.min_max(table["seq"]).as_py()
        super().__init__(Segment(seqs["min"], seqs["max"], path), table)


def in_file_order(table: pa.Table) -> pa.Table:
    """Rows with all columns of a trace, as a segment has them."""
    return conform(table, NAMES).take(sorted_order(table, FILE_ORDER))


def read_held(table: pa.Table, header: TraceHeader, path: Path) -> TraceReader:
    """A reader of rows in file order; `path` is what its errors name."""
    files = [cast("SegmentFile", HeldRows(table, path))] if table.num_rows else []
    return TraceReader(Snapshot(path, header, files))
