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

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from itertools import accumulate, pairwise
from typing import NamedTuple

from msgspec import Struct

from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.base.spans import Spans
from tracekit.check.diff.key_queue import EarlyCandidate, FirstWrite
from tracekit.check.diff.two_clocks import Hanging, TwoClocks
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS
from tracekit.check.replay.history import WriteKind
from tracekit.check.replay.run_context import INFORMER_LAG_NS, RunContext
from tracekit.check.verdict import Judgement
from tracekit.versions.throttle import DEFAULT_THROTTLE, Throttle

#: A call that has its token shows in the record by then; with a slow client what a sync asked
#: before, and leaves no trace, waits for as many tokens as come to the default's in that time.
CALL_LATENCY_NS = NS_PER_S
_LATENCY_TOKENS = DEFAULT_THROTTLE.tokens(CALL_LATENCY_NS)
#: A process with a ready key, a free worker and a token makes a call within this time. A choice,
#: above what the busiest control planes of the lab took: what it hides stands in docs/replay.md.
IDLE_NS = 5 * NS_PER_S
#: A client that makes clearly fewer calls than its tokens allow in this time waits for none.
_RATE_NS = 3 * NS_PER_S // 2
_RATE_TOKENS = DEFAULT_THROTTLE.tokens(_RATE_NS)
#: A revision that lies behind every other.
_AFTER_ALL = 1 << 62


class Service(Struct, frozen=True):
    """One sync that is explained, as the queue saw it."""

    first: FirstWrite
    served_ns: int  # when its first write was asked for, as far as is known
    earliest_ns: int  # before that its key cannot have been ready
    certain_ns: int  # by then it was ready, for an informer that had seen all
    timed: bool  # a timer of its own made it due: no informer is asked, but two clocks are
    judged: bool  # False where the record could not see what held it up
    idle: int = 0  # calls of its sync before that, each with a token, that changed nothing


class PendingAction(Struct, frozen=True):
    """Something still to be done: missing, if the process could have done it by the end."""

    certain_ns: int  # by then its key was ready, for an informer that had seen all
    judgement: Judgement
    timed: bool = False
    until_ns: int | None = None  # when it was no longer to be done; None: the end of the record
    rest: bool = False  # of a sync that is explained as one that the end of the record cut off
    serial: bool = (
        False  # it waits in a queue of its own, for one worker that makes one call a time
    )
    back: int = 0  # of a process after which so many others lived, and left it undone as well
    idle: int = 0  # calls that its sync makes before, and that change nothing
    clocks: TwoClocks | None = None  # by which it was due, where they differ


class Seen(Struct, frozen=True):
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
    #: When what it lacks came, if that alone refutes it: no informer is taken to be so far behind.
    lacking_ns: int | None = None
    idle: int = 0  # calls that it had made by then, and that changed nothing


class Pace(NamedTuple):
    """How a controller comes to its keys: by a queue, or by passes over all of them."""

    rest_ns: int = 0  # so long it may make no call that shows although a key is ready
    pass_ns: int = 0  # so long before a call that shows its pass may have begun
    between_ns: int = 0  # from the end of a pass to the beginning of the next, at least
    passes: bool = False


#: A controller that a work queue wakes.
QUEUED = Pace()


class KeyTiming(Struct, frozen=True):
    """What one key tells of the process, and what only the process can tell of it."""

    services: tuple[Service, ...]
    calls_ns: tuple[int, ...]  # of every write and Event
    early_candidates: tuple[EarlyCandidate, ...]
    pending: tuple[PendingAction, ...]
    seen: tuple[Seen, ...]
    behind: tuple[Behind, ...]
    serial_ns: tuple[int, ...] = ()  # of the calls of the worker that makes one at a time
    hanging: tuple[Hanging, ...] = ()


class ServicesSummary(Struct, frozen=True):
    """`Services` as they are sent: numbers of 8 bytes, of 1 in `action`, `timed` and `judged`."""

    keys: list[str]
    actions: list[str]
    key: bytes  # positions in `keys`
    action: bytes  # positions in `actions`
    rv: bytes
    served_ns: bytes
    earliest_ns: bytes
    certain_ns: bytes
    idle: bytes
    timed: bytes
    judged: bytes


