"""Bytes that a question costs of a trace in a bucket, beside the trace's size: `bench bucket`.

    python -m bench bucket [--observations 100000] [--trace DIR]

The trace (that of `bench scale` unless one is named) is put on an S3 server on loopback, and each
question is asked with an empty cache, as by a worker that has nothing of it yet. What is counted is
what the server sent, listings and all. The bytes of each question are printed, and their share.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.bench_scale import workload  # noqa: E402
from tests.support.s3 import S3, s3_server  # noqa: E402
from tracekit.base.kube.timestamps import format_rfc3339  # noqa: E402
from tracekit.judge import partitioned  # noqa: E402
from tracekit.judge.executors.inline import Inline  # noqa: E402
from tracekit.judge.judged import resolve_era  # noqa: E402
from tracekit.judge.partition import cut, families  # noqa: E402
from tracekit.judge.partitioned import JudgeUnits, PartitionedJudge  # noqa: E402
from tracekit.judge.run_context import run_context_of  # noqa: E402
from tracekit.trace.reading.reader import TraceReader  # noqa: E402

#: As `judging.pieces` cuts a trace where parts are kept.
_PART_ROWS = 50_000


def simulated(observations: int, folder: Path) -> Path:
    """A trace of about so many observations."""
    file = folder / "workload.json"
    file.write_text(json.dumps(workload(observations)))
    words = [sys.executable, "-m", "tracekit", "simulate", "--workload", file, "-o"]
    subprocess.run([*words, folder / "trace"], check=True, cwd=ROOT)
    return folder / "trace"


def asked(*words: str) -> Callable[[], None]:
    """A command, in a process of its own."""

    def ask() -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(
            [sys.executable, "-m", "tracekit", *words],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    return ask


def unit_of(trace: Path, url: str, which: Callable[[list[int]], int]) -> Callable[[], None]:
    """What a worker does that is given one unit; `which` picks it by the rows of all."""
    here = TraceReader(trace)
    era = resolve_era(here, None, None)
    context = run_context_of(here)
    units = cut(families(here), -(-here.rows // _PART_ROWS))
    unit = units[which([unit.rows for unit in units])]

    def judge() -> None:
        partitioned._reader.cache_clear()  # noqa: SLF001 - each is another worker
        source = PartitionedJudge(TraceReader(url), era, context, Inline()).source
        JudgeUnits(source, era, context).do(unit)

    return judge


def spent(server: S3, question: Callable[[], None]) -> tuple[int, int]:
    """Requests, and bytes that the server sent, for a question to an empty cache."""
    with tempfile.TemporaryDirectory() as cache, server.watched() as answers:
        os.environ["TRACEKIT_CACHE_DIR"] = cache
        question()
    return len(answers), sum(a.size_bytes for a in answers if a.method != "HEAD")


def main() -> int:
    """Run the bench and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observations", type=int, default=100_000)
    parser.add_argument("--trace", type=Path, help="this trace")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        trace = options.trace or simulated(options.observations, temporary)
        server = stack.enter_context(s3_server())
        os.environ |= {
            "AWS_ENDPOINT_URL": f"http://{server.endpoint}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        url = server.put(trace, "bench/trace")
        reader = TraceReader(trace)
        size = reader.size_bytes
        rows = reader.table(("recv_ns", "namespace", "job"))
        times = sorted(at for at in rows["recv_ns"].to_pylist() if at is not None)
        until = format_rfc3339(times[len(times) // 10])
        namespace = max({name for name in rows["namespace"].to_pylist() if name})
        del rows
        count = "SELECT count(*) AS n FROM jobs"
        questions = {
            "open": lambda: TraceReader(url).end_seq,
            f"jobs -n {namespace}": asked("jobs", url, "-n", namespace, "-o", "csv"),
            f"sql -n {namespace}": asked("sql", url, "-n", namespace, count),
            "sql --to, a tenth of the time": asked("sql", url, "--to", until, count),
            "jobs": asked("jobs", url, "-o", "csv"),
            "replay --diff (every verdict)": asked("replay", url, "--diff", "-o", "json"),
            "a worker, the largest unit": unit_of(trace, url, lambda _: 0),
            "a worker, the smallest unit": unit_of(trace, url, lambda sizes: len(sizes) - 1),
        }
        segments = len(reader.segments)
        print(f"{reader.rows:,} observations, {size:,} bytes, {segments} segments, "
              f"{len(reader.row_groups)} row groups")  # fmt: skip
        print(f"{'question':32} requests        bytes  of the trace")
        for name, question in questions.items():
            requests, sent = spent(server, question)
            print(f"{name:32} {requests:8} {sent:12,} {sent / size:12.1%}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
