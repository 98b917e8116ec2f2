"""A watch log in blocks of any size, parsed by whomever, is the same trace."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.judge.executors.work_ahead import Ahead
from tracekit.trace.importers import source, watch
from tracekit.trace.importers.blocks import Block, parse_block
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.watch import WatchImporter
from tracekit.trace.writing.writer import TraceWriter

AT_NS = 1_700_000_000_000_000_000


def line(number: int, kind: str, obj: object, stream: str = "jobs", **more: object) -> bytes:
    envelope = {"recv": AT_NS + number, "resource": stream, "type": kind, **more, "object": obj}
    return json.dumps(
        {name: value for name, value in envelope.items() if value is not None}
    ).encode()


def job(number: int, revision: int) -> dict[str, object]:
    meta = {"name": f"j{number}", "namespace": "a", "uid": f"u-{number}"}
    return {"kind": "Job", "metadata": {**meta, "resourceVersion": str(revision), "labels": {}}}


def nested(levels: int) -> dict[str, object]:
    inner: dict[str, object] = {}
    for _ in range(levels):
        inner = {"a": inner}
    return {**job(7, 31), "spec": inner}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with all that a line can be."""
    namespace = {"metadata": {"name": "kube-system", "uid": "c", "resourceVersion": "9"}}
    lines = [
        b"",
        b"no line of a watch log",
        line(0, "LIST_BEGIN", {"metadata": {"resourceVersion": "10"}}),
        *(line(n, "LIST", job(n, n)) for n in range(1, 5)),
        line(5, "LIST_END", {"metadata": {"resourceVersion": "10"}}),
        line(6, "ADDED", namespace, "namespaces"),
        line(7, "MODIFIED", job(1, 11)),
        line(8, "MODIFIED", job(2, 12), recv=None),
        b"  " + line(9, "MODIFIED", job(3, 13)) + b" \r",
        json.dumps({"object": job(4, 14), "resource": "jobs", "type": "MODIFIED"}).encode(),
        b'{"resource":"jobs","type":"MODIFIED","object":{"metadata":{"name":"\xff"}}}',
        line(10, "MODIFIED", {"metadata": {"name": 3, "resourceVersion": "15"}}),
        line(11, "MODIFIED", nested(300)),
        line(12, "ERROR", {"kind": "Status", "code": 410}),
        b"{",
        *(line(20 + n, "MODIFIED", job(n % 4, 40 + n), "pods") for n in range(9)),
        line(40, "LIST_BEGIN", {"metadata": {"resourceVersion": "60"}}),
        line(41, "LIST", job(1, 11)),
        line(42, "LIST_END", {"metadata": {"resourceVersion": "60"}}),
        *(line(50 + n, "MODIFIED", job(n, 70 + n)) for n in range(9)),
    ]
    path = tmp_path / "watch.jsonl"
    path.write_bytes(b"\n".join(lines) + b'\n{"recv":')
    return path


def written(log: Path, trace: Path, mapped: watch.Mapped = map) -> tuple[pa.Table, object]:
    """The rows by number and segment, and what the import said."""
    importer = WatchImporter(lambda: TraceWriter(trace, segment_rows=11), mapped=mapped)
    # A second file: what the first one's cut interrupted comes back.
    result = importer.run([LineSource(str(log)), LineSource(str(log))])
    parts = []
    for path in sorted((trace / "log").iterdir()):
        part = pq.read_table(path)
        parts.append(part.append_column("file", pa.array([path.name] * part.num_rows)))
    return pa.concat_tables(parts).sort_by("seq"), result.document()


def in_blocks(patch: pytest.MonkeyPatch, size: int) -> None:
    """Have files come in blocks of about so many bytes."""
    patch.setattr(watch, "BLOCK_BYTES", size)
    patch.setattr(source, "_CHUNK_BYTES", size)


@pytest.mark.parametrize("size", [1, 300, 1000, 3000])
def test_blocks_of_any_size_make_the_same_trace(log, tmp_path, monkeypatch, size) -> None:
    whole, told = written(log, tmp_path / "whole")
    assert {"UNPARSED", "GAP", "DELETED", "MODIFIED"} <= set(whole["type"].to_pylist())
    in_blocks(monkeypatch, size)
    rows, said = written(log, tmp_path / "parts")
    assert rows.equals(whole)
    assert said == told


