"""Rows of a growing record that are still of use, in bounded memory.

What is older than the window is put together as a recorder's own rotation would: one row for each
object that still lives, as if it had been listed when the window began.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.trace.format.model import STATE_TYPES, RowType
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.files import empty

#: Fewer rows are not worth putting together anew.
_FEW_ROWS = 1024


class Window:
    """The latest rows that pass a test, and the older ones put together."""

    def __init__(self, wanted: Callable[[pa.Table], pa.Table], keep_ns: int) -> None:
        """`wanted` gives those of some rows that matter."""
        self._wanted = wanted
        self._keep_ns = keep_ns
        self._tables: list[pa.Table] = []
        self._limit = _FEW_ROWS
        self._now_ns = 0

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return sum(table.num_rows for table in self._tables)

    def feed(self, rows: pa.Table) -> None:
        """Take in rows, in order of arrival."""
        self._now_ns = max(self._now_ns, pc.max(rows["recv_ns"]).as_py() or 0)
        mine = self._wanted(rows)
        if mine.num_rows:
            self._tables.append(mine)
        if self.rows > 2 * self._limit:
            self._tables = [relisted(self.table(), self._now_ns - self._keep_ns)]
            self._limit = max(_FEW_ROWS, self.rows)

    def table(self) -> pa.Table:
        """All rows that are held, in order of arrival."""
        if not self._tables:
            return empty(NAMES)
        return pa.concat_tables(self._tables).unify_dictionaries()


def relisted(table: pa.Table, before_ns: int) -> pa.Table:
    """Rows of which those from before a time are one for each object that lived then.

    Bounds of lists stay as they are, so that a stream that was listed is known to have been; so do
    gaps, and leases where they changed hands. Deletions from before are of no use any more.
    """
    names = ("recv_ns", "stream", "uid", "type", "holder")
    columns = [table[name].to_pylist() for name in names]
    latest: dict[tuple[str, str], int] = {}
    bounds: dict[tuple[str, str], int] = {}
    kept: list[int] = []
    for place, (at_ns, stream, uid, kind, holder) in enumerate(zip(*columns, strict=True)):
        known = latest.get((stream, uid))
        if (at_ns or 0) >= before_ns or kind == RowType.GAP:
            kept.append(place)
        elif stream == "leases" and known is not None and columns[4][known] != holder:
            kept += [known, place]
            latest[stream, uid] = place
        elif kind in STATE_TYPES and uid is not None:
            latest[stream, uid] = place
        elif kind in (RowType.LIST_BEGIN, RowType.LIST_END):
            bounds[stream, kind] = place
    older = [place for place in latest.values() if columns[3][place] != RowType.DELETED]
    kept = sorted(set(kept))
    first = sorted({*bounds.values(), *older}.difference(kept))
    before = table.take(pa.array(first, pa.int64()))
    kinds = [
        RowType.LIST.value if kind in STATE_TYPES else kind for kind in before["type"].to_pylist()
    ]
    position = before.schema.get_field_index("type")
    before = before.set_column(position, before.schema.field(position), pa.array(kinds))
    return pa.concat_tables([before, table.take(pa.array(kept, pa.int64()))])
