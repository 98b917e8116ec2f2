"""Reading a trace: the header, what it covers, and its rows as Arrow data.

Files are opened one by one and never changed once in place; when compaction replaced one between
listing and opening, the directory is listed again and reading goes on at the same row. So a trace
can be read while it is being written: one reader sees the rows that were flushed when it was made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.errors import TraceFormatError
from tracekit.trace.files import SegmentFile, empty
from tracekit.trace.groups import Group, iterate_groups
from tracekit.trace.header import read_header
from tracekit.trace.model import Gap, RowType, StreamSummary
from tracekit.trace.place import local_trace
from tracekit.trace.schema import NAMES, TYPED_COLUMNS
from tracekit.trace.segments import Segment, live_segments, missing_ranges

_RETRIES = 100


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
        mask = None
        for name, values in self.equals():
            # `is_in` never says null, which a null cell must not be mistaken for.
            part = pc.is_in(table[name], value_set=pa.array(values, pa.string()))
            mask = part if mask is None else pc.and_(mask, part)
        for name, low, high in self.ranges():
            for bound, compare in ((low, pc.greater_equal), (high, pc.less_equal)):
                if bound is not None:
                    part = pc.fill_null(compare(table[name], bound), fill_value=False)
                    mask = part if mask is None else pc.and_(mask, part)
        return table if mask is None else table.filter(mask)


class TraceReader:
    """A trace as it is when the reader is made.

    The path is a directory, or the URL of one in object storage (`tracekit.trace.mirror`).
    `on_damage="skip"` reads around files that cannot be read and names them in `problems`.
    """

    def __init__(self, path: str | Path, *, on_damage: Literal["raise", "skip"] = "raise") -> None:
        self.path = local_trace(path)
        self.header = read_header(self.path)
        self._skip_damage = on_damage == "skip"
        self.segments: list[Segment] = live_segments(self.path)
        #: Sentences about what of the trace cannot be read.
        self.problems: list[str] = []
        for first, last in missing_ranges(self.segments):
            self._damaged(
                f"{self.path} has lost its rows {first} to {last}: a file of its log directory is "
                "missing; restore it from a copy of the trace"
            )

    @property
    def rows(self) -> int:
        """How many rows the trace has."""
        return sum(segment.rows for segment in self.segments)

    @property
    def end_seq(self) -> int:
        """Position after the last row."""
        return self.segments[-1].last + 1 if self.segments else 0

    @property
    def size_bytes(self) -> int:
        """Bytes on disk of all files that count."""
        total = 0
        for segment in self.segments:
            try:
                total += segment.path.stat().st_size
            except FileNotFoundError:
                continue
        return total

    def _damaged(self, sentence: str) -> None:
        sentence = " ".join(sentence.splitlines())  # as pyarrow's own messages may have several
        if not self._skip_damage:
            raise TraceFormatError(sentence)
        if sentence not in self.problems:
            self.problems.append(sentence)

    #### Rows ####

    def batches(
        self,
        columns: Sequence[str] = TYPED_COLUMNS,
        *,
        namespace: str | None = None,
        job: str | None = None,
        streams: Sequence[str] | None = None,
        types: Sequence[RowType | str] | None = None,
        uid: str | None = None,
        from_ns: int | None = None,
        until_ns: int | None = None,
        first_seq: int | None = None,
        last_seq: int | None = None,
    ) -> Iterator[pa.Table]:
        """The wanted rows, one small table per row group that may hold some.

        Tables come in order of arrival by segment; inside one, rows are sorted by namespace, job,
        stream, uid, revision. Only the row groups whose statistics allow for a wanted row are read.
        """
        selection = Selection(
            namespace,
            job,
            None if streams is None else tuple(streams),
            None if types is None else tuple(str(t) for t in types),
            uid,
            from_ns,
            until_ns,
            first_seq,
            last_seq,
        )
        return self.select(selection, columns)

    def select(
        self, selection: Selection, columns: Sequence[str] = TYPED_COLUMNS
    ) -> Iterator[pa.Table]:
        """As `batches`, with the selection as a value."""
        unknown = [name for name in columns if name not in NAMES]
        if unknown:
            raise TraceFormatError(f"a trace has no column {unknown[0]}: see docs/trace-format.md")
        wanted = list(dict.fromkeys([*columns, *sorted(selection.columns()), "seq"]))
        for file, after_seq in self._open_files(selection):
            for group in range(file.row_groups):
                if not file.may_match(group, selection):
                    continue
                try:
                    table = file.read(group, wanted)
                except (pa.ArrowException, OSError) as error:
                    self._damaged(file.damage(error))
                    break
                if after_seq > file.segment.first:
                    table = table.filter(pc.greater_equal(table["seq"], after_seq))
                table = selection.filter(table)
                if table.num_rows:
                    yield table.select(list(columns))

    def table(self, columns: Sequence[str] = TYPED_COLUMNS, **selection: Any) -> pa.Table:
        """The wanted rows as one table, in order of arrival."""
        names = list(dict.fromkeys([*columns, "seq"]))
        parts = list(self.batches(names, **selection))
        if not parts:
            return empty(columns)
        whole = pa.concat_tables(parts).unify_dictionaries()
        return whole.sort_by("seq").select(list(columns))

    def groups(
        self,
        columns: Sequence[str] = TYPED_COLUMNS,
        *,
        namespace: str | None = None,
        job: str | None = None,
    ) -> Iterator[Group]:
        """All rows by (namespace, job), each group sorted by (revision, position).

        Rows of no job come before the jobs of their namespace, rows of no namespace first. Memory
        is bounded by the largest group, not by the trace.
        """
        files = [file for file, _ in self._open_files(Selection())]
        try:
            yield from iterate_groups(files, columns, namespace=namespace, job=job)
        except pa.ArrowException as error:
            raise TraceFormatError(
                f"{self.path} is damaged ({error}): `tracekit info` names the file"
            ) from error

    def _open_files(self, selection: Selection) -> Iterator[tuple[SegmentFile, int]]:
        """Each segment, opened, and the first row of it that was not in the one before."""
        pending = list(reversed(self.segments))
        next_seq = 0
        retries = 0
        while pending:
            segment = pending.pop()
            if segment.last < max(next_seq, selection.first_seq or 0):
                continue
            if selection.last_seq is not None and segment.first > selection.last_seq:
                return
            try:
                file = SegmentFile(segment)
            except FileNotFoundError:
                retries += 1
                if retries > _RETRIES:
                    raise TraceFormatError(
                        f"{self.path} changes too fast to be read: run again when its recorder is "
                        "less busy"
                    ) from None
                end = self.end_seq
                pending = [s for s in reversed(live_segments(self.path)) if s.first < end]
                if not any(s.first <= segment.first <= s.last for s in pending):
                    self._damaged(
                        f"{segment.path} is gone and nothing holds its rows: restore it from a "
                        "copy of the trace"
                    )
                continue
            except (pa.ArrowException, OSError) as error:
                self._damaged(
                    f"{segment.path} is damaged ({error}): restore it from a copy of the trace, "
                    "or move it away to read the rest"
                )
                continue
            yield file, next_seq
            next_seq = segment.last + 1

    #### What the trace covers ####

    def gaps(self) -> list[Gap]:
        """Every gap row, in order of arrival."""
        names = ("seq", "stream", "gap_reason", "gap_last_rv", "gap_next_rv", "gap_from_ns")
        table = self.table((*names, "gap_until_ns"), types=[RowType.GAP])
        return [
            Gap(
                stream=row["stream"],
                reason=row["gap_reason"],
                last_rv=row["gap_last_rv"],
                next_rv=row["gap_next_rv"],
                from_ns=row["gap_from_ns"],
                until_ns=row["gap_until_ns"],
                seq=row["seq"],
            )
            for row in table.to_pylist()
        ]

    def streams(self) -> list[StreamSummary]:
        """A summary of each stream, by name; rows of no stream are under an empty name."""
        counts: dict[str, Counter[str]] = {}
        bounds: dict[str, list[int | None]] = {}
        for table in self.batches(("stream", "type", "recv_ns", "rv")):
            grouped = table.group_by(["stream", "type"]).aggregate(
                [("type", "count"), ("recv_ns", "min_max"), ("rv", "min_max")]
            )
            for row in grouped.to_pylist():
                stream = row["stream"] or ""
                counts.setdefault(stream, Counter())[row["type"]] += row["type_count"]
                times, revisions = row["recv_ns_min_max"], row["rv_min_max"]
                known = bounds.setdefault(stream, [None, None, None, None])
                for at, (value, pick) in enumerate(
                    (
                        (times["min"], min),
                        (times["max"], max),
                        (revisions["min"], min),
                        (revisions["max"], max),
                    )
                ):
                    old = known[at]
                    if value is not None:
                        known[at] = value if old is None else pick(old, value)
        return [
            StreamSummary(
                stream,
                {t: counts[stream][t] for t in RowType if counts[stream][t]},
                *bounds[stream],
            )
            for stream in sorted(counts)
        ]
