"""Which writes are what the CronJob controller wanted, and which wants no write ever met.

A want holds for a stretch of time, and a write of its kind and subject in that stretch meets it, in
time or late. A CronJob of every minute has as many wants as writes, month after month, and all of
its status writes share one subject: so both are walked once, in order of time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from tracekit.check.diff.cron_pending import Wanted
from tracekit.check.replay.history import Write, WriteKind
from tracekit.check.replay.run_context import INFORMER_LAG_NS

_Target = tuple[WriteKind, str]


class Answers:
    """The writes of one CronJob against all that its controller wanted."""

    def __init__(self, wanted: Sequence[Wanted], writes: Sequence[Write]) -> None:
        self.wanted = wanted
        by_target: dict[_Target, list[Write]] = defaultdict(list)
        for write in writes:
            by_target[write.kind, write.subject].append(write)
        for same in by_target.values():
            same.sort(key=lambda write: write.recv_ns)
        wants: dict[_Target, list[int]] = defaultdict(list)
        for place, want in enumerate(wanted):
            wants[want.kind, want.subject].append(place)
        self._first: dict[int, int] = {}  # a write's index → the place of the first want it meets
        for target, places in wants.items():
            self._walk(places, by_target.get(target, ()))
        self._times = {t: [w.recv_ns for w in same] for t, same in by_target.items()}

    def _walk(self, places: list[int], writes: Iterable[Write]) -> None:
        """Give each write the want that was certain first of those that hold at its time."""
        waiting = sorted(places, key=lambda place: self.wanted[place].since_ns, reverse=True)
        held: list[tuple[int, int]] = []  # (certain_ns, place): the first is the one to give
        for write in writes:
            while waiting and self.wanted[waiting[-1]].since_ns - INFORMER_LAG_NS <= write.recv_ns:
                place = waiting.pop()
                heappush(held, (self.wanted[place].certain_ns, place))
            while held and self._is_over(held[0][1], write.recv_ns):
                heappop(held)
            if held:
                self._first[write.index] = held[0][1]

    def _is_over(self, place: int, at_ns: int) -> bool:
        until_ns = self.wanted[place].until_ns
        return until_ns is not None and at_ns > until_ns + INFORMER_LAG_NS

    def met_by(self, writes: Iterable[Write]) -> Wanted | None:
        """What some of these writes met and was certain first, if they met anything."""
        places = [self._first[w.index] for w in writes if w.index in self._first]
        place = min(places, key=lambda p: (self.wanted[p].certain_ns, p), default=None)
        return None if place is None else self.wanted[place]

    def unmet(self) -> list[Wanted]:
        """What no write ever met, in order of time."""
        return [want for want in self.wanted if not self.is_met(want)]

    def is_met(self, want: Wanted) -> bool:
        """Whether any write met it, in time or late."""
        times = self._times.get((want.kind, want.subject), [])
        at = bisect_left(times, want.since_ns - INFORMER_LAG_NS)
        until_ns = want.until_ns
        return at < len(times) and (until_ns is None or times[at] <= until_ns + INFORMER_LAG_NS)
