"""Rows of a trace brought to those who want them: each row group is read once, by whoever is free.

A task reads some row groups, and writes what each of several wanters wants of them one after the
other into a file of its own; the wanters then read their parts of all these files. So several
processes share the reading of a trace, in whatever order its rows lie.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from tracekit.trace.format.schema import SORT_KEYS
from tracekit.trace.format.segments import own_dictionaries
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.selection import Keys, joined_keys

#: Rows that lie beside each other in a segment are cut out of it; where runs are shorter than this,
#: on average, the rows are sorted first.
_RUN_ROWS = 16
_PACKED = pa.ipc.IpcWriteOptions(compression="lz4")


class Stretch(Struct, frozen=True):
    """Some row groups of a trace, by their number among all of it."""

    first: int
    end: int
    rows: int


class Portion(Struct, frozen=True):
    """The rows that one wanter has in one file."""

    wanter: int
    path: str
    offset: int
    length: int


def stretches(reader: TraceReader, most_rows: int) -> list[Stretch]:
    """All row groups of a trace, in stretches of about so many rows."""
    found: list[Stretch] = []
    first = rows = 0
    counts = reader.row_groups
    for number, count in enumerate(counts):
        rows += count
        if rows >= most_rows or number + 1 == len(counts):
            found.append(Stretch(first, number + 1, rows))
            first, rows = number + 1, 0
    return found


class Wanters(Struct, frozen=True, dict=True):
    """Who wants which rows."""

    keys: tuple[Keys, ...]

    @cached_property
    def _own(self) -> tuple[pa.Array, pa.Array]:
        """Every Job, and whose it is."""
        pairs = [(job, number) for number, keys in enumerate(self.keys) for job in keys.jobs]
        return (
            pa.array((f"{namespace}\0{name}" for (namespace, name), _ in pairs), pa.string()),
            pa.array((number for _, number in pairs), pa.int32()),
        )

    def portions(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """What each of them wants of some rows; the rows of no Job may be wanted by several."""
        jobs, owners = self._own
        whose = owners.take(pc.index_in(joined_keys(table).combine_chunks(), value_set=jobs))
        runs = pc.run_end_encode(whose)
        if len(runs.values) * _RUN_ROWS > table.num_rows:
            order = pc.sort_indices(whose)
            table, runs = table.take(order), pc.run_end_encode(whose.take(order))
        own: dict[int, list[pa.Table]] = defaultdict(list)
        start = 0
        for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            if number is not None:
                own[number].append(table.slice(start, end - start))
            start = end
        jobless = table.filter(pc.is_null(table["job"]))
        for number, keys in enumerate(self.keys):
            if jobless.num_rows and keys.namespaces:
                wanted = pa.array(keys.namespaces, pa.string())
                own[number].append(jobless.filter(pc.is_in(jobless["namespace"], value_set=wanted)))
            if own[number] and (found := pa.concat_tables(own[number])).num_rows:
                yield number, found.combine_chunks()

    def write(
        self, reader: TraceReader, stretch: Stretch, columns: Sequence[str], folder: Path
    ) -> list[Portion]:
        """Read a stretch, and write what is wanted of it into one file."""
        names = list(dict.fromkeys([*columns, *SORT_KEYS]))
        tables = list(reader.stretch(stretch.first, stretch.end, names))
        if not any(table.num_rows for table in tables):
            return []
        whole = pa.concat_tables(tables).unify_dictionaries()
        path = folder / f"rows-{stretch.first}.arrow"
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        found: list[Portion] = []
        with temporary.open("wb") as out:
            for number, table in self.portions(whole):
                sink = pa.BufferOutputStream()
                held = own_dictionaries(table)
                with pa.ipc.new_stream(sink, held.schema, options=_PACKED) as writer:
                    writer.write_table(held)
                content = sink.getvalue()
                found.append(Portion(number, str(path), out.tell(), content.size))
                out.write(content)
        temporary.replace(path)
        return found


def portion_rows(portions: Sequence[Portion]) -> list[pa.Table]:
    """The rows of one wanter, out of all files."""
    tables = []
    for portion in portions:
        with Path(portion.path).open("rb") as file:
            content = os.pread(file.fileno(), portion.length, portion.offset)
        tables.append(pa.ipc.open_stream(content).read_all())
    return tables
