"""A recorder's clock beside the one that its record is judged on: how far ahead, and when."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tracekit.check.replay.instants import JudgedNs, RecordedNs

#: What tells how far a recorder's clock is off, the best last.
BY_STEP: Final = "when it was set"
BY_SERVERS: Final = "the API server's times"
BY_DATES: Final = "the API server's times and Dates"
BY_STATUSES: Final = "the times in statuses of Jobs"
BY_LEASE: Final = "the controller manager's Lease"
BY_USER: Final = "--clock-offset"
_EVIDENCE: Final = ("", BY_STEP, BY_SERVERS, BY_DATES, BY_STATUSES, BY_LEASE, BY_USER)


class Epoch(Struct, frozen=True):
    """A part of a record in which the recorder's clock was not set."""

    from_seq: int
    from_ns: RecordedNs  # the first receive time, and the last
    until_ns: RecordedNs
    ahead_ns: int  # so far is the recorder's clock ahead of the one that is judged on
    evidence: str = ""  # what tells it

    def gone_on(self, later: Epoch) -> Epoch:
        """This one, of which later rows tell as well: by the best evidence, the least of both."""
        until_ns = RecordedNs(max(self.until_ns, later.until_ns))
        mine, other = (_EVIDENCE.index(epoch.evidence) for epoch in (self, later))
        best = later if (other, self.ahead_ns) > (mine, later.ahead_ns) else self
        return replace(self, until_ns=until_ns, ahead_ns=best.ahead_ns, evidence=best.evidence)


class RecorderClock(Struct, frozen=True):
    """The recorder's clock beside the one that a record is judged on."""

    epochs: tuple[Epoch, ...] = ()
    #: So far do the clocks of API servers differ.
    servers_apart_ns: int = 0
    #: Whether rows alone tell that it was set ahead: so it looks, too, where all streams are late.
    may_be_late: bool = False

    @property
    def is_right(self) -> bool:
        """Whether both are the same."""
        return not any(epoch.ahead_ns for epoch in self.epochs)

    def judged_ns(self, recorded_ns: RecordedNs) -> JudgedNs:
        """A time of the recorder's clock on the clock that is judged on."""
        return JudgedNs(recorded_ns - self._ahead_ns(recorded_ns, 0))

    def recorded_ns(self, judged_ns: JudgedNs) -> RecordedNs:
        """A time of the clock that is judged on as the recorder's clock showed it."""
        return RecordedNs(judged_ns + self._ahead_ns(judged_ns, 1))

    def end_ns(self, recorded_ns: RecordedNs) -> JudgedNs:
        """The end of the record, of which the latest receive time is given.

        Where the clock was set back that is not the last one.
        """
        ends = (JudgedNs(epoch.until_ns - epoch.ahead_ns) for epoch in self.epochs)
        return max((self.judged_ns(recorded_ns), *ends))

    def epoch(self, judged_ns: JudgedNs) -> Epoch | None:
        """That in which a time of the clock that is judged on lies, or lies nearest to."""
        return self._nearest(judged_ns, 1)

    def ahead_at(self, seq: int) -> int:
        """How far it was ahead when a row came."""
        ahead_ns = self.epochs[0].ahead_ns if self.epochs else 0
        for epoch in self.epochs[1:]:
            ahead_ns = epoch.ahead_ns if epoch.from_seq <= seq else ahead_ns
        return ahead_ns

    def _ahead_ns(self, at_ns: int, times: int) -> int:
        epoch = self._nearest(at_ns, times)
        return epoch.ahead_ns if epoch is not None else 0

    def _nearest(self, at_ns: int, times: int) -> Epoch | None:
        """The epoch nearest to a time, to which its offset is added so many times."""
        if len(self.epochs) == 1:
            return self.epochs[0]
        best, nearest_ns = None, 0
        for epoch in self.epochs:
            own_ns = at_ns + times * epoch.ahead_ns
            off_ns = max(epoch.from_ns - own_ns, own_ns - epoch.until_ns, 0)
            if best is None or off_ns < nearest_ns:
                best, nearest_ns = epoch, off_ns
        return best
