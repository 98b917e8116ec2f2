"""Rows that SQL cannot make: verdicts by replaying the trace, cron ticks by the schedule.

Verdicts are kept in `cache/` beside the trace's log: a file that names what it was computed from
(the trace's files and header, the rules, the code of the replay) and is made again when any of it
changed. A trace that cannot be written to just goes without.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from tracekit.eras.era import Era
from tracekit.sql.sources import Source
from tracekit.sql.ticks import TICK_SCHEMA, ticks_of
from tracekit.trace.header import header_document
from tracekit.trace.judged import Judge, resolve_era
from tracekit.trace.reader import TraceReader
from tracekit.verdict import Judgement

CACHE_DIR = "cache"
_KEY = b"tracekit.computed_from"
#: Packages whose code decides what a verdict is.
_ENGINE = ("cli", "controllers", "cron", "diff", "eras", "kube", "replay", "trace")

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

    @property
    def gates_text(self) -> str | None:
        """The gates as a command line has them."""
        settings = (f"{name}={str(on).lower()}" for name, on in sorted(self.feature_gates.items()))
        return ",".join(settings) or None


def era_of(reader: TraceReader, options: ReplayOptions) -> Era:
    """The rules that the trace is judged by."""
    return resolve_era(reader, options.kubernetes_version, options.gates_text)


def verdicts(source: Source, options: ReplayOptions) -> pa.Table:
    """Every judgement of the trace, from the cache if nothing changed since.

    None where a part of the trace is lost: what it held would count as never done.
    """
    if source.problems:
        return _none(source)
    if not source.files:
        return VERDICT_SCHEMA.empty_table()
    key = _key(source, options)
    path = source.path / CACHE_DIR / "verdicts.parquet"
    with suppress(OSError, pa.ArrowException):
        if (pq.read_metadata(path).metadata or {}).get(_KEY) == key:
            return _named(pq.read_table(path, schema=VERDICT_SCHEMA), source.name)
    reader = TraceReader(source.path, on_damage="skip")
    report = Judge(reader, era_of(reader, options)).report()
    if reader.problems:
        source.problems += reader.problems
        return _none(source)
    table = verdict_table(report.judgements, source.name)
    _store(table, key, path)
    return table


def _none(source: Source) -> pa.Table:
    source.problems.append(
        f"{source.path} gets no verdicts: what it has lost would count as never done"
    )
    return VERDICT_SCHEMA.empty_table()


def _named(table: pa.Table, name: str) -> pa.Table:
    """The table under the name that the trace has in this session."""
    return table.set_column(0, "trace", pa.array([name] * table.num_rows, pa.string()))


def _store(table: pa.Table, key: bytes, path: Path) -> None:
    temporary = path.with_name(f".tmp-{path.name}")
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table.replace_schema_metadata({_KEY: key}), temporary, compression="zstd")
        temporary.replace(path)


def _key(source: Source, options: ReplayOptions) -> bytes:
    parts = {
        "files": [(path.name, path.stat().st_size) for path in source.files],
        "header": header_document(source.header),
        "version": options.kubernetes_version,
        "gates": options.gates_text,
        "engine": _engine_digest(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest().encode()


@lru_cache(maxsize=1)
def _engine_digest() -> str:
    """A digest of the code that computes verdicts."""
    digest = hashlib.sha256()

    def add(folder: Traversable) -> None:
        for entry in sorted(folder.iterdir(), key=lambda item: item.name):
            if entry.is_dir():
                add(entry)
            elif entry.name.endswith(".py"):
                digest.update(entry.name.encode() + b"\0" + entry.read_bytes())

    for package in _ENGINE:
        add(files("tracekit") / package)
    return digest.hexdigest()


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


def cron_ticks(connection: duckdb.DuckDBPyConnection, source: Source) -> pa.Table:
    """Every due time of every CronJob of the trace, and what became of it."""
    return ticks_of(connection, source.name, source.header.kubernetes_version)
