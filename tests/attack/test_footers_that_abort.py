"""Footers at which Arrow ends the process (SIGABRT): damage, as everything that cannot be is.

docs/trust.md: a fault is one sentence and exit status 2. Each is asked in a process of its own.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.attack import forge
from tracekit.trace.format.footers import check_chunks
from tracekit.trace.format.segments import FORMAT_KEY, live_segments

ROWS = 8
VERBS = (("info",), ("replay", "--diff"), ("sql", "SELECT count(*), max(rv) FROM observations"))
#: The greatest value of a number, as it stands in Statistics.max_value.
MOST = 0x1122334455667788


def unsealed(to: Path, change: Callable[[bytes], bytes]) -> Path:
    """A trace from before there were checksums; with another footer."""
    forge.honest(to)
    (segment,) = live_segments(to)
    numbers = pa.array(range(ROWS), pa.int64())
    revisions = pa.array([*range(ROWS - 1), MOST], pa.int64())
    names = pa.array([f"ns-{number}" for number in range(ROWS)])
    types = pa.array(["ADDED"] * ROWS)
    columns = {"seq": numbers, "recv_ns": numbers, "namespace": names, "type": types}
    table = pa.table({**columns, "rv": revisions})
    with pq.ParquetWriter(segment.path, table.schema, compression="zstd") as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({FORMAT_KEY: b"1"})
    content = segment.path.read_bytes()
    start = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
    footer = change(content[start:-8])
    end = struct.pack("<I", len(footer)) + b"PAR1"
    segment.path.write_bytes(content[:start] + footer + end)
    header = json.loads((to / "trace.json").read_text())
    kept = {k: v for k, v in header.items() if k not in ("sealed_from", "digest")}
    (to / "trace.json").write_text(json.dumps(kept))
    (to / "manifest.json").unlink()
    return to


def replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def change(footer: bytes) -> bytes:
        assert old in footer
        return footer.replace(old, new)

    return change


def of_another_type(footer: bytes) -> bytes:
    """The chunk's type alone, a few bytes before its path."""
    path = footer.rindex(b"\x18\x09namespace")
    at = footer.rindex(b"\x15\x0c", 0, path)
    return footer[: at + 1] + b"\x02" + footer[at + 2 :]


WHOLE = b"\x18\x08" + MOST.to_bytes(8, "little")
#: What is wrong, and how the footer comes to say it.
FORGED: dict[str, Callable[[bytes], bytes]] = {
    "a histogram of levels that its column has not": replaced(
        b"\x25\x02\x18\x09namespace", b"\x25\x00\x18\x09namespace"
    ),
    "a chunk of another type": of_another_type,
    "more values than rows": replaced(
        b"namespace\x15\x0c\x16" + bytes([2 * ROWS]), b"namespace\x15\x0c\x16" + bytes([2 * ROWS + 2])
    ),
    "a number of six bytes": replaced(WHOLE, b"\x18\x06" + WHOLE[2:8]),
    "a number of nine bytes": replaced(WHOLE, b"\x18\x09" + WHOLE[2:] + b"\0"),
}  # fmt: skip


def asked(trace: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-P", "-m", "tracekit", words[0], str(trace), *words[1:]]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("what", list(FORGED))
def test_a_footer_that_would_abort_is_damage(tmp_path: Path, what: str) -> None:
    trace = unsealed(tmp_path / "trace", FORGED[what])
    for words in VERBS:
        code, said = asked(trace, *words)
        assert (code, "is damaged" in said) == (2, True), (words, said)
        assert "fault of tracekit" not in said


def test_a_text_that_is_no_utf_8_is_damage(tmp_path: Path) -> None:
    """Of the types of rows, by which each verb but `sql` passes row groups over."""
    trace = unsealed(tmp_path / "trace", replaced(b"\x05ADDED", b"\x05\xff\xffDED"))
    for words in VERBS[:2]:
        code, said = asked(trace, *words)
        assert (code, "is damaged" in said, "fault of tracekit" in said) == (2, True, False), said


def test_an_honest_one_is_read(tmp_path: Path) -> None:
    trace = unsealed(tmp_path / "trace", lambda footer: footer)
    (segment,) = live_segments(trace)
    content = segment.path.read_bytes()
    check_chunks(
        pq.read_metadata(segment.path),
        content[-8 - struct.unpack("<I", content[-8:-4])[0] :],
        len(content),
    )
    assert asked(trace, *VERBS[2])[0] == 0
