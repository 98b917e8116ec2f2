"""A recorder's plain segments hold what typed ones do, before and after compaction."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tracekit.trace.format.model import Gap
from tracekit.trace.format.schema import NAMES
from tracekit.trace.format.segments import live_segments
from tracekit.trace.reading.files import SegmentFile
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.compact import Compactor
from tracekit.trace.writing.writer import TraceWriter


def _fill(path: Path, *, plain: bool, flush_every: int = 7) -> None:
    writer = TraceWriter(path, plain=plain)
    for number in range(60):
        resource = ("jobs", "pods", "events")[number % 3]
        body = {
            "metadata": {
                "name": f"{resource}-{number % 6}",
                "namespace": f"ns-{number % 2}",
                "uid": f"u{number % 6}",
                "resourceVersion": str(100 + number),
                "ownerReferences": [{"kind": "Job", "name": "j", "uid": "x", "controller": True}],
            },
            "spec": {"n": number},
            "status": {"phase": "Running", "active": 1},
        }
        raw = orjson.dumps(body)
        if plain:
            writer.append_plain(resource, ["MODIFIED"], 1000 + number, [raw])
        else:
            writer.append(resource, "MODIFIED", 1000 + number, raw)
        if number == 30:
            writer.gap(Gap("jobs", "410", 90, 130, 5, 6), 1030)
            writer.unparsed(b"\xff\xfe nothing", 1031, "not JSON", stream="pods")
            note = {"error": "reset"}
            writer.append("jobs", "NOTE", 1031, orjson.dumps(note), parsed=note)
        if number % flush_every == 0:
            writer.flush()
    writer.close()


def _plain_segments(path: Path) -> list[Path]:
    files = map(SegmentFile, live_segments(path))
    return [file.segment.path for file in files if file.is_plain]


def _rows(path: Path) -> list[dict]:
    return TraceReader(path).table(NAMES).to_pylist()


def test_reading_types_what_the_writer_did_not(tmp_path: Path) -> None:
    _fill(tmp_path / "plain", plain=True)
    _fill(tmp_path / "typed", plain=False)
    assert _plain_segments(tmp_path / "plain")
    assert not _plain_segments(tmp_path / "typed")
    assert _rows(tmp_path / "plain") == _rows(tmp_path / "typed")
    groups = [
        [(g.namespace, g.job, g.rows.to_pylist()) for g in TraceReader(tmp_path / name).groups()]
        for name in ("plain", "typed")
    ]
    assert groups[0] == groups[1]


def test_selections_see_plain_rows(tmp_path: Path) -> None:
    _fill(tmp_path / "trace", plain=True)
    reader = TraceReader(tmp_path / "trace")
    assert set(reader.table(("uid",), namespace="ns-1")["uid"].to_pylist()) == {"u1", "u3", "u5"}
    assert reader.table(("seq",), streams=["pods"], from_ns=1010, until_ns=1020).num_rows == 4
    assert [gap.reason for gap in reader.gaps()] == ["410"]


@pytest.mark.parametrize("fan_in_only", [True, False])
def test_compaction_types_and_loses_nothing(tmp_path: Path, fan_in_only: bool) -> None:
    trace = tmp_path / "trace"
    _fill(trace, plain=True)
    before = _rows(trace)
    compactor = Compactor(trace, rows_max=40)
    while compactor.step():
        assert _rows(trace) == before
    if not fan_in_only:
        compactor.finish()
        assert not _plain_segments(trace)
    assert _rows(trace) == before


def test_a_lone_plain_segment_is_typed_under_its_own_name(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    _fill(trace, plain=True, flush_every=1000)
    before = _rows(trace)
    assert Compactor(trace, rows_max=64).finish() <= 2
    assert not _plain_segments(trace)
    assert _rows(trace) == before


def test_sql_sees_plain_rows_with_their_columns(tmp_path: Path) -> None:
    from tracekit.sql.session import Session  # noqa: PLC0415 (the rest does without DuckDB)

    answers = []
    for name in ("plain", "typed"):
        _fill(tmp_path / name, plain=name == "plain")
        session = Session([tmp_path / name])
        query = (
            "SELECT stream, type, rv, uid, name, owner_name, phase, gap_reason FROM internal._rows"
        )
        answers.append(sorted(session.connection.execute(query).fetchall(), key=repr))
    assert answers[0] == answers[1]
    assert len(answers[0]) == 63
