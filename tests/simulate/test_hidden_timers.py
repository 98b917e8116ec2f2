"""A timer that went off and was not served, hidden by what came just before the key's next sync."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.simulate.test_workload import simulated
from tracekit.judging.judged import Judge, resolve_era
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter
from tracekit.verdict import Verdict

#: The pod ends a moment before the deadline; other Jobs show that the process had the time.
WORKLOAD = json.dumps(
    {
        "duration": "40s",
        "seed": 4,
        "jobs": [
            {
                "name": "ends",
                "namespace": "shop",
                "at": 10,
                "spec": {"completions": 2, "parallelism": 1, "activeDeadlineSeconds": 8},
                "pods": {"run": "7.6s"},
            },
            {
                "name": "many",
                "namespace": "shop",
                "count": 30,
                "every": "1s",
                "spec": {"completions": 1},
                "pods": {"run": "500ms"},
            },
        ],
    }
)


@pytest.mark.parametrize(("deadline_s", "late"), [(8, 0), (7, 0), (4, 1), (2, 1)])
@pytest.mark.parametrize("version", ["v1.28.15", "v1.36.3"])
def test_a_deadline_that_passed_before_the_pod_ended(
    version: str, deadline_s: int, late: int, tmp_path: Path
) -> None:
    code, told, made = simulated(tmp_path, WORKLOAD, "--kubernetes-version", version)
    assert code == 0, told
    rows = TraceReader(made).table(["stream", "type", "recv_ns", "raw"]).to_pylist()
    place = tmp_path / "lied"
    with TraceWriter(place, TraceHeader(kubernetes_version=version), session={}) as writer:
        for row in rows:
            found = json.loads(row["raw"])
            if row["stream"] == "jobs" and "activeDeadlineSeconds" in found.get("spec", ()):
                found["spec"]["activeDeadlineSeconds"] = deadline_s
            writer.append(row["stream"], row["type"], row["recv_ns"], found)
    reader = TraceReader(place)
    report = Judge(reader, resolve_era(reader, None, None)).report()
    found = [(j.object.name, j.verdict) for j in report.divergences]
    assert found == [("ends", Verdict.LATE)] * late
