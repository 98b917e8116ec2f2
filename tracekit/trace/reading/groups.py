"""All rows of a trace by (namespace, job), across segments, in bounded memory.

In each segment the rows of a group lie together. One pass over the two key columns finds, for
each segment, where every group lies; then the groups are visited in order, some thousands
of rows at a time, and each segment's share of them is one contiguous range of its rows.

Measured against DuckDB's ORDER BY over the same files (200,000 rows, all columns but `raw`): the
same processor time, and 0.35 GB of memory instead of 0.9 GB.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, Protocol

import pyarrow as pa

from tracekit.trace.format.schema import SORT_KEYS
from tracekit.trace.format.segments import sorted_order

#: Rows that are brought together at a time (a larger group is brought together whole).
_WINDOW_ROWS = 16_384
#: Row groups kept decoded, as the next window often begins where the last one ended.
_CACHED_ROW_GROUPS = 6


@dataclass(frozen=True, slots=True)
class Group:
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

    def read(self, group: int, columns: Sequence[str]) -> pa.Table:
        """The columns of one part."""


class _Run(NamedTuple):
    """Where one segment has the rows of one group."""

    namespace: str
    job: str
    file: int
    start: int
    rows: int

    @property
    def key(self) -> tuple[str, str]:
        """What the group is ordered by; an absent name is the empty one, which sorts first."""
        return self.namespace, self.job


def iterate_groups(
    files: Sequence[RowFile],
    columns: Sequence[str],
    *,
    namespace: str | None = None,
    job: str | None = None,
) -> Iterator[Group]:
    """Every group of the files, in order."""
    runs = [run for number, file in enumerate(files) for run in _runs(number, file)]
    if namespace is not None:
        runs = [run for run in runs if run.namespace == namespace]
    if job is not None:
        runs = [run for run in runs if run.job == job]
    runs.sort()
    wanted = list(dict.fromkeys([*columns, *SORT_KEYS]))
    cache = _RowGroups(files, wanted)
    for window in _windows(runs):
        table = cache.gather(window)
        table = table.take(sorted_order(table)).select(list(columns))
        start = 0
        for (name, group_job), members in groupby(window, key=attrgetter("key")):
            count = sum(run.rows for run in members)
            yield Group(name or None, group_job or None, table, start, count)
            start += count


def _runs(number: int, file: RowFile) -> Iterator[_Run]:
    """The runs of equal keys of a segment, whose rows are sorted by key."""
    position = 0
    open_run: _Run | None = None
    for group in range(file.row_groups):
        keys = file.read(group, ("namespace", "job"))
        pairs = zip(keys["namespace"].to_pylist(), keys["job"].to_pylist(), strict=True)
        for (namespace, job), members in groupby(pairs):
            run = _Run(namespace or "", job or "", number, position, sum(1 for _ in members))
            position += run.rows
            if open_run is not None and open_run.key == run.key:
                open_run = open_run._replace(rows=open_run.rows + run.rows)
                continue
            if open_run is not None:
                yield open_run
            open_run = run
    if open_run is not None:
        yield open_run


def _windows(runs: Iterable[_Run]) -> Iterator[list[_Run]]:
    """Runs in pieces of whole groups, of about the rows that fit in memory at once."""
    window: list[_Run] = []
    rows = 0
    for _, members in groupby(runs, key=attrgetter("key")):
        group = list(members)
        count = sum(run.rows for run in group)
        if window and rows + count > _WINDOW_ROWS:
            yield window
            window, rows = [], 0
        window += group
        rows += count
    if window:
        yield window


class _RowGroups:
    """Reads row ranges of segments, keeping the row groups read last."""

    def __init__(self, files: Sequence[RowFile], columns: Sequence[str]) -> None:
        self._files = files
        self._columns = columns
        self._cache: OrderedDict[tuple[int, int], pa.Table] = OrderedDict()
        self._starts = [_row_group_starts(file) for file in files]

    def gather(self, window: Sequence[_Run]) -> pa.Table:
        """The rows of all runs as one table, unsorted."""
        parts: list[pa.Table] = []
        by_file = sorted(window, key=attrgetter("file", "start"))
        for number, members in groupby(by_file, key=attrgetter("file")):
            runs = list(members)
            parts += self._ranges(number, runs[0].start, runs[-1].start + runs[-1].rows)
        return pa.concat_tables(parts).unify_dictionaries().combine_chunks()

    def _ranges(self, number: int, start: int, end: int) -> Iterator[pa.Table]:
        starts = self._starts[number]
        for group in range(len(starts) - 1):
            low, high = max(start, starts[group]), min(end, starts[group + 1])
            if low < high:
                yield self._read(number, group).slice(low - starts[group], high - low)

    def _read(self, number: int, group: int) -> pa.Table:
        key = (number, group)
        table = self._cache.pop(key, None)
        if table is None:
            table = self._files[number].read(group, self._columns)
        self._cache[key] = table
        if len(self._cache) > _CACHED_ROW_GROUPS:
            self._cache.popitem(last=False)
        return table


def _row_group_starts(file: RowFile) -> list[int]:
    starts = [0]
    for group in range(file.row_groups):
        starts.append(starts[-1] + file.rows_in(group))
    return starts
