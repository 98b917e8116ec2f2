"""Late, and never done: told only by a certificate that the process could have served the key.

A throttled or busy controller is late with everything, so a long wait alone proves nothing. Two
things do:

- *overtaken*: the work queue and the client's token bucket are first in, first out. A key that was
  certainly ready, and another that cannot have been ready before it and was served all the same;
- *idle*: while the key was certainly ready, the controller made no call at all for so long that a
  worker must have been free and a token there.

What the record ends without is judged by the same two: `missing` if a key that was ready has seen
others served, or an idle controller; otherwise nothing is said, for it may just not have got there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from tracekit.diff.key_queue import FirstWrite, Hurried
from tracekit.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.replay.key_facts import CLOCK_SLACK_NS, INFORMER_LAG_NS
from tracekit.verdict import Judgement

#: A call that has its token shows in the record by then.
CALL_LATENCY_NS = NS_PER_S
#: A process with a ready key, a free worker and a token makes a call within this time.
IDLE_NS = 5 * NS_PER_S
#: Upstream's default --kube-api-qps. A client that makes clearly fewer calls waits for no token.
DEFAULT_QPS = 20
_RATE_NS = 3 * NS_PER_S // 2


@dataclass(frozen=True, slots=True)
class Service:
    """One sync that is explained, as the queue saw it."""

    first: FirstWrite
    served_ns: int  # receive time of its first write
    earliest_ns: int  # before that its key cannot have been ready
    certain_ns: int  # by then it was ready, for an informer that had seen all
    timed: bool  # a timer of its own made it due: no informer is asked, but two clocks are
    judged: bool  # False where the record could not see what held it up


@dataclass(frozen=True, slots=True)
class Owed:
    """Something still to be done: missing, if the process could have done it by the end."""

    certain_ns: int  # by then its key was ready, for an informer that had seen all
    judgement: Judgement
    timed: bool = False
    until_ns: int | None = None  # when it was no longer to be done; None: the end of the record


class Seen(NamedTuple):
    """How far an informer had got, as a sync that is explained shows it."""

    at_ns: int  # by then
    stream: str
    rv: int


class Behind(NamedTuple):
    """A sync that only caches without `lacking_rv` explain, which was old when it wrote."""

    first: FirstWrite
    began_ns: int  # not before
    at_ns: int  # receive time of its first write
    stream: str
    lacking_rv: int


@dataclass(frozen=True, slots=True)
class KeyTiming:
    """What one key tells of the process, and what only the process can tell of it."""

    services: tuple[Service, ...]
    calls_ns: tuple[int, ...]  # of every write and Event
    hurried: tuple[Hurried, ...]
    owed: tuple[Owed, ...]
    seen: tuple[Seen, ...]
    behind: tuple[Behind, ...]


@dataclass(slots=True)
class Process:
    """What the controller's process was seen to do, over all keys of one work queue."""

    services: Sequence[Service]
    calls_ns: Sequence[int]  # receive times of its writes and Events, sorted
    #: Times in which the recorder could not see: nothing follows from silence in them.
    blind: Sequence[tuple[int, int]] = ()
    #: Whether the record holds all keys of the process; else silence proves nothing.
    whole: bool = True
    _served_ns: list[int] = field(default_factory=list)
    _latest: list[Service] = field(default_factory=list)

    def __post_init__(self) -> None:
        ordered = sorted(self.services, key=lambda s: (s.served_ns, s.first))
        self._served_ns = [service.served_ns for service in ordered]
        for service in ordered:
            latest = self._latest[-1] if self._latest else service
            self._latest.append(service if service.earliest_ns > latest.earliest_ns else latest)

    def proof(self, certain_ns: int, until_ns: int, *, timed: bool) -> str | None:
        """Why a key that was ready at `certain_ns` must have been served before `until_ns`."""
        ready_ns = certain_ns + (CLOCK_SLACK_NS if timed else INFORMER_LAG_NS)
        if until_ns - ready_ns <= CALL_LATENCY_NS:
            return None
        return self._overtaken(ready_ns, until_ns) or self._idle(ready_ns, until_ns)

    def began_ns(self, at_ns: int) -> int:
        """When a sync whose first call is at `at_ns` began at the earliest, for want of tokens."""
        since_ns = at_ns - _RATE_NS
        calls = bisect_right(self.calls_ns, at_ns) - bisect_left(self.calls_ns, since_ns)
        return at_ns - CALL_LATENCY_NS if calls <= DEFAULT_QPS else 0

    def _overtaken(self, ready_ns: int, until_ns: int) -> str | None:
        position = bisect_right(self._served_ns, until_ns - CALL_LATENCY_NS)
        if not position:
            return None
        other = self._latest[position - 1]
        if other.earliest_ns <= ready_ns:
            return None
        return (
            f"{other.first.key}, which cannot have been ready before "
            f"{format_rfc3339(other.earliest_ns)}, was served at {format_rfc3339(other.served_ns)}"
        )

    def _idle(self, ready_ns: int, until_ns: int) -> str | None:
        if not self.whole:
            return None
        first = bisect_left(self.calls_ns, ready_ns)
        last = bisect_right(self.calls_ns, until_ns)
        marks = [ready_ns, *self.calls_ns[first:last], until_ns]
        for since_ns, next_ns in pairwise(marks):
            if next_ns - since_ns < IDLE_NS:
                continue
            if any(a < next_ns and b > since_ns for a, b in self.blind):
                continue
            return (
                f"the controller made no call from {format_rfc3339(since_ns)} to "
                f"{format_rfc3339(next_ns)}"
            )
        return None


def late(process: Process) -> Iterable[tuple[Service, str]]:
    """The syncs that came later than they must have, each with its certificate."""
    for service in process.services:
        if not service.judged:
            continue
        proof = process.proof(service.certain_ns, service.served_ns, timed=service.timed)
        if proof is not None:
            waited_s = (service.served_ns - service.certain_ns) / NS_PER_S
            yield service, f"{waited_s:.1f} s after it was due, and {proof}"


def early(process: Process, hurried: Hurried) -> str | None:
    """Why a sync came before anything can have made its key ready; None where something may have.

    What was ready long before has been used up by a sync without a write, if the process must have
    served the key in the meantime.
    """
    at_ns = hurried.at_ns
    if any(process.proof(w.certain_ns, at_ns, timed=w.timed) is None for w in hurried.wakes):
        return None
    return (
        "nothing can have made the Job ready for a sync by then: changes wait for the batch period "
        "and failures for their back-off, and what had come before was served before"
    )


def contradicted(process: Process, timings: Sequence[KeyTiming]) -> Iterable[tuple[Behind, str]]:
    """Syncs that need caches older than those that an earlier sync of another key has shown.

    A process has one informer for each kind, and its position never goes back.
    """
    seen = sorted(seen for timing in timings for seen in timing.seen)
    for timing in timings:
        for behind in timing.behind:
            began_ns = max(behind.began_ns, process.began_ns(behind.at_ns))
            for shown in seen:
                if shown.at_ns > began_ns:
                    break
                if shown.stream == behind.stream and shown.rv >= behind.lacking_rv:
                    why = (
                        f"only caches without resourceVersion {behind.lacking_rv} explain it, and "
                        f"the controller had seen {shown.rv} of the {behind.stream} by "
                        f"{format_rfc3339(shown.at_ns)}"
                    )
                    yield behind, why
                    break
