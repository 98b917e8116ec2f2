"""What a worker does with a key before and after its sync.

Upstream: pkg/controller/job/job_controller.go:processNextWorkItem, processNextOrphanPod, from v1.11
on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from tracekit.ports.job.context import SyncResult
from tracekit.versions.job_retries import RetryRules

K = TypeVar("K")


class WorkQueue(Protocol[K]):
    """What a worker asks of its queue (client-go: RateLimitingInterface)."""

    def get(self) -> K | None:
        """Hand out the oldest key, or None when nothing waits; end it with `done`."""
        ...

    def done(self, key: K) -> None:
        """End the processing of a key; it is queued again if it was added meanwhile."""
        ...

    def add_after(self, key: K, delay_ns: int) -> None:
        """Add a key once the delay has passed; the earliest of several wins."""
        ...

    def add_rate_limited(self, key: K) -> None:
        """Add a key once the limiter lets it through; counts one failure."""
        ...

    def forget(self, key: K) -> None:
        """Stop counting the key's failures; a pending timer stays."""
        ...

    def num_requeues(self, key: K) -> int:
        """Failures counted since the key was last forgotten."""
        ...


def process_next_work_item(
    queue: WorkQueue[str], sync: Callable[[str], SyncResult], retries: RetryRules
) -> bool:
    """Take a key, sync it and settle it with the queue; False if nothing waits."""
    key = queue.get()
    if key is None:
        return False
    settle(queue, key, sync(key), retries)
    queue.done(key)
    return True


def settle(queue: WorkQueue[str], key: str, result: SyncResult, retries: RetryRules) -> None:
    """What the result of a sync asks of the queue; `done` is the caller's, who knows when it ends.

    The sync's own timers come first, as it armed them while it ran: to be exact about a sync that
    takes time, call this part with the queue's clock at the time of the sync.
    """
    if result.wake_after_ns is not None:
        queue.add_after(key, result.wake_after_ns)
    if result.requeued:
        queue.add_after(key, retries.backoff_ns(queue.num_requeues(key)))
    if not result.error:
        if result.forget:
            queue.forget(key)
    elif result.retried:
        queue.add_rate_limited(key)


def process_next_orphan_pod(queue: WorkQueue[K], sync_orphan: Callable[[K], bool]) -> bool:
    """Take an entry of the orphan queue and work on it; False if nothing waits."""
    key = queue.get()
    if key is None:
        return False
    if sync_orphan(key):
        queue.add_rate_limited(key)
    else:
        queue.forget(key)
    queue.done(key)
    return True
