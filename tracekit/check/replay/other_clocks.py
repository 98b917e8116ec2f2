"""How far clocks of kubelets and of managers are off, beside the one that a record is judged on.

Who writes an object puts times of its own clock into it: a kubelet when a container began and
ended, and when it renewed the Lease of its node; a controller manager when it renewed its own.
None of these is written before it is reached, so that each clock is ahead by at least the most that
a time is later than its commit. The other side is an assumption: that one of many came at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from tracekit.base.kube.timestamps import NS_PER_S

#: So many times tell how far a clock is off: of fewer, none may have been written at once.
TIMES_MIN: Final = 8
#: Less cannot be told from how long a kubelet takes: it looks at its containers once a second
#: (pkg/kubelet/kubelet.go: genericPlegRelistPeriod), and writes whole seconds.
TELLING_NS: Final = NS_PER_S


class OtherClock(Struct, frozen=True):
    """The clock of a kubelet or of a controller manager."""

    kind: str  # kubelet, or controller manager
    name: str  # of its node; its identity as the holder of a Lease
    from_ns: int  # when the first and the last of its times came, on the clock that is judged on
    until_ns: int
    ahead_ns: int  # of the clock that is judged on; below 0: behind
    times: int  # that tell it


KUBELET: Final = "kubelet"
MANAGER: Final = "controller manager"


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
            if len(times) >= TIMES_MIN:
                cut_ns = NS_PER_S // (len(times) + 1) if kind == KUBELET else 0
                yield OtherClock(
                    kind, name, min(seen_ns[number]), max(seen_ns[number]),
                    cut_ns - min(times), len(times),
                )  # fmt: skip
