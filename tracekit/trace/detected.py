"""Which Kubernetes version a trace is from, read off its objects.

Feeds `eras.detect` with the raw objects of a trace's first rows. An object counts as created while
the record ran if its creation lies well after the record's first row, so that neither a clock that
differs by seconds nor a relist makes an old object look new.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from tracekit.eras.detect import Detection, Fact, detect, facts_of
from tracekit.kube.timestamps import NS_PER_S
from tracekit.trace.model import STATE_TYPES, RowType
from tracekit.trace.reader import TraceReader

#: Signs show early: more rows than these are not looked at.
ROWS_MAX = 100_000
CLOCK_SLACK_NS = 5 * NS_PER_S
_COLUMNS = ("kind", "type", "created_ns", "recv_ns", "raw")
_WRITTEN = frozenset({str(RowType.ADDED), str(RowType.MODIFIED)})


def detected_version(reader: TraceReader) -> Detection:
    """The range of versions that the objects of a trace fit."""
    return detect(_facts(reader))


def _facts(reader: TraceReader) -> Iterator[Fact]:
    started_ns: int | None = None
    left = ROWS_MAX
    for table in reader.batches(_COLUMNS, types=tuple(STATE_TYPES)):
        columns = [table[name].to_pylist() for name in _COLUMNS]
        if started_ns is None:
            started_ns = min((at for at in columns[3] if at is not None), default=0)
        for kind, row_type, created_ns, recv_ns, raw in zip(*columns, strict=True):
            if not raw or not kind:
                continue
            document = _decoded(raw)
            if document is None:
                continue
            new = created_ns is not None and created_ns > started_ns + CLOCK_SLACK_NS
            written = row_type in _WRITTEN and recv_ns is not None
            yield from facts_of(kind, document, created_in_record=new, written_in_record=written)
            left -= 1
            if not left:
                return


def _decoded(raw: str) -> dict[str, object] | None:
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None
