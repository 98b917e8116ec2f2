"""A work queue that also adds keys later.

One pending time per key: of two requested times the earlier one counts. `add` leaves a pending
time alone, so a key worked on now comes again when its timer fires. A delay of zero or less adds
at once. Due keys are added in the order of their times; equal times in the order in which the keys
were first given a time, which upstream leaves to its heap.

Upstream: client-go util/workqueue/delaying_queue.go. Time is whatever the clock says when the
queue is touched: `get`, `poll` and `len` first move due keys over.
"""

from __future__ import annotations

import heapq

from msgspec import Struct

from tracekit.base.sim.clock import VirtualClock
from tracekit.ports.workqueue.queue import K, Queue


class _Pending(Struct, frozen=True):
    ready_ns: int
    seq: int


class DelayingQueue(Queue[K]):
    """A queue on a virtual clock."""

    __slots__ = ("_clock", "_heap", "_pending", "_seq")

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        #: Key -> its one pending time. Heap entries that disagree with it are void.
        self._pending: dict[K, _Pending] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._seq = 0

    @property
    def clock(self) -> VirtualClock:
        """The clock on which delays run."""
        return self._clock

    def add_after(self, key: K, delay_ns: int) -> None:
        """Add a key once the delay has passed."""
        if self.shutting_down:
            return
        if delay_ns <= 0:
            self.add(key)
            return
        ready_ns = self._clock.now_ns + delay_ns
        known = self._pending.get(key)
        if known is None:
            self._seq += 1
            pending = _Pending(ready_ns, self._seq)
        elif ready_ns < known.ready_ns:
            pending = _Pending(ready_ns, known.seq)
        else:
            return
        self._pending[key] = pending
        heapq.heappush(self._heap, (pending.ready_ns, pending.seq, key))

    def poll(self) -> None:
        """Add every key whose time has come."""
        now_ns = self._clock.now_ns
        while self._heap and self._heap[0][0] <= now_ns:
            ready_ns, seq, key = heapq.heappop(self._heap)
            known = self._pending.get(key)
            if known is not None and (known.ready_ns, known.seq) == (ready_ns, seq):
                del self._pending[key]
                self.add(key)

    def get(self) -> K | None:
        """Hand out the oldest key that is due, or None."""
        self.poll()
        return super().get()

    def next_ready_ns(self) -> int | None:
        """When the next timer fires; None without one."""
        while self._heap:
            ready_ns, seq, key = self._heap[0]
            known = self._pending.get(key)
            if known is not None and (known.ready_ns, known.seq) == (ready_ns, seq):
                return ready_ns
            heapq.heappop(self._heap)
        return None

    def pending_ns(self, key: K) -> int | None:
        """When the key's timer fires; None without one."""
        known = self._pending.get(key)
        return known.ready_ns if known is not None else None

    def __len__(self) -> int:
        self.poll()
        return super().__len__()
