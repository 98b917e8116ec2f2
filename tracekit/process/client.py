"""A controller's client: its requests wait for a token, and take their time.

Every controller of the controller manager has a client of its own, and each client a token bucket
(--kube-api-qps, --kube-api-burst). Events pass through the same one.

Upstream: client-go rest/request.go:tryThrottle, util/flowcontrol/throttle.go,
k8s.io/controller-manager/pkg/clientbuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tracekit.cluster.draws import Draws
from tracekit.sim.loop import Loop
from tracekit.workqueue.rate_limiters import BucketRateLimiter

T = TypeVar("T")


class Client:
    """The client of one controller; a `qps` of 0 or less means that nothing is throttled."""

    __slots__ = ("_bucket", "draws", "loop")

    def __init__(self, loop: Loop, draws: Draws, *, qps: int, burst: int) -> None:
        self.loop = loop
        self.draws = draws
        self._bucket = BucketRateLimiter(loop.clock, qps=qps, burst=burst) if qps > 0 else None

    def token_ns(self) -> int:
        """Take a token; how long until it may be used."""
        return self._bucket.when_ns("") if self._bucket is not None else 0

    def times(self) -> tuple[int, int]:
        """How long a request takes, and which part of it after it has taken effect."""
        latency_ns = self.draws.latency_ns()
        return latency_ns, self.draws.answer_ns(latency_ns)

    def goroutine(self) -> Calls:
        """The requests of one goroutine, one after the other."""
        return Calls(self)


class Calls:
    """What one goroutine asks of the API server; only a task may call these."""

    __slots__ = ("_client", "_fan_from_ns", "_fan_until_ns")

    def __init__(self, client: Client) -> None:
        self._client = client
        self._fan_from_ns: int | None = None
        self._fan_until_ns = 0

    def call(self, do: Callable[[], T]) -> T:
        """One request; returns when its answer is there."""
        self.join()
        loop = self._client.loop
        sent_ns = loop.now_ns + self._client.token_ns()
        latency_ns, answer_ns = self._client.times()
        loop.sleep_until(sent_ns + latency_ns - answer_ns)
        answer = do()
        loop.sleep_until(sent_ns + latency_ns)
        return answer

    def fan_out(self, do: Callable[[], T]) -> T:
        """One of several requests that are under way at the same time, each in its goroutine.

        The requests of one batch come one call after the other, and `join` (or the next `call`)
        waits for the last answer.
        """
        return self._side_by_side(do, self._sent_ns())

    def fan_all(self, requests: Sequence[Callable[[], T]]) -> list[T]:
        """All requests of a batch: their goroutines queue for tokens at once, before any other."""
        sent_ns = [self._sent_ns() for _ in requests]
        return [self._side_by_side(do, at) for do, at in zip(requests, sent_ns, strict=True)]

    def _sent_ns(self) -> int:
        """When the next request of the batch has its token."""
        now_ns = self._client.loop.now_ns
        if self._fan_from_ns is None:
            self._fan_from_ns = self._fan_until_ns = now_ns
        wait_ns = self._client.token_ns()
        return now_ns + wait_ns if wait_ns else self._fan_from_ns

    def _side_by_side(self, do: Callable[[], T], sent_ns: int) -> T:
        loop = self._client.loop
        latency_ns, answer_ns = self._client.times()
        committed_ns = sent_ns + latency_ns - answer_ns
        loop.sleep_until(max(loop.now_ns, committed_ns))
        answer = do()
        self._fan_until_ns = max(self._fan_until_ns, sent_ns + latency_ns)
        return answer

    def join(self) -> None:
        """Wait for the answers of the batch."""
        if self._fan_from_ns is not None:
            self._fan_from_ns = None
            self._client.loop.sleep_until(self._fan_until_ns)
