"""Rows of an importer into a trace: the last step, the same for every kind of source."""

from __future__ import annotations

from collections.abc import Iterable

from tracekit.trace.format.model import Call, Gap
from tracekit.trace.importers.observation import Observation
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.writing.writer import TraceWriter


def write_rows(
    writer: TraceWriter, rows: Iterable[Observation | Call | Gap], result: ImportResult
) -> None:
    """Write rows in the order in which they come."""
    for row in rows:
        if isinstance(row, Gap):
            writer.gap(row)
            result.gaps += 1
        elif isinstance(row, Call):
            writer.call(row)
        else:
            write_observation(writer, row)


def write_observation(writer: TraceWriter, row: Observation) -> int:
    """Write one state and return its position."""
    return writer.append(
        row.stream,
        row.type,
        row.recv_ns,
        row.raw if row.raw is not None else row.obj or {},
        parsed=row.obj,
        synthesized=row.origin.derived_from is not None,
        origin=row.origin,
    )
