"""What a controller can have read from its clock, as closely as the times of a record are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import Final

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.check.replay.commit_times import HANDLING_NS
from tracekit.check.replay.history import Write, WriteKind
from tracekit.check.replay.run_context import RunContext
from tracekit.ports.job.context import SyncClock

#: Clocks of the recorder and of the controller may differ by so much.
CLOCK_SLACK_NS: Final = NS_PER_S


def sync_clock(now_ns: int) -> SyncClock:
    """The clock of a sync at that time, or a nanosecond later.

    A time that no API object can hold marks what the controller took from its clock.
    """
    return SyncClock(now_ns if now_ns % NS_PER_S else now_ns + 1)


def slack_ns(context: RunContext, at_ns: int) -> int:
    """So far may a time of the record be from the controller's clock, then."""
    return CLOCK_SLACK_NS + context.width_ns(at_ns)


def not_before_ns(context: RunContext, at_ns: int) -> int:
    """The earliest reading of the controller's clock that the record may have as this time."""
    return at_ns - slack_ns(context, at_ns)


def latest_readings(
    context: RunContext, job: JobView, writes: Sequence[Write], first: int
) -> Iterator[int]:
    """The latest that a sync on this Job, whose first write is given, can have read from its clock.

    That, and then what its status shows itself, if that is later by no more than a request takes:
    the clock that is judged on is known by how promptly the quickest renewal of a Lease came, which
    took some time, too.
    """
    wrote_ns = writes[first].recv_ns
    read_ns = read_by_ns(context, job, wrote_ns)
    yield read_ns
    until_ns = wrote_ns + HANDLING_NS
    soon = takewhile(lambda write: write.recv_ns <= until_ns, islice(writes, first, None))
    status = next((write for write in soon if write.kind is WriteKind.STATUS_UPDATE), None)
    if status is not None and status.job is not None:
        shown_ns = _shown_ns(status.job.view)
        if read_ns < shown_ns <= until_ns:
            yield shown_ns


def read_by_ns(context: RunContext, job: JobView, wrote_ns: int) -> int:
    """The latest that a sync on this Job can have read from its clock before it wrote.

    No clock is behind what it has shown. The times in the status that the sync had seen are the
    controller's own, while when it wrote is known only as closely as its clock is. A time that is
    farther ahead is none of this clock: anybody can write a status.
    """
    shown_ns = _shown_ns(job)
    if wrote_ns < shown_ns <= wrote_ns + slack_ns(context, wrote_ns):
        return shown_ns
    return wrote_ns


def _shown_ns(job: JobView) -> int:
    """The latest time of the controller's clock that a status shows; 0: none."""
    of_conditions = (condition.last_transition_ns or 0 for condition in job.status.conditions)
    return max((job.status.start_ns or 0, *of_conditions))
