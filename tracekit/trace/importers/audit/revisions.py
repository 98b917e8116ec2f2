"""Revisions that a log does not tell, chosen between those that it does.

etcd numbers writes in order, and a request's write lies between its arrival and its answer. So a
write's revision is above that of every write that was answered before the request came, and below
that of every one that came after its answer; and between its neighbours of the same object.

What is known of all writes is three staircases over time and a sorted list of numbers. While a log
is read they wait in a file; of a very long one only so many steps are kept, which makes bounds
wider and never wrong.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

#: So many revisions are tried before a place between two neighbours counts as full.
_TRIES = 4096
_CHUNK = 1 << 17
_COLUMNS = 4
_OWNER_BITS = 8
_OWNER = (1 << _OWNER_BITS) - 1
#: Steps of a staircase: about a gigabyte of log has fewer.
_STEPS_MAX = 1 << 19

Chunk = list[pa.Array]


class RevisionClock:
    """Which revisions were given out by when, after all entries of a log."""

    def __init__(self, scratch: Path, *, chunk: int = _CHUNK, steps_max: int = _STEPS_MAX) -> None:
        self._path = scratch / "revisions"
        self._chunk_writes = chunk
        self._steps_max = steps_max
        # Revisions, arrivals, answers, hashes of the objects.
        self._held = [array("q") for _ in range(_COLUMNS)]
        self._chunks = 0
        self._writes = 0
        self._chosen: set[int] = set()
        self._known = array("q")
        self._starts, self._start_floor = array("q"), array("q")
        self._ends, self._end_ceiling = array("q"), array("q")
        self._middles, self._middle_floor = array("q"), array("q")

    def learn(self, revision: int, received_ns: int, answered_ns: int, obj: int) -> None:
        """A write of that revision, to that object (a hash), lies between these instants."""
        for column, value in zip(
            self._held, (revision, received_ns, answered_ns, obj), strict=True
        ):
            column.append(value)
        self._writes += 1
        if len(self._held[0]) >= self._chunk_writes:
            self._set_aside()

    def _set_aside(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            for column in self._held:
                column.tofile(file)
        self._held = [array("q") for _ in range(_COLUMNS)]
        self._chunks += 1

    def _all(self) -> Iterator[Chunk]:
        """The writes again, some at a time."""
        if self._chunks:
            with self._path.open("rb") as file:
                for _ in range(self._chunks):
                    columns = [array("q") for _ in range(_COLUMNS)]
                    for column in columns:
                        column.fromfile(file, self._chunk_writes)
                    yield [pa.array(column, pa.int64()) for column in columns]
        if self._held[0]:
            yield [pa.array(column, pa.int64()) for column in self._held]

    def settle(self) -> int | None:
        """Nothing more comes: make the answers quick. Returns a revision that two objects claim."""
        if not self._writes:
            return None
        every = 1 + self._writes // self._steps_max
        starts, middles, known = [], [], []
        for revisions, received, answered, owners in self._all():
            starts.append(_stairs(answered, revisions, every))
            half = pc.shift_right(pc.add(received, answered), 1)
            middles.append(_stairs(half, revisions, every))
            owner = pc.bit_wise_and(owners, _OWNER)
            known.append(pc.unique(pc.add(pc.shift_left(revisions, _OWNER_BITS), owner)))
        self._starts, self._start_floor = _joined(starts)
        self._middles, self._middle_floor = _joined(middles)
        ends = []
        for revisions, received, _, _ in self._all():
            real = pa.array(self._real_writes(revisions, received), pa.bool_())
            # Backwards in time and in revisions the ceiling is a floor.
            back, made = pc.negate(received.filter(real)), pc.negate(revisions.filter(real))
            ends.append(_stairs(back, made, every))
        self._ends, ceiling = _joined(ends)
        self._end_ceiling = _array(pc.negate(pa.array(ceiling, pa.int64())))
        self._held = [array("q") for _ in range(_COLUMNS)]
        self._path.unlink(missing_ok=True)
        return self._settle_known(pa.chunked_array(known))

    def _settle_known(self, known: pa.ChunkedArray) -> int | None:
        owned = pc.unique(known)
        owned = owned.take(pc.sort_indices(owned))
        revisions = pc.shift_right(owned, _OWNER_BITS)
        clash = revisions[1:].filter(pc.equal(revisions[1:], revisions[:-1]))
        self._known = _array(pc.unique(revisions))
        return int(clash[0].as_py()) if len(clash) else None

    def _real_writes(self, revisions: pa.Array, received: pa.Array) -> list[bool]:
        """Which answers tell a new revision: one that was there before the request is an old one's.

        A write without effect is answered with the revision that the object had.
        """
        found = []
        for revision, received_ns in zip(revisions.to_pylist(), received.to_pylist(), strict=True):
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

    def likely(self, received_ns: int, answered_ns: int) -> int:
        """The last revision that was given out by the middle of the request, as it seems."""
        before = bisect_left(self._middles, (received_ns + answered_ns) // 2)
        return self._middle_floor[before - 1] if before else 0

    def choose(self, low: int, high: int | None, *, near: int) -> int:
        """A revision between two that nobody is known to have; a neighbour if all are taken.

        The first one above `near`; where there is none, the last one below.
        """
        if high is not None and high <= low:
            return low
        near = max(low, near if high is None else min(near, high - 1))
        above = range(near + 1, near + _TRIES if high is None else min(high, near + _TRIES))
        below = range(near, max(low, near - _TRIES), -1)
        for candidate in chain(above, below):
            if candidate not in self._chosen and not self._is_known(candidate):
                self._chosen.add(candidate)
                return candidate
        return low + 1

    def _is_known(self, revision: int) -> bool:
        place = bisect_right(self._known, revision)
        return place > 0 and self._known[place - 1] == revision


Stairs = tuple[pa.Array, pa.Array]


def _stairs(times: pa.Array, revisions: pa.Array, every: int) -> Stairs:
    """The greatest revision by each time, every so many times."""
    order = pc.sort_indices(times)
    at, floor = times.take(order), pc.cumulative_max(revisions.take(order))
    if every > 1 and len(at):
        kept = pa.array([*range(0, len(at) - 1, every), len(at) - 1], pa.int64())
        at, floor = at.take(kept), floor.take(kept)
    return at, floor


def _joined(parts: list[Stairs]) -> tuple[array[int], array[int]]:
    at = pa.concat_arrays([times for times, _ in parts])
    at, floor = _stairs(at, pa.concat_arrays([floors for _, floors in parts]), 1)
    return _array(at), _array(floor)


def _array(values: pa.Array) -> array[int]:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    result = array("q")
    if len(values):
        result.frombytes(memoryview(values.buffers()[1])[values.offset * 8 :][: len(values) * 8])
    return result
