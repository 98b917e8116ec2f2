"""The part of some traces that a session is about: a namespace, a time.

What is not of it is not read: traces of other times by their names, traces without the namespace by
their manifests, row groups by their statistics. DuckDB knows none of that, and the file of a copy
may have holes where nobody has read: so the wanted rows are written into a temporary file of their
own, and DuckDB reads that.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from tracekit.base.errors import UsageError
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE_NAMESPACE
from tracekit.base.time_input import ALWAYS, TimeRange
from tracekit.trace.format.schema import NAMES, SCHEMA
from tracekit.trace.format.seal import DamageError
from tracekit.trace.format.segments import Segment
from tracekit.trace.reading.files import SegmentFile, conform
from tracekit.trace.reading.footer_statements import Ranges
from tracekit.trace.reading.prefetch import brought
from tracekit.trace.reading.selection import Selection
from tracekit.trace.reading.snapshot import Snapshot
from tracekit.trace.stores.namespaces import lacks_namespace
from tracekit.trace.stores.rotated import overlapping

#: Who led at which time is told by leases, which lie in a namespace of their own.
_LEASES: Final = "leases"
_THEIR_NAMESPACE: Final = CONTROLLER_MANAGER_LEASE_NAMESPACE


class Chosen(Struct, frozen=True):
    """What is asked about."""

    namespace: str | None = None
    #: Whether the rows of no namespace, and the controllers' leases, are of every namespace.
    with_common: bool = True
    #: Whether somebody may see where a row stands in its stream: of a narrow segment that takes
    #: all of it.
    positions: bool = True
    #: Traces of other times, as their names tell, are left out.
    traces: TimeRange = ALWAYS
    #: Rows of other times are left out, as if the record had begun and ended then.
    rows: TimeRange = ALWAYS

    @property
    def is_part(self) -> bool:
        """Whether some rows of a trace are not wanted."""
        return self.namespace is not None or bool(self.rows)

    def left_out(self, words: Sequence[str]) -> set[str]:
        """Those of the traces that have nothing of it, as far as that is seen unopened."""
        kept = list(words)
        if len(kept) > 1:  # one alone was named, whatever its name tells
            kept, _ = overlapping(words, self.traces.from_ns, self.traces.until_ns)
        if words and not kept:
            raise UsageError(f"none of the {len(words)} traces was recorded then: ask another time")
        out = set(words).difference(kept)
        if self.namespace is not None:
            out.update(word for word in kept if lacks_namespace(word, self.namespace))
        return out

    def groups(self, file: SegmentFile) -> list[int]:
        """The row groups of a file that may hold some of it."""
        until_ns = None if self.rows.until_ns is None else self.rows.until_ns + 1
        times = (self.rows.from_ns, until_ns)
        then = Selection(from_ns=times[0], until_ns=times[1])
        of_time = [group for group in range(file.row_groups) if file.may_match(group, then)]
        if self.namespace is None:
            return of_time
        wanted = [Selection(self.namespace)]
        if self.with_common:
            wanted.append(Selection(_THEIR_NAMESPACE, streams=(_LEASES,)))
        return [
            group
            for group in of_time
            if (self.with_common and file.may_lack(group, "namespace"))
            or any(file.may_match(group, selection) for selection in wanted)
        ]

    def of(self, table: pa.Table) -> pa.Table:
        """The rows of a table that are of it."""
        for bound, compare in (
            (self.rows.from_ns, pc.greater_equal),
            (self.rows.until_ns, pc.less_equal),
        ):
            if bound is not None:
                table = table.filter(compare(table["recv_ns"], bound))
        if self.namespace is None:
            return table
        names, streams = (table[name].cast(pa.string()) for name in ("namespace", "stream"))
        wanted = pc.equal(names, self.namespace)
        if self.with_common:
            lease = pc.and_(pc.equal(names, _THEIR_NAMESPACE), pc.equal(streams, _LEASES))
            wanted = pc.or_kleene(pc.or_kleene(wanted, lease), pc.is_null(names))
        return table.filter(wanted)

    def of_verdicts(self, table: pa.Table) -> pa.Table:
        """Those of a table of verdicts that are of it: a trace is judged as a whole."""
        if self.namespace is not None:
            table = table.filter(pc.equal(table["namespace"], self.namespace))
        if self.rows.from_ns is not None:
            table = table.filter(pc.greater_equal(table["time_ns"], self.rows.from_ns))
        if self.rows.until_ns is not None:
            table = table.filter(pc.less_equal(table["time_ns"], self.rows.until_ns))
        return table


EVERYTHING: Final = Chosen()


class DamagedFileError(DamageError):
    """One of the files cannot be believed."""

    def __init__(self, file: SegmentFile, error: DamageError) -> None:
        super().__init__(str(error))
        self.file = file


class ChosenRows:
    """The wanted rows of a trace in a file that is gone with this."""

    def __init__(self, files: Sequence[SegmentFile], chosen: Chosen) -> None:
        """`DamagedFileError` if one of the files cannot be believed."""
        self.unread: Ranges = ()
        self._file = tempfile.NamedTemporaryFile(prefix="tracekit-", suffix=".parquet")  # noqa: SIM115
        self.segment = Segment(0, 0, Path(self._file.name))
        with pq.ParquetWriter(self._file.name, SCHEMA, compression="zstd") as writer:
            for rows in _wanted(files, chosen):
                writer.write_table(rows)

    def fileno(self) -> int:
        """The descriptor of the open file."""
        return self._file.fileno()

    def close(self) -> None:
        """Let it go."""
        self._file.close()


def _wanted(files: Sequence[SegmentFile], chosen: Chosen) -> Iterator[pa.Table]:
    names = [name for name in NAMES if chosen.positions or name != "stream_pos"]
    wanted = ((each, group) for each in files for group in _groups(each, chosen))
    for file, group in brought(wanted):
        try:
            rows = conform(chosen.of(file.read(group, names)), NAMES)
        except DamageError as error:
            raise DamagedFileError(file, error) from error
        if rows.num_rows:
            yield rows.cast(SCHEMA)


def _groups(file: SegmentFile, chosen: Chosen) -> list[int]:
    try:
        for group in range(file.row_groups):
            file.compare(group, ("recv_ns",))  # which tell when the record ends (`newest_ns`)
        return chosen.groups(file)
    except DamageError as error:
        raise DamagedFileError(file, error) from error


def newest_ns(files: Sequence[SegmentFile]) -> int | None:
    """When the last row of some files was received, out of what they say of themselves."""
    return max((at for file in files if (at := file.newest_ns) is not None), default=None)


def chosen_rows(snapshot: Snapshot, chosen: Chosen) -> ChosenRows:
    """What is chosen of a trace; files that cannot be believed are left out of it."""
    while True:
        try:
            return ChosenRows(snapshot.files, chosen)
        except DamagedFileError as error:
            snapshot.drop(error.file, error)
