"""What a worker of the queue-based CronJob controller does with a key before and after its sync.

Upstream: pkg/controller/cronjob/cronjob_controllerv2.go:processNextWorkItem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tracekit.ports.cronjob.actions import SyncResult


class CronJobQueue(Protocol):
    """What a worker asks of its queue (client-go: RateLimitingInterface)."""

    def get(self) -> str | None:
        """Hand out the oldest key, or None when nothing waits; end it with `done`."""
        ...

    def done(self, key: str) -> None:
        """End the processing of a key."""
        ...

    def add_after(self, key: str, delay_ns: int) -> None:
        """Add a key once the delay has passed; the earliest of several wins."""
        ...

    def add_rate_limited(self, key: str) -> None:
        """Add a key once the limiter lets it through; counts one failure."""
        ...

    def forget(self, key: str) -> None:
        """Stop counting the key's failures."""
        ...


def process_next_work_item(queue: CronJobQueue, sync: Callable[[str], SyncResult]) -> bool:
    """Take a key, sync it and settle it with the queue; False if nothing waits."""
    key = queue.get()
    if key is None:
        return False
    result = sync(key)
    if result.error is not None:
        queue.add_rate_limited(key)
    else:
        if result.forgets:
            queue.forget(key)
        if result.requeue_after_ns is not None:
            queue.add_after(key, result.requeue_after_ns)
    queue.done(key)
    return True