class Services:
    """The syncs of many keys, some fifty bytes each: all of them are needed at once."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._actions: dict[str, int] = {}
        self._key = array("l")  # of a service: the position of its key
        self._action = array("b")
        self._rv = array("q")
        self.served_ns = array("q")
        self.earliest_ns = array("q")
        self.certain_ns = array("q")
        self._idle = array("q")
        self._timed = bytearray()
        self._judged = bytearray()

    def add(self, services: Sequence[Service]) -> None:
        """Take in the services of one key."""
        for service in services:
            first = service.first
            if not self._keys or self._keys[-1] != first.key:
                self._keys.append(first.key)
            self._key.append(len(self._keys) - 1)
            self._action.append(self._actions.setdefault(first.action, len(self._actions)))
            self._rv.append(int(first.resource_version))
            self.served_ns.append(service.served_ns)
            self.earliest_ns.append(service.earliest_ns)
            self.certain_ns.append(service.certain_ns)
            self._idle.append(service.idle)
            self._timed.append(service.timed)
            self._judged.append(service.judged)

    def summary(self) -> ServicesSummary:
        """All of them, to be sent."""
        return ServicesSummary(
            self._keys,
            list(self._actions),
            array("q", self._key).tobytes(),
            self._action.tobytes(),
            self._rv.tobytes(),
            self.served_ns.tobytes(),
            self.earliest_ns.tobytes(),
            self.certain_ns.tobytes(),
            self._idle.tobytes(),
            bytes(self._timed),
            bytes(self._judged),
        )

    def merge(self, summary: ServicesSummary) -> None:
        """Take in the services that another process has told of its keys."""
        first = len(self._keys)
        self._keys += summary.keys
        self._key.extend(first + number for number in array("q", summary.key))
        actions = [self._actions.setdefault(name, len(self._actions)) for name in summary.actions]
        self._action.extend(actions[number] for number in array("b", summary.action))
        for mine, theirs in (
            (self._rv, summary.rv),
            (self.served_ns, summary.served_ns),
            (self.earliest_ns, summary.earliest_ns),
            (self.certain_ns, summary.certain_ns),
            (self._idle, summary.idle),
        ):
            mine.frombytes(theirs)
        self._timed += summary.timed
        self._judged += summary.judged

    def __len__(self) -> int:
        return len(self.served_ns)

    def __getitem__(self, number: int) -> Service:
        return Service(
            self.first(number),
            self.served_ns[number],
            self.earliest_ns[number],
            self.certain_ns[number],
            self.timed(number),
            bool(self._judged[number]),
            self._idle[number],
        )

    def first(self, number: int) -> FirstWrite:
        """By what the judgement of its first write is found."""
        action = list(self._actions)[self._action[number]]
        return FirstWrite(self._keys[self._key[number]], action, str(self._rv[number]))

    def timed(self, number: int) -> bool:
        """Whether a timer of its own made it due."""
        return bool(self._timed[number])

    def idle(self, number: int) -> int:
        """How many calls of its sync came before, and left no trace."""
        return self._idle[number]

    def judged(self) -> Iterator[int]:
        """The services of which the record can tell whether they were late."""
        return (number for number, judged in enumerate(self._judged) if judged)

    def since(self, from_ns: int) -> Services:
        """Those that were served from then on, and of the others the one that was ready last."""
        before = [n for n, served_ns in enumerate(self.served_ns) if served_ns < from_ns]
        latest = max(before, key=self.earliest_ns.__getitem__, default=None)
        kept = Services()
        for number in range(len(self)):
            if number == latest or self.served_ns[number] >= from_ns:
                kept.add([self[number]])
        return kept

    def without(self, keys: Collection[str]) -> Services:
        """The same, of which the syncs of these keys prove nothing: they were explained wrongly."""
        kept = copy(self)
        numbers = {number for number, key in enumerate(self._keys) if key in keys}
        pairs = zip(self._key, self.earliest_ns, strict=True)
        kept.earliest_ns = array("q", (0 if key in numbers else at_ns for key, at_ns in pairs))
        return kept

    def as_served(self) -> list[int]:
        """The services by the time at which they were served, then by key, action, revision."""
        served_ns = self.served_ns
        order = sorted(range(len(self)), key=served_ns.__getitem__)
        start = 0
        for end in range(1, len(order) + 1):
            if end == len(order) or served_ns[order[end]] != served_ns[order[start]]:
                if end - start > 1:
                    order[start:end] = sorted(order[start:end], key=self.first)
                start = end
        return order


class Process:
    """What the controller's process was seen to do, over all keys of one work queue."""

    def __init__(
        self,
        services: Services,
        calls_ns: Sequence[int],
        blind: Sequence[tuple[int, int]] = (),
        *,
        serial_ns: Sequence[int] = (),
        whole: bool = True,
        quiet: Sequence[tuple[int, int]] = (),
        pace: Pace = QUEUED,
        throttle: Throttle = DEFAULT_THROTTLE,
    ) -> None:
        """`calls_ns`: receive times of its writes and Events, sorted.

        `serial_ns`: of those of the worker that makes one at a time, sorted.
        `blind`: times in which the recorder could not see: nothing follows from silence in them.
        `whole`: whether the record holds all keys of the process; else silence proves nothing but
        in the times that are `quiet`, in order, as a whole record had told.
        """
        self.services = services
        self._calls_ns = calls_ns
        self._serial_ns = serial_ns
        self._blind, self._blind_spans = blind, Spans(blind)
        self._whole = whole
        self._quiet = quiet
        self._pace = pace
        self._throttle = throttle
        self._latency_ns = throttle.wait_ns(_LATENCY_TOKENS, CALL_LATENCY_NS)
        self._idle_ns = throttle.wait_ns(_LATENCY_TOKENS, IDLE_NS) + pace.rest_ns
        self._served_ns = array("q")
        self._latest = array("l")  # of those served by then the one that became ready last
        latest = -1
        for number in services.as_served():
            if latest < 0 or services.earliest_ns[number] > services.earliest_ns[latest]:
                latest = number
            self._served_ns.append(services.served_ns[number])
            self._latest.append(latest)
        #: The times between two calls in which a free worker would have made one.
        self._silences = [
            (since_ns, next_ns)
            for since_ns, next_ns in pairwise(calls_ns)
            if self._is_idle(since_ns, next_ns)
        ]
        #: Those longer than a pass is silent in its midst: one ended before and the next began.
        midst_ns = throttle.wait_ns(_LATENCY_TOKENS, IDLE_NS) + pace.pass_ns
        self._rests = [
            (since_ns, next_ns)
            for since_ns, next_ns in (pairwise(calls_ns) if pace.passes and whole else ())
            if next_ns - since_ns >= max(midst_ns, pace.between_ns)
        ]

    def proof(
        self, certain_ns: int, until_ns: int, *, timed: bool, serial: bool = False, idle: int = 0
    ) -> str | None:
        """Why a key that was ready at `certain_ns` must have been served before `until_ns`.

        `idle`: calls that its sync makes before the one that shows, each of which gets in line.
        Of what waits `serial` another key tells only where the client had tokens as it was served:
        each call of that worker queues for one anew; and only if that worker's last call was over
        before the other key was ready, since until then others may have been ahead.
        """
        ready_ns = certain_ns + (CLOCK_SLACK_NS if timed else INFORMER_LAG_NS)
        if until_ns - ready_ns <= self._latency_ns:
            return None
        lined_up_ns = self._lined_up_ns(ready_ns, idle)
        overtaken = self._overtaken(lined_up_ns, until_ns, with_tokens=serial)
        return overtaken or self._silent(ready_ns, until_ns) or self._passed(ready_ns, until_ns)

    def began_ns(self, at_ns: int, idle: int = 0) -> int:
        """When a sync whose first call is at `at_ns` began at the earliest, for want of tokens.

        Each of its `idle` calls before that asked for one, as did the Event that tells of it.
        """
        qps = self._throttle.qps
        since_ns = at_ns - self._throttle.wait_ns(_RATE_TOKENS, _RATE_NS)
        calls = bisect_right(self._calls_ns, at_ns) - bisect_left(self._calls_ns, since_ns)
        if qps > 0 and calls > max(_LATENCY_TOKENS, qps):
            return 0
        idle_ns = self._throttle.wait_ns(2 * idle, 0)
        return at_ns - idle_ns - self._latency_ns - self._pace.pass_ns

    def _latest_by(self, at_ns: int) -> int | None:
        """Of the syncs until then, the one whose key was ready last."""
        position = bisect_right(self._served_ns, at_ns - self._latency_ns)
        return self._latest[position - 1] if position else None

    def _lined_up_ns(self, ready_ns: int, idle: int) -> int:
        """By when the call that shows had asked for its token, after some that do not.

        Each got one before the first call of a sync whose key was ready only after it had asked.
        """
        for _ in range(idle):
            position = bisect_right(
                self._latest, ready_ns, key=self.services.earliest_ns.__getitem__
            )
            if position == len(self._latest):
                return _AFTER_ALL
            ready_ns = self._served_ns[position] + CALL_LATENCY_NS
        return ready_ns

    def _overtaken(self, ready_ns: int, until_ns: int, *, with_tokens: bool) -> str | None:
        number = self._latest_by(until_ns)
        if number is not None and self._pace.passes:
            # A pass comes to every key. One that a key was not ready for before another sync was
            # served is a later pass than that sync's, which was over by then.
            number = self._latest_by(self.services.earliest_ns[number])
        if number is None or self.services.earliest_ns[number] <= ready_ns:
            return None
        other = self.services[number]
        if with_tokens:
            last = bisect_right(self._serial_ns, other.served_ns)
            if last:
                ready_ns = max(ready_ns, self._serial_ns[last - 1] + CALL_LATENCY_NS)
            if min(other.earliest_ns, self.began_ns(other.served_ns)) <= ready_ns:
                return None
        return (
            f"{other.first.key}, which cannot have been ready before "
            f"{format_rfc3339(other.earliest_ns)}, was served at {format_rfc3339(other.served_ns)}"
        )

    def _silent(self, ready_ns: int, until_ns: int) -> str | None:
        calls_ns = self._calls_ns
        first, end = bisect_left(calls_ns, ready_ns), bisect_right(calls_ns, until_ns)
        if not self._whole:
            silences = [(max(a, ready_ns), min(b, until_ns)) for a, b in self._quiet]
        elif first == end:
            silences = [(ready_ns, until_ns)]
        else:
            silences = [(ready_ns, calls_ns[first]), (calls_ns[end - 1], until_ns)]
            position = bisect_left(self._silences, (calls_ns[first], 0))
            silences[1:1] = self._silences[position : position + 1]
            silences = [
                (since_ns, next_ns) for since_ns, next_ns in silences if next_ns <= until_ns
            ]
        for since_ns, next_ns in silences:
            if self._is_idle(since_ns, next_ns):
                return (
                    f"the controller made no call from {format_rfc3339(since_ns)} to "
                    f"{format_rfc3339(next_ns)}"
                )
        return None

    def _passed(self, ready_ns: int, until_ns: int) -> str | None:
        """A pass that began and ended meanwhile, between two rests."""
        position = bisect_left(self._rests, (ready_ns, 0))
        around = self._rests[position : position + 2]
        over = len(around) > 1 and around[-1][1] <= until_ns
        if not over or not self._seen(ready_ns, around[-1][1]):
            return None
        ends = " and ".join(
            f"from {format_rfc3339(since_ns)} to {format_rfc3339(next_ns)}"
            for since_ns, next_ns in around
        )
        return f"the controller rested between its passes {ends}"

    def _is_idle(self, since_ns: int, next_ns: int) -> bool:
        """Whether a free worker would have made a call, and the recorder could have seen it."""
        return next_ns - since_ns >= self._idle_ns and self._seen(since_ns, next_ns)

    def _seen(self, since_ns: int, next_ns: int) -> bool:
        """Whether the recorder could see all that was done then."""
        return not any(
            self._blind[place][0] < next_ns and self._blind[place][1] > since_ns
            for place in self._blind_spans.near(since_ns, next_ns)
        )


