"""Reading a trace: the header, what it covers, and its rows as Arrow data.

A trace can be read while it is being written: one reader sees the rows that were flushed when it
was made (`tracekit.trace.reading.snapshot`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.model import Gap, RowType, StreamSummary
from tracekit.trace.format.schema import NAMES, TYPED_COLUMNS
from tracekit.trace.format.seal import DamageError
from tracekit.trace.format.segments import Segment
from tracekit.trace.reading.files import SegmentFile, damaged_segment, empty
from tracekit.trace.reading.groups import Group, iterate_groups
from tracekit.trace.reading.losses import LostFile, lost_files
from tracekit.trace.reading.prefetch import brought
from tracekit.trace.reading.selection import Keys, Selection
from tracekit.trace.reading.snapshot import Loss, Snapshot, open_snapshot
from tracekit.trace.stores.place import local_trace


class TraceReader:
    """A trace as it is when the reader is made, whatever happens to its files later.

    The path is a directory, or the URL of one in object storage (`trace/stores/mirror.py`), or a
    snapshot. `on_damage="skip"` verifies all of it first, leaves out the files that cannot be
    believed, and says so in `problems`. Rows that are lost are a gap of every stream (`losses.py`);
    those that are merely missing between others do not make a trace damaged. `controller_flags` and
    `clock_offset_ns` stand in for what the header says, where a user knows better.
    """

    def __init__(
        self,
        path: str | Path | Snapshot,
        *,
        on_damage: Literal["raise", "skip"] = "raise",
        controller_flags: tuple[str, ...] | None = None,
        clock_offset_ns: int | None = None,
    ) -> None:
        snapshot = path if isinstance(path, Snapshot) else open_snapshot(local_trace(path))
        snapshot = snapshot.with_said(controller_flags, clock_offset_ns)
        self.path = snapshot.path
        self.header = snapshot.header
        if on_damage == "skip":
            snapshot.verify()
        for loss in snapshot.losses:
            if loss.damage and on_damage == "raise":
                raise TraceFormatError(loss.sentence)
        self._snapshot = snapshot
        self.skips_damage = on_damage == "skip"
        files: list[SegmentFile | LostFile] = [*snapshot.files, *lost_files(snapshot)]
        self._files = sorted(files, key=lambda file: file.segment)

    @property
    def snapshot(self) -> Snapshot:
        """The trace as it was found."""
        return self._snapshot

    @property
    def losses(self) -> list[Loss]:
        """Ranges of rows that the trace should have and that cannot be had."""
        return list(self._snapshot.losses)

    @property
    def problems(self) -> list[str]:
        """Sentences about what of the trace cannot be read."""
        return [loss.sentence for loss in self._snapshot.losses]

    @property
    def is_damaged(self) -> bool:
        """Whether something was left out that is there and cannot be believed, or the end."""
        return any(loss.damage for loss in self._snapshot.losses)

    @property
    def is_verifiable(self) -> bool:
        """Whether all of the trace has checksums; one from before there were any has not."""
        return self._snapshot.is_verifiable

    @property
    def segments(self) -> list[Segment]:
        """The files that are read, in order of their rows."""
        return [file.segment for file in self._snapshot.files]

    @property
    def kept_rows(self) -> int:
        """Rows of narrow segments that their encoding would have changed: kept as they came."""
        return sum(file.kept_rows for file in self._snapshot.files)

    def is_plain(self, segment: Segment) -> bool:
        """Whether the typed columns of one of the files are still to be filled (`plain.py`)."""
        return next(file.is_plain for file in self._snapshot.files if file.segment == segment)

    @property
    def rows(self) -> int:
        """How many rows can be read."""
        return sum(file.segment.rows for file in self._snapshot.files)

    @property
    def end_seq(self) -> int:
        """Position after the last row."""
        return self._files[-1].segment.last + 1 if self._files else 0

    @property
    def size_bytes(self) -> int:
        """Bytes of all files that count."""
        return sum(file.size_bytes for file in self._snapshot.files)

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
        for file, group in brought(self._matching(selection)):
            try:
                table = selection.filter(file.read(group, wanted, selection))
            except DamageError as error:
                raise TraceFormatError(damaged_segment(file.segment, error)) from error
            if table.num_rows:
                yield table.select(list(columns))

    def _matching(self, selection: Selection) -> Iterator[tuple[SegmentFile | LostFile, int]]:
        """The row groups that may hold a wanted row."""
        for file in self._files:
            segment = file.segment
            if selection.last_seq is not None and segment.first > selection.last_seq:
                return
            if selection.first_seq is not None and segment.last < selection.first_seq:
                continue
            try:
                wanted = [g for g in range(file.row_groups) if file.may_match(g, selection)]
            except DamageError as error:
                raise TraceFormatError(damaged_segment(segment, error)) from error
            yield from ((file, group) for group in wanted)

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
        keys: Keys | None = None,
        streams: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        last_seq: int | None = None,
    ) -> Iterator[Group]:
        """All rows by (namespace, job), each group sorted by (revision, position).

        Rows of no job come before the jobs of their namespace, rows of no namespace first. Memory
        is bounded by the largest group, not by the trace.
        """
        try:
            only = Selection(
                namespace,
                job,
                streams=None if streams is None else tuple(streams),
                types=None if types is None else tuple(types),
                last_seq=last_seq,
                keys=keys,
            )
            yield from iterate_groups(self._files, columns, only)
        except DamageError as error:
            raise TraceFormatError(
                f"{self.path} is damaged ({error}): `tracekit info --verify` names the file"
            ) from error

    @property
    def row_groups(self) -> list[int]:
        """The rows of each row group, in the order of the segments."""
        return [file.rows_in(group) for file in self._files for group in range(file.row_groups)]

    def stretch(self, first: int, end: int, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of some row groups, by their number among all."""
        everything = Selection()
        numbered = ((file, group) for file in self._files for group in range(file.row_groups))
        for file, group in brought(islice(numbered, first, end)):
            try:
                yield file.read(group, columns, everything)
            except DamageError as error:
                raise TraceFormatError(damaged_segment(file.segment, error)) from error

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
