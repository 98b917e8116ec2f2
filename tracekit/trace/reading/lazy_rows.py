"""Rows of columns as mappings, whose values become Python's when somebody asks for them.

Most rules look at a few columns of most rows, and at all columns of few. To make dictionaries of
all rows first takes ten times as long as to read them, and most of the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

#: Columns whose texts come again and again, and are long: each is kept once in a batch.
_REPEATED = ("spec", "labels", "annotations")


class LazyRow(Mapping[str, Any]):
    """One row of a batch."""

    __slots__ = ("_at", "_cells")

    def __init__(self, cells: _Cells, at: int) -> None:
        """`at`: its place in the batch."""
        self._cells = cells
        self._at = at

    def __getitem__(self, name: str) -> Any:
        """The value of a column; `KeyError` for one that there is not."""
        return self._cells[name][self._at]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a column; the default for one that there is not."""
        try:
            return self._cells[name][self._at]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        """The names of the columns."""
        return iter(self._cells.batch.schema.names)

    def __len__(self) -> int:
        """How many columns there are."""
        return len(self._cells.batch.schema.names)


class _Cells(dict[str, Sequence[Any]]):
    """The columns of a batch that somebody has asked for, by name."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        super().__init__()
        self.batch = batch

    def __missing__(self, name: str) -> Sequence[Any]:
        values = self[name] = _values(self.batch.column(name))
        return values


def lazy_rows(
    parts: Iterable[pa.RecordBatch | pa.Table], names: Sequence[str] = ()
) -> Iterator[tuple[Any, ...]]:
    """The rows of some batches, those of one stream in their order, by a column `stream`.

    Each comes with its values of some columns: what is asked of every row is asked at once.

    The streams of a batch come one after the other: what is asked of the rows of one of them makes
    no values of the others.
    """
    for part in parts:
        for batch in [part] if isinstance(part, pa.RecordBatch) else part.to_batches():
            whole = _with_repeated(batch)
            for stream in pc.unique(whole.column("stream")).to_pylist():
                if stream is None:
                    rows = whole.filter(pc.is_null(whole.column("stream")))
                else:
                    rows = whole.filter(pc.equal(whole.column("stream"), stream))
                cells = _Cells(rows)
                made = map(LazyRow, repeat(cells), range(rows.num_rows))
                yield from zip(made, *(cells[name] for name in names), strict=True)


def _with_repeated(batch: pa.RecordBatch) -> pa.RecordBatch:
    names = batch.schema.names
    columns = [
        column.dictionary_encode()
        if name in _REPEATED and not pa.types.is_dictionary(column.type)
        else column
        for name, column in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _values(column: pa.Array) -> Sequence[Any]:
    if pa.types.is_dictionary(column.type):
        texts = [*column.dictionary.to_pylist(), None]  # None: at the place of null
        return [texts[at] for at in pc.fill_null(column.indices, -1).to_pylist()]
    if pa.types.is_list(column.type):
        return _Lists(column)
    values: list[Any] = column.to_pylist()
    return values


class _Lists(Sequence[Any]):
    """A column of lists, of structs as dictionaries, each made when it is asked for."""

    def __init__(self, column: pa.ListArray) -> None:
        items = column.values
        self._offsets: list[int] = column.offsets.to_pylist()
        self._valid: list[bool] = column.is_valid().to_pylist()
        self._names: list[str] | None = None
        if pa.types.is_struct(items.type):
            self._names = [field.name for field in items.type]
            self._fields = [_values(items.field(at)) for at in range(len(self._names))]
        else:
            self._fields = [_values(items)]
        self._made: list[list[Any] | None] = [None] * len(column)

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, at: Any) -> Any:
        found = self._made[at]
        if found is None and self._valid[at]:
            begin, end = self._offsets[at], self._offsets[at + 1]
            parts = [values[begin:end] for values in self._fields]
            if self._names is None:
                found = parts[0]
            else:
                names = self._names
                found = [dict(zip(names, item, strict=True)) for item in zip(*parts, strict=True)]
            self._made[at] = found
        return found


__all__ = ["LazyRow", "lazy_rows"]
