"""What `cron lint` says of a trace's schedules, as a table. No verdict rests on it."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from tracekit.answers.cronlint.linted import COUNT, LONGEST_RUNS, Asked, entry_of, linted, notes_of
from tracekit.base.cron import UnknownZoneError, load_zone
from tracekit.base.errors import TracekitError
from tracekit.sql.computed_schemas import NOTE_SCHEMA
from tracekit.versions.version import KubeVersion

_RUNS = f"SELECT * FROM ({LONGEST_RUNS}) WHERE trace = ?"  # noqa: S608 - our own words
_END = "SELECT max(trace_end_ns) FROM internal._ends WHERE trace = ?"


def notes_of_trace(
    connection: duckdb.DuckDBPyConnection,
    trace: str,
    kubernetes_version: str | None,
    process_zone: str | None,
) -> pa.Table:
    """The notes of each CronJob, from the end of the record on; none without a known version."""
    try:
        version = KubeVersion.parse(kubernetes_version or "")
        zone = load_zone(process_zone or "UTC")
    except (TracekitError, UnknownZoneError, ValueError):
        return NOTE_SCHEMA.empty_table()
    cursor = connection.cursor()
    (end_ns,) = cursor.execute(_END, [trace]).fetchone() or (None,)
    cursor.execute(_RUNS, [trace])
    names = [column[0] for column in cursor.description or ()]
    asked = Asked(version, zone, end_ns or 0, COUNT)
    found = []
    for values in cursor.fetchall():
        row = dict(zip(names, values, strict=True))
        notes = notes_of(linted(entry_of(row), asked))
        found.append(
            {
                **{name: row[name] for name in ("trace", "namespace", "cronjob_uid")},
                "notes": [{"name": note.name, "text": note.text} for note in notes],
            }
        )
    return pa.Table.from_pylist(found, NOTE_SCHEMA)
