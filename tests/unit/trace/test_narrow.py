"""Narrow segments: everything comes back, byte for byte and cell by cell, or is said to be lost."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.traces import TRACES
from tests.unit.trace.test_formats import golden_log
from tests.unit.trace.test_reader import SAMPLE, write
from tracekit.base.errors import TraceFormatError
from tracekit.trace.format import narrow, narrow_file, segments, splitting
from tracekit.trace.format.model import Call, Gap, Origin, TraceHeader
from tracekit.trace.format.narrow import narrowed
from tracekit.trace.format.patches import FROM_COLUMNS, Joiner
from tracekit.trace.format.schema import NAMES, SCHEMA
from tracekit.trace.format.segments import live_segments, segment_name
from tracekit.trace.format.splitting import split_texts
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.watch import WatchImporter
from tracekit.trace.reading import files
from tracekit.trace.reading.objects import Objects, objects_of
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.compact import Compactor
from tracekit.trace.writing.whole import compact_copy, compact_in_place
from tracekit.trace.writing.writer import TraceWriter

NOTHING = dict.fromkeys(FROM_COLUMNS)


def everything(trace):
    """All cells, texts as texts."""
    return TraceReader(trace).table(NAMES).cast(SCHEMA)


def narrow_of(trace, target):
    compact_copy(trace, target)
    return target


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A real trace, in segments of some hundreds of rows."""
    path = tmp_path_factory.mktemp("real") / "t"
    header = TraceHeader(kubernetes_version="v1.36.3")
    importer = WatchImporter(lambda: TraceWriter(path, header, segment_rows=700))
    importer.run([LineSource(str(TRACES / "v1.36.3-all" / "watch.jsonl.zst"))])
    return path


#### Texts ####


def put_together(texts, columns=NOTHING):
    """What the texts of one stream change, None for those kept whole, and what is made of that."""
    rows = len(texts)
    cells = [[columns[name]] * rows for name in FROM_COLUMNS]
    patches = split_texts(["pods"] * rows, pa.array(texts, pa.string()), cells)
    table = pa.table({"slots": patches.slots, "values": patches.values})
    ends, slots, values = narrow._changes(table, rows)
    joiner = Joiner(patches.templates.dictionary.to_pylist())
    changes, found, begin = [], [], 0
    for template, end in zip(patches.templates.indices.to_pylist(), ends, strict=True):
        joiner.change(slots[begin:end], values[begin:end])
        changes.append(None if template is None else (template, values[begin:end]))
        begin = end
        if template is not None:
            found.append(joiner.fill(template, [columns[name] for name in FROM_COLUMNS]))
    return changes, found


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.uuids().map(str),
    st.sampled_from(["x\\", '"', ":1,", "true", "[", "{}", "\\u0001"]),
)
KEYS = st.one_of(
    st.text(max_size=5),
    st.uuids().map(lambda uuid: f'k:{{"uid":"{uuid}"}}'),
    st.sampled_from(["a", "b", ':"', "1", ",null", "\\"]),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(
    st.lists(
        st.tuples(
            st.dictionaries(KEYS, JSON, max_size=5),
            st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]),
            st.booleans(),
        ),
        max_size=6,
    )
)
def test_whatever_the_text_it_comes_back(objects):
    texts = [
        json.dumps(value, separators=separators, ensure_ascii=ascii_only)
        for value, separators, ascii_only in objects
    ]
    patches, found = put_together(texts)
    assert None not in patches
    assert found == texts


@given(st.lists(st.text(alphabet='{}[]",:\\ntrue01e-. \x7fü'), max_size=6))
def test_what_is_no_json_comes_back_too(texts):
    patches, found = put_together(texts)
    assert found == [t for t, patch in zip(texts, patches, strict=True) if patch is not None]


def test_a_row_gives_only_what_changed():
    texts = [
        '{"metadata":{"name":"a","uid":"u"},"status":{"phase":"Pending","n":1}}',
        '{"metadata":{"name":"a","uid":"u"},"status":{"phase":"Running","n":1}}',
        '{"metadata":{"name":"a","uid":"u"},"status":{"phase":"Running","n":1,"end":"now"}}',
    ]
    patches, found = put_together(texts, NOTHING | {"name": "a", "uid": "u"})
    assert found == texts
    assert patches == [(0, ['"Pending"', "1"]), (0, ['"Running"']), (1, ['"now"'])]


