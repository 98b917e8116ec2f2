"""How long a key that failed has to wait.

`ItemExponentialFailureRateLimiter`: base * 2**failures of that key, capped.
`BucketRateLimiter`: a token bucket over all keys; a wait reserves a token that may lie ahead.
`MaxOfRateLimiter`: the longest wait of several.

Upstream: client-go util/workqueue/default_rate_limiters.go, golang.org/x/time/rate.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.sim.clock import VirtualClock
from tracekit.versions.constants import Constants


class RateLimiter(Protocol):
    """What a rate-limiting queue asks."""

    def when_ns(self, key: Hashable) -> int:
        """Count one more failure of the key and say how long it waits."""
        ...

    def forget(self, key: Hashable) -> None:
        """Stop counting the key's failures."""
        ...

    def num_requeues(self, key: Hashable) -> int:
        """Failures counted since the key was last forgotten."""
        ...


class ItemExponentialFailureRateLimiter:
    """A wait of base * 2**failures per key, at most the cap."""

    __slots__ = ("_base_ns", "_failures", "_max_ns")

    def __init__(self, base_ns: int, max_ns: int) -> None:
        self._base_ns = base_ns
        self._max_ns = max_ns
        self._failures: dict[Hashable, int] = {}

    def when_ns(self, key: Hashable) -> int:
        """Count one more failure of the key and say how long it waits."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return exponential_ns(self._base_ns, self._max_ns, failures)

    def forget(self, key: Hashable) -> None:
        """Stop counting the key's failures."""
        self._failures.pop(key, None)

    def num_requeues(self, key: Hashable) -> int:
        """Failures counted since the key was last forgotten."""
        return self._failures.get(key, 0)


def exponential_ns(base_ns: int, max_ns: int, doublings: int) -> int:
    """Double the base that often, up to the cap."""
    # Beyond 63 doublings upstream's float64 exceeds int64 and the cap is taken, as it is here.
    return min(base_ns << min(doublings, 63), max_ns)


class BucketRateLimiter:
    """A token bucket shared by all keys: `qps` tokens a second, `burst` at most in store.

    Tokens are counted in units of 1/NS_PER_S, so that a nanosecond adds exactly `qps` units and no
    rounding piles up.
    """

    __slots__ = ("_burst", "_clock", "_qps", "_units", "_updated_ns")

    def __init__(self, clock: VirtualClock, *, qps: int, burst: int) -> None:
        self._clock = clock
        self._qps = qps
        self._burst = burst
        #: Below zero: tokens already promised.
        self._units = burst * NS_PER_S
        self._updated_ns = clock.now_ns

    def when_ns(self, key: Hashable) -> int:
        """Take the next token, whatever the key, and say how far ahead it lies."""
        del key
        now_ns = self._clock.now_ns
        earned = (now_ns - self._updated_ns) * self._qps
        self._units = min(self._units + earned, self._burst * NS_PER_S) - NS_PER_S
        self._updated_ns = now_ns
        return -(self._units // self._qps) if self._units < 0 else 0

    def forget(self, key: Hashable) -> None:
        """Tokens are not given back."""

    def num_requeues(self, key: Hashable) -> int:
        """A bucket counts no failures."""
        del key
        return 0


class MaxOfRateLimiter:
    """The longest wait, and the highest count, of several limiters."""

    __slots__ = ("_limiters",)

    def __init__(self, *limiters: RateLimiter) -> None:
        self._limiters = limiters

    def when_ns(self, key: Hashable) -> int:
        """Ask every limiter, so that each counts."""
        return max((limiter.when_ns(key) for limiter in self._limiters), default=0)

    def forget(self, key: Hashable) -> None:
        """Make every limiter forget the key."""
        for limiter in self._limiters:
            limiter.forget(key)

    def num_requeues(self, key: Hashable) -> int:
        """The highest count."""
        return max((limiter.num_requeues(key) for limiter in self._limiters), default=0)


def default_controller_rate_limiter(clock: VirtualClock, constants: Constants) -> MaxOfRateLimiter:
    """client-go's default, which the CronJob and TTL controllers use."""
    return MaxOfRateLimiter(
        ItemExponentialFailureRateLimiter(
            constants.default_backoff_ns_base, constants.default_backoff_ns_max
        ),
        BucketRateLimiter(
            clock, qps=constants.default_bucket_qps, burst=constants.default_bucket_burst
        ),
    )


def job_rate_limiter(constants: Constants) -> ItemExponentialFailureRateLimiter:
    """The limiter of the Job controller's queues."""
    return ItemExponentialFailureRateLimiter(
        constants.queue_backoff_ns_base, constants.queue_backoff_ns_max
    )
