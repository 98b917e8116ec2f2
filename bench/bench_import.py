"""Importing logs: lines a second of CPU beside `orjson.loads`, and memory as an audit log grows.

    python -m bench import [--repeat N …] [--copies N]

The log comes through a pipe, made while it is read: one of any length needs no disk.

The audit log is the shipped one of v1.36.3-churn7, repeated as if N clusters-in-time had written it
one after the other (names, uids, revisions and times moved on), so that nothing is the same twice.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import orjson
import zstandard

from bench.measured import run
from bench.multiply import write_multiplied
from tracekit.judge.executors.processes import cores

REPOSITORY = Path(__file__).resolve().parent.parent
LOG = REPOSITORY / "traces" / "v1.36.3-churn7" / "audit.jsonl.zst"
WATCH_LOG = LOG.with_name("watch.jsonl.zst")
_REVISION = re.compile(rb'"resourceVersion":"(\d+)"')
_AUDIT_ID = re.compile(rb'"auditID":"([0-9a-f]{8})')
_UID = re.compile(rb'"(uid|controller-uid|batch.kubernetes.io/controller-uid)":"([0-9a-f]{8})')
_DAY = re.compile(rb"2026-11-21T")
_STEP = 20_000


def repeated(lines: list[bytes], number: int) -> list[bytes]:
    """The log once more: other revisions, uids, namespaces and another day."""
    if number == 0:
        return lines
    mark = b"%08x" % number
    day = time.strftime("%Y-%m-%dT", time.gmtime(1_795_219_200 + 86_400 * number)).encode()
    found = []
    for line in lines:
        text = _REVISION.sub(
            lambda m, n=number: b'"resourceVersion":"%d"' % (int(m.group(1)) + _STEP * n), line
        )
        text = _UID.sub(lambda m: b'"%s":"%s' % (m.group(1), mark), text)
        text = _AUDIT_ID.sub(lambda _: b'"auditID":"' + mark, text)
        text = text.replace(b'"t-', b'"t%d-' % number).replace(b"/t-", b"/t%d-" % number)
        found.append(_DAY.sub(day, text))
    return found


def write(out: BinaryIO, times: int) -> tuple[int, int]:
    """A log of that many repetitions; its lines and bytes."""
    lines = shipped()
    size = 0
    for number in range(times):
        for line in repeated(lines, number):
            size += out.write(line + b"\n")
    return len(lines) * times, size


def shipped() -> list[bytes]:
    """The lines of the log that is repeated."""
    with LOG.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file).read().splitlines()


def loads() -> float:
    """Lines a second of CPU that `orjson.loads` alone takes in."""
    lines = shipped()
    begin = time.process_time()
    for line in lines:
        orjson.loads(line)
    return len(lines) / (time.process_time() - begin)


_CHILD = """
import json, resource, sys, time
from pathlib import Path
from tracekit.trace.importers.run import ImportRequest, import_files
begin = time.process_time()
result, = import_files(ImportRequest(["-"], Path(sys.argv[1]), kind="audit"))
print(json.dumps({"seconds": time.process_time() - begin, "rows": result.rows,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
"""


def watch(copies: int) -> None:
    """Import a watch log; print a line for each number of processes."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "watch.jsonl.zst"
        lines = write_multiplied(WATCH_LOG, log, copies)
        with log.open("rb") as file:
            texts = zstandard.ZstdDecompressor().stream_reader(file).read().splitlines()
        print("  watch log, processes    orjson.loads   import, of CPU   import, of time   memory")
        for processes in sorted({1, cores()}):
            begin = time.process_time()
            for text in texts:
                orjson.loads(text)
            floor = lines / (time.process_time() - begin)
            place = str(Path(folder) / f"trace-{processes}")
            ran, took = run(["import", "watch", str(log), "-o", place, f"--processes={processes}"])
            if took is None:
                sys.exit(ran.stderr)
            print(
                f"{lines:11,} {processes:11} {floor:13,.0f}/s {lines / took.cpu_s:14,.0f}/s "
                f"{lines / took.wall_s:15,.0f}/s {took.rss_mib:4} MiB",
                flush=True,
            )


def main(arguments: list[str] | None = None) -> int:
    """Print one line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, nargs="*", default=[1, 5, 20])
    parser.add_argument("--copies", type=int, default=40)
    options = parser.parse_args(arguments)
    print(f"load before: {os.getloadavg()[0]:.1f}")
    if options.copies:
        watch(options.copies)
    print("  audit log       lines   orjson.loads        import           rows   peak memory")
    for times in options.repeat:
        with TemporaryDirectory() as folder:
            command = [sys.executable, "-c", _CHILD, str(Path(folder) / "trace")]
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert child.stdin is not None  # noqa: S101 - a pipe was asked for
            lines, size = write(child.stdin, times)
            found = json.loads(child.communicate()[0])
        print(
            f"{size / 1e6:6.0f} MB {lines:10,} {loads():10,.0f}/s "
            f"{lines / found['seconds']:10,.0f}/s {found['rows']:14,} "
            f"{found['peak'] / 1024:10,.0f} MiB",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
