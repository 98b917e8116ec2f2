"""Revisions that a log does not tell, chosen between those that it does.

etcd numbers writes in order, and a request's write lies between its arrival and its answer. So a
write's revision is above that of every write that was answered before the request came, and below
that of every one that came after its answer; and between its neighbours of the same object.

What is known of all writes is three staircases over time and a byte for each revision. While a log
is read they wait in a file; of a long one only so many steps are kept, which makes bounds wider and
never wrong.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.trace.importers.audit.given import GivenOut
from tracekit.trace.importers.audit.skew import Skew

#: So many revisions are tried before a place between two neighbours counts as full.
_TRIES = 4096
_CHUNK = 1 << 17
#: Steps of a staircase: some hundred megabytes of log have fewer.
_STEPS_MAX = 1 << 17
#: Clocks are compared by so many times fewer.
_SKEW_SHARE = 8


class Writes(NamedTuple):
    """Some writes that were answered with a revision: a column for each thing that is known."""

    revisions: array[int]
    received: array[int]
    answered: array[int]
    servers: array[int]
    #: 1: a creation, which never is answered with a revision that was there before.
    created: array[int]

    @classmethod
    def none(cls) -> Writes:
        """No writes yet."""
        return cls(*(array("q") for _ in cls._fields))


class RevisionClock:
    """Which revisions were given out by when, after all entries of a log."""

    def __init__(self, scratch: Path, *, chunk: int = _CHUNK, steps_max: int = _STEPS_MAX) -> None:
        self._path = scratch / "revisions"
        self._chunk_writes = chunk
        self._steps_max = steps_max
        self._held = Writes.none()
        self._chunks = 0
        self._given = GivenOut()
        self._writes: dict[int, int] = {}  # by server
        #: What to add to the times of each server's entries, where its clock is known to differ.
        self.shifts_ns: Mapping[int, int] = {}
        #: By how much clocks differ at least that nothing tells apart.
        self.mixed_ns = 0
        self._starts, self._start_floor = array("q"), array("q")
        self._ends, self._end_ceiling = array("q"), array("q")
        self._middles, self._middle_floor = array("q"), array("q")

    def learn(
        self,
        revision: int,
        received_ns: int,
        answered_ns: int,
        obj: int,
        *,
        server: int = 0,
        created: bool = False,
    ) -> None:
        """A write of that revision, to that object (a hash), lies between these instants.

        They are those of the server's clock. `created`: the write made the object.
        """
        self._given.claim(revision, obj)
        write = (revision, received_ns, answered_ns, server, int(created))
        for column, value in zip(self._held, write, strict=True):
            column.append(value)
        self._writes[server] = self._writes.get(server, 0) + 1
        if len(self._held.revisions) >= self._chunk_writes:
            self._set_aside()

    def _set_aside(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            for column in self._held:
                column.tofile(file)
        self._held = Writes.none()
        self._chunks += 1

    def _all(self) -> Iterator[Writes]:
        """The writes again, some at a time."""
        if self._chunks:
            with self._path.open("rb") as file:
                for _ in range(self._chunks):
                    found = Writes.none()
                    for column in found:
                        column.fromfile(file, self._chunk_writes)
                    yield self._on_one_clock(found)
        if self._held.revisions:
            yield self._on_one_clock(self._held)

    def _on_one_clock(self, writes: Writes) -> Writes:
        shifts = self.shifts_ns
        if not shifts:
            return writes
        moves = [shifts.get(server, 0) for server in writes.servers]
        return writes._replace(
            received=array("q", map(int.__add__, writes.received, moves)),
            answered=array("q", map(int.__add__, writes.answered, moves)),
        )

    def settle(self) -> int | None:
        """Nothing more comes: make the answers quick. Returns a revision that two objects claim."""
        if not self._writes:
            return None
        skew = Skew(self._writes, self._steps_max // _SKEW_SHARE)
        self.shifts_ns, self.mixed_ns = skew.shifts(self._all)
        every = 1 + sum(self._writes.values()) // self._steps_max
        self._starts, self._start_floor = self._staircase("answered", every)
        self._middles, self._middle_floor = self._staircase("middle", every)
        self._ends, ceiling = self._staircase("received", every)
        self._end_ceiling = array("q", (-value for value in ceiling))
        self._held = Writes.none()
        self._path.unlink(missing_ok=True)
        return self._given.clash

    def _staircase(self, time: str, every: int) -> tuple[array[int], array[int]]:
        """The greatest revision by each such time; of `received` both run backwards."""
        parts = []
        for writes in self._all():
            revisions = pa.array(writes.revisions, pa.int64())
            at = pa.array(writes.received if time == "received" else writes.answered, pa.int64())
            if time == "middle":
                at = pc.shift_right(pc.add(pa.array(writes.received, pa.int64()), at), 1)
            elif time == "received":
                real = pa.array(self._real_writes(writes), pa.bool_())
                # Backwards in time and in revisions the ceiling is a floor.
                at, revisions = pc.negate(at.filter(real)), pc.negate(revisions.filter(real))
            parts.append(_stairs(at, revisions, every))
        return _joined(parts)

    def _real_writes(self, writes: Writes) -> list[bool]:
        """Which answers tell a new revision: one that was there before the request is an old one's.

        A write without effect is answered with the revision that the object had.
        """
        found = []
        for revision, received_ns in zip(writes.revisions, writes.received, strict=True):
            before = bisect_left(self._starts, received_ns)
            found.append(not before or revision > self._start_floor[before - 1])
        return found

    def bounds(self, received_ns: int, answered_ns: int) -> tuple[int, int | None]:
        """Revisions below and above that of a write between these instants, as far as is known."""
        before = bisect_left(self._starts, received_ns - self.mixed_ns)
        after = bisect_left(self._ends, -answered_ns - self.mixed_ns)
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
            if candidate not in self._given:
                self._given.take(candidate)
                return candidate
        return low + 1


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
