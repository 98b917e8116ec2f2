"""Rows as a reader hands them out, back into what a writer takes: for copies of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from tracekit.trace.format.model import Call, Gap, Origin, RowType
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter

#: Rows that are decoded at a time, and that are made into Python's at a time.
_WINDOW_ROWS = 65536
BATCH_ROWS = 4096
ORIGIN_COLUMNS: tuple[str, ...] = Origin.__struct_fields__
_CALL = ("namespace", "name", "uid", "job", "cronjob", "code", "reason", "message")
_GAP = ("gap_last_rv", "gap_next_rv", "gap_from_ns", "gap_until_ns")
#: All that a copy needs of a row; the typed columns are made again from `raw`.
COPIED_COLUMNS: tuple[str, ...] = (
    *("seq", "stream", "type", "recv_ns", "synthesized", "raw", "raw_bytes"),
    *ORIGIN_COLUMNS,
    *_CALL,
    *_GAP,
    "gap_reason",
)


def origin_of(row: Mapping[str, Any]) -> Origin:
    """How the row is known."""
    return Origin(**{name: row[name] for name in ORIGIN_COLUMNS})


def call_of(row: Mapping[str, Any], raw: bytes) -> Call:
    """A CALL row, with that text as its entry."""
    fields = {name: row[name] for name in _CALL}
    return Call(row["stream"], row["recv_ns"], raw, origin_of(row), **fields)


def gap_of(row: Mapping[str, Any]) -> Gap:
    """A GAP row."""
    return Gap(row["stream"], row["gap_reason"], *(row[name] for name in _GAP))


def rows_of(
    reader: TraceReader, columns: Sequence[str] = COPIED_COLUMNS
) -> Iterator[dict[str, Any]]:
    """The rows of a trace in order of arrival, in bounded memory."""
    for first in range(0, reader.end_seq, _WINDOW_ROWS):
        table = reader.table(columns, first_seq=first, last_seq=first + _WINDOW_ROWS - 1)
        for batch in table.to_batches(BATCH_ROWS):
            yield from batch.to_pylist()


def copy_row(writer: TraceWriter, row: Mapping[str, Any], origin: Origin | None = None) -> None:
    """Write a row again, as it was; `origin` says how it is known, where that is known better."""
    stream, kind, recv_ns = row["stream"], RowType(row["type"]), row["recv_ns"]
    raw = row["raw"].encode() if row["raw"] is not None else row["raw_bytes"]
    if kind is RowType.GAP:
        writer.gap(gap_of(row), recv_ns)
    elif kind is RowType.CALL:
        writer.call(call_of(row, raw or b""))
    elif kind is RowType.UNPARSED:
        writer.unparsed(raw or b"", recv_ns, row["reason"] or "", stream=stream)
    else:
        own = origin_of(row)
        if origin is not None:
            own = replace(origin, derived_from=own.derived_from)
        writer.append(
            stream, kind, recv_ns, raw or b"{}", synthesized=row["synthesized"], origin=own
        )