@pytest.mark.parametrize("text", ['{"a":"\x01"}', '{"a":"\x02"}', '{"a":"\x03"}', '"', '{"a":"b'])
def test_what_cannot_be_cut_is_kept_as_it_came(text):
    others = ['{"a":"b"}', '{"a":"c"}']
    patches, found = put_together([others[0], text, others[1]])
    assert patches[1] is None
    assert found == others


def test_a_string_without_an_end_is_looked_for_once():
    """To look for it from each escaped quote anew would take minutes."""
    patches, _ = put_together(['{"a":"' + '\\"' * 200_000, '{"a":"b"}'])
    assert patches[0] is None
    assert patches[1] is not None


def test_texts_that_would_not_come_back_are_kept_and_nothing_builds_on_them(monkeypatch):
    """As if one value in eight were written wrong."""
    texts = [f'{{"a":"{number % 8}","b":"{number % 3}"}}' for number in range(64)]
    whole = splitting.written
    monkeypatch.setattr(
        splitting, "written", lambda value: whole(value) if value != "7" else '"wrong"'
    )
    patches, found = put_together(texts)
    assert [at for at, patch in enumerate(patches) if patch is None] == [*range(7, 64, 8)]
    assert found == [text for text in texts if '"7"' not in text]


UUID = "01234567-89ab-cdef-0123-456789abcdef"


@pytest.mark.parametrize(
    "text",
    [
        f'{{"k:{{\\"uid\\":\\"{UUID}\\"}}":1,"a":"\\"{UUID}\\""}}',
        f'{{"{UUID}":"x","k:{{\\"uid\\":\\"{UUID}\\"}}":{{}}}}',
        f'{{"{UUID}":"a\\\\","b":"\\\\\\"{UUID}"}}',
        f'{UUID} "{UUID}" :',
    ],
)
def test_an_identifier_in_a_key_comes_back(text):
    others = [text.replace("0", "1"), text.replace("x", "y"), text]
    _, found = put_together([text, *others])
    assert found == [text, *others]


#### Traces ####


def test_a_real_trace_comes_back_in_a_third_of_its_bytes(real, tmp_path):
    small = narrow_of(real, tmp_path / "n")
    reader = TraceReader(small)
    assert reader.kept_rows == 0
    assert everything(small).equals(everything(real))
    wide = compact_copy(real, tmp_path / "w", narrow=False).trace
    assert reader.size_bytes < 0.45 * TraceReader(wide).size_bytes
    assert TraceReader(wide).header.format_version == reader.header.format_version
    assert json.loads((wide / "trace.json").read_text())["format_version"] == 1
    assert json.loads((small / "trace.json").read_text())["format_version"] == 2


def odd_rows(path):
    """Rows of every type, some of which no object tells all of."""
    with TraceWriter(path, TraceHeader()) as writer:
        for number, raw in enumerate(
            (
                b'{"metadata": {"name": "spaced",  "uid": "1"}}',
                b'{"metadata":{"uid":"2","uid":"twice","resourceVersion":"007"}}',
                b'{"metadata":{"name":"\\u00fc\\n","labels":{"a":"\\ud800"}},"status":{"active":1e2}}',
                '{"metadata":{"name":"ü","resourceVersion":"123456789012345678901"}}'.encode(),
            )
        ):
            writer.append("jobs", "ADDED", number, raw)
        origin = Origin(derived_from="binding", rv_after=3, rv_before=9, actor="who", verb="patch")
        writer.append("pods", "ADDED", None, b'{"metadata":{"name":"p"}}', origin=origin)
        writer.append(None, "NOTE", 7, b'{"error":"no stream"}')
        writer.unparsed(b"\xff\xfe", 8, "not UTF-8", stream="pods")
        writer.unparsed(b'{"a":"\x01"}', 9, "a control character")
        writer.gap(Gap("pods", "broke", 1, None, 3, 4))
        call = {"namespace": "ns", "name": "n", "job": "j", "code": 409, "reason": "Conflict"}
        writer.call(Call("jobs", 10, b'{"verb":"create"}', Origin(actor="me"), **call))
    return path


