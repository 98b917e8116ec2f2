"""How far the clocks of API servers differ, which the order of revisions tells.

What an API server sets while it handles a write is before the commit. So where an object came into
being after a later time had been set, two clocks differ, or its request took so long. Which of both
one row does not tell: one request of three seconds contradicts all that was written meanwhile, as
does a time that a client sent. Two servers contradict each other again and again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from typing import Final

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.replay.other_clocks import outliers

#: Times of API servers are whole seconds: less is no contradiction.
_TELLING_NS: Final = 2 * NS_PER_S


def servers_apart_ns(
    by_rv: Sequence[int], server_ns: Sequence[int], created_ns: Sequence[int]
) -> int:
    """The least by which clocks of API servers differ; 0: nothing tells.

    `by_rv`: rows in the order of their revisions; `server_ns`: by row, the newest time that a
    server set; `created_ns`: that of a creation, else 0. Each row stands in one contradiction at
    most, of which a few are clients' times and slow requests.
    """
    apart = set[int]()
    earlier = list[tuple[int, int]]()  # place and time of what something later contradicts
    oldest_ns = 1 << 62
    for place in range(len(by_rv) - 1, -1, -1):
        row = by_rv[place]
        if server_ns[row] - oldest_ns >= _TELLING_NS:
            apart.add(server_ns[row] - oldest_ns)
            earlier.append((place, server_ns[row]))
        if created_ns[row]:
            oldest_ns = min(oldest_ns, created_ns[row])
    if not earlier:
        return 0
    dropped = outliers(earlier)
    later = [(place, created_ns[row]) for place, row in enumerate(by_rv) if created_ns[row]]
    found = sorted(apart)
    too_far = bisect_left(
        found, -dropped, key=lambda apart_ns: -_contradictions(earlier, later, apart_ns)
    )
    return found[too_far - 1] if too_far else 0


def _contradictions(
    earlier: Sequence[tuple[int, int]], later: Sequence[tuple[int, int]], apart_ns: int
) -> int:
    """How many pairs contradict each other by so much at least, each row in one of them.

    `earlier`: from the last place to the first, with times that were set; `later`: from the first
    to the last, with those of creations.
    """
    pairs, waiting, free = 0, len(later), list[int]()
    for place, at_ns in earlier:
        while waiting and later[waiting - 1][0] > place:
            waiting -= 1
            insort(free, later[waiting][1])
        fitting = bisect_right(free, at_ns - apart_ns)
        if fitting:
            del free[fitting - 1]  # what contradicts least: others may need the rest
            pairs += 1
    return pairs
