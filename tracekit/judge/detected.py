"""Which Kubernetes version a trace is from, and with which gates, read off its objects.

Feeds `versions.detect` and `versions.inferred_gates` with the raw objects of a trace's first rows.
An object counts as created while the record ran if its creation lies well after the record's
first row, so that neither a clock that differs by seconds nor a relist makes an old object look
new.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence
from contextlib import suppress

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.base.errors import UnsupportedVersionError
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.judge.fact_cache import cached_fact
from tracekit.trace.format.model import STATE_TYPES, RowType
from tracekit.trace.reading.reader import TraceReader
from tracekit.versions.detect import Detection, Fact, detect, facts_of
from tracekit.versions.era import Era
from tracekit.versions.inferred_gates import GATE_KINDS, ShownGate, shown_gates
from tracekit.versions.version import KubeVersion
from tracekit.versions.version_markers import Sign

#: Signs show early: more rows than these are not looked at.
ROWS_MAX = 100_000
GATE_ROWS_MAX = 4_000
CLOCK_SLACK_NS = 5 * NS_PER_S
_STREAMS = ("jobs", "pods", "cronjobs", "events", "namespaces")
_COLUMNS = ("kind", "type", "created_ns", "raw")
_WRITTEN = frozenset({str(RowType.ADDED), str(RowType.MODIFIED)})


def detected_version(reader: TraceReader) -> Detection:
    """The range of versions that the objects of a trace fit."""
    return detect(_known_facts(reader, tuple(sorted(STATE_TYPES)), ROWS_MAX))


def shown_versions(reader: TraceReader) -> list[tuple[KubeVersion, str]]:
    """The versions that a trace names, or that its objects fit, each with what tells so."""
    found: list[tuple[KubeVersion, str]] = []
    if reader.header.kubernetes_version is not None:
        with suppress(UnsupportedVersionError):
            named = KubeVersion.parse(reader.header.kubernetes_version)
            found.append((named, "which the trace names"))
    shown = detected_version(reader)
    if shown.evidence:
        found.append((shown.best, f"as its objects show ({shown.describe()})"))
    return found


def detected_gates(reader: TraceReader, era: Era) -> tuple[ShownGate, ...]:
    """The gates that the trace shows to be set other than they are in an era."""
    written = (RowType.ADDED, RowType.MODIFIED)
    return shown_gates(_known_facts(reader, written, GATE_ROWS_MAX, GATE_KINDS), era)


def _known_facts(
    reader: TraceReader,
    types: tuple[RowType, ...],
    most: int,
    kinds: Collection[str] | None = None,
) -> tuple[Fact, ...]:
    """The facts of so many rows, of some kinds or of all."""
    name = "signs" if kinds is None else "gate-signs"
    found = cached_fact(
        reader.snapshot,
        name,
        list[tuple[str, str]],
        lambda: [(fact.sign.name, fact.where) for fact in _facts(reader, types, most, kinds)],
    )
    return tuple(Fact(Sign[sign], where) for sign, where in found)


def _facts(
    reader: TraceReader,
    types: Sequence[RowType],
    left: int,
    kinds: Collection[str] | None = None,
) -> Iterator[Fact]:
    """The first fact of each sign that objects show; those of some kinds, or all."""
    started_ns: int | None = None
    known: set[Sign] = set()
    for table in reader.batches((*_COLUMNS, "recv_ns"), streams=_STREAMS, types=types):
        if started_ns is None:
            started_ns = pc.min(table["recv_ns"]).as_py() or 0
        rows = table.slice(0, left)
        if kinds is not None:
            rows = rows.filter(pc.is_in(rows["kind"], value_set=pa.array(kinds, pa.string())))
        for fact in _facts_of_rows(rows, started_ns, known):
            known.add(fact.sign)
            yield fact
        left -= table.num_rows
        if left <= 0:
            return


def _facts_of_rows(table: pa.Table, started_ns: int, known: Container[Sign]) -> Iterator[Fact]:
    columns = (table[name].to_pylist() for name in _COLUMNS)
    for kind, row_type, created_ns, raw in zip(*columns, strict=True):
        document = _decoded(raw) if raw and kind else None
        if document is None:
            continue
        new = created_ns is not None and created_ns > started_ns + CLOCK_SLACK_NS
        yield from facts_of(
            kind,
            document,
            created_in_record=new,
            written_in_record=row_type in _WRITTEN,
            known=known,
        )


def _decoded(raw: str) -> dict[str, object] | None:
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None
