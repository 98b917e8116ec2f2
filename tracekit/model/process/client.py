"""A controller's client: its requests wait for a token, and take their time.

Every controller of the controller manager has a client of its own, and each client a token bucket
(--kube-api-qps, --kube-api-burst). Events pass through the same one.

Upstream: client-go rest/request.go:tryThrottle, util/flowcontrol/throttle.go,
k8s.io/controller-manager/pkg/clientbuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tracekit.base.sim.loop import Loop
from tracekit.model.cluster.draws import Draws
from tracekit.ports.workqueue.rate_limiters import BucketRateLimiter

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

    __slots__ = ("_client",)

    def __init__(self, client: Client) -> None:
        self._client = client

    def call(self, do: Callable[[], T]) -> T:
        """One request; returns when its answer is there."""
        return self.side_by_side([do])[0]

    def side_by_side(self, requests: Sequence[Callable[[], T]]) -> list[T]:
        """The requests of a batch, each in its goroutine; returns when all answers are there.

        The goroutines are started at once and queue for tokens before whatever asks next.
        """
        loop = self._client.loop
        sent_ns = [loop.now_ns + self._client.token_ns() for _ in requests]
        answers, until_ns = [], loop.now_ns
        for do, at_ns in zip(requests, sent_ns, strict=True):
            latency_ns, answer_ns = self._client.times()
            loop.sleep_until(max(loop.now_ns, at_ns + latency_ns - answer_ns))
            answers.append(do())
            until_ns = max(until_ns, at_ns + latency_ns)
        loop.sleep_until(until_ns)
        return answers
