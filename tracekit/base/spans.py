"""Spans of time among which those near a time are found without a look at the others. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate


class Spans:
    """Spans (from, until), in whatever order, which may overlap.

    Where they are nearly in order of time, few are near any; where they are not, more are looked
    at and none is missed.
    """

    __slots__ = ("_least_from", "_most_until")

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        given = list(spans)
        #: For each place the latest end up to it, and the earliest beginning from it on.
        self._most_until = list(accumulate((until for _, until in given), max))
        self._least_from = list(accumulate((begin for begin, _ in reversed(given)), min))[::-1]

    def near(self, from_ns: int, until_ns: int) -> range:
        """Places in their order; every span that touches this time is at one of them."""
        first = bisect_left(self._most_until, from_ns)
        return range(first, max(first, bisect_right(self._least_from, until_ns)))

    def end_by(self, at_ns: int) -> int | None:
        """The latest end of those that begin by then, if they are in order; None if none does."""
        begun = bisect_right(self._least_from, at_ns)
        return self._most_until[begun - 1] if begun else None

    def last_before(self, at_ns: int) -> int:
        """The last place of one that begins before a time; -1 if none does."""
        return bisect_left(self._least_from, at_ns) - 1


class Timed:
    """Places of things by the times that they have, (time, place), several of one place or none."""

    __slots__ = ("_timed",)

    def __init__(self, timed: Iterable[tuple[int, int]]) -> None:
        self._timed = sorted(timed)

    def within(self, from_ns: int, until_ns: int) -> list[int]:
        """The places of those with a time between, both included, in their order."""
        first = bisect_left(self._timed, (from_ns,))
        until = bisect_left(self._timed, (until_ns + 1,))
        return sorted({place for _, place in self._timed[first:until]})
