"""Columns of the tables that SQL cannot make: due times of CronJobs, their notes, answers."""

from __future__ import annotations

import pyarrow as pa

TICK_SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("namespace", pa.string()),
        ("cronjob", pa.string()),
        ("cronjob_uid", pa.string()),
        ("due_ns", pa.int64()),
        ("outcome", pa.string()),
        ("policy", pa.string()),
        ("job", pa.string()),
        ("started_ns", pa.int64()),
        ("schedule", pa.string()),
        ("why", pa.string()),
    ]
)
NOTE_SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("namespace", pa.string()),
        ("cronjob_uid", pa.string()),
        ("notes", pa.list_(pa.struct([("name", pa.string()), ("text", pa.string())]))),
    ]
)
COVERAGE_SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("stream", pa.string()),
        ("scope", pa.string()),
        ("namespaces", pa.list_(pa.string())),
        ("selector", pa.string()),
        ("from_ns", pa.int64()),
        ("until_ns", pa.int64()),
    ]
)
_OBJECT = [
    ("trace", pa.string()),
    ("kind", pa.string()),
    ("namespace", pa.string()),
    ("name", pa.string()),
    ("uid", pa.string()),
]
FINDING_SCHEMA = pa.schema(
    [
        *_OBJECT,
        ("cronjob", pa.string()),
        ("rank", pa.int64()),
        ("id", pa.string()),
        ("severity", pa.string()),
        ("claim", pa.string()),
        ("detail", pa.string()),
        ("from_ns", pa.int64()),
        ("until_ns", pa.int64()),
        ("advice", pa.string()),
        ("caused_by", pa.string()),
        ("thread", pa.int64()),
        ("facts", pa.string()),
    ]
)
CAUSE_SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("rank", pa.int64()),
        ("id", pa.string()),
        ("severity", pa.string()),
        ("cause", pa.string()),
        ("kind", pa.string()),
        ("namespace", pa.string()),
        ("name", pa.string()),
        ("objects", pa.list_(pa.string())),
        ("actor", pa.string()),
        ("from_ns", pa.int64()),
        ("until_ns", pa.int64()),
        ("failed_jobs", pa.int64()),
        ("unfinished_jobs", pa.int64()),
        ("missed_runs", pa.int64()),
        ("late", pa.int64()),
        ("lost_pod_s", pa.float64()),
        ("other_objects", pa.int64()),
        ("victims", pa.list_(pa.string())),
        ("advice", pa.string()),
        ("thread", pa.int64()),
    ]
)
ENDING_SCHEMA = pa.schema(
    [
        *_OBJECT,
        ("job", pa.string()),
        ("ended_ns", pa.int64()),
        ("cause", pa.string()),
        ("evidence", pa.string()),
        ("reason", pa.string()),
        ("message", pa.string()),
        ("exit_code", pa.int64()),
        ("finding", pa.string()),
    ]
)
WAIT_SCHEMA = pa.schema(
    [
        *_OBJECT,
        ("job", pa.string()),
        ("waits_for", pa.string()),
        ("since_ns", pa.int64()),
        ("container", pa.string()),
        ("reason", pa.string()),
        ("message", pa.string()),
        ("restarts", pa.int64()),
        ("exit_code", pa.int64()),
        ("finding", pa.string()),
        ("evidence", pa.string()),
        ("advice", pa.string()),
    ]
)


def no_rows(schema: pa.Schema) -> pa.Table:
    """`schema.empty_table()`, which imports pandas where it is there."""
    return pa.Table.from_batches([], schema)
