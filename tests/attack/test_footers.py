"""Traces whose footers say otherwise of their rows than the rows: no question passes them over.

docs/trust.md: "one that says other values is damage".
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tracekit
from tests.attack import forge
from tests.attack.answers import run
from tests.support.traces import TRACES, import_log
from tracekit.base.errors import TracekitError
from tracekit.trace.format.seal import chunk_start, seal_file
from tracekit.trace.format.segments import FORMAT_KEY, live_segments
from tracekit.trace.reading.files import SegmentFile
from tracekit.trace.reading.footer_statements import with_ones

NAME = "v1.36.3-restart"
JOB = "t-indexed/idx"
QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("replay", "--diff"), ("diagnose",), ("jobs",), ("jobs", "-n", "t-indexed"), ("explain", JOB),
    ("timeline", JOB), ("watch", "--once"), ("sql", "SELECT count(*) FROM observations"),
    ("sql", "-n", "t-indexed", "SELECT count(*) FROM observations"), ("info",),
)  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trace = tmp_path_factory.mktemp("honest") / "trace"
    import_log(TRACES / NAME / "watch.jsonl.zst", trace, NAME)
    return trace


def changed(honest: Path, to: Path, change: Callable[[bytearray, pq.FileMetaData], None]) -> Path:
    """A copy with a segment that was changed and sealed anew."""
    shutil.copytree(honest, to)
    (segment,) = live_segments(to)
    file = SegmentFile(segment)
    identity, content = file.identity, bytearray(segment.path.read_bytes())
    file.close()
    change(content, pq.read_metadata(segment.path))
    segment.path.write_bytes(content)
    seal_file(segment.path, identity)
    return to


def stating(name: str, low: bytes, high: bytes) -> Callable[[bytearray, pq.FileMetaData], None]:
    """The footer gets other bounds of a column, of the same length."""

    def change(content: bytearray, metadata: pq.FileMetaData) -> None:
        length = struct.unpack("<I", content[-8:-4])[0]
        footer = content[-8 - length : -8]
        group = metadata.row_group(0)
        names = [group.column(number).path_in_schema for number in range(group.num_columns)]
        statistics = group.column(names.index(name)).statistics
        for old, new in ((statistics.min, low), (statistics.max, high)):
            before = old.encode() if isinstance(old, str) else struct.pack("<q", old)
            after = new.ljust(len(before), new[-1:])[: len(before)]
            assert bytes([len(before)]) + before in footer
            footer = footer.replace(bytes([len(before)]) + before, bytes([len(after)]) + after)
        content[-8 - length : -8] = footer

    return change


LIES = {
    "namespace": stating("namespace", b"zzz", b"~~~"),
    "job": stating("job", b"!", b"!"),
    "stream": stating("stream", b"a", b"a"),
    "recv_ns": stating("recv_ns", struct.pack("<q", 10), struct.pack("<q", 11)),
}


@pytest.mark.parametrize("name", LIES)
def test_a_footer_that_lies_is_not_believed(honest: Path, tmp_path: Path, name: str) -> None:
    """No answer is silently another: exit status 2, and a sentence that names what is wrong."""
    trace = changed(honest, tmp_path / "trace", LIES[name])
    for words in QUESTIONS:
        code, _, said = run(words[0], str(trace), *words[1:])
        assert code == 2, words
        assert f"its footer says other values of {name} than its rows have" in said, words
        assert "fault of tracekit" not in said, words


@pytest.mark.full
def test_an_honest_one_is(honest: Path) -> None:
    for words in QUESTIONS:
        assert run(words[0], str(honest), *words[1:])[0] == 0, words


def test_no_bloom_filter_passes_a_row_over(honest: Path, tmp_path: Path) -> None:
    """What one leaves out cannot be seen from its bits: DuckDB is shown one that leaves out none."""

    def empty(content: bytearray, metadata: pq.FileMetaData) -> None:
        found = 0
        for group in range(metadata.num_row_groups):
            for number in range(metadata.num_columns):
                column = metadata.row_group(group).column(number)
                if column.bloom_filter_offset is not None:
                    end = column.bloom_filter_offset + column.bloom_filter_length
                    content[column.bloom_filter_offset + 16 : end] = bytes(
                        column.bloom_filter_length - 16
                    )
                    found += 1
        assert found

    trace = changed(honest, tmp_path / "trace", empty)
    with tracekit.open(honest) as opened:
        ((uid,),) = opened.sql(
            "SELECT uid FROM observations WHERE uid IS NOT NULL LIMIT 1"
        ).fetchall()
        query = f"SELECT count(*) FROM observations WHERE uid = '{uid}'"  # noqa: S608 - a uid of ours
        wanted = opened.sql(query).fetchall()
    with tracekit.open(trace) as opened:
        assert opened.sql(query).fetchall() == wanted


def test_a_bloom_filter_of_no_kind_is_damage(honest: Path, tmp_path: Path) -> None:
    def odd(content: bytearray, metadata: pq.FileMetaData) -> None:
        group = metadata.row_group(0)
        for number in range(group.num_columns):
            if (place := group.column(number).bloom_filter_offset) is not None:
                content[place] ^= 0xFF

    trace = changed(honest, tmp_path / "trace", odd)
    with pytest.raises(TracekitError, match="Bloom filters of a kind that nobody writes"):
        tracekit.open(trace).replay()


def test_bytes_in_some_ranges_are_ones() -> None:
    ranges = ((2, 4), (8, 9))
    data = bytes(range(10))
    whole = with_ones(data, 0, ranges)
    assert whole == b"\0\1\xff\xff\4\5\6\7\xff\x09"
    for start in range(10):
        for end in range(start, 10):
            assert with_ones(data[start:end], start, ranges) == whole[start:end]


def of_old(to: Path, columns: dict[str, pa.Array], *, codec: bytes = b"") -> Path:
    """A trace from before there were checksums, of one segment; `codec`: for that of its columns."""
    forge.honest(to)
    (segment,) = live_segments(to)
    with pq.ParquetWriter(segment.path, pa.table(columns).schema, compression="zstd") as writer:
        writer.write_table(pa.table(columns))
        writer.add_key_value_metadata({FORMAT_KEY: b"1"})
    if codec:
        content = segment.path.read_bytes()
        start = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
        # A column's path is followed by its codec.
        footer = content[start:].replace(b"\x03seq\x15\x0c", b"\x03seq\x15" + codec)
        assert footer != content[start:]
        segment.path.write_bytes(content[:start] + footer)
    header = json.loads((to / "trace.json").read_text())
    (to / "trace.json").write_text(
        json.dumps({k: v for k, v in header.items() if k not in ("sealed_from", "digest")})
    )
    (to / "manifest.json").unlink(missing_ok=True)
    return to


@pytest.mark.parametrize("case", ["codec", "columns"])
def test_a_footer_that_one_reader_takes_is_damage_to_both(tmp_path: Path, case: str) -> None:
    """A codec that is none was a fault of tracekit's own; 100,000 columns were minutes of work."""
    seqs = pa.array(range(8), pa.int64())
    more = {f"c{number}": seqs for number in range(1_000 if case == "columns" else 0)}
    codec = b"\x7e" if case == "codec" else b""
    trace = of_old(tmp_path / "trace", {"seq": seqs, **more}, codec=codec)
    code, out, said = run("sql", str(trace), "SELECT count(*) AS n FROM observations", "-o", "csv")
    assert (code, out.split()) == (2, ["n", "0"]), said
    assert "is damaged" in said
    assert "fault of tracekit" not in said


