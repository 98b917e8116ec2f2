"""Compaction: nothing is lost, whatever moment it stops at."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.unit.trace.test_writer import fill
from tracekit.base.errors import TraceFormatError
from tracekit.trace.format import narrow_file, segments
from tracekit.trace.format.manifest import Manifest, read_manifest, write_manifest
from tracekit.trace.format.model import RowType, TraceHeader
from tracekit.trace.format.schema import NAMES, SCHEMA
from tracekit.trace.format.seal import sealed_document
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores.namespaces import lacks_namespace
from tracekit.trace.writing import compact
from tracekit.trace.writing.compact import Compactor
from tracekit.trace.writing.whole import compact_in_place
from tracekit.trace.writing.writer import TraceWriter

FLUSHES, ROWS = 20, 3


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "t"
    with TraceWriter(path) as writer:
        for number in range(FLUSHES):
            fill(writer, ROWS, start=number * ROWS)
            writer.flush()
    return path, TraceReader(path).table(NAMES)


@pytest.fixture
def scattered(template, tmp_path):
    """A trace of many small segments, and its rows."""
    path, rows = template
    shutil.copytree(path, tmp_path / "t")
    return tmp_path / "t", rows


def _finish(path):
    """What the next writer of the trace does: clear away what was left, merge the rest."""
    segments.remove_temporaries(path)
    return Compactor(path).finish()


def test_everything_that_fits_becomes_one_segment(scattered):
    path, before = scattered
    assert _finish(path) == 1
    assert TraceReader(path).table(NAMES).equals(before)
    assert [p.suffix for p in (path / "log").iterdir()] == [".parquet"]


def test_segments_stay_below_their_limits(scattered):
    path, before = scattered
    Compactor(path, rows_max=14).finish()
    reader = TraceReader(path)
    assert {s.rows for s in reader.segments} == {12}
    assert reader.table(NAMES).equals(before)


def test_steps_rewrite_a_row_only_a_few_times(tmp_path, monkeypatch):
    written = []
    original = compact.write_segment

    def counting(trace, table, **options):
        written.append(table.num_rows)
        return original(trace, table, **options)

    monkeypatch.setattr(compact, "write_segment", counting)
    writer = TraceWriter(tmp_path / "t")
    flushes = 72
    for number in range(flushes):
        fill(writer, 2, start=2 * number)
        writer.flush()
        while writer.compact():
            pass
    writer.close()
    assert sum(written) <= 4 * 2 * flushes
    assert len(TraceReader(tmp_path / "t").segments) < 24
    assert TraceReader(tmp_path / "t").table(("seq",))["seq"].to_pylist() == list(
        range(2 * flushes)
    )


class Stopped(Exception):  # noqa: N818 - it stands for a kill
    """The process ends here."""


STEPS = [
    (segments, "put_in_place", "before"),
    (segments, "put_in_place", "after"),
    (segments, "sync_directory", "before"),
    (Path, "unlink", "before"),
    (Path, "unlink", "after"),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step[1]}-{step[2]}")
@pytest.mark.parametrize("occurrence", [1, 2, 4])
@pytest.mark.parametrize("narrow", [None, True])
def test_stopping_anywhere_loses_nothing(scattered, monkeypatch, step, occurrence, narrow):
    owner, name, when = step
    if narrow and name == "put_in_place":
        owner = narrow_file
    path, before = scattered
    original = getattr(owner, name)
    calls = 0

    def stopping(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == occurrence and when == "before":
            raise Stopped
        result = original(*args, **kwargs)
        if calls == occurrence:
            raise Stopped
        return result

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, stopping)
        compactor = Compactor(path, rows_max=24, narrow=narrow)
        try:
            compactor.finish()
        except Stopped:
            pass
        else:
            assert occurrence > 3, "the step was never reached"
    before = before.cast(SCHEMA)
    assert TraceReader(path).table(NAMES).cast(SCHEMA).equals(before)
    _finish(path)
    assert TraceReader(path).table(NAMES).cast(SCHEMA).equals(before)
    names = [p.name for p in (path / "log").iterdir()]
    assert not [n for n in names if n.startswith(".")]
    live = TraceReader(path).segments
    assert len(names) == len(live) == 1


def test_a_reader_goes_on_when_compaction_replaces_its_files(scattered):
    path, before = scattered
    reader = TraceReader(path)
    parts = reader.batches(("seq",))
    first = next(parts)
    _finish(path)
    rest = [seq for table in parts for seq in table["seq"].to_pylist()]
    assert sorted(first["seq"].to_pylist() + rest) == before["seq"].to_pylist()


def test_a_lost_file_is_noticed(scattered):
    path, _ = scattered
    victim = TraceReader(path).segments[3]
    victim.path.unlink()
    reader = TraceReader(path)
    assert reader.rows == 57
    assert [(gap.stream, gap.seq) for gap in reader.gaps()] == [("jobs", 9), ("pods", 9)]
    (problem,) = reader.problems
    assert "has lost its rows 9 to 11" in problem
    assert not reader.is_damaged  # a gap, as a recorder's pause leaves one
    assert _finish(path) == 2  # what is not adjacent is not merged


def test_overlapping_segments_are_an_error(scattered):
    path, _ = scattered
    (path / "log" / segments.segment_name(1, 4)).write_bytes(b"")
    with pytest.raises(TraceFormatError, match="overlap"):
        TraceReader(path)


def test_a_compaction_of_the_whole_says_which_namespaces_there_are(tmp_path: Path) -> None:
    """And who appends leaves it out again: nobody has looked at the new rows."""
    trace = tmp_path / "t"
    with TraceWriter(trace, TraceHeader()) as writer:
        for name in ("b", "a", "b"):
            writer.append("jobs", RowType.ADDED, 1, job(name))
    assert manifest_of(trace).namespaces is None
    assert not manifest_of(trace).lacks("c")
    rows = manifest_of(trace).rows
    compact_in_place(trace)
    assert manifest_of(trace) == Manifest(rows, manifest_of(trace).trace, frozenset({"a", "b"}))
    assert manifest_of(trace).lacks("c")
    assert not manifest_of(trace).lacks("a")
    assert lacks_namespace(str(trace), "c")
    assert not lacks_namespace(str(tmp_path / "nothing"), "c")
    writer = TraceWriter(trace, append=True)
    writer.append("jobs", RowType.ADDED, 1, job("c"))
    writer.flush()
    assert manifest_of(trace).namespaces is None
    writer.close(compact=True)
    assert manifest_of(trace).namespaces == {"a", "b", "c"}


def manifest_of(trace: Path) -> Manifest:
    found = read_manifest(trace, sealed=True)
    assert found is not None
    return found


def job(namespace: str) -> dict[str, object]:
    metadata = {"namespace": namespace, "name": "j", "uid": namespace, "resourceVersion": "1"}
    return {"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata}


def test_a_manifest_names_no_more_namespaces_than_it_has_room_for(tmp_path: Path) -> None:
    many = frozenset(f"n{number}" for number in range(5000))
    write_manifest(tmp_path, Manifest(1, None, many))
    assert manifest_of(tmp_path).namespaces is None
    document = sealed_document({"rows": 1, "trace": None, "namespaces": "a"})
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    with pytest.raises(TraceFormatError, match="does not say which namespaces"):
        manifest_of(tmp_path)
