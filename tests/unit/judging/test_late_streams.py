"""What came late, as the order of revisions tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from tests.support.erasures import early_end
from tests.support.judged_rows import divergences_of
from tests.support.traces import TRACES, import_log, json_lines
from tracekit.check.replay.commit_times import Arrival, Arrivals, Timed, timed
from tracekit.check.replay.instants import JudgedNs, RecordedNs
from tracekit.check.replay.recorder_clock import (
    BY_LEASE,
    BY_SERVERS,
    BY_STEP,
    Epoch,
    RecorderClock,
)
from tracekit.cli.main import cli
from tracekit.judge.clocks import STREAMS, timed_of
from tracekit.judge.growing import GrowingTimes, gone_on
from tracekit.judge.run_context import run_context_of
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.reader import TraceReader

S = 10**9
RECORD = Path(__file__).parents[2] / "data" / "replay" / "pods-shown-late"
LATE_NS = 1795408090 * S  # pods come late from then on
Told = tuple[float, int | None, str, str]


def _written(*rows: Told) -> dict[int, JudgedNs]:
    """What was late of rows of (second, revision, stream, type), or of a gap that ended then."""
    arrivals = Arrivals()
    for seq, (second, rv, stream, kind) in enumerate(rows):
        at_ns = RecordedNs(int(second * S))
        if rv is None:
            arrivals.interrupted(seq, stream, at_ns)
        else:
            arrivals.add(Arrival(seq, rv, at_ns, stream, watched=kind != "LIST"))
    return timed(arrivals, STREAMS).written_ns


def test_a_pod_that_follows_a_newer_job_was_written_before_it() -> None:
    """By the time of the first that is newer."""
    found = _written(
        (1, 10, "jobs", "ADDED"),
        (2, 13, "jobs", "MODIFIED"),
        (3, 15, "jobs", "MODIFIED"),
        (5, 12, "pods", "ADDED"),
        (6, 14, "pods", "ADDED"),
        (6.5, 16, "pods", "ADDED"),
    )
    assert found == {12: 2 * S, 14: 3 * S}


def test_side_by_side_is_not_late() -> None:
    """Less than a second tells nothing."""
    assert _written((2, 13, "jobs", "ADDED"), (2.9, 12, "pods", "ADDED")) == {}


def test_a_row_behind_newer_ones_of_its_stream_is_not_late() -> None:
    """A watch shows its stream in order: this is none of its lag."""
    rows = (2, 13, "pods", "ADDED"), (9, 12, "pods", "MODIFIED")
    assert _written((1.5, 14, "jobs", "ADDED"), *rows) == {}


@pytest.mark.parametrize("seen", ["LIST", "GAP"])
def test_what_came_unseen_is_not_late(seen: str) -> None:
    """What was written while nobody looked comes when somebody looks again."""
    again = (8, None if seen == "GAP" else 3, "pods", seen)
    rows = (2, 13, "jobs", "ADDED"), again, (8.5, 12, "pods", "ADDED")
    assert _written(*rows) == {}


def test_an_audit_log_tells_more_itself(tmp_path: Path) -> None:
    """Its answers may come long after newer ones: that is no watch."""
    words = ["import", "audit", str(TRACES / "v1.36.3-twins" / "audit.jsonl.zst")]
    CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "trace")], standalone_mode=False)
    assert timed_of(TraceReader(tmp_path / "trace")) == Timed()


def test_a_record_is_told_the_same_as_it_grows(tmp_path: Path) -> None:
    """Asked time and again, of the latest rows alone."""
    reader = import_log(RECORD / "watch.jsonl.zst", tmp_path / "trace", RECORD)
    growing = GrowingTimes()
    for table in reader.table(NAMES).sort_by("seq").to_batches(200):
        growing.feed(pa.table(table))
        growing.of(reader.header)
    grown, whole = growing.of(reader.header), timed_of(reader)
    assert [(e.from_seq, e.ahead_ns, e.evidence) for e in grown.clock.epochs] == [
        (e.from_seq, e.ahead_ns, e.evidence) for e in whole.clock.epochs
    ]
    assert grown.written_ns == whole.written_ns
    assert run_context_of(reader, whole).written_ns == whole.written_ns
    assert max(_late(reader, dict(whole.written_ns))) > 8 * S
    last_ns = max(grown.written_ns.values())
    growing.forget(last_ns)
    left = growing.of(reader.header).written_ns
    assert left == {rv: at_ns for rv, at_ns in grown.written_ns.items() if at_ns == last_ns}


def _clock(*epochs: tuple[int, int, str]) -> RecorderClock:
    """One of epochs that are given as first row, offset and evidence."""
    begun = RecordedNs(0)
    return RecorderClock(tuple(Epoch(seq, begun, begun, ns, said) for seq, ns, said in epochs))


@pytest.mark.parametrize(
    ("before", "later", "found"),
    [
        (((0, 9, BY_SERVERS),), ((40, 5, BY_LEASE),), ((0, 5, BY_LEASE),)),
        (((0, 9, BY_LEASE),), ((40, 5, BY_SERVERS),), ((0, 9, BY_LEASE),)),
        (((0, 9, BY_LEASE),), ((40, 5, BY_LEASE),), ((0, 5, BY_LEASE),)),
        (((0, 5, BY_LEASE),), ((40, 9, BY_LEASE),), ((0, 5, BY_LEASE),)),
        (((0, 5, BY_LEASE),), ((40, 0, ""),), ((0, 5, BY_LEASE),)),
        (
            ((0, 5, BY_LEASE), (30, -90, BY_LEASE)),
            ((40, -91, BY_LEASE), (60, 7, BY_STEP)),
            ((0, 5, BY_LEASE), (30, -91, BY_LEASE), (60, 7, BY_STEP)),
        ),
    ],
)
def test_what_older_rows_told_of_a_clock_stands(before: Any, later: Any, found: Any) -> None:
    grown = gone_on(Timed(_clock(*before)), Timed(_clock(*later)), 40, 0)
    assert grown.clock == _clock(*found)


def _late(reader: TraceReader, written_ns: dict[int, int]) -> list[int]:
    rows = reader.table(("rv", "recv_ns", "stream", "type")).to_pylist()
    return [r["recv_ns"] - written_ns[r["rv"]] for r in rows if r["rv"] in written_ns]


def test_a_lie_among_what_came_late_is_found() -> None:
    """A pod that is taken out of the record, as if it had never been."""
    name = "c0157-mixed-hpngq"
    rows = [r for r in json_lines(RECORD / "watch.jsonl.zst") if _name(r) != name]
    assert {j.object.name for j in divergences_of(rows, RECORD)} == {"c0157-mixed"}


def test_what_a_late_stream_has_not_shown_at_the_end_is_no_divergence() -> None:
    """A record that ends while pods come late: a status may count what they would have shown."""
    ends_ns = LATE_NS + 9 * S
    rows = early_end(json_lines(RECORD / "watch.jsonl.zst"), ends_ns)
    assert divergences_of(rows, RECORD) == []


def _name(row: dict[str, Any]) -> str:
    return str(((row.get("object") or {}).get("metadata") or {}).get("name"))
