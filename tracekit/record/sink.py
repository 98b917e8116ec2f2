"""From many stream threads to one writer thread, in order, with a bound on what waits.

Rows wait in a deque (whose append is atomic) and the writer takes all that is there at once: a
queue that wakes its reader per row would spend more on thread switches than on the rows. When too
much waits, the stream threads wait, the sockets fill, and the server slows down: nothing is lost.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

_WAITING_BYTES_MAX = 16 << 20
_POLL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRow:
    """A time in which one stream was not seen; revisions as the server spelled them."""

    stream: str
    last_rv: str | None
    next_rv: str | None
    from_ns: int | None
    until_ns: int | None
    reason: str


@dataclass(slots=True)
class Row:
    """One thing that came in."""

    stream: str
    type: str
    recv_ns: int
    raw: bytes
    synthesized: bool = False


class Sink(Protocol):
    """Where a stream's rows go."""

    def row(self, row: Row) -> None:
        """Take a row; may block while the writer is behind."""

    def gap(self, gap: GapRow) -> None:
        """Take a gap."""


class SinkClosedError(Exception):
    """The writer is gone (see `RowQueue.failure`): there is no point in reading on."""


#: What the writer thread gets: rows and gaps in order, and calls (rotation) at their place.
Item = Row | GapRow | Callable[[], None]


class RowQueue:
    """The sink of a recording; `take` is for the writer thread alone."""

    def __init__(self, *, waiting_bytes_max: int = _WAITING_BYTES_MAX) -> None:
        self._items: deque[Item] = deque()
        self._filled = threading.Event()
        self._bytes_in = 0
        self._bytes_out = 0
        self._bytes_max = waiting_bytes_max
        self._closed = threading.Event()
        self.failure: BaseException | None = None

    @property
    def waiting(self) -> int:
        """Rows that the writer has not taken yet."""
        return len(self._items)

    def lag_s(self, now_ns: int) -> float:
        """How long ago the oldest row that waits was received."""
        try:
            first = self._items[0]
        except IndexError:
            return 0.0
        return max(0.0, (now_ns - first.recv_ns) / 1e9) if isinstance(first, Row) else 0.0

    def row(self, row: Row) -> None:
        """Queue a row; waits while too many bytes wait."""
        self._put(row)
        # Races between stream threads can only make the count a little low: it bounds memory.
        self._bytes_in += len(row.raw)
        while self._bytes_in - self._bytes_out > self._bytes_max and not self._closed.is_set():
            self._closed.wait(_POLL_S / 4)

    def gap(self, gap: GapRow) -> None:
        """Queue a gap."""
        self._put(gap)

    def call(self, function: Callable[[], None]) -> None:
        """Have the writer thread call something once it has written all that waits now."""
        self._put(function)

    def _put(self, item: Item) -> None:
        if self._closed.is_set():
            raise SinkClosedError
        self._items.append(item)
        if not self._filled.is_set():
            self._filled.set()

    def take(self, timeout_s: float) -> list[Item]:
        """Give all that waits; an empty list after `timeout_s` without anything."""
        if not self._items:
            self._filled.wait(timeout_s)
        self._filled.clear()
        items = []
        taken_bytes = 0
        while self._items and taken_bytes < self._bytes_max // 4:
            item = self._items.popleft()
            if isinstance(item, Row):
                taken_bytes += len(item.raw)
            items.append(item)
        self._bytes_out += taken_bytes
        if self._items:
            self._filled.set()
        return items

    def close(self, failure: BaseException | None = None) -> None:
        """Refuse further rows; `failure` says why when it was not asked for."""
        self.failure = self.failure or failure
        self._closed.set()
