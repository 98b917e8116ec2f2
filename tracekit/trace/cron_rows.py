"""The rows of a trace that the replay of CronJobs and of TTL deletions reads, with their objects.

Only rows that can matter are decoded: CronJobs, Jobs of a CronJob, with a TTL or with a name that
a slot may want, Events about CronJobs, the controller manager's leases, namespaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.controllers.cronjob.children import OWNER_KIND
from tracekit.replay.cron_history import SLOT_NAME, VANISHED, WatchRow
from tracekit.replay.cron_surroundings import CronSurroundings, surroundings_of_rows
from tracekit.trace.reader import TraceReader

_COLUMNS = (
    "seq", "recv_ns", "stream", "type", "name", "owner_kind", "involved_kind", "synthesized", "raw",
)  # fmt: skip
_STREAMS = ("cronjobs", "events", "jobs", "leases", "namespaces")
_TTL_FIELD = '"ttlSecondsAfterFinished"'


def cron_rows(reader: TraceReader) -> tuple[list[WatchRow], CronSurroundings]:
    """The rows in order of arrival, and what the whole trace says about their time."""
    parts = [_wanted(table) for table in reader.batches(_COLUMNS, streams=_STREAMS)]
    rows: list[WatchRow] = []
    if parts:
        table = pa.concat_tables(parts).unify_dictionaries().sort_by("seq")
        rows = list(_decoded(table))
    surroundings = surroundings_of_rows(rows)
    last = [stream.last_ns for stream in reader.streams() if stream.last_ns is not None]
    return rows, replace(surroundings, end_ns=max([surroundings.end_ns, *last]))


def _wanted(table: pa.Table) -> pa.Table:
    """Drop the rows that no CronJob and no TTL has to do with."""
    stream = pc.cast(table["stream"], pa.string())
    about = pc.or_kleene(
        pc.equal(pc.cast(table["owner_kind"], pa.string()), OWNER_KIND),
        pc.equal(pc.cast(table["involved_kind"], pa.string()), OWNER_KIND),
    )
    named = pc.match_substring_regex(pc.cast(table["name"], pa.string()), SLOT_NAME.pattern + "$")
    limited = pc.match_substring(table["raw"], _TTL_FIELD)
    job = pc.and_(pc.equal(stream, "jobs"), pc.fill_null(pc.or_kleene(named, limited), False))  # noqa: FBT003
    other = pc.is_in(stream, pa.array(["cronjobs", "leases", "namespaces"]))
    control = pc.is_null(table["name"])
    keep = pc.or_(pc.or_(pc.fill_null(about, False), job), pc.or_(other, control))  # noqa: FBT003
    return table.filter(keep)


def _decoded(table: pa.Table) -> Iterator[WatchRow]:
    for row in table.to_pylist():
        row_type = VANISHED if row["synthesized"] else row["type"]
        yield WatchRow(row["recv_ns"] or 0, row["stream"], row_type, _object(row["raw"]))


def _object(raw: str | None) -> dict[str, Any]:
    value = orjson.loads(raw) if raw else {}
    return value if isinstance(value, dict) else {}
