"""Of every kind, in every encoding, compression and layout: the same rows, with the kind named or not."""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import os
import shutil
from pathlib import Path

import pytest
import zstandard

from tests.unit.trace.importers.test_fuzz import CASES, Case
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

#: Ages in text for people count from when the file was written.
_WRITTEN_S = 1_772_359_200


def utf16(content: bytes, mark: bytes = codecs.BOM_UTF16_LE) -> bytes:
    big = mark == codecs.BOM_UTF16_BE
    return mark + content.decode().encode("utf-16-be" if big else "utf-16-le")


def crlf(content: bytes) -> bytes:
    return content.replace(b"\n", b"\r\n")


ENCODINGS = {
    "BOM": lambda content: codecs.BOM_UTF8 + content,
    "BOM, CRLF": lambda content: codecs.BOM_UTF8 + crlf(content),
    "CRLF": crlf,
    "UTF-16": utf16,
    "UTF-16, big": lambda content: utf16(content, codecs.BOM_UTF16_BE),
    "UTF-16, no mark": lambda content: utf16(content, b""),
    "UTF-16, CRLF, gz": lambda content: gzip.compress(utf16(crlf(content))),
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
    "no last newline": lambda content: content.rstrip(b"\n"),
}
#: What is JSON may be laid out as it likes; a watch log is one object a line.
LAYOUTS = {
    "run together": b"".join,
    "one array": lambda lines: b"[" + b",".join(lines) + b"]",
    "an item a line": lambda lines: b"[\n" + b",\n".join(lines) + b"\n]\n",
    "pretty": lambda lines: b"".join(json.dumps(json.loads(x), indent=2).encode() for x in lines),
}


def rows(place: Path, kind: str | None, content: bytes) -> list[str]:
    """What a trace of it has."""
    source, trace = place / "source", place / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    source.write_bytes(content)
    os.utime(source, (_WRITTEN_S, _WRITTEN_S))
    import_files(ImportRequest([str(source)], trace, kind=kind))
    columns = ("stream", "type", "rv", "uid", "name", "recv_ns", "raw")
    return sorted(map(str, TraceReader(trace).table(columns).to_pylist()))


def variants(case: Case) -> dict[str, bytes]:
    lines = case.lines()
    content = b"\n".join(lines) + b"\n"
    found = {name: encoded(content) for name, encoded in ENCODINGS.items()}
    if lines[0].startswith(b"{") and case.lines is not CASES["watch"].lines:
        found |= {name: laid_out(lines) for name, laid_out in LAYOUTS.items()}
    return found


@pytest.mark.parametrize("name", [name for name in CASES if name != "watch, any"])
def test_every_encoding_is_the_same_rows(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    wanted = rows(tmp_path, case.kind, b"\n".join(case.lines()) + b"\n")
    assert wanted
    for how, content in variants(case).items():
        assert rows(tmp_path, None, content) == wanted, how
        assert rows(tmp_path, case.kind, content) == wanted, how


@pytest.mark.parametrize(("layout", "said"), [("run together", "jq -c ."), ("one array", "'.[]'")])
def test_a_watch_log_that_is_laid_out_otherwise_is_told_what_makes_lines_of_it(
    layout: str, said: str, tmp_path: Path
) -> None:
    content = LAYOUTS[layout](CASES["watch"].lines())
    for kind in (None, "watch"):
        with pytest.raises(TraceFormatError) as refused:
            rows(tmp_path, kind, content)
        assert f"`jq -c {said.removeprefix('jq -c ')} {tmp_path / 'source'}`" in str(refused.value)
