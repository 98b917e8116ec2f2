"""Reading: selections, groups, damage, formats."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.watchlog import job, namespace, pod
from tracekit.base.errors import TraceFormatError
from tracekit.trace.format import segments
from tracekit.trace.format.model import FORMAT_VERSION, TraceHeader
from tracekit.trace.format.schema import NAMES, TYPED_COLUMNS
from tracekit.trace.reading import groups
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.selection import Keys
from tracekit.trace.writing.whole import compact_in_place
from tracekit.trace.writing.writer import TraceWriter


def write(path, rows, **options):
    with TraceWriter(path, **options) as writer:
        for stream, obj, at in rows:
            writer.append(stream, "MODIFIED", at, orjson.dumps(obj))
    return TraceReader(path)


def in_namespace(obj, name):
    obj["metadata"]["namespace"] = name
    return obj


SAMPLE = [
    ("jobs", in_namespace(job("b", 5), "y"), 10),
    ("pods", in_namespace(pod("b-1", 3, "b"), "y"), 20),
    ("jobs", in_namespace(job("a", 4), "x"), 30),
    ("namespaces", namespace(rv=1), 40),
    ("pods", in_namespace(pod("a-1", 9, "a"), "x"), 50),
    ("resourcequotas", {"metadata": {"namespace": "x", "name": "q", "resourceVersion": "2"}}, 60),
    ("jobs", in_namespace(job("b", 7), "y"), 70),
]


@pytest.mark.parametrize("segment_rows", [1, 3, 100])
@pytest.mark.parametrize(
    ("selection", "seqs"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6]),
        ({"namespace": "x"}, [2, 4, 5]),
        ({"namespace": "y", "job": "b"}, [0, 1, 6]),
        ({"job": "nobody"}, []),
        ({"streams": ["pods"]}, [1, 4]),
        ({"streams": []}, []),
        ({"types": ["LIST"]}, []),
        ({"uid": "uid-a-1"}, [4]),
        ({"from_ns": 20, "until_ns": 50}, [1, 2, 3]),
        ({"first_seq": 5}, [5, 6]),
        ({"last_seq": 0}, [0]),
        ({"namespace": "x", "from_ns": 45}, [4, 5]),
    ],
)
def test_selections(tmp_path, segment_rows, selection, seqs):
    reader = write(tmp_path / "t", SAMPLE, segment_rows=segment_rows)
    assert reader.table(("seq",), **selection)["seq"].to_pylist() == seqs


def test_row_groups_that_cannot_hold_a_wanted_row_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "ROW_GROUP_ROWS", 2)
    reader = write(tmp_path / "t", SAMPLE)
    from tracekit.trace.reading.files import SegmentFile  # noqa: PLC0415

    read = []
    original = SegmentFile.read
    monkeypatch.setattr(
        SegmentFile, "read", lambda self, g, *rest: read.append(g) or original(self, g, *rest)
    )
    assert reader.table(("seq",), namespace="y", job="b").num_rows == 3
    assert len(read) == 2  # of four


@pytest.mark.parametrize("narrow", [False, True])
def test_of_a_row_group_without_a_wanted_row_only_what_tells_so_is_read(
    tmp_path, monkeypatch, narrow
):
    around = [("jobs", in_namespace(job(name, rv), "x"), rv) for rv, name in enumerate("aczy", 1)]
    reader = write(tmp_path / "t", around)
    if narrow:
        compact_in_place(tmp_path / "t")
        reader = TraceReader(tmp_path / "t")
        assert all(file.is_narrow for file in reader.snapshot.files)
    from tracekit.trace.reading.files import SegmentFile  # noqa: PLC0415

    read = set()
    original = SegmentFile._stored
    monkeypatch.setattr(
        SegmentFile,
        "_stored",
        lambda self, group, names: read.update(names) or original(self, group, names),
    )
    assert not list(reader.groups(NAMES, namespace="x", job="b"))
    assert not reader.table(NAMES, namespace="x", job="b").num_rows
    assert {"namespace", "job"} <= read
    assert read.isdisjoint({"raw", "spec", "labels", "conditions"})
    read.clear()
    assert not reader.table(NAMES, namespace="x", job="b").num_rows
    assert not read  # that there is none is known by now
    assert reader.table(NAMES, namespace="x", job="c").num_rows == 1
    assert "raw" in read


_X, _Y, _NOBODY = ("x", "a"), ("y", "b"), ("x", "b")
_QUESTIONS = (
    lambda reader: reader.table(("seq",), namespace="x", job="a"),
    lambda reader: reader.table(("seq",), namespace="x", job="b"),
    lambda reader: reader.table(("seq",), namespace="y", job="b", streams=["jobs"]),
    lambda reader: reader.table(("seq",), namespace="y", job="b", first_seq=5),
    lambda reader: reader.table(("seq",), namespace="x"),
    *(
        lambda reader, jobs=jobs: [
            group.rows["seq"].to_pylist() for group in reader.groups(("seq",), keys=Keys(jobs))
        ]
        for jobs in ((_X,), (_Y,), (_NOBODY,), (_X, _Y))
    ),
)


@pytest.mark.parametrize("row_group", [1, 2, 7])
def test_what_was_asked_before_changes_no_answer(tmp_path, monkeypatch, row_group):
    monkeypatch.setattr(segments, "ROW_GROUP_ROWS", row_group)
    write(tmp_path / "t", SAMPLE, segment_rows=3)
    alone = [question(TraceReader(tmp_path / "t")) for question in _QUESTIONS]
    for before in _QUESTIONS:
        reader = TraceReader(tmp_path / "t")
        before(reader)
        assert [question(reader) for question in _QUESTIONS] == alone


@pytest.mark.parametrize("segment_rows", [1, 2, 100])
def test_groups_come_sorted_with_their_rows_in_order_of_revision(tmp_path, segment_rows):
    reader = write(tmp_path / "t", SAMPLE, segment_rows=segment_rows)
    got = [(g.namespace, g.job, g.rows["rv"].to_pylist()) for g in reader.groups(("rv",))]
    assert got == [
        (None, None, [1]),
        ("x", None, [2]),
        ("x", "a", [4, 9]),
        ("y", "b", [3, 5, 7]),
    ]
    only = [g.rows["seq"].to_pylist() for g in reader.groups(namespace="y", job="b")]
    assert only == [[1, 0, 6]]


@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    max_examples=15,
)
@given(
    keys=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 9)), max_size=60
    ),
    segment_rows=st.integers(1, 40),
    row_group=st.integers(1, 7),
    window=st.integers(1, 20),
    sorted_rows=st.sampled_from([3, 10, 1000]),
)
def test_groups_are_a_sort_of_all_rows(
    tmp_path_factory, monkeypatch, *, keys, segment_rows, row_group, window, sorted_rows
):
    monkeypatch.setattr(segments, "ROW_GROUP_ROWS", row_group)
    monkeypatch.setattr(groups, "_WINDOW_ROWS", window)
    monkeypatch.setattr(groups, "_SORTED_ROWS", sorted_rows)
    monkeypatch.setattr(groups, "_HELD_ROWS", sorted_rows)
    monkeypatch.setattr(groups, "_SAMPLED", 2)
    rows = [("jobs", in_namespace(job(name, rv), ns), 1) for ns, name, rv in keys]
    reader = write(tmp_path_factory.mktemp("g") / "t", rows, segment_rows=segment_rows)
    got = [
        (g.namespace, g.job, row["rv"], row["seq"])
        for g in reader.groups(TYPED_COLUMNS)
        for row in g.rows.select(["rv", "seq"]).to_pylist()
    ]
    assert got == sorted((ns, name, rv, seq) for seq, (ns, name, rv) in enumerate(keys))
    names = [(g.namespace, g.job) for g in reader.groups(("seq",))]
    assert len(set(names)) == len(names)


def test_stream_summaries(tmp_path):
    reader = write(tmp_path / "t", SAMPLE, segment_rows=2)
    by_name = {s.stream: s for s in reader.streams()}
    assert by_name["jobs"].counts == {"MODIFIED": 3}
    jobs = by_name["jobs"]
    assert (jobs.first_ns, jobs.last_ns, jobs.first_rv, jobs.last_rv) == (10, 70, 4, 7)


def test_an_empty_trace_reads_as_nothing(tmp_path):
    reader = write(tmp_path / "t", [])
    assert reader.rows == reader.end_seq == 0
    assert reader.table(NAMES).num_rows == 0
    assert list(reader.groups()) == reader.gaps() == reader.streams() == []


def test_a_damaged_file_is_named_and_the_rest_still_reads(tmp_path):
    path = tmp_path / "t"
    segment = write(path, SAMPLE, segment_rows=3).segments[1]
    content = segment.path.read_bytes()
    for damage in (b"", content[:100], content[:200] + b"\0" * 4000 + content[4200:]):
        segment.path.write_bytes(damage)
        with pytest.raises(TraceFormatError, match=segment.path.name):
            TraceReader(path).table(NAMES)
        reader = TraceReader(path, on_damage="skip")
        assert reader.table(("seq", "type")).filter(pc.field("type") != "GAP")["seq"].to_pylist() == [
            0, 1, 2, 6,
        ]  # fmt: skip
        assert {gap.seq for gap in reader.gaps()} == {3}
        assert segment.path.name in reader.problems[0]


def test_a_newer_format_asks_for_an_upgrade(tmp_path):
    path = tmp_path / "t"
    write(path, SAMPLE)
    header = path / "trace.json"
    document = json.loads(header.read_text())
    header.write_text(json.dumps({**document, "format_version": FORMAT_VERSION + 1}))
    with pytest.raises(TraceFormatError) as caught:
        TraceReader(path)
    assert str(caught.value) == (
        f"{path} was written by a newer tracekit (format 3; this one reads up to 2): upgrade with "
        "pip install -U kube-tracekit"
    )


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format_version": "1"}', '{"format_version": 0}']
)
def test_a_header_that_is_none(tmp_path, text):
    path = tmp_path / "t"
    write(path, SAMPLE)
    (path / "trace.json").write_text(text)
    with pytest.raises(TraceFormatError):
        TraceReader(path)


def test_what_is_no_trace_is_said_so(tmp_path):
    with pytest.raises(TraceFormatError, match="no such directory"):
        TraceReader(tmp_path / "nothing")
    with pytest.raises(TraceFormatError, match=r"no trace\.json"):
        TraceReader(tmp_path)
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(TraceFormatError, match="it is a file; make one of it with"):
        TraceReader(file)
    with pytest.raises(TraceFormatError, match="no column nonsense"):
        next(write(tmp_path / "t", SAMPLE).batches(("nonsense",)))


@pytest.mark.parametrize("sorted_rows", [1, 400, 1_000_000])
def test_groups_are_right_whatever_the_size_of_windows_and_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sorted_rows: int
) -> None:
    """Windows cut between groups; what does not fit in memory is sorted through a file."""
    monkeypatch.setattr("tracekit.trace.reading.groups._WINDOW_ROWS", 40)
    monkeypatch.setattr("tracekit.trace.reading.groups._SORTED_ROWS", sorted_rows)
    monkeypatch.setattr("tracekit.trace.reading.groups._HELD_ROWS", sorted_rows)
    monkeypatch.setattr("tracekit.trace.reading.groups._SAMPLED", 16)
    writer = TraceWriter(tmp_path / "t", TraceHeader(), segment_rows=300)
    expected: dict[tuple[str, str], list[int]] = {}
    for seq in range(2_000):
        namespace, job = f"n{seq % 7}", f"j{(seq * 31) % 53}"
        meta = {
            "namespace": namespace,
            "name": job,
            "uid": f"u{seq}",
            "resourceVersion": str(seq + 1),
        }
        writer.append("jobs", "ADDED", seq, {"kind": "Job", "metadata": meta, "spec": {}})
        expected.setdefault((namespace, job), []).append(seq)
    writer.close()
    got = {
        (group.namespace, group.job): group.rows["seq"].to_pylist()
        for group in TraceReader(tmp_path / "t").groups(("seq",))
    }
    assert got == expected
    assert list(got) == sorted(expected)
