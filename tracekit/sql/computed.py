"""Rows that SQL cannot make: verdicts by replaying the trace, cron ticks by the schedule.

Verdicts are kept on this machine (`tracekit.sql.kept`) under a digest of all that they follow from:
the trace's content, the rules, the code. Nothing that a trace brings along is taken for a verdict.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import duckdb
import orjson
import pyarrow as pa

from tracekit.eras.era import Era
from tracekit.sql.kept import code_digest, load, store
from tracekit.sql.sources import Source
from tracekit.sql.ticks import TICK_SCHEMA, ticks_of
from tracekit.trace.format.header import header_document
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.snapshot import Snapshot
from tracekit.verdict import Judgement

_FIELDS = pa.list_(
    pa.struct([("path", pa.string()), ("expected", pa.string()), ("observed", pa.string())])
)
_ASSUMPTIONS = pa.list_(
    pa.struct(
        [
            ("kind", pa.string()),
            ("from_ns", pa.int64()),
            ("until_ns", pa.int64()),
            ("evidence", pa.string()),
        ]
    )
)
VERDICT_SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("controller", pa.string()),
        ("kind", pa.string()),
        ("namespace", pa.string()),
        ("name", pa.string()),
        ("uid", pa.string()),
        ("action", pa.string()),
        ("verdict", pa.string()),
        ("divergent", pa.bool_()),
        ("time_ns", pa.int64()),
        ("resource_version", pa.string()),
        ("subject", pa.string()),
        ("why", pa.string()),
        ("fields", _FIELDS),
        ("lag_observations", pa.int64()),
        ("lag_ns", pa.int64()),
        ("reason", pa.string()),
        ("forced", pa.bool_()),
        ("ambiguous", pa.bool_()),
        ("silent_syncs", pa.int64()),
        ("assumptions", _ASSUMPTIONS),
    ]
)
SCHEMAS = {"_verdicts": VERDICT_SCHEMA, "_cron_ticks": TICK_SCHEMA}


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What the user says where the trace does not."""

    kubernetes_version: str | None = None
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    process_zone: str | None = None

    @property
    def gates_text(self) -> str | None:
        """The gates as a command line has them."""
        settings = (f"{name}={str(on).lower()}" for name, on in sorted(self.feature_gates.items()))
        return ",".join(settings) or None


def era_of(reader: TraceReader, options: ReplayOptions) -> Era:
    """The rules that the trace is judged by."""
    from tracekit.judging.judged import resolve_era  # noqa: PLC0415 - the engine is slow to import

    return resolve_era(reader, options.kubernetes_version, options.gates_text, options.process_zone)


def verdicts(source: Source, options: ReplayOptions) -> pa.Table:
    """Every judgement of the trace, from the cache if it was judged before.

    None where a part of the trace cannot be believed: what it held would count as never done.
    """
    snapshot = source.snapshot
    if snapshot is None or source.is_damaged:
        return _none(source)
    if not source.files:
        return VERDICT_SCHEMA.empty_table()
    key = _key(snapshot, options)
    table = load(key, VERDICT_SCHEMA)
    if table is None:
        from tracekit.judging.judged import Judge  # noqa: PLC0415 - the engine is slow to import

        reader = TraceReader(snapshot)
        report = Judge(reader, era_of(reader, options)).report()
        table = verdict_table(report.judgements, source.name)
        store(key, table)
    return _named(table, source.name)


def _none(source: Source) -> pa.Table:
    note = f"{source.path} gets no verdicts: what it has lost would count as never done"
    if note not in source.notes:
        source.notes.append(note)
    return VERDICT_SCHEMA.empty_table()


def _named(table: pa.Table, name: str) -> pa.Table:
    """The table under the name that the trace has in this session."""
    return table.set_column(0, "trace", pa.array([name] * table.num_rows, pa.string()))


def _key(snapshot: Snapshot, options: ReplayOptions) -> str:
    """What the verdicts follow from: the content of the trace, the rules, the code."""
    parts = {
        "segments": [
            (file.segment.first, file.segment.last, file.content_digest) for file in snapshot.files
        ],
        "lost": [(loss.first, loss.last) for loss in snapshot.losses],
        "header": header_document(snapshot.header),
        "version": options.kubernetes_version,
        "gates": options.gates_text,
        "process_zone": options.process_zone,
        "code": code_digest(),
    }
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=32).hexdigest()


def verdict_table(judgements: list[Judgement], trace: str) -> pa.Table:
    """Judgements as an Arrow table."""
    rows = [_verdict_row(judgement, trace) for judgement in judgements]
    return pa.Table.from_pylist(rows, VERDICT_SCHEMA)


def _verdict_row(judgement: Judgement, trace: str) -> dict[str, object]:
    where = judgement.object
    return {
        "trace": trace,
        "controller": judgement.controller,
        "kind": where.kind,
        "namespace": where.namespace,
        "name": where.name,
        "uid": where.uid,
        "action": judgement.action,
        "verdict": judgement.verdict.value,
        "divergent": judgement.divergent,
        "time_ns": judgement.time_ns,
        "resource_version": judgement.resource_version,
        "subject": judgement.subject,
        "why": judgement.why,
        "fields": [
            {"path": f.path, "expected": _json(f.expected), "observed": _json(f.observed)}
            for f in judgement.fields
        ],
        "lag_observations": judgement.lag_observations,
        "lag_ns": judgement.lag_ns,
        "reason": judgement.reason.value if judgement.reason is not None else None,
        "forced": judgement.forced,
        "ambiguous": judgement.ambiguous,
        "silent_syncs": judgement.silent_syncs,
        "assumptions": [assumption._asdict() for assumption in judgement.assumptions],
    }


def _json(value: object) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS).decode()


def cron_ticks(
    connection: duckdb.DuckDBPyConnection, source: Source, options: ReplayOptions
) -> pa.Table:
    """Every due time of every CronJob of the trace, and what became of it."""
    header = source.header
    zone = options.process_zone or str(header.scope.get("process_zone") or "UTC")
    version = options.kubernetes_version or header.kubernetes_version
    return ticks_of(connection, source.name, version, zone)