class Positions:
    """How far the informer of one stream was seen to have got, and when; sixteen bytes a time."""

    def __init__(self) -> None:
        self.at_ns = array("q")
        self.rv = array("q")

    def since(self, from_ns: int) -> Positions:
        """Those from then on, and the farthest before."""
        kept = Positions()
        pairs = list(zip(self.at_ns, self.rv, strict=True))
        before = [pair for pair in pairs if pair[0] < from_ns]
        for at_ns, rv in (
            *([max(before, key=lambda pair: pair[1])] if before else ()),
            *(pair for pair in pairs if pair[0] >= from_ns),
        ):
            kept.at_ns.append(at_ns)
            kept.rv.append(rv)
        return kept

    def sorted(self) -> list[tuple[int, int]]:
        """By time, only those that had got further than all before."""
        farthest = -1
        found: list[tuple[int, int]] = []
        for number in sorted(range(len(self.rv)), key=self.at_ns.__getitem__):
            at_ns, rv = self.at_ns[number], self.rv[number]
            if (found and found[-1][0] == at_ns) or rv > farthest:
                found.append((at_ns, rv))
            farthest = max(farthest, rv)
        return sorted(found)


def late(
    process: Process, clocks: Mapping[FirstWrite, TwoClocks]
) -> Iterator[tuple[FirstWrite, str, str | None]]:
    """The first writes of the syncs that came later than they must have, with the certificate.

    And why it may be none, where a sync was due by a clock that is behind the manager's.
    """
    services = process.services
    for number in services.judged():
        certain_ns, served_ns = services.certain_ns[number], services.served_ns[number]
        timed, idle = services.timed(number), services.idle(number)
        proof = process.proof(certain_ns, served_ns, timed=timed, idle=idle)
        if proof is not None:
            waited_s = (served_ns - certain_ns) / NS_PER_S
            first, lacks = services.first(number), None
            other = clocks.get(first)
            if other is not None and other.ahead_ns < 0:
                by_ns = certain_ns - other.ahead_ns
                if process.proof(by_ns, served_ns, timed=timed, idle=idle) is None:
                    lacks = other.why
            yield first, f"{waited_s:.1f} s after it was due, and {proof}", lacks


