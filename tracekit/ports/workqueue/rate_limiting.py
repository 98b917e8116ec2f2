"""A delaying queue whose keys wait longer the more often they failed.

Upstream: client-go util/workqueue/rate_limiting_queue.go.
"""

from __future__ import annotations

from tracekit.base.sim.clock import VirtualClock
from tracekit.ports.workqueue.delaying import DelayingQueue
from tracekit.ports.workqueue.queue import K
from tracekit.ports.workqueue.rate_limiters import RateLimiter


class RateLimitingQueue(DelayingQueue[K]):
    """What a controller's worker uses."""

    __slots__ = ("_limiter",)

    def __init__(self, clock: VirtualClock, limiter: RateLimiter) -> None:
        super().__init__(clock)
        self._limiter = limiter

    def add_rate_limited(self, key: K) -> None:
        """Add a key once the limiter lets it through; counts one failure, shut down or not."""
        self.add_after(key, self._limiter.when_ns(key))

    def forget(self, key: K) -> None:
        """Stop counting the key's failures; a pending timer stays."""
        self._limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """Failures counted since the key was last forgotten."""
        return self._limiter.num_requeues(key)
