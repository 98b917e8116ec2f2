"""Rows of a simulated workload, to be changed or cut before they are judged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.simulate.test_workload import simulated
from tracekit.check.diff.report import DiffReport
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter

Row = dict[str, Any]


def rows_of(place: Path, workload: dict[str, Any], version: str) -> list[Row]:
    """What a recorder saw of a workload, as a watch log has it."""
    code, told, made = simulated(place, json.dumps(workload), "--kubernetes-version", version)
    assert code == 0, told
    columns = ["stream", "type", "recv_ns", "raw"]
    return [
        {
            "resource": row["stream"],
            "type": row["type"],
            "recv": row["recv_ns"],
            "object": json.loads(row["raw"]),
        }
        for row in TraceReader(made).table(columns).to_pylist()
        if row["raw"]
    ]


def report_of(place: Path, rows: Iterable[Row], version: str) -> DiffReport:
    """What is said of such rows."""
    header = TraceHeader(
        kubernetes_version=version,
        scope={"namespaces": None, "selector": None, "simulated": True},
    )
    with TraceWriter(place, header, session={"source": "simulate"}) as writer:
        for row in rows:
            writer.append(row["resource"], row["type"], row["recv"], row["object"])
    reader = TraceReader(place)
    return Judge(reader, resolve_era(reader, None, None)).report()
