"""The basic work queue: fair, stingy, and safe for a key that changes while it is worked on.

- fair: keys are handed out in the order in which they were first added;
- stingy: a key that waits already is not queued twice;
- a key added while it is being processed is queued again when its processing is done;
- after shut-down nothing is accepted, what waits is still handed out.

Upstream: client-go util/workqueue/queue.go. One thread, so `get` answers None instead of blocking.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Queue(Generic[K]):
    """A FIFO of keys, each at most once in it."""

    __slots__ = ("_dirty", "_fifo", "_processing", "_shutting_down")

    def __init__(self) -> None:
        #: Order of work. Every key in it is in `_dirty` and not in `_processing`.
        self._fifo: deque[K] = deque()
        #: Keys that need processing, whether they wait or are worked on right now.
        self._dirty: set[K] = set()
        #: Keys handed out and not done; one in `_dirty` as well is queued again when done.
        self._processing: set[K] = set()
        self._shutting_down = False

    def add(self, key: K) -> None:
        """Mark a key as needing processing."""
        if self._shutting_down or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._fifo.append(key)

    def get(self) -> K | None:
        """Hand out the oldest key, or None when nothing waits; end it with `done`."""
        if not self._fifo:
            return None
        key = self._fifo.popleft()
        self._processing.add(key)
        self._dirty.discard(key)
        return key

    def done(self, key: K) -> None:
        """End the processing of a key; it is queued again if it was added meanwhile."""
        self._processing.discard(key)
        if key in self._dirty:
            self._fifo.append(key)

    def shut_down(self) -> None:
        """Accept nothing from now on; what waits is still handed out."""
        self._shutting_down = True

    @property
    def shutting_down(self) -> bool:
        """Whether `shut_down` was called."""
        return self._shutting_down

    def is_dirty(self, key: K) -> bool:
        """Whether the key needs processing (again)."""
        return key in self._dirty

    def is_processing(self, key: K) -> bool:
        """Whether the key is handed out and not done."""
        return key in self._processing

    def waiting(self) -> tuple[K, ...]:
        """The keys that wait, oldest first."""
        return tuple(self._fifo)

    def __len__(self) -> int:
        return len(self._fifo)
