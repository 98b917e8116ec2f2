"""A handler that interrupts the very wait that it ends."""

import subprocess
import sys
import threading

import pytest

from tracekit.base.stopping import StopRequest

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
