"""What stands among the files of a trace for rows that no file holds."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tracekit.trace.format.segments import Segment
from tracekit.trace.reading.files import conform


class RowsInMemory:
    """Rows in file order, read as the one row group of a file is."""

    row_groups = 1

    def __init__(self, segment: Segment, table: pa.Table) -> None:
        """`segment` says which positions the rows have; errors name its path."""
        self.segment = segment
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
        """The columns of the rows, wanted or not."""
        del group, selection
        return conform(self._table, columns)
