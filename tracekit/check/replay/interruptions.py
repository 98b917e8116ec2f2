"""What may have ended a sync, and which writes came after it: restarts and gaps. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.replay.history import Write
from tracekit.check.replay.run_context import INFORMER_LAG_NS, Outage, RunContext
from tracekit.check.verdict import Assumption

#: A lease is renewed every few seconds: the controller may have died so long before its last sign.
CUT_OFF_NS = 10 * NS_PER_S
_until = attrgetter("until_ns")


def cut_off(context: RunContext, at_ns: int) -> Assumption | None:
    """What may have ended a sync right after a write at `at_ns`, the record's own end apart."""
    for outage in context.interruptions_near(at_ns, at_ns + CUT_OFF_NS):
        if outage.from_ns - CUT_OFF_NS <= at_ns <= outage.until_ns:
            return Assumption("cut-off", outage.from_ns, outage.until_ns, outage.why)
    return None


def record_ends(context: RunContext, at_ns: int) -> Assumption:
    """That the record may have ended within a sync that wrote at `at_ns`."""
    return Assumption("cut-off", at_ns, context.end_ns, "the record ends")


def follows(write: Write, outage: Outage) -> bool:
    """Whether a write came after an interruption.

    The stream of the leases may be before or behind the others: near a restart revisions tell.
    """
    apart_ns = write.recv_ns - outage.until_ns
    if outage.until_rv and abs(apart_ns) <= INFORMER_LAG_NS:
        return write.rv > outage.until_rv
    return apart_ns >= 0


def restarts_before(context: RunContext, write: Write) -> tuple[int, int]:
    """How many restarts a write came after, and when the last of them ended (0: none did)."""
    restarts = context.restarts_by_end
    first = bisect_left(restarts, write.recv_ns - INFORMER_LAG_NS, key=_until)
    near = restarts_near(context, write.recv_ns, write.recv_ns)
    passed = [r.until_ns for r in near if follows(write, r)]
    before_ns = restarts[first - 1].until_ns if first else 0
    return first + len(passed), max([before_ns, *passed])


def restarts_near(context: RunContext, from_ns: int, until_ns: int) -> Sequence[Outage]:
    """Those that ended in a time, or so near it that revisions tell the order."""
    restarts = context.restarts_by_end
    first = bisect_left(restarts, from_ns - INFORMER_LAG_NS, key=_until)
    return restarts[first : bisect_right(restarts, until_ns + INFORMER_LAG_NS, key=_until)]
