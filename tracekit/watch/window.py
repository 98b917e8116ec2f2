"""Rows of a growing record that are still of use, in bounded memory.

What is older than the window is put together as a recorder's own rotation would: one row for each
object that still lives, as if it had been listed when the window began. The rows of a Job stay
together: all of them, until it is over and nothing has happened to it since the window began.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.base.coverage import Scope
from tracekit.trace.format.model import STATE_TYPES, RowType
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.coverage import scope_in
from tracekit.trace.reading.files import empty

Key = tuple[str, str]
#: The conditions of a Job that is over.
_ENDS = ("Complete", "Failed")
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
        #: Jobs of which rows were let go, as (namespace, name), and when.
        self._cut_ns: dict[Key, int] = {}

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return sum(table.num_rows for table in self._tables)

    @property
    def is_full(self) -> bool:
        """Whether older rows are to be put together: what they tell is to be asked before."""
        return self.rows > 2 * self._limit

    def feed(self, rows: pa.Table) -> None:
        """Take in rows, in order of arrival."""
        self._now_ns = max(self._now_ns, pc.max(rows["recv_ns"]).as_py() or 0)
        mine = _without_text(self._wanted(rows))
        if mine.num_rows:
            self._tables.append(mine)

    def trim(self) -> None:
        """Put together the rows that are older than the window."""
        table, over = relisted(self.table(), self._now_ns - self._keep_ns)
        self._tables = [table]
        self._limit = max(_FEW_ROWS, self.rows)
        self._cut_ns.update(dict.fromkeys(over, self._now_ns))
        there = set(_keys(table))
        self._cut_ns = {key: at_ns for key, at_ns in self._cut_ns.items() if key in there}

    def cut_ns(self, key: Key) -> int:
        """Until when not all is known any more of a Job that is over; 0 where all is."""
        return self._cut_ns.get(key, 0)

    def table(self) -> pa.Table:
        """All rows that are held, in order of arrival."""
        if not self._tables:
            return empty(NAMES)
        return pa.concat_tables(self._tables).unify_dictionaries()


def _without_text(table: pa.Table) -> pa.Table:
    """Rows without the objects' text, of which the columns tell what is looked at.

    What a list asked for has no column.
    """
    place = table.schema.get_field_index("raw")
    field = table.schema.field(place)
    bound = pc.is_in(
        pc.cast(table["type"], pa.string()), pa.array([RowType.LIST_BEGIN, RowType.LIST_END])
    )
    texts = pc.if_else(bound, table[place], pa.scalar(None, field.type))
    return table.set_column(place, field, texts)


def _keys(table: pa.Table) -> list[Key]:
    return list(zip(table["namespace"].to_pylist(), table["job"].to_pylist(), strict=True))


def _over(table: pa.Table, before_ns: int) -> set[Key]:
    """The Jobs that are over and at which nothing has happened since."""
    names = ("recv_ns", "stream", "type", "conditions")
    columns = [table[name].to_pylist() for name in names]
    last_ns: dict[Key, int] = {}
    over: dict[Key, bool] = {}
    for key, at_ns, stream, kind, conditions in zip(_keys(table), *columns, strict=True):
        if key[1] is None:
            continue
        last_ns[key] = max(last_ns.get(key, 0), at_ns or 0)
        if stream == "jobs" and kind in STATE_TYPES:
            ended = any(c["type"] in _ENDS and c["status"] == "True" for c in conditions or ())
            over[key] = ended or kind == RowType.DELETED
    return {key for key, at_ns in last_ns.items() if at_ns < before_ns and over.get(key, True)}


def relisted(table: pa.Table, before_ns: int) -> tuple[pa.Table, set[Key]]:
    """Rows of which those from before a time are one for each object that lived then.

    All rows of Jobs stay that are not over, or at which something has happened since; the others
    are given. Bounds of lists stay as they are, so that a stream that was listed is known to have
    been; so do gaps, and leases where they changed hands. Deletions from before are of no use any
    more.
    """
    over = _over(table, before_ns)
    names = ("recv_ns", "stream", "uid", "type", "holder")
    columns = [table[name].to_pylist() for name in names]
    latest: dict[tuple[str, str], int] = {}
    asked = [scope_in(text) for text in table["raw"].to_pylist()]
    bounds: dict[tuple[str, str, Scope | None], int] = {}
    kept: list[int] = []
    for place, (key, at_ns, stream, uid, kind, holder) in enumerate(
        zip(_keys(table), *columns, strict=True)
    ):
        known = latest.get((stream, uid))
        whole = key[1] is not None and key not in over
        if whole or (at_ns or 0) >= before_ns or kind == RowType.GAP:
            kept.append(place)
        elif stream == "leases" and known is not None and columns[4][known] != holder:
            kept += [known, place]
            latest[stream, uid] = place
        elif kind in STATE_TYPES and uid is not None:
            latest[stream, uid] = place
        elif kind in (RowType.LIST_BEGIN, RowType.LIST_END):
            bounds[stream, kind, asked[place]] = place
    older = [place for place in latest.values() if columns[3][place] != RowType.DELETED]
    kept = sorted(set(kept))
    first = sorted({*bounds.values(), *older}.difference(kept))
    before = table.take(pa.array(first, pa.int64()))
    kinds = [
        RowType.LIST.value if kind in STATE_TYPES else kind for kind in before["type"].to_pylist()
    ]
    position = before.schema.get_field_index("type")
    field = before.schema.field(position)
    before = before.set_column(position, field, pa.array(kinds, field.type))
    return pa.concat_tables([before, table.take(pa.array(kept, pa.int64()))]), over
