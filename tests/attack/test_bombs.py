"""Files of some kilobytes that hold gigabytes: refused with a sentence, in little memory.

docs/trust.md: "What a compressed file may hold is bounded by what was read of it."
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import orjson
import pytest
import zstandard

from tests.attack.answers import run
from tests.support.traces import TRACES, import_log, json_lines
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers import recorders, source, values, yamls
from tracekit.trace.importers.source import LineSource

NAME = "v1.36.3-restart"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(level=3).compress,
}


@pytest.mark.parametrize("kind", ["bz2", "xz", "zst"])
@pytest.mark.parametrize("text", [b"\n", b" ", b"{}\n"], ids=["newlines", "blanks", "documents"])
def test_a_bomb_is_no_log(
    tmp_path: Path, kind: str, text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_UNPACKED_BYTES_MIN", 1 << 20)
    monkeypatch.setattr(source, "_UNPACKED_TIMES", 50)
    bomb = tmp_path / f"bomb.{kind}"
    bomb.write_bytes(PACKERS[kind](text * (8 << 20)))
    with pytest.raises(TraceFormatError, match=r"more than 50 times the bytes that it has"):
        assert max(map(len, LineSource(str(bomb)).blocks(1 << 20))) < 4 << 20


@pytest.mark.parametrize("text", [b"\r\n", b"{}\n", b"{},", b"[],", b"---\n"])
@pytest.mark.parametrize("verb", ["audit", "kubectl", "kcm-log", "sched-recorder", "watch"])
def test_work_is_bounded_by_what_was_read(
    tmp_path: Path, text: bytes, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """71 kB of gzip were a hundred million empty objects, which took minutes."""
    monkeypatch.setattr(source, "_PIECES_MIN", 10_000)
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(text * 400_000))
    most = max(10_000, bomb.stat().st_size * source._PIECES_TIMES)
    with pytest.raises(TraceFormatError, match=r"more than 10,000 lines and values of JSON"):
        assert sum(map(len, LineSource(str(bomb)).chunks())) < most * len(text) + (1 << 20)
    code, _, said = run("import", verb, str(bomb), "-o", str(tmp_path / "trace"))
    assert (code, said.count("\n")) == (2, 1), said


def _zip(path: Path, name: str, data: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)


def _tar(path: Path, name: str, data: bytes) -> None:
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize("pack", [_zip, _tar])
@pytest.mark.parametrize("inner", [bytes, gzip.compress], ids=["plain", "compressed"])
@pytest.mark.parametrize("bound", ["lines", "bytes"])
def test_what_is_in_an_archive_counts_for_it(
    tmp_path: Path,
    pack: Callable[[Path, str, bytes], None],
    inner: Callable[[bytes], bytes],
    bound: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each layer may be a thousand times the one that it is in."""
    if bound == "lines":
        monkeypatch.setattr(source, "_PIECES_MIN", 10_000)
    else:
        monkeypatch.setattr(source, "_UNPACKED_BYTES_MIN", 1 << 20)
        monkeypatch.setattr(source, "_UNPACKED_TIMES", 50)
    row = orjson.dumps(next(iter(json_lines(TRACES / NAME / "watch.jsonl.zst"))))
    path = tmp_path / "archive"
    pack(path, "watch.jsonl", inner(row + b"\n" + b"{}\n" * 1_000_000))
    code, _, said = run("import", str(path), "-o", str(tmp_path / "trace"))
    assert (code, said.count("\n")) == (2, 1), said
    assert "for each byte that it has" in said if bound == "lines" else "more than 50 times" in said


