"""Single bits of a trace turn over: the same answer, or exit status 2 and one sentence.

The places are drawn with a seed, spread over all files: small ones and the ends of large ones (the
footers) as often as the rest. `TRACEKIT_FLIPS=5000` makes it as long as one likes.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.attack.answers import is_refusal, replayed, run
from tests.support.traces import TRACES
from tracekit.base.errors import TraceFormatError
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.compact import Compactor
from tracekit.trace.writing.writer import TraceWriter

#: Flips that the readers of a trace must notice; each is one look at all of it.
READ = int(os.environ.get("TRACEKIT_FLIPS", "600"))
#: Flips under a whole command, which takes longer.
COMMANDED = max(24, READ // 50)
FOOTER_BYTES = 16_384


@pytest.fixture(scope="module", params=["wide and plain", "narrow"])
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small real trace of several segments, some of them as a recorder leaves them, or compact."""
    folder = tmp_path_factory.mktemp("flips")
    source = TraceReader(TRACES / "incidents" / "counted-twice")
    found = several_segments(source, folder / "trace")
    if request.param == "narrow":
        Compactor(found, rows_max=source.rows // 3, narrow=True).finish()
    return found


def several_segments(source: TraceReader, target: Path) -> Path:
    """The rows of a trace in segments of a few rows, the last ones without typed columns."""
    rows = source.table(("seq", "stream", "type", "recv_ns", "raw")).to_pylist()
    half = len(rows) // 2
    for part, plain in ((rows[:half], False), (rows[half:], True)):
        with TraceWriter(
            target, source.header, append=target.exists(), segment_rows=half // 2, plain=plain
        ) as writer:
            for row in part:
                writer.append(row["stream"], row["type"], row["recv_ns"], row["raw"].encode())
    return target


def places(trace: Path, count: int, seed: int) -> list[tuple[Path, int, int]]:
    """Files, offsets and bits, drawn."""
    draw = random.Random(seed)
    files = sorted(path for path in trace.rglob("*") if path.is_file())
    found = []
    for _ in range(count):
        file = draw.choice(files)
        size = file.stat().st_size
        low = max(0, size - FOOTER_BYTES) if draw.random() < 0.3 else 0
        found.append((file, draw.randrange(low, size), draw.randrange(8)))
    return found


class Flipped:
    """One bit of a file turned over, until the end of the block."""

    def __init__(self, file: Path, offset: int, bit: int) -> None:
        self.file = file
        self.content = file.read_bytes()
        self.changed = bytearray(self.content)
        self.changed[offset] ^= 1 << bit

    def __enter__(self) -> None:
        self.file.write_bytes(self.changed)

    def __exit__(self, *_: object) -> None:
        self.file.write_bytes(self.content)


def everything(trace: Path) -> tuple[object, object]:
    """All that a reader hands out."""
    reader = TraceReader(trace)
    return reader.header, reader.table(NAMES)


def test_no_flip_reaches_a_reader(trace: Path) -> None:
    header, rows = everything(trace)
    refused = 0
    for file, offset, bit in places(trace, READ, seed=10):
        with Flipped(file, offset, bit):
            where = f"{file.name}, byte {offset}, bit {bit}"
            try:
                seen = everything(trace)
            except TraceFormatError:  # any other error is a failure
                refused += 1
                continue
            assert seen[0] == header, where
            assert seen[1].equals(rows), where
    # White space in JSON and the like may change; everything else is noticed.
    assert refused > 0.98 * READ


@pytest.mark.parametrize("flips", [4, COMMANDED])
def test_no_flip_changes_what_a_command_says(trace: Path, flips: int) -> None:
    """The same answer or a refusal, from the verbs that read in different ways."""
    asked = {
        "replay": lambda: replayed(trace),
        "info": lambda: run("info", str(trace), "-o", "json"),
        "sql": lambda: run("sql", str(trace), "SELECT count(*), max(rv) FROM observations"),
        "jobs": lambda: run("jobs", str(trace)),
    }
    answers = {name: ask() for name, ask in asked.items()}
    assert {answer[0] for answer in answers.values()} == {0}
    names = list(asked)
    for number, place in enumerate(places(trace, flips, seed=11)):
        name = names[number % len(names)]
        with Flipped(*place):
            answer = asked[name]()
        assert answer == answers[name] or answer[0] == 2, (name, place, answer)
        if answer[0] == 2:
            assert answer[2].count("\n") == 1, (name, place, answer)
            assert name != "replay" or is_refusal(answer), (place, answer)