@pytest.mark.full
def test_who_parses_shows_nowhere(log, tmp_path, monkeypatch) -> None:
    in_blocks(monkeypatch, 300)
    whole, told = written(log, tmp_path / "whole")
    with Ahead(2) as ahead:
        rows, said = written(log, tmp_path / "parts", ahead.mapped_in(tmp_path / "files"))
    assert rows.equals(whole)
    assert said == told


def test_line_by_line_is_the_same_trace(log, tmp_path, monkeypatch) -> None:
    """What blocks take by columns is what a line is when it is looked at alone."""
    whole, told = written(log, tmp_path / "whole")
    assert any(Block(b, parse_block(b)).seen for b in LineSource(str(log)).blocks(1 << 20))
    monkeypatch.setattr(watch, "parse_block", lambda block: parse_block(b"\n" * block.count(b"\n")))
    rows, said = written(log, tmp_path / "parts")
    assert rows.equals(whole)
    assert said == told


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Mostly what a recorder writes, some of it out of order, repeated, nameless or anew."""
    lines, at, revision = [], 0, 20
    for stream in draw(st.sets(st.sampled_from(["jobs", "pods", "others"]))):
        bounds = {"metadata": {"resourceVersion": "20"}}
        lines += [line(0, "LIST_BEGIN", bounds, stream), line(0, "LIST_END", bounds, stream)]
    for _ in range(draw(st.integers(0, 60))):
        at += draw(st.sampled_from([1, 1, 1, 1, 0, -3]))
        revision += draw(st.sampled_from([1, 1, 1, 1, 0, -2]))
        name = draw(st.sampled_from([1, 2, 3]))
        obj = job(name, revision)
        odd = draw(st.integers(0, 60))
        if odd == 0:
            del obj["metadata"]["name"]
        elif odd == 1:
            obj["metadata"] |= {"name": "default", "uid": "c"}
        elif odd == 2:
            obj["metadata"]["resourceVersion"] = "x"
        kind = draw(st.sampled_from(["MODIFIED"] * 6 + ["ADDED", "DELETED", "LIST", "ERROR"]))
        if draw(st.integers(0, 40)) == 0:
            kind, obj = "LIST_BEGIN", {"metadata": {"resourceVersion": str(revision)}}
        stream = draw(st.sampled_from(["jobs", "jobs", "pods", "others", "namespaces"]))
        lines.append(line(10 + at, kind, obj, stream))
    return b"\n".join([line(0, "BOOKMARK", job(1, 9), "leases"), *lines])


@settings(max_examples=15)
@given(logs(), st.sampled_from([200, 600, 2000]))
def test_what_is_looked_at_all_at_once_is_what_each_row_is(log: bytes, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "watch.jsonl")
        path.write_bytes(log)
        in_blocks(patch, size)
        at_once = written(path, Path(folder, "at-once"))
        patch.setattr(WatchImporter, "_passes", lambda *_: False)
        rows, said = written(path, Path(folder, "each"))
    assert said == at_once[1]
    assert rows.equals(at_once[0])


def test_a_block_of_nothing_unusual_is_not_looked_at_row_by_row(tmp_path, monkeypatch) -> None:
    head = [line(n, "MODIFIED", job(n, n), "pods") for n in range(1, 3)]
    rest = [line(n, "MODIFIED", job(n, n), "pods") for n in range(3, 40)]
    path = tmp_path / "watch.jsonl"
    path.write_bytes(b"\n".join([line(0, "LIST_BEGIN", job(1, 0), "pods"), *head, *rest]))
    in_blocks(monkeypatch, 600)
    looked: list[object] = []
    look = watch.Watchdog.look
    monkeypatch.setattr(
        watch.Watchdog, "look", lambda self, *row: (looked.append(row), look(self, *row))
    )
    importer = WatchImporter(lambda: TraceWriter(tmp_path / "trace"))
    assert importer.run([LineSource(str(path))]).rows == 40
    assert len(looked) < 10


def test_a_block_has_whole_lines(tmp_path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\n\nb" + b"\n" * 3 + b"c}")
    assert list(LineSource(str(path)).blocks(1 << 20)) == [b"a\n\nb\n\n", b"c}"]
    assert list(LineSource(str(path)).lines()) == [b"a", b"", b"b", b"", b"", b"c}"]
