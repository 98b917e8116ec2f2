"""Bytes of an observation in both formats beside `zstd -19`, and what reading them takes.

For some shipped traces: the JSON lines as they were received, packed whole with zstd -19, which
nobody can ask anything; the trace as it is imported (wide), and compacted (narrow). Then processor
time for one row: to compact it, to read what a replay reads, to read its raw text, to replay it.

    python bench/bench_size.py [TRACE…]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import zstandard

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tracekit.check.replay.feed import COLUMNS  # noqa: E402
from tracekit.judge.judged import Judge, resolve_era  # noqa: E402
from tracekit.trace.format.model import TraceHeader  # noqa: E402
from tracekit.trace.importers.source import LineSource  # noqa: E402
from tracekit.trace.importers.watch import WatchImporter  # noqa: E402
from tracekit.trace.reading.reader import TraceReader  # noqa: E402
from tracekit.trace.writing.whole import compact_copy  # noqa: E402
from tracekit.trace.writing.writer import TraceWriter  # noqa: E402

NAMES = ("v1.36.3-churn7", "v1.27.4-churn606", "v1.36.3-all", "v1.14.10-all")
RUNS = 3


def packed_bytes(log: Path) -> int:
    """What zstd -19 makes of the lines."""
    with log.open("rb") as file:
        lines = zstandard.ZstdDecompressor().stream_reader(file).read()
    return len(zstandard.ZstdCompressor(level=19).compress(lines))


def best_s(work: Callable[[], object]) -> float:
    """Processor time, the least of some runs."""
    found = []
    for _ in range(RUNS):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def replayed(trace: Path) -> None:
    reader = TraceReader(trace)
    Judge(reader, resolve_era(reader, None, None)).report()


def measure(name: str, folder: Path) -> None:
    log = ROOT / "traces" / name / "watch.jsonl.zst"
    wide, narrow = folder / "wide", folder / "narrow"
    header = TraceHeader(kubernetes_version=name.split("-", maxsplit=1)[0])
    WatchImporter(lambda: TraceWriter(wide, header)).run([LineSource(str(log), lambda _: None)])
    started = time.process_time()
    compact_copy(wide, narrow)
    compacting_s = time.process_time() - started
    readers = {"wide": TraceReader(wide), "narrow": TraceReader(narrow)}
    rows = readers["wide"].rows
    sizes = {form: reader.size_bytes / rows for form, reader in readers.items()}
    rival = packed_bytes(log) / rows
    print(
        f"{name}: {rows:,} rows; bytes a row: zstd -19 {rival:.1f}, wide {sizes['wide']:.1f}, "
        f"narrow {sizes['narrow']:.1f} ({rival / sizes['narrow']:.2f} times less than zstd -19)"
    )
    print(f"  compact: {compacting_s / rows * 1e6:.0f} µs a row")
    for what, work in {
        "what a replay reads": lambda form: list(readers[form].groups(COLUMNS)),
        "the raw text": lambda form: readers[form].table(("seq", "raw")),
        "replay --diff": lambda form: replayed({"wide": wide, "narrow": narrow}[form]),
    }.items():
        each = {form: best_s(lambda w=work, f=form: w(f)) / rows * 1e6 for form in readers}
        ratio = each["narrow"] / each["wide"]
        print(
            f"  {what}: wide {each['wide']:.1f} µs a row, narrow {each['narrow']:.1f} "
            f"({ratio:.2f} times)"
        )


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            measure(name, Path(folder))


if __name__ == "__main__":
    main()
