"""The rows that a recorder adds to a trace, as they come.

Only files with the next rows are opened, so that a poll costs the same however long the record is.
With a folder of traces (`record --rotate`) the newest is followed; each begins with lists of what
lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.header import read_header
from tracekit.trace.format.manifest import Manifest, read_manifest
from tracekit.trace.format.model import HEADER_NAME, RowType, TraceHeader
from tracekit.trace.format.schema import NAMES
from tracekit.trace.format.segments import Segment, live_segments
from tracekit.trace.reading.files import SegmentFile, Vouched
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.snapshot import Snapshot
from tracekit.trace.stores.rotated import rotated_traces

#: Polls for which rows may be missing between others: a listing may fall into a merge.
_PATIENCE = 5
#: Rows that are handed out at a time.
_ROWS_MAX = 20_000


class Follower:
    """Hands out each row of a growing trace once, in order of arrival."""

    def __init__(
        self,
        path: Path,
        controller_flags: tuple[str, ...] | None = None,
        columns: Sequence[str] = NAMES,
    ) -> None:
        """`controller_flags` stand in for those of the headers.

        `columns`: of the rows; without `raw`, which is most of a trace, notes have it all the same.

        Raises:
            TraceFormatError: This is neither a trace nor a folder of some.
        """
        self._path = path
        self._flags = controller_flags
        self._columns = tuple(columns)
        self._trace = self._newest()
        self._next_seq = 0
        self._missing = 0
        #: Rows that the trace has lost, or that could not be believed.
        self.lost_rows = 0

    @property
    def trace(self) -> Path:
        """The trace that is followed now."""
        return self._trace

    def header(self) -> TraceHeader:
        """What the trace says of itself by now."""
        header = read_header(self._trace)
        return header if self._flags is None else replace(header, controller_flags=self._flags)

    def rotated(self) -> bool:
        """Whether a newer trace has begun; if so, it is followed from its first row on."""
        newest = self._newest()
        if newest == self._trace:
            return False
        self._trace, self._next_seq, self._missing = newest, 0, 0
        return True

    def _newest(self) -> Path:
        if (self._path / HEADER_NAME).is_file():
            return self._path
        traces = rotated_traces(self._path)
        if not traces:
            raise TraceFormatError(
                f"{self._path} is not a trace, nor a folder of traces: name what `tracekit record` "
                "is writing to"
            )
        return traces[-1]

    def poll(self) -> pa.Table | None:
        """The next rows, in order of arrival; None if there are none yet."""
        segments = [s for s in live_segments(self._trace) if s.last >= self._next_seq]
        segments = self._without_holes(segments)
        segments = [s for s in segments if s.first < self._next_seq + _ROWS_MAX]
        if not segments:
            return None
        header = self.header()
        manifest = read_manifest(self._trace, sealed=header.sealed_from is not None) or Manifest()
        vouched = Vouched(header.sealed_from, manifest.trace)
        try:
            files = [SegmentFile(segment, vouched) for segment in segments]
        except FileNotFoundError:
            return None  # merged meanwhile: the next poll sees the merged one
        try:
            reader = TraceReader(Snapshot(self._trace, header, files))
            last = min(segments[-1].last, self._next_seq + _ROWS_MAX - 1)
            table = self._rows(reader, last)
        finally:
            for file in files:
                file.close()
        self._next_seq = last + 1
        return table

    def _rows(self, reader: TraceReader, last: int) -> pa.Table:
        first = self._next_seq
        rows = reader.table(self._columns, first_seq=first, last_seq=last)
        if "raw" in self._columns:
            return rows
        names = ("seq", "raw")
        notes = reader.table(names, types=[RowType.NOTE], first_seq=first, last_seq=last)
        noted, texts = (notes[name].combine_chunks() for name in names)
        return rows.append_column("raw", texts.take(pc.index_in(rows["seq"], noted)))

    def _without_holes(self, segments: list[Segment]) -> list[Segment]:
        """The segments up to the first one before which rows are missing, for a few polls."""
        end = self._next_seq
        for number, segment in enumerate(segments):
            if segment.first > end:
                if number:
                    return segments[:number]
                self._missing += 1
                if self._missing <= _PATIENCE:
                    return []
                self.lost_rows += segment.first - end
                self._missing = 0
                self._next_seq = segment.first
            end = segment.last + 1
        self._missing = 0
        return segments
