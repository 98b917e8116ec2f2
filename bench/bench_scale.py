"""Judging a trace by one process and by several, with and without Dask: `python -m bench scale`.

    python -m bench scale [--observations 500000] [--processes 1 2] [--trace DIR]

The trace is simulated: small Jobs in many namespaces, and one Job with a tenth of all rows, which
no crew can divide. Printed for each crew: wall time, CPU seconds of the parent (the serial share:
opening, planning, merging, timing) and of the workers' judging, the bytes that come back beside
those of the trace, and the efficiency: the wall time of one process without a crew over (wall time
x processes). Wall times mean something on a quiet machine only; CPU seconds say how much work
there was. All crews must give the same digest, or the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
#: What a run with these pods comes to, about.
_ROWS_A_POD = 7
_PODS_A_JOB = 12
_NAMESPACES = 40
_RUN = """
import hashlib, sys, time
from functools import partial
from tracekit.cli.imports import take_effect, take_effect_before
take_effect()  # as the program does
from tracekit.judge.executors.processes import Processes
from tracekit.judge.judged import Judge, resolve_era
from tracekit.judge.partitioned import ready
from tracekit.trace.reading.reader import TraceReader

def executor_of(name, size):
    if name == "none":
        return None
    if name == "processes":
        return Processes(size, partial(take_effect_before, "tracekit.judge.partitioned"))
    from tracekit.judge.executors.cluster import Cluster
    return Cluster("local", size)

def main():
    trace, name, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    crew = executor_of(name, size)
    began, begun = time.perf_counter(), time.process_time()
    reader = TraceReader(trace)
    if crew is not None:
        crew.begin(ready)
    judge = Judge(reader, resolve_era(reader, None, None), crew=crew)
    report = judge.tally()
    wall, parent = time.perf_counter() - began, time.process_time() - begun
    digest = hashlib.blake2b(digest_size=6)
    for part in (report.judgements, report.jobs, report.summary(), report.longest_lag_ns):
        digest.update(repr(part).encode())
    pieces = judge._engine._pieces
    print(reader.rows, report.actions, len(report.divergences), wall, parent,
          pieces.cpu_ns / 1e9 if pieces else 0.0, pieces.sent_bytes if pieces else 0,
          reader.size_bytes, digest.hexdigest())
    if crew is not None:
        crew.close()

if __name__ == "__main__":
    main()
"""


def workload(observations: int) -> dict[str, Any]:
    """Small Jobs, and one with a tenth of the rows."""
    pods = observations // _ROWS_A_POD
    giant, small = pods // 10, pods * 9 // 10 // _PODS_A_JOB
    each = max(1, small // _NAMESPACES)
    life: dict[str, Any] = {"run": "4s"}
    spec = {"completions": _PODS_A_JOB, "parallelism": 6, "completionMode": "Indexed"}
    jobs: list[dict[str, Any]] = [
        {
            "name": "small",
            "namespace": f"team-{number:02}",
            "count": each,
            "every": "2s",
            "spec": spec,
            "pods": life,
        }
        for number in range(_NAMESPACES)
    ]
    jobs.append(
        {
            "name": "giant",
            "namespace": "team-giant",
            "spec": {"completions": giant, "parallelism": 100, "completionMode": "Indexed"},
            "pods": life,
        }
    )
    return {
        "duration": f"{2 * each + 60}s",
        "kubernetesVersion": "v1.36.3",
        "seed": 17,
        "controllers": {"kubeApiQps": 2000, "kubeApiBurst": 3000, "concurrentJobSyncs": 50},
        "jobs": jobs,
    }


def measured(trace: Path, executor: str, size: int, script: Path) -> list[str]:
    """One run in a process of its own."""
    done = subprocess.run(
        [sys.executable, script, trace, executor, str(size)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRACEKIT_CACHE_DIR": "/dev/null/none"},
    )
    return done.stdout.split()


def main() -> int:
    """Run the bench and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observations", type=int, default=500_000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--trace", type=Path, help="this trace, or where to keep it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        trace = options.trace or Path(temporary, "trace")
        if not trace.exists():
            file = Path(temporary, "workload.json")
            file.write_text(json.dumps(workload(options.observations)))
            simulate = [sys.executable, "-m", "tracekit", "simulate", "--workload", file, "-o"]
            subprocess.run([*simulate, trace], check=True, cwd=ROOT)
        script = Path(temporary, "run.py")
        script.write_text(_RUN)
        executors = [("none", 1)]
        executors += [
            (executor, size) for executor in ("processes", "dask") for size in options.processes
        ]
        print("crew         n     wall  efficiency  parent CPU  workers CPU  bytes back  digest")
        alone, digests = 0.0, set()
        for executor, size in executors:
            rows, actions, diverging, *figures, sent, own, digest = measured(
                trace, executor, size, script
            )
            wall, parent, workers = map(float, figures)
            alone = alone or wall
            digests.add(digest)
            print(
                f"{executor:10} {size:3} {wall:7.1f}s {alone / wall / size:10.2f} {parent:10.1f}s "
                f"{workers:11.1f}s {int(sent):11,}  {digest}",
                flush=True,
            )
        print(f"{rows} observations, {actions} actions, {diverging} divergences, {own} bytes")
    return 0 if len(digests) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
