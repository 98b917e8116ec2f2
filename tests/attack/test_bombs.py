"""Files of some kilobytes that hold gigabytes: refused with a sentence, in little memory.

docs/trust.md: "What a compressed file may hold is bounded by what was read of it."
"""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
import zstandard

from tests.attack.answers import run
from tests.support.traces import TRACES, import_log, json_lines
from tracekit.errors import TraceFormatError
from tracekit.trace.importers import source
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