@pytest.mark.parametrize(
    "path", ["managers.list.element.manager", "annotations", "conditions.list.element.status"]
)
def test_pages_that_cannot_be_decoded_are_damage(honest: Path, tmp_path: Path, path: str) -> None:
    """Their checksums fit, as who wrote them sealed them: it was a fault of tracekit's own."""

    def change(content: bytearray, metadata: pq.FileMetaData) -> None:
        group = metadata.row_group(0)
        chunks = [group.column(number) for number in range(group.num_columns)]
        (chunk,) = (chunk for chunk in chunks if chunk.path_in_schema == path)
        end = chunk_start(chunk) + chunk.total_compressed_size
        start = content.index(b"\x28\xb5\x2f\xfd", chunk_start(chunk), end)  # a frame of zstd
        content[start : start + 4] = b"\xff" * 4

    trace = changed(honest, tmp_path / "trace", change)
    for words in (("diagnose",), ("timeline",), ("who",), ("jobs",)):
        code, _, said = run(words[0], str(trace), *words[1:])
        assert "fault of tracekit" not in said, (words, said)
        assert code == (2 if "is damaged" in said else 0), (words, said)
    code, _, said = run("diagnose", str(trace))
    assert (code, "damaged" in said) == (2, True), said


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.0] * 8, pa.float16()),
        pa.array([1] * 8, pa.timestamp("ns", "UTC")),
    ],
    ids=lambda values: str(values.type),
)
def test_a_column_that_the_format_does_not_have_is_borne(tmp_path: Path, values: pa.Array) -> None:
    """docs/trace-format.md, Versions: whatever its type, and whether Arrow can compare it."""
    trace = forge.forged(tmp_path / "t", {"later": values}, 8)
    assert run("info", "--verify", str(trace))[0] == 0
    code, out, said = run("sql", str(trace), "SELECT count(*) AS n FROM observations", "-o", "csv")
    assert (code, out.split()) == (0, ["n", "8"]), said
