"""Virtual time: an int of nanoseconds since the epoch that only moves forward.

Nothing in the engine reads the wall clock. Whoever drives a replay moves this one, and hands
`now_ns` to the pure code; asking it to go back is an error of the driver, not a user's.
"""

from __future__ import annotations


class VirtualClock:
    """The one clock of a replay; `now_ns` is read often, so it is no property."""

    __slots__ = ("now_ns",)

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns

    def advance_to(self, at_ns: int) -> None:
        """Move to a time that is not before now."""
        if at_ns < self.now_ns:
            raise ValueError(f"the clock is at {self.now_ns} ns and cannot go back to {at_ns} ns")
        self.now_ns = at_ns

    def advance(self, delay_ns: int) -> None:
        """Move on by a span that is not negative."""
        self.advance_to(self.now_ns + delay_ns)

    def __repr__(self) -> str:
        return f"VirtualClock(now_ns={self.now_ns})"
