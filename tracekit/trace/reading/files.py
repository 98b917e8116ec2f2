"""One opened segment: which of its row groups may hold wanted rows, and reading them.

Nothing of a segment is believed before its checksum was compared (`seal.py`): the footer when it is
opened, a row group when it is read. Segments from before there were checksums are read too; then
every error of Parquet, Arrow and the compression is a `DamageError` all the same.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import ref

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from tracekit.base.collecting import collecting_rarely
from tracekit.base.errors import TraceFormatError
from tracekit.base.numbers import whole_number
from tracekit.trace.format.limits import TooMuchError, check_group, check_texts
from tracekit.trace.format.model import FORMAT_VERSION, LOG_DIR, RECEIVED_BEFORE_NS
from tracekit.trace.format.narrow import (
    ARRIVAL,
    found_columns,
    stored_names,
    stream_positions,
    widened,
)
from tracekit.trace.format.narrow_file import About, about_rows
from tracekit.trace.format.opening import open_inside
from tracekit.trace.format.parquet import parquet_file
from tracekit.trace.format.plain import PLAIN_KEY, derivation_of, typed
from tracekit.trace.format.rows import MEMORY_SCHEMA
from tracekit.trace.format.schema import FILE_ORDER, NAMES, TEXT_COLUMNS
from tracekit.trace.format.seal import (
    DamageError,
    content_fits,
    footer_metadata,
    part_fits,
    read_footer,
    whole_digest,
)
from tracekit.trace.format.segments import FORMAT_KEY, sorted_order
from tracekit.trace.reading.footer_statements import bloom_filters, check_statistics, check_types
from tracekit.trace.reading.known_limits import check_once
from tracekit.trace.reading.selection import Bounds, Selection

if TYPE_CHECKING:
    from tracekit.trace.format.segments import Segment
    from tracekit.trace.stores.origin import Origin

#: Columns of few values, by which rows are chosen.
_FEW_VALUES = frozenset({"stream", "type"})
#: What pyarrow raises at bytes that are not what they should be.
_READ_ERRORS = (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError)


#: Footers that are kept parsed: about half a MiB each, a millisecond to parse again.
_PARSED_FOOTERS = 16
_parsed: deque[ref[SegmentFile]] = deque()


class Vouched(Struct, frozen=True):
    """What header and manifest say that the segments of a trace must show."""

    #: Segments that begin here or later have a seal; None: none need one.
    sealed_from: int | None = None
    #: The name that all seals of the trace bear, if it is known.
    trace: str | None = None


class SegmentFile:
    """A segment's file; once opened it stays readable even when compaction deletes it.

    `FileNotFoundError` if it is gone, `DamageError` if it cannot be believed.
    """

    def __init__(
        self, segment: Segment, vouched: Vouched | None = None, origin: Origin | None = None
    ) -> None:
        """`origin`: where the row groups come from that are not in the file yet."""
        self.segment = segment
        self._origin = origin
        self._parsed: pq.ParquetFile | None = None
        trace = segment.path.parent.parent
        with _damage():
            self._file = open_inside(trace, LOG_DIR, segment.path.name, change=origin is not None)
            self._footer = read_footer(self.fileno())
            self._require(vouched or Vouched())
            self._source = pa.PythonFile(self._file, mode="r")
            metadata = self._parquet.metadata
            check_once(metadata, self._footer.data, self.size_bytes)
            self.row_groups: int = metadata.num_row_groups
            self._rows: list[int] = [metadata.row_group(n).num_rows for n in range(self.row_groups)]
            paths = tuple(metadata.schema.column(n).path for n in range(metadata.num_columns))
            self._leaves, self._names = _columns_of(paths)
            self._check_version()
            said = metadata.metadata or {}
            self.is_plain = PLAIN_KEY in said
            self.derivation = derivation_of(said)
            self._about: About | None = about_rows(said)
            #: Where bits lie that would pass rows over, and that nothing can be compared with.
            self.unread = tuple(bloom_filters(metadata, self.fileno()))
        self._verified: set[int] = set()
        self._positions: list[pa.ChunkedArray] | None = None
        self._within_limits: list[set[int]] = [set() for _ in range(self.row_groups)]
        #: The values of some columns of row groups that were read: (row group, column) -> values.
        self._held: dict[tuple[int, str], frozenset[str | None]] = {}
        self._known_bounds: dict[tuple[int, str], Bounds] = {}
        #: What of the statistics was compared with the rows: (row group, column).
        self._compared: set[tuple[int, str]] = set()
        self._is_compared = False
        #: The Job that was looked for last, and row groups that have no row of it.
        self._without: dict[tuple[str, str], set[int]] = {}
        if metadata.num_rows != segment.rows:
            raise DamageError(f"it has {metadata.num_rows} rows, its name says {segment.rows}")
        check_types(self._parquet.schema_arrow)
        self._check_times()
        seal = self._footer.seal
        if seal is not None and len(seal.groups) != self.row_groups:
            raise DamageError("its checksums are those of another file")

    @property
    def _parquet(self) -> pq.ParquetFile:
        """The file by its parsed footer, which takes ten times the memory of its bytes."""
        if self._parsed is None:
            metadata = footer_metadata(self._footer)
            present = set(metadata.schema.names)
            self._parsed = parquet_file(
                self._source,
                metadata=metadata,
                # A plain segment has none of them, and Arrow refuses what is not there.
                read_dictionary=[n for n in (*TEXT_COLUMNS, "template") if n in present],
            )
            _let_go_of_others(self)
        return self._parsed

    def let_go(self) -> None:
        """Give free the memory of what can be parsed again."""
        self._parsed = None

    def _check_times(self) -> None:
        """Times that no clock shows never come to be reckoned with."""
        for group in range(self.row_groups):
            bounds = self._bounds(group, "recv_ns")
            if bounds.low is None:
                self._require_no_times(group)
            elif not 0 <= bounds.low <= bounds.high < RECEIVED_BEFORE_NS:
                raise DamageError("it says that rows were received before 1970 or after 2115")

    def _require_no_times(self, group: int) -> None:
        """Only where no row has a time there is nothing for the statistics to say."""
        if not self._names.intersection({"recv_ns", f"{ARRIVAL}recv_ns"}):
            return
        statistics = self._statistics(group, "recv_ns")
        nulls = statistics.null_count if statistics is not None else None
        if nulls != self._rows[group]:
            raise DamageError("its statistics do not say when rows were received")

    def _require(self, vouched: Vouched) -> None:
        seal = self._footer.seal
        if seal is None:
            if vouched.sealed_from is not None and self.segment.first >= vouched.sealed_from:
                raise DamageError("it has lost its checksums")
        elif vouched.trace is not None and seal.trace != vouched.trace:
            raise DamageError("it belongs to another trace")

    @property
    def is_sealed(self) -> bool:
        """Whether its content can be verified."""
        return self._footer.seal is not None

    @property
    def identity(self) -> str | None:
        """The name that the seals of its trace bear; None if it has no seal."""
        return self._footer.seal.trace if self._footer.seal is not None else None

    @property
    def content_digest(self) -> str:
        """What tells this content from any other; of an unsealed file the digest of all of it."""
        if self._footer.seal is not None:
            return self._footer.digest
        with _damage():
            return whole_digest(self.fileno())

    @property
    def size_bytes(self) -> int:
        """Bytes of the file."""
        return os.fstat(self.fileno()).st_size

    def fileno(self) -> int:
        """The descriptor of the open file."""
        return self._file.fileno()

    def verify(self, *, counted: bool = False) -> None:
        """Compare all of the file with its checksums; one without any is decoded instead.

        `counted`: what it comes to is known to be within the limits if its bytes are as they were,
        and its rows to be as its footer tells.
        """
        self._is_compared = self._is_compared or counted
        for group in range(self.row_groups):
            if not self.is_sealed:
                self.read(group, NAMES)
                continue
            self._verify(group)
            if counted:
                self._within_limits[group].update(self._leaves.values())
            with _damage():
                self._check_limits(group, self._names)
            self.compare(group, self._names)

    def _verify(self, group: int) -> None:
        if self.is_sealed and group not in self._verified and not self.bring(group):
            raise DamageError(
                f"its row group {group} is not what was written: the checksum differs"
            )

    def bring(self, group: int) -> bool:
        """See that a row group is there; whether it is what was written.

        Of a copy that has only some of them what is not there has not its digest, and is fetched.
        """
        seal = self._footer.seal
        if seal is None or group in self._verified:
            return True
        part = seal.groups[group]
        with _damage():
            fits = part_fits(self.fileno(), part)
        if not fits and self._origin is not None:
            content = self._origin.read(self.segment.path.name, part.offset, part.length)
            fits = content_fits(content, part)
            if fits:
                self._origin.keep(self.fileno(), content, part.offset)
        if fits:
            self._verified.add(group)
        return fits

    @property
    def is_copy(self) -> bool:
        """Whether some of its row groups may still lie elsewhere."""
        return self._origin is not None

    def _check_version(self) -> None:
        text = (self._parquet.metadata.metadata or {}).get(FORMAT_KEY, b"")
        version = whole_number(text.decode("latin-1"))
        if version is None:
            raise DamageError("it does not say which trace format it has")
        if version > FORMAT_VERSION:
            raise TraceFormatError(
                f"{self.segment.path} was written by a newer tracekit (format {version}; this one "
                f"reads up to {FORMAT_VERSION}): upgrade with pip install -U kube-tracekit"
            )

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it has, each of the type that the format says."""
        return self._names

    @property
    def is_narrow(self) -> bool:
        """Whether typed columns and texts are put together as they are read."""
        return self._about is not None

    @property
    def kept_rows(self) -> int:
        """Rows of a narrow segment that its encoding would have changed: kept as they came."""
        return self._about.kept_rows if self._about is not None else 0

    @property
    def raw_bytes(self) -> int:
        """Bytes of raw text before compression."""
        if self._about is not None:
            return self._about.raw_bytes
        metadata = self._parquet.metadata
        leaf = self._leaves["raw"]
        return sum(
            metadata.row_group(group).column(leaf).total_uncompressed_size
            for group in range(self.row_groups)
        )

    def rows_in(self, group: int) -> int:
        """Rows of one row group."""
        return self._rows[group]

    def may_match(self, group: int, selection: Selection) -> bool:
        """False only if it is known, without reading all of it, that it holds no wanted row."""
        excluding = self._excluding(group, selection)
        if excluding is None:
            return True
        self.compare(group, excluding)
        return False

    def _excluding(self, group: int, selection: Selection) -> tuple[str, ...] | None:
        """The columns by whose statistics a row group has no wanted row; None: it may have one."""
        for name, values in selection.equals():
            held = self._held.get((group, name))
            if held is not None and held.isdisjoint(values):
                return ()
            low, high, _ = self._bounds(group, name)
            if low is not None and not any(low <= value <= high for value in values):
                return (name,)
        for name, least, most in selection.ranges():
            low, high, _ = self._bounds(group, name)
            if low is None:
                continue
            if (least is not None and high < least) or (most is not None and low > most):
                return (name,)
        keys, names = selection.keys, ("namespace", "job")
        if keys is None or keys.may_lie(*(self._bounds(group, name) for name in names)):
            return None
        return names

    def compare(self, group: int, names: Iterable[str]) -> None:
        """See that the rows of a row group are as its statistics tell, which pass it over.

        Of a copy what was not fetched is believed.

        Raises:
            DamageError: They are not.
        """
        # By the format's names, as what was compared is known: a narrow file has some by others.
        asked = {name.removeprefix(ARRIVAL) for name in names}
        new = {name for name in asked if self._is_to_be_compared(group, name)}
        if not new or (self._origin is not None and group not in self._verified):
            return
        with _damage():
            if self._about is None:
                values = self._stored(group, sorted(new))
            else:
                values = found_columns(self._stored(group, stored_names(sorted(new), self._names)))
        self._check_statistics(group, values)

    def _is_to_be_compared(self, group: int, name: str) -> bool:
        known = self._is_compared or (group, name) in self._compared
        return not known and self._statistics(group, name) is not None

    def _check_statistics(self, group: int, table: pa.Table) -> None:
        """Compare the columns that are there; of some rows what can be."""
        whole = table.num_rows == self.rows_in(group)
        for name in table.schema.names:
            if self._is_to_be_compared(group, name):
                with _damage():
                    check_statistics(name, table[name], self._statistics(group, name), whole=whole)
                if whole:
                    self._compared.add((group, name))

    def may_lack(self, group: int, name: str) -> bool:
        """False only if the statistics say that every row of the row group has a value."""
        if not self._bounds(group, name).nulls:
            self.compare(group, (name,))
            return False
        return True

    @property
    def newest_ns(self) -> int | None:
        """When its last row was received; None if there is none with a time."""
        bounds = [self._bounds(group, "recv_ns") for group in range(self.row_groups)]
        if all(bound.high is not None for bound in bounds):
            return max((int(bound.high) for bound in bounds), default=None)
        times = [self.read(group, ("recv_ns",))["recv_ns"] for group in range(self.row_groups)]
        return max((at for each in times if (at := pc.max(each).as_py()) is not None), default=None)

    def _bounds(self, group: int, name: str) -> Bounds:
        known = self._known_bounds.get((group, name))
        if known is None:
            known = self._known_bounds[group, name] = self._stated_bounds(group, name)
        return known

    def _stated_bounds(self, group: int, name: str) -> Bounds:
        statistics = self._statistics(group, name)
        if statistics is None or not statistics.has_min_max:
            return Bounds()
        nulls = not statistics.has_null_count or statistics.null_count > 0
        with _damage():  # a text that is no UTF-8
            return Bounds(statistics.min, statistics.max, nulls)

    def _statistics(self, group: int, name: str) -> pq.Statistics | None:
        leaf = self._leaves.get(name, self._leaves.get(ARRIVAL + name))
        if leaf is None:
            return None
        return self._parquet.metadata.row_group(group).column(leaf).statistics

    def read(
        self, group: int, columns: Sequence[str], selection: Selection | None = None
    ) -> pa.Table:
        """The columns of one row group; columns that the file does not know are null.

        Rows that the selection does not want may be left out, where that saves work.
        """
        self._verify(group)
        with _damage():
            table = self._read(group, columns, selection)
            # Texts that are no UTF-8, indices that lead nowhere: Parquet itself checks neither.
            table.validate(full=True)
            check_texts(table)
            self._check_positions(table)
        self._check_statistics(group, table)
        self._note(group, table)
        return table

    def _note(self, group: int, table: pa.Table) -> None:
        """Remember which streams and types a row group has: most have no gap, and no call."""
        if table.num_rows == self.rows_in(group):
            for name in _FEW_VALUES.intersection(table.schema.names):
                if (group, name) not in self._held:
                    self._held[group, name] = frozenset(pc.unique(table[name]).to_pylist())

    def _check_limits(self, group: int, columns: Collection[str]) -> Mapping[str, pa.ChunkedArray]:
        """Refuse to decode what would take more than a trace may (`limits.py`).

        Some of the columns may have had to be read for that.
        """
        wanted = {n for path, n in self._leaves.items() if path.partition(".")[0] in columns}
        new = sorted(wanted - self._within_limits[group])
        if not new:
            return {}
        read = check_group(self._source, self.fileno(), self._parquet.metadata, group, new)
        self._within_limits[group] |= wanted
        return read

    def _check_positions(self, table: pa.Table) -> None:
        if "seq" not in table.schema.names or not table.num_rows:
            return
        bounds = pc.min_max(table["seq"]).as_py()
        inside = self.segment.first <= (bounds["min"] or 0) and (
            (bounds["max"] or 0) <= self.segment.last
        )
        if table["seq"].null_count or not inside:
            raise DamageError("it has rows that its name does not tell of")

    def _read(self, group: int, columns: Sequence[str], selection: Selection | None) -> pa.Table:
        if self.is_plain and not self._names.issuperset(columns):
            rows = self._typed(group)
            return conform(rows, columns).take(sorted_order(rows, FILE_ORDER))
        if selection is not None and self._lacks(group, selection, columns):
            return empty(columns)
        if self._about is not None:
            with collecting_rarely():
                return self._widened(group, columns, self._about, selection)
        return conform(self._stored(group, [n for n in columns if n in self._names]), columns)

    def _lacks(self, group: int, selection: Selection, columns: Sequence[str]) -> bool:
        """Whether few columns tell that no row is wanted: then the others need not be read."""
        sought, whole = selection.one_job, selection.whole_job
        if sought is not None and group in self._without.get(sought, ()):
            return True
        names = selection.columns()
        if names.issuperset(columns):
            return False
        stored = self._stored(group, stored_names(sorted(names), self._names))
        stored.validate(full=True)
        wanted = selection.mask(found_columns(stored))
        lacks = wanted is not None and not pc.any(wanted, min_count=0).as_py()
        if lacks and whole is not None:
            if whole not in self._without:
                self._without = {whole: set()}
            self._without[whole].add(group)
        return lacks

    def _stored(self, group: int, names: Sequence[str]) -> pa.Table:
        """Columns of a row group that the file has."""
        read = self._check_limits(group, names)
        rest = [name for name in names if name not in read]
        table = self._parquet.read_row_group(group, columns=rest, use_threads=False)
        if not read:
            return table
        kinds = self._parquet.schema_arrow
        columns = (
            read[name].cast(kinds.field(name).type) if name in read else table[name]
            for name in names
        )
        return pa.table(dict(zip(names, columns, strict=True)))

    def _widened(
        self, group: int, columns: Sequence[str], about: About, selection: Selection | None
    ) -> pa.Table:
        stored = self._stored(group, stored_names(columns, self._names))
        stored.validate(full=True)
        found = found_columns(stored)
        if "stream_pos" in columns and "stream_pos" not in self._names:
            found = found.append_column("stream_pos", self._stream_positions(about)[group])
        wanted = selection.mask(found) if selection is not None else None
        return conform(widened(stored, found, columns, wanted), columns)

    def _stream_positions(self, about: About) -> list[pa.ChunkedArray]:
        """Where the rows of each row group stand in their streams; it takes the whole segment."""
        if self._positions is None:
            groups = [
                conform(self._verified_part(group, ("seq", "stream")), ("seq", "stream"))
                for group in range(self.row_groups)
            ]
            self._positions = stream_positions(groups, about.streams)
        return self._positions

    def _verified_part(self, group: int, names: Sequence[str]) -> pa.Table:
        self._verify(group)
        return self._stored(group, names)

    def _typed(self, group: int) -> pa.Table:
        self._check_limits(group, self._names)
        whole = self._parquet.read_row_group(group, use_threads=False)
        whole.validate(full=True)
        check_texts(whole)
        with collecting_rarely():
            return typed(whole)

    def unsorted(self) -> pa.Table:
        """All columns of all rows, in any order: what a compaction sorts anyway."""
        if self.is_plain:
            self._verify(0)
            with _damage():
                table = conform(self._typed(0), NAMES)
                self._check_positions(table)
                return table
        return pa.concat_tables([self.read(group, NAMES) for group in range(self.row_groups)])

    def close(self) -> None:
        """Give the file back; it cannot be read any more."""
        self._file.close()


