"""A wish to end that a signal handler may utter, and Ctrl-C that meets a library.

A handler runs in the main thread, between two of its bytecodes: whatever lock that thread holds
just then, the handler can never get. `threading.Event.set` takes the lock that `Event.wait` holds
for a moment before and after it sleeps, so an Event that a handler sets stops the program for good,
once in a long while. `queue.SimpleQueue.put` is made for this: it may interrupt its own `get`.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Iterator


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
