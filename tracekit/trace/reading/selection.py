"""Which rows of a trace are wanted: what rules files and row groups out, what picks the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows are wanted; everything that is None is not asked for."""

    namespace: str | None = None
    job: str | None = None
    streams: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    uid: str | None = None
    #: Receive times, `from_ns` included, `until_ns` not.
    from_ns: int | None = None
    until_ns: int | None = None
    #: Positions in the trace, both included.
    first_seq: int | None = None
    last_seq: int | None = None

    def equals(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Columns that must have one of some values."""
        for name in ("namespace", "job", "uid"):
            value = getattr(self, name)
            if value is not None:
                yield name, (value,)
        if self.streams is not None:
            yield "stream", self.streams
        if self.types is not None:
            yield "type", self.types

    def ranges(self) -> Iterator[tuple[str, int | None, int | None]]:
        """Columns that must lie between two values, both included."""
        if self.from_ns is not None or self.until_ns is not None:
            until = None if self.until_ns is None else self.until_ns - 1
            yield "recv_ns", self.from_ns, until
        if self.first_seq is not None or self.last_seq is not None:
            yield "seq", self.first_seq, self.last_seq

    def columns(self) -> set[str]:
        """The columns that deciding it takes."""
        return {name for name, _ in self.equals()} | {name for name, _, _ in self.ranges()}

    def filter(self, table: pa.Table) -> pa.Table:
        """The rows of the table that are wanted."""
        mask = self.mask(table)
        return table if mask is None else table.filter(mask)

    def mask(self, table: pa.Table) -> pa.ChunkedArray | None:
        """Which rows of the table are wanted, as far as its columns tell; None: all."""
        mask = None
        for name, values in self.equals():
            if name not in table.schema.names:
                continue
            # `is_in` never says null, which a null cell must not be mistaken for.
            part = pc.is_in(table[name], value_set=pa.array(values, pa.string()))
            mask = part if mask is None else pc.and_(mask, part)
        for name, low, high in self.ranges():
            if name not in table.schema.names:
                continue
            for bound, compare in ((low, pc.greater_equal), (high, pc.less_equal)):
                if bound is not None:
                    part = pc.fill_null(compare(table[name], bound), fill_value=False)
                    mask = part if mask is None else pc.and_(mask, part)
        return mask
