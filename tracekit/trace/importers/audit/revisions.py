"""Revisions that a log does not tell, chosen between those that it does.

etcd numbers writes in order, and a request's write lies between its arrival and its answer. So a
write's revision is above that of every write that was answered before the request came, and below
that of every one that came after its answer; and between its neighbours of the same object.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

import pyarrow as pa
import pyarrow.compute as pc

#: So many revisions are tried before a place between two neighbours counts as full.
_TRIES = 4096


class RevisionClock:
    """Which revisions were given out by when, after all entries of a log."""

    def __init__(self) -> None:
        self._received = array("q")
        self._answered = array("q")
        self._revisions = array("q")
        self._objects = array("q")
        self._chosen: set[int] = set()
        self._starts: array[int] = array("q")
        self._start_floor: array[int] = array("q")
        self._ends: array[int] = array("q")
        self._end_ceiling: array[int] = array("q")

    def learn(self, revision: int, received_ns: int, answered_ns: int, obj: int) -> None:
        """A write of that revision, to that object (a hash), lies between these instants."""
        self._objects.append(obj)
        self._revisions.append(revision)
        self._received.append(received_ns)
        self._answered.append(answered_ns)

    def settle(self) -> int | None:
        """Nothing more comes: make the answers quick. Returns a revision that two objects claim."""
        if not self._revisions:
            return None
        revisions = pa.array(self._revisions, pa.int64())
        answered = pa.array(self._answered, pa.int64())
        received = pa.array(self._received, pa.int64())
        order = pc.sort_indices(answered)
        self._starts = _array(answered.take(order))
        self._start_floor = _array(pc.cumulative_max(revisions.take(order)))
        real = pa.array(self._real_writes(), pa.bool_())
        received, made = received.filter(real), revisions.filter(real)
        order = pc.sort_indices(pc.negate(received))
        self._ends = _array(pc.negate(received.take(order)))
        self._end_ceiling = _array(pc.cumulative_min(made.take(order)))
        order = pc.sort_indices(revisions)
        ordered, owners = revisions.take(order), pa.array(self._objects, pa.int64()).take(order)
        same = pc.equal(ordered[1:], ordered[:-1])
        clash = ordered[1:].filter(pc.and_(same, pc.not_equal(owners[1:], owners[:-1])))
        self._revisions = _array(pc.unique(ordered))
        self._received = self._answered = self._objects = array("q")
        return clash[0].as_py() if len(clash) else None

    def _real_writes(self) -> list[bool]:
        """Which answers tell a new revision: one that was there before the request is an old one's.

        A write without effect is answered with the revision that the object had.
        """
        found = []
        for revision, received_ns in zip(self._revisions, self._received, strict=True):
            before = bisect_left(self._starts, received_ns)
            found.append(not before or revision > self._start_floor[before - 1])
        return found

    def bounds(self, received_ns: int, answered_ns: int) -> tuple[int, int | None]:
        """Revisions below and above that of a write between these instants, as far as is known."""
        before = bisect_left(self._starts, received_ns)
        after = bisect_left(self._ends, -answered_ns)
        low = self._start_floor[before - 1] if before else 0
        high = self._end_ceiling[after - 1] if after else None
        return low, high

    def choose(self, low: int, high: int | None, *, latest: bool = False) -> int:
        """A revision between two that nobody is known to have; the neighbour if all are taken."""
        if high is not None and high <= low:
            return low
        step = -1 if latest and high is not None else 1
        start = high - 1 if step < 0 and high is not None else low + 1
        for candidate in range(start, start + step * _TRIES, step):
            if (step < 0 and candidate <= low) or (high is not None and candidate >= high):
                break
            if candidate not in self._chosen and not self._known(candidate):
                self._chosen.add(candidate)
                return candidate
        return high - 1 if step < 0 and high is not None else low + 1

    def _known(self, revision: int) -> bool:
        place = bisect_right(self._revisions, revision)
        return place > 0 and self._revisions[place - 1] == revision


def _array(values: pa.Array) -> array[int]:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    result = array("q")
    if len(values):
        result.frombytes(memoryview(values.buffers()[1])[values.offset * 8 :][: len(values) * 8])
    return result
