"""Where a trace stands at its end, for a writer that goes on with it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq

from tracekit.trace.segments import Segment


def stream_positions(segments: Sequence[Segment]) -> dict[str, int]:
    """The next position in each stream of the trace."""
    positions: dict[str, int] = {}
    for segment in segments:
        table = pq.read_table(segment.path, columns=["stream", "stream_pos"], partitioning=None)
        counts = table.group_by("stream").aggregate([("stream_pos", "max")])
        for row in counts.to_pylist():
            if row["stream"] is not None and row["stream_pos_max"] is not None:
                known = positions.get(row["stream"], 0)
                positions[row["stream"]] = max(known, row["stream_pos_max"] + 1)
    return positions