@pytest.mark.parametrize("kind", PACKERS)
def test_what_is_compressed_is_read_in_small_pieces(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"log.{kind}"
    lines = [b'{"n":%d}' % number for number in range(50_000)]
    path.write_bytes(PACKERS[kind](b"\n".join(lines) + b"\n"))
    assert list(LineSource(str(path)).lines()) == lines
    assert max(map(len, LineSource(str(path)).chunks())) <= source._CHUNK_BYTES


def test_two_compressed_files_in_one_are_both_read(tmp_path: Path) -> None:
    for kind, pack in PACKERS.items():
        path = tmp_path / f"log.{kind}"
        path.write_bytes(pack(b"1\n") + pack(b"2\n"))
        assert list(LineSource(str(path)).lines()) == [b"1", b"2"], kind


@pytest.mark.parametrize("kind", PACKERS)
def test_a_cut_is_said_and_what_came_before_it_is_kept(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"log.{kind}"
    packed = PACKERS[kind](b"".join(b"%d %s\n" % (n, b"x" * (n % 97)) for n in range(300_000)))
    path.write_bytes(packed[: len(packed) * 2 // 3])
    cut = LineSource(str(path))
    assert len(list(cut.lines())) > 10_000
    assert cut.problem == "its compressed data ends too early"


def test_empty_lines_without_end_cost_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"1\n" + b"\n" * (32 << 20) + b"2\n")
    held = [block for block in LineSource(str(path)).blocks(0) if block.strip()]
    assert sum(map(len, held)) < 2 * source._CHUNK_BYTES
    assert b"\n".join(held).split() == [b"1", b"2"]


@pytest.mark.parametrize("size", [30_000_000, 40_000_000])
def test_what_is_imported_is_replayed(tmp_path: Path, size: int) -> None:
    """An object of 30 MB compresses a thousandfold, and one of 40 MB is more than a reader takes."""
    rows = list(json_lines(TRACES / NAME / "watch.jsonl.zst"))
    place = next(
        at for at, row in enumerate(rows) if (row["resource"], row["type"]) == ("jobs", "MODIFIED")
    )
    large = orjson.loads(orjson.dumps(rows[place]))
    large["object"]["metadata"]["annotations"] = {"large": "x" * size}
    rows[place] = large
    log = tmp_path / "watch.jsonl"
    log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    reader = import_log(log, tmp_path / "trace", NAME)
    assert reader.table(["seq"]).num_rows == len(rows)
    code, _, said = run("replay", str(tmp_path / "trace"), "--diff")
    assert code in (0, 1), said
    query = "SELECT reason FROM observations WHERE type = 'UNPARSED'"
    _, out, _ = run("sql", str(tmp_path / "trace"), query)
    assert ("more than 32 MiB" in out) == (size > 32 << 20)


TINY = b"[],"


@pytest.mark.parametrize(
    ("kind", "gap"),
    [
        *((kind, b"") for kind in ("watch", "kubectl", "audit", "kshrk", "etcd-delta")),
        *((kind, b"\n") for kind in ("kubectl", "audit", "kshrk", "etcd-delta")),
    ],
)
def test_a_document_of_tiny_values_is_refused(
    tmp_path: Path, kind: str, gap: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """184 kB of gzip were 60 million values, and as Python's objects 5.9 GiB."""
    for module in (source, values):
        monkeypatch.setattr(module, "VALUES_MAX", 1000)
    log = tmp_path / "log.json.gz"
    head = b'[{"kind":"List","recv":1,"resource":"pods","type":"ADDED","object":{"a":[' + gap
    log.write_bytes(gzip.compress(head + (TINY + gap) * 1001 + b"[]]}}]\n"))
    code, _, said = run("import", kind, str(log), "-o", str(tmp_path / "trace"))
    assert (code, said.count("\n")) == (2, 1)
    assert "a JSON document of more than 1,000 values" in said


def test_yaml_of_tiny_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """51 kB of gzip were 12 million lines, and 3 GiB in the parser."""
    monkeypatch.setattr(yamls, "_ITEMS_MAX", 1000)
    for text in (b"- a\n" * 1001, b"  [" + b"[]," * 1001 + b"]\n"):
        log = tmp_path / "log.yaml"
        log.write_bytes(b"kind: List\nitems:\n" + text)
        code, _, said = run("import", "kubectl", str(log), "-o", str(tmp_path / "trace"))
        assert (code, said.count("\n")) == (2, 1)
        assert "a YAML document of more than 1,000 values" in said


def test_an_archive_that_holds_a_bomb_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry was unpacked whole before its size was looked at, and all of them had no bound."""
    monkeypatch.setattr(recorders, "_ARCHIVE_BYTES_MIN", 1 << 20)
    monkeypatch.setattr(recorders, "_ENTRY_BYTES_MAX", 1 << 20)
    for sizes, words in (
        ((2 << 20,), "an entry of more than 1 MiB"),
        ((1 << 19,) * 5, "100 times"),
    ):
        path = tmp_path / "capture.kshrk"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("k8shark-capture/metadata.json", "{}")
            for number, size in enumerate(sizes):
                archive.writestr(f"k8shark-capture/records/a/{number}.json", b" " * size)
        code, _, said = run("import", "kshrk", str(path), "-o", str(tmp_path / "trace"))
        assert (code, said.count("\n")) == (2, 1)
        assert words in said


ENDLESS = """
CREATE VIEW kine AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
SELECT x AS id, '/registry/jobs/a/b' AS name, 1 AS created, 0 AS deleted, 0 AS prev_revision,
'' AS value, '' AS old_value FROM c
"""
COMPUTED = """
CREATE TABLE kine(id INTEGER PRIMARY KEY, name TEXT, created, deleted, prev_revision, old_value,
value AS (zeroblob(900000000)))
"""


@pytest.mark.parametrize("statement", [ENDLESS, COMPUTED], ids=["view", "computed column"])
def test_a_database_that_computes_its_rows_is_none(tmp_path: Path, statement: str) -> None:
    """Eight kB were rows without end, or 900 MB each."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute(statement)
        if "TABLE" in statement:
            row = "INSERT INTO kine(id, name, prev_revision) VALUES(1, '/registry/jobs/a/b', 0)"
            database.execute(row)
        database.commit()
    code, _, said = run("import", "kine", str(path), "-o", str(tmp_path / "trace"))
    assert (code, said.count("\n")) == (2, 1)
    assert "kine is no table of stored columns" in said