def early(process: Process, candidate: EarlyCandidate) -> str | None:
    """Why a sync came before anything can have made its key ready; None where something may have.

    What was ready long before has been used up by a sync without a write, if the process must have
    served the key in the meantime.
    """
    at_ns = candidate.at_ns
    if any(process.proof(w.certain_ns, at_ns, timed=w.timed) is None for w in candidate.wakes):
        return None
    return (
        "nothing can have made the Job ready for a sync by then: changes wait for the batch period "
        "and failures for their back-off, and what had come before was served before"
    )


def left_open(context: RunContext, wrote_ns: int, stream: str, what: str) -> str:
    """That a sync had not gone on when the record ended, longer than a call takes; else empty.

    So long only a busy process takes. Whether it had the time for it, all keys together tell.
    """
    waited_ns = context.seen_until_ns(stream) - wrote_ns
    if waited_ns <= CLOCK_SLACK_NS + context.throttle.wait_ns(_LATENCY_TOKENS, CALL_LATENCY_NS):
        return ""
    return (
        f"{waited_ns / NS_PER_S:.1f} s after it the record ends without {what}: "
        "a busy process, or it was left out"
    )


def shown_in(controller: str, action: str) -> str:
    """The stream that shows a write."""
    of_status = action == WriteKind.STATUS_UPDATE.value
    if controller == "job":
        return "jobs" if of_status else "pods"
    return "cronjobs" if of_status else "jobs"