@lru_cache(maxsize=16)
def _columns_of(paths: tuple[str, ...]) -> tuple[Mapping[str, int], frozenset[str]]:
    """The leaves of a file by their number, and its columns: one for all files that have them."""
    return (
        {path: number for number, path in enumerate(paths)},
        frozenset(path.partition(".")[0] for path in paths),
    )


def _let_go_of_others(newest: SegmentFile) -> None:
    """Keep so many footers parsed, those that were parsed last."""
    _parsed.append(ref(newest))
    while len(_parsed) > _PARSED_FOOTERS:
        oldest = _parsed.popleft()()
        if oldest is not None and oldest is not newest:
            oldest.let_go()


@contextmanager
def _damage() -> Iterator[None]:
    """Make every complaint about the bytes of a segment one kind of error."""
    try:
        yield
    except (FileNotFoundError, DamageError):
        raise
    except _READ_ERRORS as error:
        raise DamageError(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    """What pyarrow says, without its traces of C++ and the like."""
    text = str(error).strip().split("\n", 1)[0].rstrip(". ")
    return text or type(error).__name__


def damaged_segment(segment: Segment, error: Exception) -> str:
    """The sentence for a segment that cannot be believed."""
    if isinstance(error, TooMuchError):
        return f"{segment.path} is refused: {error}"
    return (
        f"{segment.path} is damaged ({error}): restore it from a copy of the trace, or move it "
        "away to read the rest"
    )


def conform(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The table with just these columns, in this order, in the types of memory."""
    arrays = []
    present = frozenset(table.schema.names)
    for name in columns:
        kind = MEMORY_SCHEMA.field(name).type
        if name in present:
            column = table[name]
            arrays.append(column if column.type == kind else column.cast(kind))
        else:
            arrays.append(pa.nulls(table.num_rows, kind))
    return pa.table(arrays, schema=memory_schema(columns))


def memory_schema(columns: Sequence[str]) -> pa.Schema:
    """The types that readers hand out for these columns."""
    return pa.schema([MEMORY_SCHEMA.field(name) for name in columns])


def empty(columns: Sequence[str]) -> pa.Table:
    """No rows of these columns."""
    return _empty(tuple(columns))


@lru_cache(maxsize=16)
def _empty(columns: tuple[str, ...]) -> pa.Table:
    return memory_schema(columns).empty_table()
