"""Writing: durable flushes, appending, refusals, evidence kept to the byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.watchlog import REPOSITORY, job, pod
from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.model import Gap, TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter


def fill(writer, count, *, start=0):
    for number in range(start, start + count):
        stream, obj = (
            ("jobs", job(f"j{number % 3}", number)) if number % 2 else ("pods", pod(rv=number))
        )
        writer.append(stream, "MODIFIED", number, orjson.dumps(obj))


def rows(path, *columns):
    return TraceReader(path).table(columns).to_pylist()


def test_rows_come_back_in_order_of_arrival_with_their_positions(tmp_path):
    path = tmp_path / "t"
    with TraceWriter(path, TraceHeader(kubernetes_version="v1.36.3")) as writer:
        fill(writer, 10)
    got = rows(path, "seq", "stream", "stream_pos", "recv_ns", "rv")
    assert [r["seq"] for r in got] == [r["recv_ns"] for r in got] == [r["rv"] for r in got]
    assert [r["stream_pos"] for r in got if r["stream"] == "jobs"] == list(range(5))
    reader = TraceReader(path)
    assert reader.header.kubernetes_version == "v1.36.3"
    assert reader.header.sessions == ({"source": "unknown", "first_seq": 0},)


def test_each_flush_is_a_segment_that_a_reader_sees_at_once(tmp_path):
    path = tmp_path / "t"
    writer = TraceWriter(path)
    assert TraceReader(path).rows == 0
    fill(writer, 3)
    assert TraceReader(path).rows == 0
    assert writer.pending_rows == 3
    writer.flush()
    assert writer.pending_rows == 0
    assert TraceReader(path).rows == 3
    fill(writer, 2, start=3)
    writer.flush()
    assert [r["seq"] for r in rows(path, "seq")] == [0, 1, 2, 3, 4]
    assert writer.flush() is None
    writer.close()
    assert sorted(p.name for p in path.iterdir()) == ["log", "manifest.json", "trace.json"]


def test_segments_are_cut_by_rows_and_by_bytes(tmp_path):
    with TraceWriter(tmp_path / "a", segment_rows=4) as writer:
        fill(writer, 10)
    assert [s.rows for s in TraceReader(tmp_path / "a").segments] == [4, 4, 2]
    with TraceWriter(tmp_path / "b", segment_raw_bytes=1000) as writer:
        fill(writer, 10)
    assert len(TraceReader(tmp_path / "b").segments) > 2


def test_appending_goes_on_with_the_positions(tmp_path):
    path = tmp_path / "t"
    with TraceWriter(path, TraceHeader(kubernetes_version="v1.30.1")) as writer:
        fill(writer, 5)
    with TraceWriter(path, session={"source": "record"}, append=True) as writer:
        assert writer.next_seq == 5
        fill(writer, 5, start=5)
    got = rows(path, "seq", "stream", "stream_pos")
    assert [r["seq"] for r in got] == list(range(10))
    assert [r["stream_pos"] for r in got if r["stream"] == "pods"] == list(range(5))
    header = TraceReader(path).header
    assert header.kubernetes_version == "v1.30.1"
    assert [s["first_seq"] for s in header.sessions] == [0, 5]


def test_appending_to_nothing_starts_a_trace(tmp_path):
    with TraceWriter(tmp_path / "t", append=True) as writer:
        fill(writer, 1)
    assert TraceReader(tmp_path / "t").rows == 1


def test_an_existing_output_is_refused(tmp_path):
    path = tmp_path / "t"
    TraceWriter(path).close()
    with pytest.raises(TraceFormatError, match="exists"):
        TraceWriter(path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").write_text("x")
    for append in (False, True):
        with pytest.raises(TraceFormatError, match="not a trace"):
            TraceWriter(other, append=append)
    assert [p.name for p in other.iterdir()] == ["precious"]


def test_a_second_writer_is_refused_while_the_first_lives(tmp_path):
    path = tmp_path / "t"
    first = TraceWriter(path)
    with pytest.raises(TraceFormatError, match="another tracekit"):
        TraceWriter(path, append=True)
    first.close()
    TraceWriter(path, append=True).close()


def test_a_killed_writer_loses_only_what_it_had_not_flushed(tmp_path):
    path = tmp_path / "t"
    script = (
        "import os, sys, pathlib\n"
        "from tests.unit.trace.test_writer import fill, TraceWriter\n"
        f"w = TraceWriter(pathlib.Path({str(path)!r}))\n"
        "fill(w, 7); w.flush(); fill(w, 3, start=7)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    killed = subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert killed.returncode == -9
    leftover = path / "log" / ".tmp-0000000000000007-0000000000000009.parquet"
    leftover.write_bytes(b"half a file")
    assert TraceReader(path).rows == 7
    with TraceWriter(path, append=True) as writer:
        assert not leftover.exists()
        fill(writer, 1, start=7)
    assert [r["seq"] for r in rows(path, "seq")] == list(range(8))


def test_objects_are_kept_to_the_byte(tmp_path):
    raws = [
        b'{ "metadata" : {"name":"a", "zz":1, "aa": 12345678901234567890123},"x":1.0 }',
        '{"metadata":{"name":"ä","annotations":{"k":"\\u00e4 \\n"}}}'.encode(),
        b'{"spec":{"n":1e400}}',
    ]
    with TraceWriter(tmp_path / "t") as writer:
        for raw in raws:
            writer.append("jobs", "ADDED", 1, raw)
    assert [r["raw"].encode() for r in rows(tmp_path / "t", "raw")] == raws


def test_what_cannot_be_read_is_kept_whole(tmp_path):
    with TraceWriter(tmp_path / "t") as writer:
        writer.append("jobs", "ADDED", 5, b'{"broken":')
        writer.append("jobs", "ADDED", 5, b"[1]")
        writer.unparsed(b"\xff\xfe", None, "the line is not UTF-8 text")
    first, second, third = rows(
        tmp_path / "t", "type", "raw", "raw_bytes", "reason", "recv_ns", "stream"
    )
    assert first["type"] == second["type"] == third["type"] == "UNPARSED"
    assert first["raw"] == '{"broken":'
    assert first["stream"] == "jobs"
    assert second["raw"] == "[1]"
    assert third["raw_bytes"] == b"\xff\xfe"
    assert third["raw"] is None
    assert third["recv_ns"] == 5


def test_gaps_come_back(tmp_path):
    gap = Gap("pods", "410 Gone", last_rv=5, next_rv=9, from_ns=1, until_ns=3)
    with TraceWriter(tmp_path / "t") as writer:
        writer.gap(gap)
        writer.gap(Gap("jobs", "the stream never came back"))
    first, second = TraceReader(tmp_path / "t").gaps()
    assert (first.stream, first.last_rv, first.next_rv) == ("pods", 5, 9)
    assert (first.from_ns, first.until_ns, first.seq) == (1, 3, 0)
    assert second == Gap("jobs", "the stream never came back", seq=1)


def test_same_rows_give_the_same_bytes(tmp_path):
    for name in "ab":
        with TraceWriter(tmp_path / name, segment_rows=50) as writer:
            fill(writer, 120)
    first, second = (
        {p.relative_to(tmp_path / n): p.read_bytes() for p in sorted((tmp_path / n).rglob("*.*"))}
        for n in "ab"
    )
    assert first == second
    assert len(first) == 5


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    max_examples=15,
)
@given(st.lists(st.dictionaries(st.text(max_size=4), VALUE, max_size=4), min_size=1, max_size=5))
def test_any_object_survives_the_round_trip(tmp_path_factory, objects):
    path = tmp_path_factory.mktemp("round") / "t"
    as_bytes = [json.dumps(obj, ensure_ascii=len(objects) % 2 == 0).encode() for obj in objects]
    with TraceWriter(path, segment_rows=3) as writer:
        for obj, raw in zip(objects, as_bytes, strict=True):
            writer.append("pods", "ADDED", 1, raw)
            writer.append("jobs", "ADDED", 1, obj)
    got = [r["raw"] for r in rows(path, "raw")]
    assert [text.encode() for text in got[::2]] == as_bytes
    assert [json.loads(text) for text in got[1::2]] == objects
