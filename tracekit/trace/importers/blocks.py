"""Lines of a watch log, some thousand at a time: parsed into columns, in whatever process.

`parse_block` is a function of the block's bytes alone, and what it returns is bytes: an Arrow
stream with a batch for each stream of states. It takes the lines that are what a recorder writes,
nearly all; the others are left to who puts the blocks together again, in their order. The raw texts
stay in the block: only where they stand is told.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from functools import cached_property
from itertools import accumulate, chain
from operator import gt, sub
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.base.collecting import collecting_rarely
from tracekit.trace.format.limits import (
    NESTING_MAX,
    ROW_BYTES_MAX,
    is_nested_deeper,
    may_be_nested_deeper,
)
from tracekit.trace.format.model import RowType
from tracekit.trace.format.rows import MEMORY_SCHEMA, States, column_of
from tracekit.trace.format.texts import texts_of
from tracekit.trace.format.typed import columns_of
from tracekit.trace.importers.envelopes import State, typed_state
from tracekit.trace.importers.watchdog import Run, Seen

#: Large enough that columns are worth it, small enough that some fit into memory.
BLOCK_BYTES = 8 * 1024 * 1024
_GIVEN = ("seq", "stream_pos", "raw")
_SPAN = pa.list_(pa.int32(), 2)
#: Where a row's line and raw text stand in the block, and the columns.
_SCHEMA = pa.schema(
    [
        pa.field("line", pa.int64()),
        pa.field("span", _SPAN),
        *(field for field in MEMORY_SCHEMA if field.name not in _GIVEN),
    ]
)
#: So many streams of one block become columns. A recorder has seven; the lines of others are left
#: to who takes the blocks in: the columns of each stream are looked at for each run of lines.
_STREAMS_MAX = 64
_LINES = b"lines"
_TYPES = {row_type.value: row_type for row_type in RowType}

#### Parsing ####


def parse_block(block: bytes) -> bytes:
    """The columns of the states in a block of whole lines, as `Block` reads them."""
    with collecting_rarely():
        return _parsed(block)


def _parsed(block: bytes) -> bytes:
    found: defaultdict[str, list[tuple[int, int, int, State]]] = defaultdict(list)
    lines = block.split(b"\n")
    deep = may_be_nested_deeper(block, NESTING_MAX)
    begin = 0
    for number, line in enumerate(lines):
        state = typed_state(line)
        is_known = state is not None and (state.stream in found or len(found) < _STREAMS_MAX)
        if state is not None and is_known and state.recv_ns is not None:
            raw = state.raw
            if len(raw) <= ROW_BYTES_MAX and not (deep and is_nested_deeper(raw, NESTING_MAX)):
                at = len(line) - len(raw) - 1  # nothing but the line's own brace comes after it
                if not line.startswith(raw, at):
                    at = line.rindex(raw)  # or space, as no recorder writes
                found[state.stream].append((number, begin + at, begin + at + len(raw), state))
        begin += len(line) + 1
    sink = pa.BufferOutputStream()
    schema = _SCHEMA.with_metadata({_LINES: str(len(lines)).encode()})
    with pa.ipc.new_stream(sink, schema) as writer:
        for stream, rows in found.items():
            writer.write_batch(_batch(stream, rows, schema))
    parsed: bytes = sink.getvalue().to_pybytes()
    return parsed


def _batch(
    stream: str, rows: list[tuple[int, int, int, State]], schema: pa.Schema
) -> pa.RecordBatch:
    numbers, starts, ends, states = zip(*rows, strict=True)
    _, types, times, _, objects = zip(*states, strict=True)
    columns: dict[str, Any] = columns_of(stream, objects)
    columns["stream"] = [stream] * len(rows)
    columns["type"] = [row_type.value for row_type in types]
    columns["recv_ns"] = times
    columns["synthesized"] = [False] * len(rows)
    spans = pa.array(chain.from_iterable(zip(starts, ends, strict=True)), pa.int32())
    arrays = [
        pa.array(numbers, pa.int64()),
        pa.FixedSizeListArray.from_arrays(spans, 2),
        *(column_of(field.name, columns.get(field.name), len(rows)) for field in list(schema)[2:]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


#### Putting together ####


class Block:
    """A block, and what `parse_block` found in it."""

    def __init__(self, block: bytes, parsed: bytes) -> None:
        self._block = block
        with pa.ipc.open_stream(parsed) as reader:
            #: How many lines there are.
            self.lines = int(reader.schema.metadata[_LINES])
            self._parts = [_Part(block, batch) for batch in reader]
        sizes = [0] * self.lines
        self._times = [0] * self.lines
        for part in self._parts:
            for number, at_ns, size in zip(part.numbers, part.times, part.sizes, strict=True):
                self._times[number] = at_ns
                sizes[number] = size
        #: Bytes of raw text in all states before each line.
        self._sizes = list(accumulate(sizes, initial=0))

    @cached_property
    def seen(self) -> list[Seen | None]:
        """What is to be looked at of each line; None where no state was found."""
        seen: list[Seen | None] = [None] * self.lines
        for part in self._parts:
            for number, row in zip(part.numbers, part.seen(), strict=True):
                seen[number] = row
        return seen

    def runs(self) -> list[Run] | None:
        """The states by their streams, where every line is one and time never goes back."""
        if sum(len(part.numbers) for part in self._parts) != self.lines:
            return None
        if any(map(gt, self._times, self._times[1:])):
            return None
        return [part.run() for part in self._parts]

    @property
    def ends_ns(self) -> tuple[int, int]:
        """The times of the first and the last line, where every line is a state."""
        return self._times[0], self._times[-1]

    @cached_property
    def texts(self) -> list[bytes]:
        """The lines."""
        return self._block.split(b"\n")

    def fitting(self, first: int, last: int, rows: int, raw_bytes: int) -> int:
        """Of lines that all are states those that fit: until one fills either."""
        full = bisect_left(self._sizes, self._sizes[first] + raw_bytes, first + 1, last)
        return min(last, first + rows, full)

    def states(self, first: int, last: int) -> tuple[list[States], int]:
        """The states in some lines, all of which are one, and the time of the last."""
        parts = [part.states(first, last) for part in self._parts]
        return [part for part in parts if part is not None], self._times[last - 1]


class _Part:
    """The states of one stream in a block."""

    def __init__(self, block: bytes, batch: pa.RecordBatch) -> None:
        self.numbers = batch.column("line").to_pylist()
        self._lines = batch.column("line")
        places = batch.column("span").flatten().to_pylist()
        starts, ends = places[::2], places[1::2]
        self.sizes = list(map(sub, ends, starts))
        view = memoryview(block)
        raw = texts_of([view[start:end] for start, end in zip(starts, ends, strict=True)])
        self.stream: str = batch.column("stream")[0].as_py()
        self.batch = batch.append_column("raw", raw)
        self.times = batch.column("recv_ns").to_pylist()

    def seen(self) -> list[Seen]:
        """What is to be looked at of each row."""
        stream = self.stream
        names = ("type", "rv", "uid", "name", "namespace")
        cells = (self.batch.column(name).to_pylist() for name in names)
        return [
            Seen(stream, _TYPES[kind], rv, uid, name, recv_ns, namespace)
            for kind, rv, uid, name, namespace, recv_ns in zip(*cells, self.times, strict=True)
        ]

    def run(self) -> Run:
        """All rows at once."""
        types, revisions, names = map(self.batch.column, ("type", "rv", "name"))
        watched = revisions.filter(pc.not_equal(types, RowType.LIST))
        return Run(
            self.stream,
            len(types),
            watched.to_pylist(),
            pc.max(revisions).as_py(),
            names.to_pylist(),
            self.times[-1],
        )

    def states(self, first: int, last: int) -> States | None:
        """The states between two lines."""
        begin = bisect_left(self.numbers, first)
        end = bisect_left(self.numbers, last, begin)
        if begin == end:
            return None
        rows = self.batch.slice(begin, end - begin)
        places = pc.subtract(self._lines.slice(begin, end - begin), first)
        return States(self.stream, rows, places, sum(self.sizes[begin:end]))
