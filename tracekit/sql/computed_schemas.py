"""Columns of the tables that SQL cannot make: due times of CronJobs, notes on their schedules."""

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
