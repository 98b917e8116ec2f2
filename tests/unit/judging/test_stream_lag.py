"""What came late, as the order of revisions tells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.erasures import early_end
from tests.support.judged_rows import divergences_of
from tests.support.traces import import_log, json_lines
from tracekit.judge.clocks import timed_of
from tracekit.judge.run_context import run_context_of
from tracekit.judge.stream_lag import StreamLag
from tracekit.trace.reading.reader import TraceReader

S = 10**9
RECORD = Path(__file__).parents[2] / "data" / "replay" / "pods-shown-late"
LATE_NS = 1795408090 * S  # pods come late from then on
Told = tuple[float, int | None, str, str]


def _written(*rows: Told, told: Sequence[int] = ()) -> dict[int, int]:
    """What was late of rows of (second, revision, stream, type), or of a gap that ended then."""
    lag = StreamLag()
    gap = [kind == "GAP" for *_, kind in rows]
    times = [int(second * S) for second, *_ in rows]
    lag.feed(
        pa.table(
            {
                "seq": range(len(rows)),
                "recv_ns": pa.array([None if g else t for g, t in zip(gap, times, strict=True)]),
                "rv": pa.array([rv for _, rv, *_ in rows], pa.int64()),
                "stream": [stream for _, _, stream, _ in rows],
                "type": [kind for *_, kind in rows],
                "not_before_ns": pa.array([0 if rv in told else None for _, rv, *_ in rows]),
                "gap_until_ns": pa.array(
                    [t if g else None for g, t in zip(gap, times, strict=True)]
                ),
            }
        )
    )
    return lag.written_ns


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


def test_an_audit_log_tells_more_itself() -> None:
    """Its answers may come long after newer ones: that is no watch."""
    rows = (2, 13, "jobs", "ADDED"), (9, 12, "pods", "ADDED")
    assert _written(*rows, told=[12]) == {}


def test_a_record_is_told_the_same_as_it_grows(tmp_path: Path) -> None:
    """Row by row as by the envelope, which also knows the API server's times."""
    reader = import_log(RECORD / "watch.jsonl.zst", tmp_path / "trace", RECORD)
    growing = StreamLag()
    for table in reader.table().sort_by("seq").to_batches(50):
        growing.feed(pa.table(table))
    times = timed_of(reader)
    clock, found = times.clock, times.written_ns
    assert growing.written_ns.keys() <= found.keys()
    for rv, at_ns in growing.written_ns.items():
        assert found[rv] <= clock.judged_ns(at_ns)
    assert run_context_of(reader, times).written_ns == found
    assert max(_late(reader, dict(found))) > 8 * S
    last_ns = max(growing.written_ns.values())
    last = sum(at_ns == last_ns for at_ns in growing.written_ns.values())
    growing.forget(last_ns)
    assert len(growing.written_ns) == last


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
