"""From many stream threads to one writer thread, in order, with a bound on what waits.

Rows travel in batches, those of one read of a socket together, and wait in a deque (whose append is
atomic); the writer takes all that is there at once. When too much waits, the stream threads wait,
the sockets fill, and the server slows down: nothing is lost.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

from msgspec import Struct

_WAITING_BYTES_MAX = 16 << 20
_POLL_S = 0.02


class GapRow(Struct, frozen=True, kw_only=True):
    """A time in which one stream was not seen; revisions as the server spelled them."""

    stream: str
    last_rv: str | None
    next_rv: str | None
    from_ns: int | None
    until_ns: int | None
    reason: str


@dataclass(slots=True)
class Rows:
    """Things of one stream that came in together: a type and the object's text for each."""

    stream: str
    recv_ns: int
    types: list[str]
    raws: list[bytes]
    synthesized: bool = False


class Sink(Protocol):
    """Where a stream's rows go."""

    def rows(self, rows: Rows) -> None:
        """Take rows; may block while the writer is behind."""

    def gap(self, gap: GapRow) -> None:
        """Take a gap."""


class Outbox:
    """One stream's way to the sink: gathers rows of one moment, keeps everything in order."""

    def __init__(self, sink: Sink, stream: str) -> None:
        self._sink = sink
        self._stream = stream
        self._types: list[str] = []
        self._raws: list[bytes] = []
        self._recv_ns = 0

    def add(self, kind: str, raw: bytes, recv_ns: int) -> None:
        """Put a row with those that wait for `send`."""
        if recv_ns != self._recv_ns:
            self.send()
            self._recv_ns = recv_ns
        self._types.append(kind)
        self._raws.append(raw)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Also when a frame was bad: the ones before it count.
        self.send()

    def send(self) -> None:
        """Hand over what was added."""
        if self._types:
            rows = Rows(self._stream, self._recv_ns, self._types, self._raws)
            self._types, self._raws = [], []
            self._sink.rows(rows)

    def send_one(self, kind: str, raw: bytes, recv_ns: int, *, synthesized: bool = False) -> None:
        """Hand over one more row, at once."""
        self.send()
        self._sink.rows(Rows(self._stream, recv_ns, [kind], [raw], synthesized))

    def send_gap(self, gap: GapRow) -> None:
        """Hand over a gap."""
        self.send()
        self._sink.gap(gap)


class SinkClosedError(Exception):
    """The writer is gone (see `RowQueue.failure`): there is no point in reading on."""


#: What the writer thread gets: rows and gaps in order, and calls (rotation) at their place.
Item = Rows | GapRow | Callable[[], None]


class RowQueue:
    """The sink of a recording; `take` is for the writer thread alone."""

    def __init__(self, *, waiting_bytes_max: int = _WAITING_BYTES_MAX) -> None:
        self._items: deque[Item] = deque()
        self._filled = threading.Event()
        self._bytes_in = 0
        self._bytes_out = 0
        self._rows_in = 0
        self._rows_out = 0
        self._bytes_max = waiting_bytes_max
        self._closed = threading.Event()
        self.failure: BaseException | None = None

    @property
    def waiting(self) -> int:
        """Rows that the writer has not taken yet."""
        # Races between stream threads can only make the count a little wrong.
        return max(self._rows_in - self._rows_out, len(self._items))

    def lag_s(self, now_ns: int) -> float:
        """How long ago the oldest row that waits was received."""
        try:
            first = self._items[0]
        except IndexError:
            return 0.0
        return max(0.0, (now_ns - first.recv_ns) / 1e9) if isinstance(first, Rows) else 0.0

    def rows(self, rows: Rows) -> None:
        """Queue rows; waits while too many bytes wait."""
        self._put(rows)
        # Races between stream threads can only make the count a little low: it bounds memory.
        self._bytes_in += sum(map(len, rows.raws))
        self._rows_in += len(rows.raws)
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
            if isinstance(item, Rows):
                taken_bytes += sum(map(len, item.raws))
                self._rows_out += len(item.raws)
            items.append(item)
        self._bytes_out += taken_bytes
        if self._items:
            self._filled.set()
        return items

    def close(self, failure: BaseException | None = None) -> None:
        """Refuse further rows; `failure` says why when it was not asked for."""
        self.failure = self.failure or failure
        self._closed.set()
