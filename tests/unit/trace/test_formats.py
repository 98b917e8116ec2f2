"""Every format that was ever written stays readable: one golden trace each.

A golden trace is never rewritten; `python -m tests.unit.trace.test_formats` makes the one of the
newest format while that format is being made.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.watchlog import REPOSITORY, job, line, listed, pod, small_log, write_log
from tracekit.trace.format.model import FORMAT_VERSION, TraceHeader
from tracekit.trace.format.schema import NAMES
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.watch import WatchImporter
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.whole import compact_in_place
from tracekit.trace.writing.writer import TraceWriter

FORMATS = REPOSITORY / "tests" / "data" / "formats"
HEADER = TraceHeader(
    kubernetes_version="v1.36.3",
    feature_gates={"JobSuccessPolicy": True},
    controller_flags=("--kube-api-qps=100",),
)


def contents(trace):
    """Everything that a reader sees of a trace, as JSON."""
    reader = TraceReader(trace)
    header = reader.header
    return {
        "kubernetes_version": header.kubernetes_version,
        "feature_gates": dict(header.feature_gates),
        "controller_flags": list(header.controller_flags),
        "rows": [
            {
                name: value
                for name, value in row.items()
                if value is not None and name != "raw_bytes"
            }
            for row in reader.table(NAMES).to_pylist()
        ],
    }


def golden_log():
    """One row of each type."""
    event = {
        "metadata": {"name": "e", "namespace": "ns", "uid": "ue", "resourceVersion": "15"},
        "involvedObject": {"kind": "Job", "name": "three", "namespace": "ns"},
        "reason": "SuccessfulCreate",
        "count": 1,
    }
    return [
        *small_log(),
        line("events", "ADDED", event),
        b"not JSON",
        line("jobs", "ERROR", {"kind": "Status", "reason": "Expired", "message": "too old"}),
        line("pods", "NOTE", {"error": "connection reset"}),
        *listed("jobs", 20, job("three", 12, active=1)),
        line("pods", "MODIFIED", pod("other", 21)),
    ]


def make(folder: Path) -> None:
    """Write the golden trace of the newest format and what is in it."""
    log = write_log(folder / "watch.jsonl", golden_log())
    trace = folder / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    session = {"source": "import watch"}
    WatchImporter(lambda: TraceWriter(trace, HEADER, session=session)).run([LineSource(str(log))])
    compact_in_place(trace)
    text = json.dumps(contents(trace), indent=1, ensure_ascii=False)
    (folder / "contents.json").write_text(text + "\n", "utf-8")


def test_what_is_read_is_the_same_in_every_format():
    each = [
        json.loads((folder / "contents.json").read_text("utf-8")) for folder in FORMATS.iterdir()
    ]
    assert all(found == each[0] for found in each)


@pytest.mark.parametrize("folder", sorted(FORMATS.iterdir()), ids=lambda p: f"format-{p.name}")
def test_a_trace_of_this_format_reads_as_it_always_did(folder):
    expected = json.loads((folder / "contents.json").read_text("utf-8"))
    assert contents(folder / "trace") == expected


def test_the_newest_format_has_its_golden_trace_and_is_still_written_so(tmp_path):
    newest = FORMATS / str(FORMAT_VERSION)
    assert (newest / "trace" / "trace.json").is_file()
    make(tmp_path)
    assert json.loads((tmp_path / "contents.json").read_text("utf-8")) == json.loads(
        (newest / "contents.json").read_text("utf-8")
    )


if __name__ == "__main__":
    target = FORMATS / str(FORMAT_VERSION)
    target.mkdir(parents=True, exist_ok=True)
    make(target)
