"""Writing a segment beside gathering the next: sorting, encoding and compressing need no Python.

One segment at a time, so that memory holds two at most and the files appear in order.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Beside:
    """A thread that does one thing at a time; what it raises, the next call here raises."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._doing: Future[Any] | None = None

    def begin(self, do: Callable[[], object]) -> None:
        """Have this done, once what was begun before is."""
        self.wait()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1)
        self._doing = self._pool.submit(do)

    def wait(self) -> None:
        """Return when all is done."""
        doing, self._doing = self._doing, None
        if doing is not None:
            doing.result()

    def end(self) -> None:
        """Let what was begun end, however it does, and the thread with it."""
        self._doing = None
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
