"""Where a trace stands at its end, for a writer that goes on with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.seal import DamageError
from tracekit.trace.format.segments import Segment
from tracekit.trace.reading.files import SegmentFile, damaged_segment


def stream_positions(segments: Sequence[Segment]) -> dict[str, int]:
    """The next position in each stream of the trace."""
    positions: dict[str, int] = {}
    for segment in segments:
        for row in _last_positions(segment):
            if row["stream"] is not None and row["stream_pos_max"] is not None:
                known = positions.get(row["stream"], 0)
                positions[row["stream"]] = max(known, row["stream_pos_max"] + 1)
    return positions


def _last_positions(segment: Segment) -> Iterator[dict[str, Any]]:
    try:
        file = SegmentFile(segment)
        for group in range(file.row_groups):
            table = file.read(group, ("stream", "stream_pos"))
            counts = table.group_by("stream").aggregate([("stream_pos", "max")])
            yield from counts.to_pylist()
    except DamageError as error:
        raise TraceFormatError(damaged_segment(segment, error)) from error
