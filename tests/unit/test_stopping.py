"""A handler that interrupts the very wait that it ends."""

import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest
from fsspec.implementations.local import LocalFileSystem

from tracekit.base.stopping import StopRequest, interrupted_at_once

#: Thousands of waits, each ended by a signal that comes at any of its bytecodes.
_INTERRUPTED = """
import signal, threading
from tracekit.base.stopping import StopRequest
stop = {kind}
signal.signal(signal.SIGALRM, lambda *_: stop.set())
for _ in range(3000):
    stop = {kind}
    signal.setitimer(signal.ITIMER_REAL, 0.00002)
    while not stop.wait(0):
        pass
"""


def _run(kind: str, timeout_s: float) -> int:
    code = _INTERRUPTED.format(kind=kind)
    return subprocess.run([sys.executable, "-c", code], timeout=timeout_s, check=False).returncode


def test_a_handler_may_end_the_wait_that_it_interrupts() -> None:
    assert _run("StopRequest()", 120) == 0


def test_an_event_would_not_do() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        _run("threading.Event()", 5)


def test_another_thread_may_ask() -> None:
    stop = StopRequest()
    asking = threading.Timer(0.05, stop.set)
    asking.start()
    assert not stop.wait(0)
    assert not stop.is_set()
    assert stop.wait(60)
    assert stop.is_set()
    assert stop.wait(60)  # it stays asked


class _Interrupted(LocalFileSystem):
    """Files whose reader is interrupted by Ctrl-C."""

    protocol = "interrupted"

    def _open(self, *_: object, **__: object) -> None:
        raise KeyboardInterrupt


def test_an_interrupt_amid_a_read_of_duckdb_is_one(tmp_path: Path) -> None:
    connection = duckdb.connect()
    (tmp_path / "one.csv").write_text("a\n1\n")
    connection.register_filesystem(_Interrupted())
    query = f"FROM read_csv('interrupted://{tmp_path}/one.csv')"
    with pytest.raises(duckdb.Error):  # what DuckDB makes of it
        connection.execute(query)
    with pytest.raises(KeyboardInterrupt), interrupted_at_once():
        connection.execute(query)


def test_an_error_that_quotes_it_is_none() -> None:
    connection = duckdb.connect()
    with pytest.raises(duckdb.Error), interrupted_at_once():
        connection.execute("SELECT error('Traceback (most recent call last): KeyboardInterrupt:')")
