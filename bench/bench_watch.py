"""What `tracekit watch` takes beside a recorder: processor time, memory, delay.

    python bench/bench_watch.py [--copies 14] [--runs 1]

The churn `v1.36.3-churn7` (35 rows a second) as many times side by side, in namespaces of its own,
makes a record of some hundred rows a second; `--runs` lays as many of these one after the other,
each of which ends with the deletion of all that it made. It is fed to the judge as the recorder
would have flushed it, a second at a time, and judged as `watch` does: after a turn it rests five
times the processor's time that the turn took, 30 s at most. The clock is the record's; what a turn
takes passes on it. The judge runs in a process of its own, so that memory is its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import zstandard

from bench.laid_out import laid_out
from bench.multiply import write_multiplied
from tests.support.traces import import_log
from tracekit.cli.watch import rest_s
from tracekit.judge.judged import resolve_era
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.reader import TraceReader
from tracekit.watch.live import LiveJudge

ROOT = Path(__file__).resolve().parents[1]
NAME = "v1.36.3-churn7"
_ROWS = "rows.arrow"
_S = 1_000_000_000
_MINUTE_S = 60


def judged(folder: Path) -> dict[str, Any]:
    """Follow a record to its end; what that took."""
    reader = TraceReader(folder / "trace")
    with pa.memory_map(str(folder / _ROWS)) as mapped:
        table = pa.ipc.open_file(mapped).read_all()
    start_ns = pc.min(table["recv_ns"]).as_py()
    end_ns = pc.max(table["recv_ns"]).as_py()
    base_mib = _own_mib()
    peaks: list[float] = []
    live = LiveJudge(reader.header, resolve_era(reader, None, None))
    began_s, told, turns = time.process_time(), 0, []
    now_ns, due_ns, position = start_ns, start_ns, 0
    times = table["recv_ns"].to_numpy()
    while now_ns < end_ns:
        now_ns += _S
        until = int(times.searchsorted(now_ns))
        if until > position:
            live.feed(table.slice(position, until - position))
            position = until
        if now_ns >= due_ns:
            spent_s = time.process_time()
            told += sum(1 for news in live.judge() if news.id.startswith("TK1"))
            turns.append(time.process_time() - spent_s)
            while len(peaks) <= (now_ns - start_ns) // (_MINUTE_S * _S):
                peaks.append(base_mib)
            peaks[-1] = max(peaks[-1], _own_mib())
            now_ns += int(turns[-1] * _S)
            due_ns = now_ns + int(rest_s(turns[-1]) * _S)
    return {
        "seconds": (now_ns - start_ns) / _S,
        "rows": position,
        "cpu_s": time.process_time() - began_s,
        "turns": len(turns),
        "longest_turn_s": max(turns),
        "longest_wait_s": max(turns) + rest_s(max(turns)),
        "mib": [mib - base_mib for mib in peaks],
        "divergences": told,
    }


def _own_mib() -> float:
    """What this process has in memory now without the files that it maps; of Linux."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in status if line.startswith("RssAnon"))) / 1024


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--copies", type=int, default=14)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        print(json.dumps(judged(options.folder)))
        return 0
    with tempfile.TemporaryDirectory(prefix="tracekit-bench-") as place:
        folder = Path(place)
        source = ROOT / "traces" / NAME / "watch.jsonl.zst"
        lines = write_multiplied(source, folder / "one.zst", options.copies)
        with zstandard.open(folder / "log.zst", "wt") as log:
            log.writelines(laid_out(folder / "one.zst", lines * options.runs))
        rows = import_log(folder / "log.zst", folder / "trace", NAME).table(NAMES).sort_by("seq")
        with pa.ipc.new_file(str(folder / _ROWS), rows.schema) as written:
            written.write_table(rows)
        done = subprocess.run(
            [sys.executable, __file__, "--folder", place],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found = json.loads(done.stdout)
    rate = found["rows"] / found["seconds"]
    print(f"{found['rows']:,} rows in {found['seconds']:.0f} s: {rate:.0f} a second")
    print(
        f"judge: {found['cpu_s']:.1f} s of processor time, "
        f"{found['cpu_s'] / found['seconds']:.1%} of one, {found['turns']} turns, "
        f"the longest {found['longest_turn_s']:.1f} s (the next at most "
        f"{found['longest_wait_s']:.0f} s later)"
    )
    mib = ", ".join(f"{mib:.0f}" for mib in found["mib"])
    print(f"memory after a turn, at most in each minute: {mib} MiB beside the libraries")
    print(f"divergences that were told: {found['divergences']}")
    return 1 if found["divergences"] else 0


if __name__ == "__main__":
    sys.exit(main())
