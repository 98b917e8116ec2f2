"""Traces as somebody who knows the format would forge them: sealed, and full of malice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.watchlog import job
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.format.schema import NAMES, SCHEMA
from tracekit.trace.format.seal import SEAL_KEY, seal_file, unsealed
from tracekit.trace.format.segments import FORMAT_KEY, live_segments
from tracekit.trace.reading.files import SegmentFile, conform
from tracekit.trace.writing.writer import TraceWriter


def honest(path: Path, rows: int = 8) -> Path:
    """A small trace as the writer makes it."""
    header = TraceHeader(kubernetes_version="v1.36.3")
    with TraceWriter(path, header, session={"source": "test"}) as writer:
        for number in range(rows):
            writer.append("jobs", "ADDED", number + 1, json.loads(_job(number)))
    return path


def _job(number: int) -> bytes:
    made: Any = job(f"job-{number}", number + 1)
    return made if isinstance(made, bytes) else json.dumps(made).encode()


def forged(path: Path, columns: dict[str, pa.Array], rows: int, **options: Any) -> Path:
    """A trace whose one segment has some columns of the forger's, or more; the others are honest."""
    honest(path, rows=8)
    (segment,) = live_segments(path)
    file = SegmentFile(segment)
    identity = file.identity
    template = conform(file.unsorted(), NAMES).cast(SCHEMA)
    picked = template.take(pa.array([n % 8 for n in range(rows)], pa.int32()))
    columns = {"seq": pa.array(range(rows), pa.int64()), **columns}
    for name, values in columns.items():
        at, column = picked.schema.get_field_index(name), pa.field(name, values.type)
        picked = (
            picked.set_column(at, column, values)
            if at >= 0
            else picked.append_column(column, values)
        )
    segment.path.unlink()
    target = path / "log" / f"{0:016d}-{rows - 1:016d}.parquet"
    options = {"compression": "zstd", "version": "2.6", "store_schema": False, **options}
    with pq.ParquetWriter(target, picked.schema, **options) as writer:
        writer.write_table(picked, row_group_size=rows)
        writer.add_key_value_metadata({FORMAT_KEY: b"1", SEAL_KEY: unsealed(groups=1)})
    seal_file(target, identity)
    return path
