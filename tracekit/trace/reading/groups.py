"""All rows of a trace by (namespace, job), across segments, in bounded memory.

Each row group is read once. A trace that fits in memory is sorted there; the rows of a larger one
go to a temporary file first, in parts that fit: each holds a range of keys, so that one part after
the other is the trace in order. A sample of the keys says where the parts are cut. Rows are then
handed out some thousands at a time. A group larger than a part is brought together whole.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, NamedTuple, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from tracekit.trace.format.schema import SORT_KEYS
from tracekit.trace.format.segments import own_dictionaries, sorted_order
from tracekit.trace.reading.prefetch import bring
from tracekit.trace.reading.selection import Selection

#: Rows that are handed out at a time (a larger group is handed out whole).
_WINDOW_ROWS = 16_384
#: Rows of a trace that needs no file: they are sorted at once, about 100 MiB of them.
_HELD_ROWS = 131_072
#: Rows of a larger one that are sorted in memory at a time, about 50 MiB of them.
_SORTED_ROWS = 65_536
#: Of so many rows one is looked at to find where to cut.
_SAMPLED = 256
_SPILLED = pa.ipc.IpcWriteOptions(compression="lz4")

Key = tuple[str, str]


class Group(Struct, frozen=True):
    """The rows of one job, of a namespace's rows of no job, or of all rows of no namespace."""

    namespace: str | None
    job: str | None
    #: The table that holds the rows, among those of neighbouring groups.
    window: pa.Table
    start: int
    count: int

    @property
    def rows(self) -> pa.Table:
        """The rows of the group alone, sorted by (revision, position)."""
        return self.window.slice(self.start, self.count)


class RowFile(Protocol):
    """What of a segment's file is needed to go through its groups."""

    @property
    def row_groups(self) -> int:
        """How many parts it is read in."""

    def rows_in(self, group: int) -> int:
        """Rows of one part."""

    def may_match(self, group: int, selection: Selection) -> bool:
        """False only if the part certainly holds no row of a selection."""

    def read(self, group: int, columns: Sequence[str], selection: Selection) -> pa.Table:
        """The columns of one part; rows that are not wanted may be left out."""


class _Part(NamedTuple):
    """One row group of a file."""

    file: RowFile
    group: int

    def wanted(self, columns: Sequence[str], selection: Selection) -> pa.Table:
        """Its rows of a selection."""
        return selection.filter(self.file.read(self.group, columns, selection))


def iterate_groups(
    files: Sequence[RowFile], columns: Sequence[str], only: Selection
) -> Iterator[Group]:
    """Every group of the files that holds rows of a selection, in order."""
    parts = [
        _Part(file, group)
        for file in files
        for group in range(file.row_groups)
        if file.may_match(group, only)
    ]
    bring(parts)
    names = list(dict.fromkeys([*columns, *SORT_KEYS, *sorted(only.columns())]))
    if sum(file.rows_in(group) for file, group in parts) <= _HELD_ROWS:
        tables = [part.wanted(names, only) for part in parts]
        yield from groups_of(tables, columns)
        return
    with _Spill(parts, only) as spill:
        spill.take_in(names)
        for number in range(spill.ranges):
            # Arrow's pool keeps what is given back to it, and Python's objects find no room there.
            pa.default_memory_pool().release_unused()
            yield from groups_of(spill.tables(number), columns)


def groups_of(tables: list[pa.Table], columns: Sequence[str]) -> Iterator[Group]:
    """The groups of some tables that hold all rows of each."""
    if not any(table.num_rows for table in tables):
        return
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    tables.clear()
    order = sorted_order(table)
    runs = _runs(table, order)
    table = table.select(list(columns))
    start = 0
    for window in _windows(runs):
        rows = sum(count for _, count in window)
        held = table.take(order.slice(start, rows))
        start += rows
        position = 0
        for (name, group_job), count in window:
            yield Group(name or None, group_job or None, held, position, count)
            position += count


