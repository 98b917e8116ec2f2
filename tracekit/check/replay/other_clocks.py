"""How far clocks of kubelets and of managers are off, beside the one that a record is judged on.

Who writes an object puts times of its own clock into it: a kubelet when a container began and
ended, and when it renewed the Lease of its node; a controller manager when it renewed its own.
None of these is written before it is reached, so that each clock is ahead by at least the most that
a time is later than its commit. The other side is an assumption: that one of many came at once.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.replay.instants import JudgedNs

#: So many times tell how far a clock is off: of fewer, none may have been written at once.
TIMES_MIN: Final = 8
#: So many contradictions, and one in so many, are clients' own times: anybody can write a status,
#: or send managedFields. A choice: with more, a clock that was set would go unseen.
_OUTLIERS: Final = 2
_OUTLIERS_SHARE: Final = 200
#: Less cannot be told from how long a kubelet takes: it looks at its containers once a second
#: (pkg/kubelet/kubelet.go: genericPlegRelistPeriod), then writes. `CLOCK_SLACK_NS` covers it.
TELLING_NS: Final = 5 * NS_PER_S // 4


class OtherClock(Struct, frozen=True):
    """The clock of a kubelet or of a controller manager."""

    kind: str  # kubelet, or controller manager
    name: str  # of its node; its identity as the holder of a Lease
    from_ns: JudgedNs  # when the first and the last of its times came
    until_ns: JudgedNs
    ahead_ns: int  # of the clock that is judged on; below 0: behind
    times: int  # that tell it


KUBELET: Final = "kubelet"
MANAGER: Final = "controller manager"
#: The manager's too, in whole seconds: whoever leads writes the statuses of Jobs.
STATUSES: Final = "statuses of Jobs"


@dataclass
class WrittenTimes:
    """Times of other clocks, by the rows that showed them first; some 30 bytes for each."""

    row: array[int] = field(default_factory=lambda: array("q"))
    at_ns: array[int] = field(default_factory=lambda: array("q"))
    writer: array[int] = field(default_factory=lambda: array("l"))
    writers: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, row: int, kind: str, name: str, at_ns: int) -> None:
        """Take in a time that somebody wrote into the object of a row."""
        self.row.append(row)
        self.at_ns.append(at_ns)
        self.writer.append(self.writers.setdefault((kind, name), len(self.writers)))

    def clocks(self, committed_ns: Sequence[int]) -> Iterator[OtherClock]:
        """How far each is ahead; `committed_ns`: by row, when it was written at the latest."""
        off_ns: list[list[int]] = [[] for _ in self.writers]
        seen_ns: list[list[int]] = [[] for _ in self.writers]
        for row, at_ns, writer in zip(self.row, self.at_ns, self.writer, strict=True):
            off_ns[writer].append(committed_ns[row] - at_ns)
            seen_ns[writer].append(committed_ns[row])
        for (kind, name), number in self.writers.items():
            times = off_ns[number]
            if len(times) >= TIMES_MIN and kind != STATUSES:
                cut_ns = NS_PER_S // (len(times) + 1) if kind == KUBELET else 0
                seen = seen_ns[number]
                span = JudgedNs(min(seen)), JudgedNs(max(seen))
                yield OtherClock(kind, name, *span, cut_ns - least(times), len(times))

    def of(self, kind: str) -> dict[int, int]:
        """The times of a kind, by row."""
        numbers = {number for (of, _), number in self.writers.items() if of == kind}
        return {
            row: at_ns
            for row, at_ns, writer in zip(self.row, self.at_ns, self.writer, strict=True)
            if writer in numbers
        }

    def placed(self, kind: str, shown_ns: Sequence[int]) -> dict[int, int]:
        """By row, the time in it on the clock that rows were shown by, no earlier than it was.

        Each clock of that kind is off by what the most prompt of its rows has. Of few rows none may
        have been prompt: they tell nothing. `shown_ns`: by row, when it came.
        """
        least_ns: dict[int, int] = {}
        reported = Counter(self.writer)
        numbers = {at for at, (of, _) in enumerate(self.writers) if of == kind}
        theirs = [
            (row, at_ns, writer)
            for row, at_ns, writer in zip(self.row, self.at_ns, self.writer, strict=True)
            if writer in numbers and reported[writer] >= TIMES_MIN
        ]
        for row, at_ns, writer in theirs:
            off_ns = shown_ns[row] - at_ns
            least_ns[writer] = min(least_ns.get(writer, off_ns), off_ns)
        return {row: at_ns + least_ns[writer] for row, at_ns, writer in theirs}


def least(off_ns: Sequence[int]) -> int:
    """The least of differences, but for a few that contradict all others: no clock sets these."""
    ordered = sorted(off_ns)
    trusted_ns = ordered[min(outliers(ordered), len(ordered) - 1)]
    return next(each_ns for each_ns in ordered if trusted_ns - each_ns <= NS_PER_S)


def outliers(times: Sequence[object]) -> int:
    """How many of so many times may contradict all others, and be dropped for that."""
    return max(_OUTLIERS, len(times) // _OUTLIERS_SHARE)
