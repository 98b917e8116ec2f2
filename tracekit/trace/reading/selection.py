"""Which rows of a trace are wanted: what rules files and row groups out, what picks the rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct


class Bounds(NamedTuple):
    """What the statistics of a row group say of a column."""

    low: Any = None  # None: nothing
    high: Any = None
    nulls: bool = True  # whether some rows may have no value


class Keys(Struct, frozen=True, dict=True):
    """Some Jobs, as (namespace, name) in order, with the rows of their namespaces of no Job."""

    jobs: tuple[tuple[str, str], ...]
    #: Namespaces of which the rows of no Job are wanted although none of their Jobs is.
    spaces: tuple[str, ...] = ()

    @cached_property
    def _wanted(self) -> list[tuple[str, str]]:
        """All of them; the rows of no Job have an empty name, which sorts first."""
        spaces = {namespace for namespace, _ in self.jobs} | set(self.spaces)
        return sorted([*self.jobs, *((namespace, "") for namespace in spaces)])

    @cached_property
    def _values(self) -> pa.Array:
        return pa.array(("\0".join(key) for key in self._wanted), pa.string())

    def may_lie(self, namespaces: Bounds, jobs: Bounds) -> bool:
        """False only if no row between two namespaces, and two names of Jobs, can be wanted."""
        low, high, _ = namespaces
        if low is None:
            return True
        wanted = self._wanted
        first = bisect_left(wanted, (low, ""))
        if first == len(wanted) or wanted[first][0] > high:
            return False
        if low != high or jobs.low is None:
            return True
        if jobs.nulls and wanted[first] == (low, ""):
            return True
        at = bisect_left(wanted, (low, jobs.low))
        return at < len(wanted) and wanted[at] <= (low, jobs.high)

    @property
    def namespaces(self) -> list[str]:
        """The namespaces of which the rows of no Job are wanted."""
        return [namespace for namespace, job in self._wanted if not job]

    def mask(self, table: pa.Table) -> pa.ChunkedArray:
        """Which rows of the table are theirs."""
        return pc.is_in(joined_keys(table), value_set=self._values)


def joined_keys(table: pa.Table) -> pa.ChunkedArray:
    """Namespace and Job of each row as one text, with a NUL between; an absent name is empty."""
    names = (pc.fill_null(table[name].cast(pa.string()), "") for name in ("namespace", "job"))
    return pc.binary_join_element_wise(*names, "\0")


_KEY_COLUMNS = {"namespace", "job"}


class Selection(Struct, frozen=True):
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
    keys: Keys | None = None

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
        names = {name for name, _ in self.equals()} | {name for name, _, _ in self.ranges()}
        return names | {"namespace", "job"} if self.keys is not None else names

    @property
    def one_job(self) -> tuple[str, str] | None:
        """The Job of which all wanted rows are, as (namespace, name), if there is one."""
        if self.namespace is None or self.job is None:
            return None
        return self.namespace, self.job

    @property
    def whole_job(self) -> tuple[str, str] | None:
        """The only Job of which rows are wanted, if all of them are; others may be of no Job."""
        if self.columns() != _KEY_COLUMNS:
            return None
        if self.keys is None:
            return self.one_job
        alone = self.namespace is None and self.job is None and len(self.keys.jobs) == 1
        return self.keys.jobs[0] if alone else None

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
        if self.keys is not None and {"namespace", "job"}.issubset(table.schema.names):
            part = self.keys.mask(table)
            mask = part if mask is None else pc.and_(mask, part)
        return mask
