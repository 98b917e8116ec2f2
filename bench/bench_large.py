"""What a large record takes, step by step: CPU seconds and peak memory, in processes of their own.

    python -m bench large --observations 1000000 [--work DIR]

A real run is laid end to end in time (`laid_out.py`) and imported from a pipe; then the trace is
compacted into a narrow copy, replayed, asked three questions in SQL, and one Job is explained.
CPU time is that of all processes of a step, memory that of the largest.
Beside it stands what `orjson.loads` takes for the same lines.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, cast

import orjson
import pyarrow.compute as pc

from bench.laid_out import laid_out
from bench.measured import MEASURED, Used, run, used
from tracekit.trace.reading.reader import TraceReader

_SOURCE = Path(__file__).parents[1] / "traces" / "v1.36.3-churn7" / "watch.jsonl.zst"
_QUERIES = (
    "SELECT outcome, count(*) FROM jobs GROUP BY ALL ORDER BY ALL",
    "SELECT verdict, count(*) FROM verdicts GROUP BY ALL ORDER BY ALL",
    "SELECT stream, type, count(*) FROM observations GROUP BY ALL ORDER BY ALL",
)


def main() -> None:
    """Run the bench and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observations", type=int, default=100_000)
    parser.add_argument("--work", type=Path, help="keep the files here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        wide, narrow = work / "wide", work / "narrow"
        lines = options.observations
        parsing = _import(wide, lines)
        print(f"orjson.loads   {parsing:9.1f} s CPU  {lines / parsing:10,.0f}/s", flush=True)
        for trace in (wide, narrow):
            if trace is narrow:
                _step("compact", ["compact", str(wide), "-o", str(narrow)], lines, parsing)
            name = trace.name
            _step(f"replay {name}", ["replay", "--diff", str(trace)], lines, parsing)
            for query in _QUERIES:
                _step(f"sql {name}", ["sql", str(trace), query], lines, parsing)
            job = _some_job(trace)
            _step(f"explain {name}", ["explain", str(trace), job], lines, parsing)
            size = sum(file.stat().st_size for file in (trace / "log").iterdir())
            print(f"{name}: {size / lines:.1f} bytes an observation", flush=True)


def _import(trace: Path, lines: int) -> float:
    """Import from a pipe; the CPU seconds that parsing the lines takes."""
    command = [sys.executable, "-c", MEASURED, "import", "watch", "-", "-o", str(trace)]
    parsing = 0.0
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [*command, "--force", "--kubernetes-version", "v1.36.3"],
            stdin=subprocess.PIPE,
            stderr=said,
        )
        with cast("IO[bytes]", process.stdin) as pipe:
            for text in laid_out(_SOURCE, lines):
                line = text.encode()
                begin = time.thread_time()
                orjson.loads(line)
                parsing += time.thread_time() - begin
                pipe.write(line)
        process.wait()
        said.seek(0)
        _told("import", used(said.read()), lines, parsing)
    return parsing


def _some_job(trace: Path) -> str:
    rows = TraceReader(trace).table(("namespace", "job"), streams=["jobs"], last_seq=8_000)
    row = rows.filter(pc.is_valid(rows["job"])).to_pylist()[-1]
    return f"{row['namespace']}/{row['job']}"


def _step(name: str, arguments: list[str], lines: int, parsing: float) -> None:
    ran, took = run(arguments)
    if took is None:
        print(f"{name}: failed: {ran.stderr[-300:]}")
        return
    print("  ".join(ran.stdout.strip().splitlines()[-4:])[:300])
    _told(name, took, lines, parsing)


def _told(name: str, took: Used, lines: int, parsing: float) -> None:
    print(
        f"{name:14} {took.cpu_s:9.1f} s CPU  {lines / took.cpu_s:10,.0f}/s  "
        f"{took.cpu_s / parsing:6.1f} x parsing  {took.wall_s:8.1f} s  {took.rss_mib:6,} MiB",
        flush=True,
    )


if __name__ == "__main__":
    main()