def _runs(table: pa.Table, order: pa.Array) -> list[tuple[Key, int]]:
    """The keys in order, with how many rows each has; an absent name is the empty one."""
    ends: list[list[tuple[int, str]]] = []
    for name in ("namespace", "job"):
        column = pc.fill_null(table[name].combine_chunks(), "").take(order)
        encoded = pc.run_end_encode(column)
        pairs = zip(encoded.run_ends.to_pylist(), encoded.values.to_pylist(), strict=True)
        ends.append(list(pairs))
    runs: list[tuple[Key, int]] = []
    spaces, jobs = ends
    at = space = job = 0
    while space < len(spaces):
        end = min(spaces[space][0], jobs[job][0])
        runs.append(((spaces[space][1], jobs[job][1]), end - at))
        at = end
        space += spaces[space][0] == end
        job += jobs[job][0] == end
    return runs


def _windows(runs: Iterable[tuple[Key, int]]) -> Iterator[list[tuple[Key, int]]]:
    """Runs in pieces of whole groups, of about the rows that are handed out at once."""
    window: list[tuple[Key, int]] = []
    rows = 0
    for run in runs:
        if window and rows + run[1] > _WINDOW_ROWS:
            yield window
            window, rows = [], 0
        window.append(run)
        rows += run[1]
    if window:
        yield window


@dataclass(slots=True)
class _Spill:
    """Rows in a temporary file, by ranges of their keys. It is gone with its last descriptor."""

    parts: Sequence[_Part]
    only: Selection
    _cuts: list[Key] = field(default_factory=list)  # each begins a range
    _places: list[list[tuple[int, int]]] = field(default_factory=list)  # offset, length
    _file: IO[bytes] = field(init=False)

    def __enter__(self) -> Self:
        self._cuts = _cuts(self.parts, self.only)
        self._places = [[] for _ in range(self.ranges)]
        self._file = tempfile.TemporaryFile(prefix="tracekit-")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def ranges(self) -> int:
        """How many ranges there are."""
        return len(self._cuts) + 1

    def take_in(self, names: Sequence[str]) -> None:
        """Read all rows, and put them where they belong."""
        tables: list[pa.Table] = []
        rows = 0
        for part in self.parts:
            tables.append(part.wanted(names, self.only))
            rows += tables[-1].num_rows
            if rows >= _SORTED_ROWS:
                self._put(tables)
                rows = 0
        self._put(tables)

    def _put(self, tables: list[pa.Table]) -> None:
        if not any(table.num_rows for table in tables):
            tables.clear()
            return
        table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        tables.clear()
        order = sorted_order(table, ("namespace", "job"))
        counts = [0] * self.ranges
        for key, count in _runs(table, order):
            counts[bisect_right(self._cuts, key)] += count
        start = 0
        for number, count in enumerate(counts):
            if count:
                self._write(number, own_dictionaries(table.take(order.slice(start, count))))
                start += count

    def _write(self, number: int, table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=_SPILLED) as writer:
            writer.write_table(table)
        content = sink.getvalue()
        self._places[number].append((self._file.tell(), content.size))
        self._file.write(content)

    def tables(self, number: int) -> list[pa.Table]:
        """All rows of one range."""
        self._file.flush()
        return [
            pa.ipc.open_stream(os.pread(self._file.fileno(), length, offset)).read_all()
            for offset, length in self._places[number]
        ]


def _cuts(parts: Iterable[_Part], only: Selection) -> list[Key]:
    """Keys that cut the rows into ranges of about the same size."""
    sample: list[Key] = []
    for part in parts:
        table = part.wanted(
            list(dict.fromkeys(["namespace", "job", *sorted(only.columns())])), only
        )
        table = table.take(pa.array(range(0, table.num_rows, _SAMPLED), pa.int64()))
        pairs = zip(table["namespace"].to_pylist(), table["job"].to_pylist(), strict=True)
        sample += [(namespace or "", job or "") for namespace, job in pairs]
    sample.sort()
    each = max(1, _SORTED_ROWS // _SAMPLED)
    return list(dict.fromkeys(sample[each::each]))
