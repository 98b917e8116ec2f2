"""A wish to end that a signal handler may utter, and Ctrl-C that meets a library.

A handler runs in the main thread, between two of its bytecodes: whatever lock that thread holds
just then, the handler can never get. `threading.Event.set` takes the lock that `Event.wait` holds
for a moment before and after it sleeps, so an Event that a handler sets stops the program for good,
once in a long while. `queue.SimpleQueue.put` is made for this: it may interrupt its own `get`.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

#: What asks a program to end: Ctrl-C, and who ends a service.
ENDING: Final = (signal.SIGINT, signal.SIGTERM)
#: What asks all else to end, and what it is of which nobody else took care.
_ASKING: Final = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}


class StopRequest:
    """An event that is set once, by anybody: another thread, or a signal handler."""

    def __init__(self) -> None:
        self._made = False
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self) -> None:
        """Ask; takes no lock that somebody may hold."""
        self._made = True
        self._wake.put(None)

    def is_set(self) -> bool:
        """Tell whether it was asked."""
        return self._made

    def wait(self, timeout_s: float) -> bool:
        """Wait until it is asked, at most so long; whether it was. For one thread alone."""
        if not self._made:
            with contextlib.suppress(queue.Empty):
                self._wake.get(timeout=timeout_s)
        return self._made


@contextlib.contextmanager
def on_signals(handle: Callable[[], None], *numbers: signal.Signals) -> Iterator[None]:
    """Have the signals call `handle`, also where a shell had them ignored, as behind a prompt.

    For the main thread alone; afterwards they do what they did before.
    """
    before = {number: signal.signal(number, lambda *_: handle()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def left_at_once(end: Callable[[], None]) -> Iterator[None]:
    """Have the process end where it is, after `end`, by whatever asks it to.

    For who waits for a thread that reads, which nothing but its reader's other side ends.
    """

    def leave(number: signal.Signals) -> None:
        end()
        os._exit(128 + number)

    with contextlib.ExitStack() as stack:
        for number in _ASKING:
            if signal.getsignal(number) != signal.SIG_IGN:
                stack.enter_context(on_signals(partial(leave, number), number))
        yield


def interrupt() -> None:
    """What Ctrl-C does where nobody else wants it."""
    raise KeyboardInterrupt


class Interrupts:
    """Ctrl-C, kept beside the exception that it is, and put off where that does harm.

    What a handler raises amid a destructor is lost, amid a library's transaction it comes out as
    some other error, and amid the making of an extension module the process may crash. Who ends a
    service or closes a terminal is told the same way, so that nothing is left half done.
    """

    def __init__(self) -> None:
        #: That it was pressed.
        self.asked = StopRequest()
        #: By which signal, at first.
        self.number = signal.SIGINT
        self._putting_off = 0

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Listen to it; where it is ignored it stays so, as `nohup` asks. For the main thread."""
        with contextlib.ExitStack() as stack:
            for number, usual in _ASKING.items():
                if signal.getsignal(number) == usual:
                    stack.enter_context(on_signals(partial(self.came, number), number))
            yield

    @contextlib.contextmanager
    def put_off(self) -> Iterator[None]:
        """Let it come at the end of what is done now, if it is listened to."""
        self._putting_off += 1
        try:
            yield
        finally:
            self._putting_off -= 1
        if self.asked.is_set():
            interrupt()

    def came(self, number: signal.Signals = signal.SIGINT) -> None:
        """What a handler does."""
        if not self.asked.is_set():
            self.number = number
        self.asked.set()
        if not self._putting_off:
            interrupt()


#: A process has one.
INTERRUPTS: Final = Interrupts()


_OF_ITS_OWN = "Query interrupted"


@contextlib.contextmanager
def interrupted_at_once() -> Iterator[None]:
    """Let Ctrl-C be itself also where it met DuckDB.

    In the midst of a query DuckDB raises a RuntimeError of its own, in the midst of a read of ours
    an Error whose text is the traceback of the KeyboardInterrupt.
    """
    try:
        yield
    except Exception as error:
        first, *lines = str(error).splitlines() or [""]
        of_ours = first.startswith("Traceback") and "KeyboardInterrupt:" in map(str.strip, lines)
        if of_ours or (isinstance(error, RuntimeError) and first == _OF_ITS_OWN):
            raise KeyboardInterrupt from error
        raise


@contextlib.contextmanager
def interrupting(interrupt: Callable[[], None]) -> Iterator[None]:
    """Have who asks to end call `interrupt` at once, from another thread, while the main is in C.

    Python's own handler waits until the main thread is back from there, which may take a query's
    hours; what the signal writes to a file descriptor is there at once. Elsewhere than in the main
    thread, and where somebody uses that descriptor already, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(0)
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)

        def listen() -> None:
            while came := ours.recv(64):
                asking = (number for number in _ASKING if number in came)
                if any(signal.getsignal(number) != signal.SIG_IGN for number in asking):
                    interrupt()

        thread = threading.Thread(target=listen, name="interrupts", daemon=True)
        try:
            if before == -1:
                thread.start()
            else:
                signal.set_wakeup_fd(before)
            yield
        finally:
            signal.set_wakeup_fd(before)
            theirs.shutdown(socket.SHUT_WR)
            if thread.ident is not None:
                thread.join()
