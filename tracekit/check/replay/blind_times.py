"""When the times ended in which the record did not see a key: gaps, and before its lists. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence


class BlindTimes:
    """The ends of one key's blind times, in ns of the clock that is judged on.

    All keys share the ends of the gaps, in order: a key costs its own lists alone, however many
    gaps the record has.
    """

    __slots__ = ("_first_gap", "_gaps_ns", "_listed_ns")

    def __init__(
        self, listed_ns: Iterable[int], gap_ends_ns: Sequence[int], born_ns: int | None
    ) -> None:
        """`gap_ends_ns`: in order; those after `born_ns` concern the key, None: none does."""
        self._listed_ns = sorted(listed_ns)
        self._gaps_ns = gap_ends_ns
        none = len(gap_ends_ns)
        self._first_gap = none if born_ns is None else bisect_right(gap_ends_ns, born_ns)

    def __len__(self) -> int:
        return len(self._listed_ns) + len(self._gaps_ns) - self._first_gap

    def passed(self, at_ns: int) -> int:
        """How many had ended by then."""
        gaps = bisect_right(self._gaps_ns, at_ns, self._first_gap) - self._first_gap
        return bisect_right(self._listed_ns, at_ns) + gaps

    def last_by(self, at_ns: int) -> int | None:
        """When the last of those ended that had by then; None if none had."""
        listed = bisect_right(self._listed_ns, at_ns)
        gaps = bisect_right(self._gaps_ns, at_ns, self._first_gap)
        ends_ns = self._listed_ns[listed - 1 : listed] if listed else []
        if gaps > self._first_gap:
            ends_ns = [*ends_ns, self._gaps_ns[gaps - 1]]
        return max(ends_ns, default=None)

    @property
    def first_ns(self) -> int | None:
        """When the first of all ended; None if there is none."""
        heads = (*self._listed_ns[:1], *self._gaps_ns[self._first_gap : self._first_gap + 1])
        return min(heads, default=None)

    @property
    def last_ns(self) -> int | None:
        """When the last of all ended; None if there is none."""
        gaps_ns = self._gaps_ns[-1:] if self._first_gap < len(self._gaps_ns) else ()
        return max((*self._listed_ns[-1:], *gaps_ns), default=None)

    def of(self, at_ns: int) -> int:
        """When the last ended before a write of then, to which it belongs; there must be one.

        One stream may have shown a write before another listed those that it follows: then it
        belongs to the first.
        """
        found = self.last_by(at_ns)
        if found is None:
            found = self.first_ns
        assert found is not None  # noqa: S101 - who asks knows of one
        return found
