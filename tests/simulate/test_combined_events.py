"""Events of a Job that makes many pods for longer than the spam filter's five minutes.

From the tenth on they are combined into one, which is counted up by each pod; from the 25th on the
filter lets one through in five minutes, whose count has then risen by all that it kept back.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.simulate.test_workload import simulated
from tracekit.base.kube.events import COMBINED
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter

WORKLOAD = json.dumps(
    {
        "duration": "20m",
        "kubernetesVersion": "v1.36.3",
        "seed": 3,
        "jobs": [
            {
                "name": "many",
                "namespace": "shop",
                "spec": {"completions": 90, "parallelism": 4, "completionMode": "Indexed"},
                "pods": {"run": "30s"},
            }
        ],
    }
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    _, _, trace = simulated(tmp_path_factory.mktemp("made"), WORKLOAD)
    columns = ["stream", "type", "recv_ns", "raw"]
    return TraceReader(trace).table(columns).to_pylist()


def divergences(rows: list[dict[str, Any]], place: Path) -> list[tuple[str, str]]:
    with TraceWriter(place, TraceHeader(kubernetes_version="v1.36.3"), session={}) as writer:
        for row in rows:
            writer.append(row["stream"], row["type"], row["recv_ns"], json.loads(row["raw"]))
    reader = TraceReader(place)
    report = Judge(reader, resolve_era(reader, None, None)).report()
    return [(j.action, j.subject.split(":")[0]) for j in report.divergences]


def last_combined(rows: list[dict[str, Any]]) -> tuple[int, dict[str, Any], int]:
    """The place of the last combined Event, the Event, and by how much its count had risen."""
    found = [
        (place, json.loads(row["raw"]))
        for place, row in enumerate(rows)
        if row["stream"] == "events" and COMBINED in row["raw"]
    ]
    return *found[-1], found[-1][1]["count"] - found[-2][1]["count"]


def test_a_count_rises_by_what_the_spam_filter_kept_back(
    rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert last_combined(rows)[2] > 10
    assert divergences(rows, tmp_path / "t") == []


def _unknown_pod(event: dict[str, Any]) -> None:
    event["message"] = event["message"][:-1] + "!"


def _counts_too_many(event: dict[str, Any]) -> None:
    event["count"] += 60


@pytest.mark.parametrize("lie", [_unknown_pod, _counts_too_many])
def test_it_is_believed_no_further(
    rows: list[dict[str, Any]], lie: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    place, event, _ = last_combined(rows)
    lie(event)
    changed = copy.copy(rows)
    changed[place] = {**rows[place], "raw": json.dumps(event)}
    assert divergences(changed, tmp_path / "t") == [("event", "SuccessfulCreate")]
