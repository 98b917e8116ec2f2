"""How fast the record's API server and informers were, as its explained syncs tell.

A run of the model draws delays; drawn from anything but the record they would make races that the
record's cluster did not have, and hide those that it had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.sim.clock import VirtualClock
from tracekit.check.replay.search_state import Explanation
from tracekit.model.simulate.draws import Timing
from tracekit.ports.workqueue.rate_limiters import BucketRateLimiter

_NS_PER_MS: Final = 1_000_000
#: Two writes of a sync that are further apart waited for something else than the API server.
_LONGEST_CALL_NS: Final = 40 * _NS_PER_MS
#: No delay is drawn above these: what is longer is a throttled client, which the model has.
_LONGEST_LAG_NS: Final = 20 * _NS_PER_MS
#: What clusters set, beginning with the default; the last one throttles nobody.
_THROTTLES: Final = ((20, 30), (50, 100), (100, 200), (500, 1000), (10_000, 20_000))
#: So many calls may reach the recorder closer together than the client made them.
_JITTER_CALLS: Final = 10
#: Of a client that is throttled at least one call in so many finds its bucket empty.
_WAITED_PART: Final = 10
#: Of fewer measurements nothing is concluded.
_ENOUGH: Final = 20


@dataclass(slots=True)
class Pace:
    """Measurements, and the delays that follow from them."""

    calls_ns: list[int] = field(default_factory=list)
    lags_ns: list[int] = field(default_factory=list)
    requests_ns: list[int] = field(default_factory=list)  # when calls of the controller came
    #: From when a new Job was there until its first sync wrote something.
    waits_ns: list[int] = field(default_factory=list)

    def add(self, syncs: Iterable[Explanation], requests_ns: Iterable[int]) -> None:
        """Take in the syncs of one key, and when the controller's calls about it came."""
        self.requests_ns += requests_ns
        for sync in syncs:
            if sync.job is None or sync.problems:
                continue
            self.lags_ns.append(min(sync.lag_ns, _LONGEST_LAG_NS))
            times = [write.recv_ns for write in sync.writes]
            if sync.job.type == "ADDED":
                self.waits_ns.append(max(0, times[0] - sync.job.recv_ns))
            self.calls_ns += [
                right - left
                for left, right in pairwise(times)
                if 0 < right - left < _LONGEST_CALL_NS
            ]

    def throttle(self) -> tuple[int, int]:
        """Requests a second and burst of the client: the least usual ones that the record fits."""
        requests = sorted(self.requests_ns)
        return next((pair for pair in _THROTTLES if _fits(requests, *pair)), _THROTTLES[-1])

    def turns_ns(self) -> tuple[int, ...]:
        """How long keys waited although nothing that the model knows held them up, in order.

        No batch period holds a new Job back: what it waited for its first write, less a call, which
        runs draw themselves. Not known where little was measured.
        """
        if len(self.waits_ns) < _ENOUGH:
            return ()
        calls = sorted(self.calls_ns)
        call_ns = calls[len(calls) // 2] if calls else 0
        return tuple(max(0, wait_ns - call_ns) for wait_ns in sorted(self.waits_ns))

    def throttled(self) -> bool:
        """Whether calls of the record waited for tokens of the client, and not just one or two."""
        waits = list(_token_waits(sorted(self.requests_ns), *self.throttle()))
        return sum(1 for wait_ns in waits if wait_ns) * _WAITED_PART > len(waits)

    def timing(self) -> Timing:
        """The delays to draw from; the model's own where too little was measured.

        From a commit on, the answer is on its way to the client as the news is to an informer, and
        neither is known to win: of 40 failed Jobs that control planes from 1.14 to 1.21 stopped
        pods of, 18 statuses were written over by a sync that had not seen them.
        """
        timing = Timing(late_kubelets=True)
        if len(self.calls_ns) >= _ENOUGH:
            usual = max(_NS_PER_MS, sorted(self.calls_ns)[len(self.calls_ns) // 2])
            timing = replace(timing, latency=(usual // 2, usual + usual // 2))
        if len(self.lags_ns) >= _ENOUGH:
            late = sorted(self.lags_ns)[9 * len(self.lags_ns) // 10]
            lag = (_NS_PER_MS // 2, max(2 * _NS_PER_MS, late))
            timing = replace(
                timing,
                watch_lag=lag,
                handler_lag=(0, _NS_PER_MS // 2),
                answer=lag,
            )
        return timing


def _fits(requests: Sequence[int], qps: int, burst: int) -> bool:
    """Whether a client with this bucket can have made the requests at these times."""
    return all(
        wait_ns * qps <= _JITTER_CALLS * NS_PER_S for wait_ns in _token_waits(requests, qps, burst)
    )


def _token_waits(requests: Sequence[int], qps: int, burst: int) -> Iterator[int]:
    """How long each request would have waited for its token."""
    clock = VirtualClock(requests[0] if requests else 0)
    bucket = BucketRateLimiter(clock, qps=qps, burst=burst)
    for at_ns in requests:
        clock.advance_to(at_ns)
        yield bucket.when_ns("")
