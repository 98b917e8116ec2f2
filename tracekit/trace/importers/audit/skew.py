"""By how much the clocks of several API servers differ, told by the revisions that they gave out.

A write happens between the arrival of its request and its answer, and revisions tell the order of
all writes. So a request that one server had answered with a revision, by its clock before a request
with a lesser revision came to another by that one's, shows that their clocks differ: each such pair
bounds the difference from one side.

Of arrivals only those of creations count: a write without effect is answered with a revision that
was there long before it came.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

_FOREVER_NS = 1 << 62


class WritesOfServers(Protocol):
    """Some writes: a column for each thing that is known."""

    @property
    def revisions(self) -> array[int]:
        """The revision of each."""

    @property
    def received(self) -> array[int]:
        """When its request came, Unix ns of its server's clock."""

    @property
    def answered(self) -> array[int]:
        """When it was answered."""

    @property
    def servers(self) -> array[int]:
        """Which server it came to."""

    @property
    def created(self) -> array[int]:
        """1: it made an object."""


Read = Callable[[], Iterable[WritesOfServers]]


class Skew:
    """Compares the clocks of the servers of a log."""

    def __init__(self, writes: Mapping[int, int], steps_max: int) -> None:
        self._servers = list(writes)
        #: Its clock counts: the server's that wrote most.
        self._reference = max(writes, key=lambda server: (writes[server], -server))
        self._every = 1 + writes[self._reference] // steps_max

    def shifts(self, read: Read) -> tuple[dict[int, int], int]:
        """What to add to each server's times, and the difference that nothing tells apart.

        The first holds only those servers whose clock is shown to be another; the second is 0 if
        the order of revisions and the clocks agree: else the log of one was written by several.
        """
        known = _Order(self._of_reference(read), self._every)
        low = dict.fromkeys(self._servers, -_FOREVER_NS)
        high = dict.fromkeys(self._servers, _FOREVER_NS)
        for writes in read():
            for revision, received_ns, answered_ns, server, created in zip(
                writes.revisions,
                writes.received,
                writes.answered,
                writes.servers,
                writes.created,
                strict=True,
            ):
                come = known.last_come(revision)
                high[server] = min(high[server], answered_ns - come)
                if created and server != self._reference:
                    low[server] = max(low[server], received_ns - known.next_done(revision))
        return self._apart(low, high)

    def _apart(self, low: Mapping[int, int], high: Mapping[int, int]) -> tuple[dict[int, int], int]:
        mixed = -high[self._reference]
        shifts = {}
        for server in self._servers:
            least, most = low[server], high[server]
            if server == self._reference:
                continue
            if least > most:
                mixed = max(mixed, least - most)
            elif least > 0 or most < 0:
                bounded = least > -_FOREVER_NS // 2 and most < _FOREVER_NS // 2
                nearest = least if least > 0 else most
                shifts[server] = -((least + most) // 2 if bounded else nearest)
        return shifts, max(mixed, 0)

    def _of_reference(self, read: Read) -> Iterator[tuple[int, int | None, int]]:
        for writes in read():
            for number, server in enumerate(writes.servers):
                if server == self._reference:
                    come = writes.received[number] if writes.created[number] else None
                    yield writes.revisions[number], come, writes.answered[number]


class _Order:
    """Of the writes of one server, by revision: when the last one came, when the next was done."""

    def __init__(self, writes: Iterable[tuple[int, int | None, int]], every: int) -> None:
        kept = [write for number, write in enumerate(writes) if number % every == 0]
        kept.sort(key=lambda write: write[0])
        self._revisions = array("q", (revision for revision, _, _ in kept))
        self._come, self._done = array("q"), array("q")
        latest = -_FOREVER_NS
        for _, received_ns, _ in kept:
            latest = latest if received_ns is None else max(latest, received_ns)
            self._come.append(latest)
        soonest = _FOREVER_NS
        for _, _, answered_ns in reversed(kept):
            soonest = min(soonest, answered_ns)
            self._done.append(soonest)
        self._done.reverse()

    def last_come(self, revision: int) -> int:
        """The latest arrival of a creation before it."""
        before = bisect_left(self._revisions, revision)
        return self._come[before - 1] if before else -_FOREVER_NS

    def next_done(self, revision: int) -> int:
        """The soonest answer of a write after it."""
        after = bisect_right(self._revisions, revision)
        return self._done[after] if after < len(self._revisions) else _FOREVER_NS