def test_rows_of_every_kind_come_back(tmp_path):
    wide = odd_rows(tmp_path / "w")
    small = narrow_of(wide, tmp_path / "n")
    assert everything(small).equals(everything(wide))
    # Three UNPARSED rows (no JSON has half a surrogate) and a CALL have reasons that no text tells.
    assert TraceReader(small).kept_rows == 4


def test_each_of_the_golden_rows_comes_back(tmp_path):
    path = tmp_path / "w"
    (tmp_path / "log").write_text(
        "\n".join(x if isinstance(x, str) else x.decode() for x in golden_log())
    )
    WatchImporter(lambda: TraceWriter(path)).run([LineSource(str(tmp_path / "log"))])
    assert everything(narrow_of(path, tmp_path / "n")).equals(everything(path))


def test_columns_that_do_not_follow_are_kept(tmp_path):
    """As of a trace whose columns another release has filled differently."""
    write(tmp_path / "w", SAMPLE)
    rows = everything(tmp_path / "w")
    changed = {
        "phase": pa.array(["Strange", *rows["phase"].to_pylist()[1:]], pa.string()),
        "finalizers": pa.array([["one", "two"]] * rows.num_rows, SCHEMA.field("finalizers").type),
        "labels": pa.nulls(rows.num_rows, pa.string()),
    }
    for name, values in changed.items():
        rows = rows.set_column(rows.schema.get_field_index(name), SCHEMA.field(name), values)
    (segment,) = live_segments(tmp_path / "w")
    narrow_file.write_narrow_segment(
        tmp_path / "w", rows, first=segment.first, last=segment.last,
        identity=files.SegmentFile(segment).identity,
    )  # fmt: skip
    reader = TraceReader(tmp_path / "w")
    assert reader.kept_rows == rows.num_rows
    assert everything(tmp_path / "w").equals(rows)


