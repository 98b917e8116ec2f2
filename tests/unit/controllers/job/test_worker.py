"""What becomes of a key after its sync: forgotten, tried again, or left to its next event."""

from __future__ import annotations

import pytest

from tests.support.objects import NOW_NS, rules
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.sim.clock import VirtualClock
from tracekit.ports.job.context import SyncResult
from tracekit.ports.job.worker import process_next_orphan_pod, process_next_work_item
from tracekit.ports.workqueue.rate_limiters import job_rate_limiter
from tracekit.ports.workqueue.rate_limiting import RateLimitingQueue
from tracekit.versions.constants import Constants
from tracekit.versions.era import Era

KEY = "default/demo"


def queue_of(version: str, retries: int = 0) -> RateLimitingQueue:
    constants: Constants = Era.resolve(version).constants
    queue = RateLimitingQueue(VirtualClock(NOW_NS), job_rate_limiter(constants))
    for _ in range(retries):
        queue._limiter.when_ns(KEY)
    return queue


RESULTS: dict[str, tuple[str, SyncResult, int, int | None]] = {
    # result -> the key's retries afterwards, and after how many seconds it comes back
    "nothing wrong": ("1.36.3", SyncResult(error=False), 0, None),
    "nothing wrong, nothing forgotten": ("1.17.17", SyncResult(error=False, forget=False), 3, None),
    "a timer": ("1.36.3", SyncResult(error=False, wake_after_ns=5 * NS_PER_S), 0, 5),
    "an error, 1.28 on": ("1.36.3", SyncResult(error=True), 4, 8),
    "an error, up to 1.27": ("1.27.16", SyncResult(error=True), 4, 80),
    "an error and an earlier timer": (
        "1.27.16",
        SyncResult(error=True, wake_after_ns=7 * NS_PER_S),
        4,
        7,
    ),
    "a conflict that nobody retries": ("1.23.0", SyncResult(error=True, retried=False), 3, None),
    "a conflict that comes back with the back-off": (
        "1.27.16",
        SyncResult(error=False, requeued=True),
        0,
        40,
    ),
    "the same, not forgotten": (
        "1.26.15",
        SyncResult(error=False, requeued=True, forget=False),
        3,
        40,
    ),
}


@pytest.mark.parametrize(
    ("version", "result", "retries", "seconds"), RESULTS.values(), ids=RESULTS.keys()
)
def test_a_key_is_settled(
    version: str, result: SyncResult, retries: int, seconds: int | None
) -> None:
    queue = queue_of(version, retries=3)
    queue.add(KEY)
    synced: list[str] = []

    def sync(key: str) -> SyncResult:
        synced.append(key)
        assert queue.is_processing(KEY)
        return result

    assert process_next_work_item(queue, sync, rules(version).retries)
    assert synced == [KEY]
    assert not queue.is_processing(KEY)
    assert queue.num_requeues(KEY) == retries
    at_ns = None if seconds is None else NOW_NS + seconds * NS_PER_S
    assert queue.pending_ns(KEY) == at_ns
    assert not process_next_work_item(queue, sync, rules(version).retries)


def test_a_key_that_was_added_during_its_sync_comes_again() -> None:
    queue = queue_of("1.36.3")
    queue.add(KEY)

    def sync(key: str) -> SyncResult:
        queue.add(key)
        return SyncResult(error=False)

    assert process_next_work_item(queue, sync, rules("1.36.3").retries)
    assert queue.waiting() == (KEY,)


@pytest.mark.parametrize(("error", "retries"), [(True, 1), (False, 0)])
def test_an_entry_of_the_orphan_queue_is_settled(*, error: bool, retries: int) -> None:
    queue = queue_of("1.36.3")
    queue.add(KEY)
    assert process_next_orphan_pod(queue, lambda _: error)
    assert queue.num_requeues(KEY) == retries
    assert (queue.pending_ns(KEY) is not None) is error
    assert not process_next_orphan_pod(queue, lambda _: error)
