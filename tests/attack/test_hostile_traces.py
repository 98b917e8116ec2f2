"""What somebody may put into a trace to harm its reader: one sentence each, and no harm."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import tracekit
from tests.attack.answers import is_refusal, replayed, run
from tests.attack.forge import forged, honest
from tracekit.base.errors import TracekitError
from tracekit.trace.format import limits
from tracekit.trace.format.limits import is_nested_deeper
from tracekit.trace.format.schema import NAMES, SCHEMA
from tracekit.trace.format.seal import sealed_document
from tracekit.trace.format.segments import live_segments
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter

VERBS = (
    ("replay", "--diff"),
    ("info",),
    ("jobs",),
    ("sql", "SELECT count(*) FROM observations"),
)


#: Those that need no views.
QUICK = VERBS[:2]


def every_verb_refuses(trace: Path, *why: str) -> None:
    for verb, *rest in VERBS:
        code, out, err = run(verb, str(trace), *rest)
        # What holds the rest of a trace may print it.
        assert (code, err.count("\n")) == (2, 1), (verb, out, err)
        assert verb != "replay" or not out
        assert any(reason in err for reason in why), (verb, err)


#### Links, pipes, names ####


@pytest.mark.parametrize("name", ["trace.json", "manifest.json", "log", "segment"])
def test_nothing_is_read_through_a_link(tmp_path: Path, name: str) -> None:
    trace = honest(tmp_path / "t")
    victim = live_segments(trace)[0].path if name == "segment" else trace / name
    elsewhere = tmp_path / "elsewhere"
    victim.rename(elsewhere)
    victim.symlink_to(elsewhere)
    every_verb_refuses(trace, "is a link")


@pytest.mark.parametrize("name", ["trace.json", "manifest.json", "segment"])
def test_nobody_waits_for_a_pipe(tmp_path: Path, name: str) -> None:
    trace = honest(tmp_path / "t")
    victim = live_segments(trace)[0].path if name == "segment" else trace / name
    victim.unlink()
    os.mkfifo(victim)
    every_verb_refuses(trace, "is not a plain file")


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    for name in (".tmp-trace.json", ".tmp-manifest.json", ".lock"):
        trace = honest(tmp_path / f"of{name}")
        target.write_text("precious")
        (trace / name).symlink_to(target)
        try:
            with TraceWriter(trace, append=True) as writer:
                writer.append("jobs", "ADDED", 9, {"metadata": {"name": "x"}})
        except TracekitError:
            pass  # refused: as good
        assert target.read_text() == "precious"
    trace = honest(tmp_path / "of-log")
    folder = tmp_path / "folder"
    (trace / "log").rename(folder)
    (folder / ".tmp-mine").write_text("precious")
    (trace / "log").symlink_to(folder)
    with pytest.raises(TracekitError, match="is a link"):
        TraceWriter(trace, append=True)
    assert (folder / ".tmp-mine").exists()


def test_verdicts_that_a_trace_brings_along_are_not_believed(tmp_path: Path) -> None:
    trace = honest(tmp_path / "t")
    target = tmp_path / "precious"
    target.write_text("precious")
    (trace / "cache").mkdir()
    (trace / "cache" / "verdicts.parquet").write_text("no divergence")
    (trace / "cache" / ".tmp-verdicts.parquet").symlink_to(target)
    before = sorted(trace.rglob("*"))
    assert run("sql", str(trace), "SELECT count(*) FROM verdicts")[0] == 0
    assert run("report", str(trace), "-o", str(tmp_path / "report.html"))[0] == 0
    assert target.read_text() == "precious"
    assert sorted(trace.rglob("*")) == before


def test_a_changed_trace_of_the_same_size_gets_verdicts_of_its_own(tmp_path: Path) -> None:
    trace = honest(tmp_path / "t")
    asked = ("sql", str(trace), "SELECT count(*) FROM verdicts", "-o", "csv")
    assert run(*asked)[0] == 0
    segment = live_segments(trace)[0].path
    content = bytearray(segment.read_bytes())
    content[20] ^= 0xFF
    segment.write_bytes(content)
    assert run(*asked)[0] == 2


@pytest.mark.parametrize("name", ["a[b]c", "*", "?", "it's", 'a"b', "a\nb", "{a,b}", "-o", "%s"])
def test_a_directory_may_have_any_name(tmp_path: Path, name: str) -> None:
    trace = honest(tmp_path / name)
    assert replayed(trace)[0] == 0
    code, out, err = run("sql", str(trace), "SELECT count(*) AS n FROM jobs", "-o", "csv")
    assert (code, out.split()) == (0, ["n", "8"]), err
    assert tracekit.open(trace).jobs().num_rows == 8


#### trace.json ####

ODD = [None, -1, "x", ["x", None], {"namespaces": {}, "a": 1}]


@pytest.mark.parametrize(
    "member",
    ["kubernetes_version", "feature_gates", "controller_flags", "scope", "sessions", "streams",
     "tracekit_version", "format_version", "sealed_from"],
)  # fmt: skip
def test_a_header_of_any_shape(tmp_path: Path, member: str) -> None:
    trace = honest(tmp_path / "t")
    path = trace / "trace.json"
    document = json.loads(path.read_text())
    del document["digest"]
    for number, value in enumerate(ODD):
        path.write_text(json.dumps(sealed_document({**document, member: value})))
        for verb, *rest in VERBS if number == len(ODD) - 1 else QUICK:
            answer = run(verb, str(trace), *rest)
            assert answer[0] == 0 or is_refusal(answer), (verb, value, answer)


@pytest.mark.parametrize("name", ["trace.json", "manifest.json"])
@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "1" * 100_000, "\0", "null", "[]", "{}", "\ud800"]
)
def test_a_document_that_is_none(tmp_path: Path, name: str, text: str) -> None:
    trace = honest(tmp_path / "t")
    (trace / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    every_verb_refuses(trace, name)


#### Rows ####

ROWS = 16_000
LONG = 1 << 20


def test_a_dictionary_that_repeats_a_long_text(tmp_path: Path) -> None:
    text = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), ["m" * LONG])
    trace = forged(tmp_path / "t", {"message": text}, ROWS)
    assert sum(p.stat().st_size for p in trace.rglob("*")) < 300_000
    every_verb_refuses(trace, "--no-limits")


def test_a_nested_dictionary_that_repeats_a_long_text(tmp_path: Path) -> None:
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 3000, pa.int32()), ["m" * LONG])
    fields = list(SCHEMA.field("conditions").type.value_type)
    structs = pa.StructArray.from_arrays(
        [text if field.name == "message" else pa.nulls(3000, field.type) for field in fields],
        names=[field.name for field in fields],
    )
    lists = pa.ListArray.from_arrays(pa.array(range(3001), pa.int32()), structs)
    trace = forged(tmp_path / "t", {"conditions": lists}, 3000)
    every_verb_refuses(trace, "--no-limits")


def test_pages_that_are_nearly_nothing_compressed(tmp_path: Path) -> None:
    text = pa.array(["m" * (LONG // 8)] * 3000)
    trace = forged(tmp_path / "t", {"message": text}, 3000, use_dictionary=False)
    every_verb_refuses(trace, "--no-limits")


def test_an_encoding_that_stands_for_any_length(tmp_path: Path) -> None:
    text = pa.array(["m" * (LONG // 8)] * 1000)
    trace = forged(
        tmp_path / "t",
        {"message": text},
        1000,
        use_dictionary=False,
        column_encoding={"message": "DELTA_BYTE_ARRAY"},
    )
    every_verb_refuses(trace, "--no-limits")


def test_one_row_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROW_BYTES_MAX", 100)
    trace = honest(tmp_path / "t")
    with pytest.raises(TracekitError, match="--no-limits"):
        TraceReader(trace).table(NAMES)


@pytest.mark.full
def test_limits_can_be_lifted(tmp_path: Path) -> None:
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int32()), ["m" * LONG])
    trace = forged(tmp_path / "t", {"message": text}, 300)
    assert is_refusal(replayed(trace))
    code, _, err = run("--no-limits", "info", str(trace))
    assert (code, err) == (0, "")
    assert not limits.are_lifted()


@pytest.mark.parametrize("column", ["spec", "labels", "raw"])
def test_deep_nesting(tmp_path: Path, column: str) -> None:
    for levels in (300, 5000):
        texts = pa.array(['{"metadata":' * levels + "{}" + "}" * levels] * 8)
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        trace = forged(tmp_path / "t", {column: texts}, 8)
        for verb, *rest in VERBS if levels == 300 else QUICK:
            answer = run(verb, str(trace), *rest)
            refused = answer[0] == 2 and answer[2].count("\n") == 1
            assert answer[0] == 0 or refused, (levels, verb, answer)


def test_an_object_nested_too_deep_is_kept_as_it_came(tmp_path: Path) -> None:
    raw = b'{"kind":"Job","spec":' + b'{"a":' * 400 + b"1" + b"}" * 401
    for plain in (False, True):
        with TraceWriter(tmp_path / str(plain), plain=plain) as writer:
            writer.append("jobs", "ADDED", 1, raw)
        (row,) = TraceReader(tmp_path / str(plain)).table(("type", "reason", "raw")).to_pylist()
        assert (row["type"], row["raw"]) == ("UNPARSED", raw.decode())
        assert "nested" in row["reason"]


def test_nesting_is_counted_where_brackets_close_again() -> None:
    assert not is_nested_deeper('{"a":[1,2],"b":{}}' * 500, 3)
    assert is_nested_deeper("[[[[", 3)
    assert not is_nested_deeper("[[[]]][[[]]]", 3)


ODD_COLUMNS = {
    "null positions": {"seq": pa.nulls(8, pa.int64())},
    "positions of others": {"seq": pa.array(range(100, 108), pa.int64())},
    "positions as text": {"seq": pa.array([str(n) for n in range(8)])},
    "times as text": {"recv_ns": pa.array(["soon"] * 8)},
    "no text": {"raw": pa.array([b"\xff\xfe"] * 8, pa.binary())},
    "texts that are numbers": {"raw": pa.array(range(8), pa.int64())},
    "not JSON": {"raw": pa.array(["{"] * 8)},
    "no objects": {"raw": pa.array(["[]"] * 8)},
    "unknown types": {"type": pa.array(["SURPRISE"] * 8)},
    "no streams": {"stream": pa.nulls(8, pa.string())},
    "a spec that is none": {"spec": pa.array(["nonsense"] * 8)},
    "a spec of another shape": {"spec": pa.array(['{"parallelism":{"a":[]},"template":7}'] * 8)},
    "labels of another shape": {"labels": pa.array(["[1,2]"] * 8)},
    "conditions of another shape": {"conditions": pa.array([["x"]] * 8)},
    "huge numbers": {"rv": pa.array([2**63 - 1] * 8, pa.int64())},
    "negative times": {"recv_ns": pa.array([-(2**63)] * 8, pa.int64())},
}


@pytest.mark.parametrize("what", ODD_COLUMNS)
def test_columns_that_no_writer_makes(tmp_path: Path, what: str) -> None:
    trace = forged(tmp_path / "t", ODD_COLUMNS[what], 8)
    for verb, *rest in (*QUICK, VERBS[3]):
        answer = run(verb, str(trace), *rest)
        refused = answer[0] == 2 and answer[2].count("\n") == 1
        assert answer[0] in (0, 1) or refused, (verb, answer)