def test_selections_find_the_same_rows(real, tmp_path):
    wide, small = TraceReader(real), TraceReader(narrow_of(real, tmp_path / "n"))
    keys = wide.table(("namespace", "job", "uid", "recv_ns"))
    middle = keys.slice(keys.num_rows // 2, 1).to_pylist()[0]
    namespace, job = next(
        (row["namespace"], row["job"]) for row in keys.to_pylist() if row["job"] is not None
    )
    for selection in (
        {"namespace": namespace, "job": job},
        {"namespace": namespace},
        {"streams": ["pods"], "types": ["MODIFIED"]},
        {"from_ns": middle["recv_ns"]},
        {"until_ns": middle["recv_ns"], "streams": ["jobs"]},
        {"first_seq": 100, "last_seq": 900},
        {"uid": middle["uid"]},
    ):
        found = small.table(NAMES, **selection).cast(SCHEMA)
        assert found.num_rows, selection
        assert found.equals(wide.table(NAMES, **selection).cast(SCHEMA)), selection
    for one, other in zip(wide.groups(), small.groups(), strict=True):
        assert (one.namespace, one.job) == (other.namespace, other.job)
        assert one.rows.cast(other_schema(one)).equals(other.rows.cast(other_schema(one)))


def other_schema(group):
    return pa.schema([SCHEMA.field(name) for name in group.rows.schema.names])


@pytest.fixture
def many_groups(real, tmp_path, monkeypatch):
    """A narrow trace of one segment with many row groups."""
    monkeypatch.setattr(segments, "ROW_GROUP_ROWS", 200)
    return narrow_of(real, tmp_path / "n")


def test_row_groups_stand_alone(real, many_groups, monkeypatch):
    reader = TraceReader(many_groups)
    assert everything(many_groups).equals(everything(real))
    groups = sum(file.row_groups for file in reader._snapshot.files)
    assert groups > 8
    read = []
    original = files.SegmentFile._verify
    monkeypatch.setattr(
        files.SegmentFile,
        "_verify",
        lambda self, group: (read.append(group), original(self, group)),
    )
    keys = reader.table(("namespace", "job")).to_pylist()
    namespace, job = next((r["namespace"], r["job"]) for r in keys if r["job"] is not None)
    for selection in (
        {"namespace": namespace, "job": job},
        {"namespace": "no such"},
    ):
        read.clear()
        TraceReader(many_groups).table(("seq", "phase", "raw"), **selection)
        assert len(read) < groups / 2, selection


def test_damage_in_one_row_group_leaves_the_others(many_groups):
    reader = TraceReader(many_groups)
    (file,) = reader._snapshot.files
    end = file._footer.seal.groups[-1]
    content = bytearray(file.segment.path.read_bytes())
    content[end.offset + end.length // 2] ^= 1
    file.segment.path.write_bytes(content)
    reader = TraceReader(many_groups)
    assert next(iter(reader.batches(("raw", "phase")))).num_rows
    with pytest.raises(TraceFormatError, match="the checksum differs"):
        reader.table(("raw",))


@pytest.mark.parametrize("part", [0.1, 0.5, 0.999])
def test_a_cut_segment_is_refused_or_a_gap(real, tmp_path, part):
    small = tmp_path / "n"
    shutil.copytree(real, small)
    Compactor(small, rows_max=1000, narrow=True).finish()
    path = live_segments(small)[1].path
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(TraceFormatError, match="is damaged"):
        TraceReader(small)
    reader = TraceReader(small, on_damage="skip")
    assert reader.is_damaged
    assert [gap.reason for gap in reader.gaps()]


def without_bases(table, names, part, **options):
    """A row group whose first rows have lost their values."""
    found = narrowed(table, names, part, **options)
    rows = found.table.slice(found.table.num_rows // 2)
    seqs = pa.array(range(rows.num_rows), pa.int64())
    return narrowed_as(found, rows.set_column(0, "seq", seqs))


def narrowed_as(found, table):
    return type(found)(table, found.kept_rows)


def test_a_patch_without_its_base_is_damage_and_never_a_guess(real, tmp_path, monkeypatch):
    small = tmp_path / "n"
    rows = TraceReader(real).table(NAMES).slice(0, 400)
    with TraceWriter(small, TraceHeader()):
        pass
    monkeypatch.setattr(narrow_file, "narrowed", without_bases)
    name = segment_name(0, 199)
    monkeypatch.setattr(narrow_file, "segment_name", lambda *_: name)
    narrow_file.write_narrow_segment(small, rows, first=0, last=399)
    reader = TraceReader(small)
    assert reader.table(("seq", "name")).num_rows == 200
    for columns in (("raw",), ("phase",)):
        with pytest.raises(TraceFormatError, match="builds on a value that no row before it gives"):
            reader.table(columns)


def test_texts_that_would_fill_the_memory_are_refused(tmp_path):
    """A long template that many rows name, with one short value each."""
    path = tmp_path / "t"
    filling = ",".join(f'"{number}":{{}}' for number in range(300_000))
    with TraceWriter(path, TraceHeader(), segment_raw_bytes=1 << 30) as writer:
        writer.append("jobs", "ADDED", 0, b'{"metadata":{"name":"a"}}')
    (segment,) = live_segments(path)
    rows = pa.concat_tables([files.SegmentFile(segment).unsorted()] * 100)
    rows = rows.set_column(0, "seq", pa.array(range(100), pa.int64()))
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:

        def bloated(table, names, part, **options):
            found = narrowed(table, names, part, **options)
            at = found.table.schema.get_field_index("template")
            template = pa.array([f'{{"x":{{{filling}}}}}'] * table.num_rows).dictionary_encode()
            return narrowed_as(found, found.table.set_column(at, "template", template))

        patch.setattr(narrow_file, "narrowed", bloated)
        identity = files.SegmentFile(segment).identity
        narrow_file.write_narrow_segment(path, rows, first=0, last=99, identity=identity)
    segment.path.unlink()
    with pytest.raises(TraceFormatError, match="MiB of memory"):
        TraceReader(path).table(("raw",))


#### Compacting ####


def test_a_recorders_trace_is_compacted_whole(tmp_path):
    """Plain segments, wide ones, and a small narrow one that more rows came after."""
    path = tmp_path / "t"
    for plain in (False, True):
        with TraceWriter(path, append=path.exists(), plain=plain) as writer:
            for number in range(6):
                writer.append("jobs", "ADDED", number, b'{"metadata":{"name":"a","uid":"u"}}')
                writer.flush()
    before = everything(path)
    compact_in_place(path)
    assert everything(path).equals(before)
    with TraceWriter(path, append=True) as writer:
        writer.append("jobs", "ADDED", 9, b'{"metadata":{"name":"b"}}')
    assert len(live_segments(path)) == 2
    again = everything(path)
    assert again["stream_pos"].to_pylist() == list(range(13))
    compact_in_place(path)
    (file,) = TraceReader(path)._snapshot.files
    assert file.is_narrow
    assert everything(path).equals(again)


def test_a_merge_with_something_narrow_stays_narrow(tmp_path):
    path = tmp_path / "t"
    write(path, SAMPLE)
    compact_in_place(path)
    with TraceWriter(path, append=True) as writer:
        writer.append("jobs", "ADDED", 9, b'{"metadata":{"name":"b"}}')
        writer.close(compact=True)
    (file,) = TraceReader(path)._snapshot.files
    assert file.is_narrow


@pytest.mark.parametrize("before", [("seq",), ("recv_ns",), NAMES], ids=["seq", "times", "all"])
def test_it_is_as_sound_after_some_of_it_was_read(tmp_path, before):
    """It was said to be damaged: its own names of columns were looked for among what was compared.

    A session verifies a trace anew when DuckDB fails, as it does on a machine without memory left.
    """
    path = tmp_path / "t"
    write(path, SAMPLE)
    compact_in_place(path)
    (file,) = TraceReader(path).snapshot.files
    for group in range(file.row_groups):
        file.read(group, before)
    file.verify()
    file.verify()


def test_hot_segments_stay_wide_until_they_are_full(real, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(real, path)
    before = everything(path)
    compactor = Compactor(path, rows_max=1500, narrow=True)
    while compactor.step():
        pass
    forms = [file.is_narrow for file in TraceReader(path)._snapshot.files]
    assert forms == [True, False, False]  # the last two may still grow
    assert everything(path).equals(before)
    compactor.finish()
    assert all(file.is_narrow for file in TraceReader(path)._snapshot.files)


def test_a_trace_without_checksums_gets_them(real, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(real, path)
    document = json.loads((path / "trace.json").read_text())
    del document["digest"]
    document |= {"format_version": 1, "sealed_from": None}
    (path / "trace.json").write_text(json.dumps(document))
    (path / "manifest.json").unlink()
    assert not TraceReader(path).is_verifiable
    compact_in_place(path)
    assert TraceReader(path, on_damage="skip").is_verifiable
    assert everything(path).equals(everything(real))
    path_of_end = live_segments(path)[-1].path
    path_of_end.unlink()
    assert TraceReader(path, on_damage="skip").is_damaged


def test_a_damaged_trace_is_refused_and_left_alone(real, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(real, path)
    target = live_segments(path)[1].path
    content = bytearray(target.read_bytes())
    content[len(content) // 2] ^= 1
    target.write_bytes(content)
    before = {p.name: p.read_bytes() for p in path.rglob("*") if p.is_file()}
    with pytest.raises(TraceFormatError, match="is damaged"):
        compact_in_place(path)
    with pytest.raises(TraceFormatError, match="is damaged"):
        compact_copy(path, tmp_path / "n")
    assert {p.name: p.read_bytes() for p in path.rglob("*") if p.is_file()} == before


def test_a_trace_that_is_being_written_is_refused(tmp_path):
    path = tmp_path / "t"
    match = "is being written by another tracekit"
    with TraceWriter(path), pytest.raises(TraceFormatError, match=match):
        compact_in_place(path)


def test_what_a_narrow_trace_has_is_told_without_its_texts(real, tmp_path) -> None:
    """Jobs, CronJobs and pods, as every row's own columns say."""
    narrow = narrow_of(real, tmp_path / "n")
    rows = TraceReader(real).table(("stream", "namespace", "name", "job", "cronjob")).to_pylist()
    rows = [row for row in rows if row["stream"] in ("jobs", "pods", "cronjobs", "events")]
    wanted = Objects(
        tuple(sorted({(r["namespace"], r["job"]) for r in rows if r["job"]})),
        tuple(sorted({(r["namespace"], r["cronjob"]) for r in rows if r["cronjob"]})),
        tuple(
            sorted(
                {
                    (r["namespace"], r["name"], r["job"])
                    for r in rows
                    if r["job"] and r["stream"] == "pods"
                }
            )
        ),
        tuple(
            sorted(
                {
                    (r["namespace"], r["name"])
                    for r in rows
                    if r["name"] and not r["job"] and r["stream"] == "pods"
                }
            )
        ),
    )
    assert wanted.cronjobs
    assert wanted.others
    assert objects_of(TraceReader(narrow)) == objects_of(TraceReader(real)) == wanted
