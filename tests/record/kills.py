"""kill -9 at random moments, then `--append`: what was flushed stays, and nothing is lost unsaid.

    python -m tests.record.kills --kills 100 --seed 1

The recorder is a process of its own; the server and the truth are in this one.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer
from tests.record.harness import Row, violations, write_kubeconfig
from tracekit.base.errors import TracekitError
from tracekit.record.streams.sink import GapRow
from tracekit.trace.reading.reader import TraceReader

RESOURCES = ("jobs", "pods", "events")
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class KillResult:
    """What a run of kills found."""

    kills: int = 0
    rows: int = 0
    gaps: int = 0
    lost_rows: int = 0
    unreadable: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


def recorder(trace: Path, kubeconfig: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from tracekit.cli.main import main; main()", "record"]
    return subprocess.Popen(
        [*command, "-o", str(trace), "--kubeconfig", kubeconfig, *arguments],
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def items_of(trace: Path) -> list[Row | GapRow]:
    """A trace as the rows and gaps that the recorder sent to its writer."""
    found: list[Row | GapRow] = []
    columns = ("seq", "stream", "type", "recv_ns", "raw", "synthesized")
    reader = TraceReader(trace)
    gaps = {gap.seq: gap for gap in reader.gaps()}
    for row in reader.table(columns).to_pylist():
        gap = gaps.get(row["seq"])
        if gap is None:
            raw = row["raw"].encode()
            found.append(
                Row(row["stream"], row["type"], row["recv_ns"], raw, synthesized=row["synthesized"])
            )
        else:
            found.append(
                GapRow(
                    stream=gap.stream,
                    last_rv=str(gap.last_rv),
                    next_rv=None if gap.next_rv is None else str(gap.next_rv),
                    from_ns=gap.from_ns,
                    until_ns=gap.until_ns,
                    reason=gap.reason,
                )
            )
    return found


def run_kills(folder: Path, *, kills: int, seed: int, compact_chance: float = 0.2) -> KillResult:
    """Kill and append `kills` times on one trace, then let it catch up and compare."""
    rng = random.Random(seed)
    cluster = FakeCluster()
    cluster.create("namespaces", name="ns")
    server = FakeServer(cluster, streaming_lists=True, bookmark_every_s=0.5)
    kubeconfig = write_kubeconfig(folder / "config", server, namespace="ns")
    trace = folder / "trace"
    busy = threading.Event()
    threading.Thread(target=_mutate, args=(cluster, seed, busy), daemon=True).start()
    result = KillResult()
    while result.kills < kills:
        process = recorder(trace, kubeconfig, "--append", "--flush-interval", "50ms")
        grown = _wait_for_rows(trace, result.rows, process)
        time.sleep(rng.random() * 0.6)
        before = _readable(trace, result)
        process.send_signal(signal.SIGKILL)
        process.wait()
        result.kills += 1
        after = _readable(trace, result)
        if after[: len(before)] != before:
            result.lost_rows += sum(1 for one in before if one not in set(after))
        result.rows = len(after)
        if not grown:
            result.violations.append(f"kill {result.kills}: the recorder wrote nothing")
        if rng.random() < compact_chance:
            cluster.compact()
    busy.set()
    _catch_up(trace, kubeconfig, cluster, result)
    server.close()
    return result


def _mutate(cluster: FakeCluster, seed: int, stop: threading.Event) -> None:
    rng = random.Random(seed)
    while not stop.is_set():
        cluster.mutate(rng, RESOURCES)
        # Slow enough that a hundred kills make a trace that is still quick to compare.
        time.sleep(0.03)


def _wait_for_rows(trace: Path, rows: int, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if TraceReader(trace).rows > rows:
                return True
        except TracekitError:
            pass
        time.sleep(0.02)
    return False


def _readable(trace: Path, result: KillResult) -> list[tuple[int, str]]:
    """Every row that a reader sees, in order; a trace that cannot be read is counted."""
    try:
        table = TraceReader(trace).table(("seq", "raw"))
    except TracekitError as error:
        result.unreadable.append(str(error))
        return []
    return list(zip(table["seq"].to_pylist(), table["raw"].to_pylist(), strict=True))


def _catch_up(trace: Path, kubeconfig: str, cluster: FakeCluster, result: KillResult) -> None:
    process = recorder(trace, kubeconfig, "--append", "--flush-interval", "50ms")
    if not _wait_for_rows(trace, result.rows, process):  # all may be there from the one before
        result.violations.append("the last recorder wrote nothing")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not _is_caught_up(trace, cluster):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    if process.returncode != 0:
        result.violations.append(f"the last recorder ended with {said.decode()}")
    items = items_of(trace)
    result.rows = len(items)
    result.gaps = sum(isinstance(item, GapRow) for item in items)
    for resource in RESOURCES:
        result.violations += violations(cluster, items, resource)


def _is_caught_up(trace: Path, cluster: FakeCluster) -> bool:
    seen: dict[str, int] = {}
    for item in items_of(trace):
        if isinstance(item, Row) and item.type != "NOTE":
            body = orjson.loads(item.raw)
            revision = (body.get("metadata") or body).get("resourceVersion")
            seen[item.stream] = max(seen.get(item.stream, 0), int(revision or 0))
    return all(seen.get(r, 0) >= cluster.history[r][-1].rv for r in RESOURCES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = run_kills(Path(folder), kills=options.kills, seed=options.seed)
    print(  # noqa: T201 (a script's result)
        f"{result.kills} kills, {result.rows} rows, {result.gaps} gap rows: {result.lost_rows} "
        f"flushed rows lost, {len(result.unreadable)} unreadable traces, "
        f"{len(result.violations)} violations {result.violations[:3]}"
    )
    return 1 if result.lost_rows or result.unreadable or result.violations else 0


if __name__ == "__main__":
    sys.exit(main())
