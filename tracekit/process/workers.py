"""The workers of a controller: so many goroutines that take keys from one queue.

Upstream: pkg/controller/*/…:worker, processNextWorkItem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from tracekit.process.life import Life
from tracekit.workqueue.queue import K
from tracekit.workqueue.rate_limiting import RateLimitingQueue


class Workers(Generic[K]):
    """Hands the keys of a queue to its workers, as they become due and workers free."""

    __slots__ = ("_armed_ns", "_free", "_life", "_queue", "_started", "_work")

    def __init__(
        self, life: Life, queue: RateLimitingQueue[K], count: int, work: Callable[[K], None]
    ) -> None:
        self._life = life
        self._queue = queue
        self._free = count
        self._work = work
        self._armed_ns: int | None = None
        self._started = False

    def start(self) -> None:
        """Begin to work: the caches have synced."""
        self._started = True
        self.wake()

    def wake(self) -> None:
        """Look at the queue: something may have been added."""
        if not self._started:
            return
        self._queue.poll()  # what is due waits in line, whether or not a worker is free
        while self._free > 0:
            key = self._queue.get()
            if key is None:
                break
            self._free -= 1
            self._life.task(lambda key=key: self._run(key))  # type: ignore[misc]
        next_ns = self._queue.next_ready_ns()
        if next_ns is not None and (self._armed_ns is None or next_ns < self._armed_ns):
            self._armed_ns = next_ns
            self._life.at(next_ns, self._alarm)

    def _alarm(self) -> None:
        self._armed_ns = None
        self.wake()

    def _run(self, key: K) -> None:
        self._work(key)
        self._queue.done(key)
        self._free += 1
        self.wake()
