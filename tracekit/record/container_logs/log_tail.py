"""One container's log as the API server hands it out: the last lines, within a bound.

Read from the server in pieces and kept from the end: the last words are what counts, however long
the lines are. A log may be followed until its container ends.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

#: Of one container's log at most so much is kept, and so much read to find its end.
LOG_BYTES_MAX = 64 * 1024
_READ_BYTES_MAX = 16 << 20


class Tail(Struct, frozen=True):
    """The end of a log."""

    text: str
    #: The beginning was cut off to keep the bound.
    is_cut: bool
    #: The log went on when reading stopped.
    goes_on: bool = False

    @property
    def lines(self) -> int:
        """How many lines there are; the last may have no newline."""
        return self.text.count("\n") + (self.text[-1:] not in {"", "\n"})

    def last(self, lines: int) -> Tail:
        """Give the last lines only."""
        if self.lines <= lines:
            return self
        whole = self.text.splitlines(keepends=True)
        return Tail("".join(whole[-lines:]), is_cut=True, goes_on=self.goes_on)


class LogStream(Protocol):
    """An open answer of the server."""

    def pieces(self) -> Iterator[bytes]:
        """Yield what arrives until the log ends; a broken connection raises `ConnectionFailed`."""

    def close(self) -> None:
        """End it from another thread."""


class TailReader:
    """Reads a log to its end and keeps the last of it; `tail` has what there is so far."""

    def __init__(self, bytes_max: int = LOG_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._pieces: deque[bytes] = deque()
        self._kept = 0
        self._is_cut = False
        self._goes_on = False

    def read(self, stream: LogStream) -> None:
        """Read until the log ends, or far more was read than is kept."""
        taken = 0
        try:
            for piece in stream.pieces():
                self._add(piece)
                taken += len(piece)
                if taken > _READ_BYTES_MAX:
                    self._goes_on = True
                    return
        finally:
            with contextlib.suppress(Exception):
                stream.close()

    def _add(self, piece: bytes) -> None:
        with self._lock:
            self._pieces.append(piece)
            self._kept += len(piece)
            while self._kept - len(self._pieces[0]) >= self._bytes_max:
                self._kept -= len(self._pieces.popleft())
                self._is_cut = True

    def tail(self) -> Tail:
        """Give the end of what was read so far; a line that is cut loses its rest."""
        with self._lock:
            data, is_cut = b"".join(self._pieces), self._is_cut
        if len(data) > self._bytes_max:
            data, is_cut = data[-self._bytes_max :], True
        if is_cut:
            newline = data.find(b"\n")
            # One line longer than all that is kept: its end is better than nothing.
            data = data[newline + 1 :] if 0 <= newline < len(data) - 1 else data
        return Tail(data.decode("utf-8", "replace"), is_cut, self._goes_on)
