"""What a recorder notes of its clock: the API server's Date, and steps against the monotonic one.

Receive times are by a clock that may be off, or be set while the recording runs. An answer's Date
tells the API server's clock to the second, between when the request was sent and when its answer
began; and a wall clock that moves otherwise than the monotonic one was set. Both are noted as rows
of a stream of their own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

import orjson

from tracekit.base.kube.timestamps import NS_PER_S

#: An answer is noted so often: each narrows how far the clocks can be apart. A choice: more
#: often costs requests and rows, less often leaves more open of where a clock was.
EVERY_S: Final = 60
#: The wall clock was set, if it moved by so much more or less than the monotonic one. What is read
#: of both is microseconds apart, and NTP slews both alike. A choice: a smaller step is not noted.
STEP_NS: Final = NS_PER_S // 10


class Reading(NamedTuple):
    """Both clocks at one moment."""

    wall_ns: int
    monotonic_ns: int

    @property
    def apart_ns(self) -> int:
        """How far the wall clock is ahead of the monotonic one: the same until it is set."""
        return self.wall_ns - self.monotonic_ns


def read_clocks() -> Reading:
    """Read the process's clocks."""
    return Reading(time.time_ns(), time.monotonic_ns())


class ClockNotes:
    """Notes what answers and ticks tell of the recorder's clock; any thread may call it."""

    def __init__(
        self, write: Callable[[int, bytes], None], read: Callable[[], Reading] = read_clocks
    ) -> None:
        """`write` takes a note: its receive time, and its text."""
        self.read = read
        #: Set when an answer is wanted before the next minute is over.
        self.wanted = threading.Event()
        self._write = write
        self._lock = threading.Lock()
        self._last: Reading | None = None
        self._noted_ns: int | None = None  # by the monotonic clock

    def answered(self, sent: Reading, date: str | None) -> None:
        """An answer to a request that was sent then has begun, with this Date."""
        now = self.read()
        with self._lock:
            self._look(now)
            noted_ns = self._noted_ns
            due = noted_ns is None or now.monotonic_ns - noted_ns >= EVERY_S * NS_PER_S
            date_ns = _date_ns(date)
            # A clock that was set meanwhile says nothing of when the request was sent.
            if due and date_ns is not None and abs(now.apart_ns - sent.apart_ns) < STEP_NS:
                self._noted_ns = now.monotonic_ns
                self._note(now, {"sent_ns": sent.wall_ns, "date_ns": date_ns})

    def begin(self) -> None:
        """Note the next answer, for a new trace."""
        with self._lock:
            self._noted_ns = None

    def tick(self) -> None:
        """Look whether the clock was set."""
        now = self.read()
        with self._lock:
            self._look(now)

    def _look(self, now: Reading) -> None:
        last = self._last
        if last is not None and now.monotonic_ns < last.monotonic_ns:
            return  # another thread has read them later
        self._last = now
        if last is None:
            return
        step_ns = now.apart_ns - last.apart_ns
        if abs(step_ns) >= STEP_NS:
            self._noted_ns = None  # the next answer tells how far it is off now
            self.wanted.set()
            self._note(now, {"before_ns": last.wall_ns, "step_ns": step_ns})

    def _note(self, now: Reading, said: dict[str, int]) -> None:
        self._write(now.wall_ns, orjson.dumps({"monotonic_ns": now.monotonic_ns, **said}))


def _date_ns(date: str | None) -> int | None:
    """An HTTP date, in Unix ns; None where there is none."""
    if date is None:
        return None
    try:
        found = parsedate_to_datetime(date)
        if found.tzinfo is None:  # RFC 9110, 5.6.7: in UTC also where it does not say so
            found = found.replace(tzinfo=UTC)
        found_ns = round(found.timestamp()) * NS_PER_S
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None
    return found_ns if abs(found_ns) < 1 << 63 else None  # no row holds the year 9999
