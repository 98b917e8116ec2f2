"""`record --judge`: what is found is told beside the recorder, to its last row, and ends with it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer
from tests.record.harness import write_kubeconfig
from tests.record.kills import ROOT

FAILED = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "no"}]
TOLD = "Job ns/import"


@pytest.fixture
def server() -> Iterator[FakeServer]:
    cluster = FakeCluster()
    cluster.create("namespaces", name="ns")
    cluster.create("jobs", name="import", status={"failed": 1, "conditions": FAILED})
    made = FakeServer(cluster, bookmark_every_s=0.2)
    yield made
    made.close()


def record(tmp_path: Path, server: FakeServer, *words: str) -> list[str]:
    config = write_kubeconfig(tmp_path / "config", server, namespace="ns")
    return [
        *(sys.executable, "-m", "tracekit", "record", "-o", str(tmp_path / "run"), "--judge"),
        *("--kubeconfig", config, *words),
    ]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}


def test_what_the_last_rows_show_is_told_before_it_ends(tmp_path: Path, server: FakeServer) -> None:
    done = subprocess.run(
        record(tmp_path, server, "--duration", "1s"),
        capture_output=True, text=True, env=environment(), check=True,
    )  # fmt: skip
    (line,) = done.stdout.splitlines()
    assert TOLD in line
    assert TOLD not in done.stderr
    assert "Traceback" not in done.stderr


def test_on_a_terminal_it_stands_above_the_recorders_table(
    tmp_path: Path, server: FakeServer
) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 120))
    process = subprocess.Popen(
        record(tmp_path, server, "--duration", "2s"),
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment(),
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while part := _read(ours):
        shown += part
    os.close(ours)
    assert process.wait() == 0
    text = shown.decode()
    assert text.count(TOLD) == 1
    assert "obs/s" in text  # the recorder's own table
    assert "rows, " not in text.partition("Wrote")[0]  # and none of the judge's over it


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


def test_a_recorder_that_is_killed_leaves_no_judge(tmp_path: Path, server: FakeServer) -> None:
    process = subprocess.Popen(
        record(tmp_path, server), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not any(_is_judge(child) for child in children.read_text().split()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)  # its pipes end when nobody holds them any more: the judge, too
    assert process.returncode == -signal.SIGKILL


def _is_judge(process: str) -> bool:
    return b"--beside" in Path(f"/proc/{process}/cmdline").read_bytes()
