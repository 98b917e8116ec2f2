"""The workers of a controller: so many goroutines that take keys from one queue.

Upstream: pkg/controller/*/…:worker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from tracekit.model.cluster.draws import Draws
from tracekit.model.process.lifetime import Life
from tracekit.ports.workqueue.queue import K
from tracekit.ports.workqueue.rate_limiting import RateLimitingQueue


class Workers(Generic[K]):
    """Keeps the workers of a queue at work, as its keys become due.

    `process_next` is the controller's processNextWorkItem: it takes a key, works on it, settles it
    with the queue, and says False where nothing waits.
    """

    __slots__ = ("_armed_ns", "_draws", "_free", "_life", "_process_next", "_queue", "_started")

    def __init__(
        self,
        life: Life,
        queue: RateLimitingQueue[K],
        count: int,
        process_next: Callable[[], bool],
        draws: Draws,
    ) -> None:
        self._life = life
        self._queue = queue
        self._free = count
        self._process_next = process_next
        self._draws = draws
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
        for _ in range(min(self._free, len(self._queue))):
            self._free -= 1
            self._life.task(self._run)
        next_ns = self._queue.next_ready_ns()
        if next_ns is not None and (self._armed_ns is None or next_ns < self._armed_ns):
            self._armed_ns = next_ns
            self._life.at(next_ns, self._alarm)

    def _alarm(self) -> None:
        self._armed_ns = None
        self.wake()

    def _run(self) -> None:
        # A busy machine wakes a worker late, and the keys wait; one that is at work goes on.
        wait_ns = self._draws.turn_ns()
        if wait_ns:
            self._life.loop.sleep_until(self._life.now_ns + wait_ns)
        while self._process_next():
            self.wake()  # what was added meanwhile, or a timer that was armed
        self._free += 1
