"""A handler that interrupts the very wait that it ends, and Ctrl-C wherever it comes."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest
from fsspec.implementations.local import LocalFileSystem

from tracekit.base.stopping import Interrupts, StopRequest, interrupted_at_once

pytestmark = pytest.mark.usefixtures("usual_signals")

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


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


#: A verb that presses Ctrl-C in a destructor, where what the handler raises is lost, and fails.
_COVERED_UP = """
import os, signal
from tracekit.cli import main as entry
signal.signal(signal.SIGINT, signal.default_int_handler)

class Destroyed:
    def __del__(self):
        if {pressed}:
            os.kill(os.getpid(), signal.SIGINT)
            sum(range(10))

def spoilt(**_):
    one = Destroyed()
    del one
    raise RuntimeError("the transaction is aborted")

entry.cli.main = spoilt
entry.main()
"""


@pytest.mark.parametrize(("pressed", "status"), [(True, 130), (False, 2)])
def test_ctrl_c_that_an_error_has_covered_up_is_no_fault(pressed: bool, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _COVERED_UP.format(pressed=pressed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    assert ("a fault of tracekit's own" in done.stderr) is not pressed


def test_it_waits_for_what_may_not_be_broken_off() -> None:
    ctrl_c, done = Interrupts(), []
    with contextlib.suppress(KeyboardInterrupt), ctrl_c.kept():
        with ctrl_c.put_off():
            press()
            done.append("whole")
        done.append("and no more")
    assert done == ["whole"]


def test_who_ignores_it_goes_on_doing_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctrl_c = Interrupts()
    with ctrl_c.kept():
        press()
    assert not ctrl_c.asked.is_set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_ends_a_service_is_heard_as_ctrl_c_is(number: signal.Signals) -> None:
    asked, before = Interrupts(), signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), asked.kept():
        signal.raise_signal(number)
    assert (asked.number, signal.getsignal(number)) == (number, before)


def test_nohup_goes_on() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    asked = Interrupts()
    with asked.kept():
        signal.raise_signal(signal.SIGHUP)
    signal.signal(signal.SIGHUP, before)
    assert not asked.asked.is_set()