class WatermarkIndex:
    """How far the informers of a process had got by when, as all its syncs together show.

    A process has one informer for each kind, which its controllers share, and its position never
    goes back.
    """

    def __init__(self, process: Process, seen: Mapping[str, Positions]) -> None:
        self._process = process
        self._seen = seen
        self._shown: dict[str, tuple[list[tuple[int, int]], list[int]]] = {}

    def rv(self, stream: str, at_ns: int, began_ns: int = 0) -> int:
        """The revision that a sync had seen at least whose first call is at `at_ns`.

        `began_ns`: it had not begun before, as what it saw itself shows.
        """
        known, farthest = self._of(stream)
        since_ns = max(began_ns, self._process.began_ns(at_ns))
        position = bisect_right(known, (since_ns, _AFTER_ALL))
        return farthest[position - 1] if position else 0

    def contradicts(self, behind: Behind) -> str | None:
        """Why the caches that a sync needs are older than those that an earlier one has shown."""
        known, farthest = self._of(behind.stream)
        position = bisect_left(farthest, behind.lacking_rv)
        began_ns = max(behind.began_ns, self._process.began_ns(behind.at_ns, behind.idle))
        lacking = f"only caches without resourceVersion {behind.lacking_rv} explain it, "
        if behind.lacking_ns is not None and behind.lacking_ns + INFORMER_LAG_NS < began_ns:
            return f"{lacking}which had come at {format_rfc3339(behind.lacking_ns)}"
        if position < len(known) and known[position][0] <= began_ns:
            at_ns, rv = known[position]
            seen_at = f"{rv} of the {behind.stream} by {format_rfc3339(at_ns)}"
            return f"{lacking}and the controller had seen {seen_at}"
        return None

    def _of(self, stream: str) -> tuple[list[tuple[int, int]], list[int]]:
        """What is known, by time, and the farthest revision by each of these times."""
        found = self._shown.get(stream)
        if found is None:
            known = self._seen[stream].sorted() if stream in self._seen else []
            found = self._shown[stream] = known, list(accumulate((rv for _, rv in known), max))
        return found
