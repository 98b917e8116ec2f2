"""Replay speed beside the time that parsing the same JSON takes, in one run, on a multiplied trace.

    python -m bench.bench_replay [--copies 67] [--trace v1.36.3-churn7] [--work DIR]

Prints observations per second of `tracekit replay --diff` (reading, replaying and judging, in one
process on one core), those of `orjson.loads` over the same lines, their ratio, and peak memory.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson
import zstandard

from bench.multiply import write_multiplied

TRACES = Path(__file__).parents[1] / "traces"
_REPLAY = """
import resource, sys, time
from tracekit.cli.imports import take_effect_before
take_effect_before("tracekit.judge.judged")  # as the program does
from tracekit.judge.judged import Asked, Judge, resolve_era
from tracekit.trace.reading.reader import TraceReader
begin = time.process_time()
reader = TraceReader(sys.argv[1])
report = Judge(reader, resolve_era(reader, None, None)).report(Asked(controllers=("job",)))
spent = time.process_time() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(reader.rows, len(report.judgements), len(report.divergences), spent, peak)
"""


def parse_seconds(log: Path) -> tuple[int, float]:
    """Lines of a log, and the CPU seconds that `orjson.loads` takes for them."""
    lines, spent = 0, 0.0
    with log.open("rb") as packed:
        text = io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(packed))  # type: ignore[type-var]
        while batch := text.readlines(1 << 24):
            begin = time.process_time()
            for line in batch:
                orjson.loads(line)
            spent += time.process_time() - begin
            lines += len(batch)
    return lines, spent


def main() -> None:
    """Run the bench and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=67)
    parser.add_argument("--trace", default="v1.36.3-churn7")
    parser.add_argument("--work", type=Path, help="keep the files here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        log, trace = work / "log.jsonl.zst", work / "trace"
        write_multiplied(TRACES / options.trace / "watch.jsonl.zst", log, options.copies)
        tracekit = Path(sys.executable).with_name("tracekit")
        version = options.trace.partition("-")[0]
        command = [tracekit, "import", "watch", log, "-o", trace, "--force"]
        subprocess.run([*command, "--kubernetes-version", version], check=True)
        lines, parsing = parse_seconds(log)
        answer = subprocess.run(
            [sys.executable, "-c", _REPLAY, trace], check=True, capture_output=True, text=True
        )
    rows, judged, divergences, spent, peak = answer.stdout.split()
    speed, floor = int(rows) / float(spent), lines / parsing
    print(f"{rows} observations, {judged} actions judged, {divergences} divergences")
    print(f"replay --diff  {speed:12,.0f} observations/s  {int(peak) / 1024:,.0f} MiB")
    print(f"orjson.loads   {floor:12,.0f} lines/s")
    print(f"replay / parse {speed / floor:12.3f}")


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    main()
