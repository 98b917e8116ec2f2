"""What a recorder noted of its own clock: when it was set, and the Dates of answers.

A step against the monotonic clock is a fact, whatever the rows show. A Date bounds an offset from
both sides: the server read its clock after the request was sent and before its answer had come.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.replay.instants import RecordedNs, ServerNs

#: A Date is a whole second.
_UNIT_NS: Final = NS_PER_S


class ClockNote(NamedTuple):
    """One note of a recorder."""

    seq: int
    recv_ns: RecordedNs
    sent_ns: RecordedNs = RecordedNs(0)  # of an answer: when its request was sent
    date_ns: ServerNs = ServerNs(0)  # what it has for its Date
    before_ns: RecordedNs = RecordedNs(0)  # of a step: when the clocks were last read before it
    step_ns: int = 0  # how far the clock was set ahead; below 0: back


class Dated(Struct, frozen=True):
    """How far the recorder's clock was ahead of the API server's, by the Dates of answers."""

    least_ns: int
    most_ns: int
    answers: int

    def after(self, step_ns: int) -> Dated:
        """The same once the clock was set ahead by so much."""
        return Dated(self.least_ns + step_ns, self.most_ns + step_ns, self.answers)

    def both(self, other: Dated | None) -> Dated:
        """What both say; this one alone where they contradict each other."""
        if other is None:
            return self
        least_ns = max(self.least_ns, other.least_ns)
        most_ns = min(self.most_ns, other.most_ns)
        if least_ns > most_ns:
            return self
        return Dated(least_ns, most_ns, self.answers + other.answers)

    def nearest(self, ahead_ns: int | None) -> int:
        """The offset within these bounds that is nearest to another; to None: their middle."""
        if ahead_ns is None:
            return (self.least_ns + self.most_ns) // 2
        return min(max(ahead_ns, self.least_ns), self.most_ns)


def dated(notes: Sequence[ClockNote], from_seq: int, until_seq: int) -> Dated | None:
    """What the answers between two rows tell; None where there are none, or they contradict."""
    answers = [note for note in notes if note.date_ns and from_seq <= note.seq < until_seq]
    if not answers:
        return None
    most_ns = min(note.recv_ns - note.date_ns for note in answers)
    least_ns = max(note.sent_ns - note.date_ns - _UNIT_NS for note in answers)
    return Dated(least_ns, most_ns, len(answers)) if least_ns <= most_ns else None


def steps(
    seqs: Sequence[int], recv_ns: Sequence[int], notes: Sequence[ClockNote]
) -> dict[int, list[ClockNote]]:
    """By the position of the first row after it, each step of the clock; several, if none between.

    A step is noted a moment after it; some rows may have come meanwhile.
    """
    found: dict[int, list[ClockNote]] = {}
    for note in notes:
        if not note.step_ns:
            continue
        first = bisect_left(seqs, note.seq)
        while first and _came_after(recv_ns[first - 1], note):
            first -= 1
        if first < len(seqs):
            found.setdefault(first, []).append(note)
    return found


def linked(answers: Sequence[Dated | None], steps_ns: Sequence[int | None]) -> list[Dated | None]:
    """What the answers of each part say of all parts, where the steps between these were noted.

    `steps_ns`: of each part but the first, how far the clock was set ahead when it began; None:
    nobody noted it.
    """
    began = (None, *steps_ns)[: len(answers)]
    forward: list[Dated | None] = []
    for own, step_ns in zip(answers, began, strict=True):
        before = forward[-1] if forward and step_ns is not None else None
        shifted = before.after(step_ns or 0) if before is not None else None
        forward.append(shifted if own is None else own.both(shifted))
    found: list[Dated | None] = []
    back_ns: int | None = None
    for own, step_ns in zip(reversed(forward), reversed(began), strict=True):
        later = found[-1] if found and back_ns is not None else None
        shifted = later.after(-(back_ns or 0)) if later is not None else None
        found.append(shifted if own is None else _narrowed(own, shifted))
        back_ns = step_ns
    return found[::-1]


def _narrowed(own: Dated, other: Dated | None) -> Dated:
    """Within the other's bounds, which stand on the same answers and on later ones."""
    both = own.both(other)
    if other is None or both is own:  # nothing is known, or they contradict each other
        return own
    return Dated(both.least_ns, both.most_ns, other.answers)


def _came_after(recv_ns: int, note: ClockNote) -> bool:
    """Whether a row came between a step and its note, by the clock that had been set."""
    passed_ns = note.recv_ns - note.step_ns - note.before_ns
    is_near = 0 <= note.recv_ns - recv_ns <= passed_ns
    return is_near and note.recv_ns - recv_ns < abs(recv_ns - note.before_ns)
