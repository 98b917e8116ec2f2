"""Rate limiters and the queue that uses them."""

from tracekit.base.sim.clock import VirtualClock
from tracekit.ports.workqueue.rate_limiters import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    MaxOfRateLimiter,
    default_controller_rate_limiter,
    job_rate_limiter,
)
from tracekit.ports.workqueue.rate_limiting import RateLimitingQueue
from tracekit.versions.era import Era

S = 1_000_000_000
MS = 1_000_000


def test_each_failure_of_a_key_doubles_its_wait_up_to_the_cap():
    limiter = ItemExponentialFailureRateLimiter(MS, 1000 * S)
    assert [limiter.when_ns("a") for _ in range(5)] == [MS, 2 * MS, 4 * MS, 8 * MS, 16 * MS]
    assert limiter.num_requeues("a") == 5
    capped = ItemExponentialFailureRateLimiter(10 * S, 360 * S)
    assert [capped.when_ns("a") // S for _ in range(8)] == [10, 20, 40, 80, 160, 320, 360, 360]


def test_keys_are_counted_apart_and_forgotten_apart():
    limiter = ItemExponentialFailureRateLimiter(MS, S)
    limiter.when_ns("a")
    limiter.when_ns("b")
    limiter.forget("a")
    limiter.forget("never seen")
    assert (limiter.num_requeues("a"), limiter.num_requeues("b")) == (0, 1)
    assert limiter.when_ns("a") == MS


def test_very_many_failures_give_the_cap_and_no_overflow():
    limiter = ItemExponentialFailureRateLimiter(MS, 1000 * S)
    for _ in range(2000):
        wait_ns = limiter.when_ns("a")
    assert wait_ns == 1000 * S


def test_a_bucket_lets_its_burst_through_and_then_one_key_a_tenth_of_a_second():
    limiter = BucketRateLimiter(VirtualClock(), qps=10, burst=3)
    assert [limiter.when_ns(k) // MS for k in "aabbc"] == [0, 0, 0, 100, 200]


def test_a_bucket_refills_with_time_but_never_above_its_burst():
    clock = VirtualClock()
    limiter = BucketRateLimiter(clock, qps=10, burst=2)
    assert [limiter.when_ns("a") // MS for _ in range(4)] == [0, 0, 100, 200]
    clock.advance(200 * MS)
    assert limiter.when_ns("a") // MS == 100
    clock.advance(3600 * S)
    assert [limiter.when_ns("a") // MS for _ in range(3)] == [0, 0, 100]


def test_a_wait_that_does_not_divide_evenly_is_rounded_up():
    limiter = BucketRateLimiter(VirtualClock(), qps=3, burst=1)
    assert [limiter.when_ns("a") for _ in range(3)] == [0, 333_333_334, 666_666_667]


def test_a_bucket_counts_no_failures():
    limiter = BucketRateLimiter(VirtualClock(), qps=10, burst=1)
    limiter.when_ns("a")
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0
    assert limiter.when_ns("a") == 100 * MS


def test_the_longest_wait_of_several_limiters_counts_and_all_of_them_count_the_failure():
    limiter = MaxOfRateLimiter(
        ItemExponentialFailureRateLimiter(5 * MS, S), ItemExponentialFailureRateLimiter(MS, 3 * S)
    )
    waits = [limiter.when_ns("a") // MS for _ in range(13)]
    assert waits[:3] == [5, 10, 20]
    assert waits[-1] == 3000
    assert limiter.num_requeues("a") == 13
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0


def test_the_default_limiter_starts_at_five_milliseconds_and_the_bucket_takes_over():
    limiter = default_controller_rate_limiter(VirtualClock(), Era.resolve("1.30.0").constants)
    waits = [limiter.when_ns(f"ns/{n}") // MS for n in range(103)]
    assert waits[:100] == [5] * 100
    assert waits[100:] == [100, 200, 300]


def test_the_job_queue_waits_ten_seconds_up_to_1_27_and_one_from_1_28_on():
    old = job_rate_limiter(Era.resolve("1.27.16").constants)
    new = job_rate_limiter(Era.resolve("1.28.0").constants)
    assert [old.when_ns("a") // S for _ in range(7)] == [10, 20, 40, 80, 160, 320, 360]
    assert [new.when_ns("a") // S for _ in range(7)] == [1, 2, 4, 8, 16, 32, 60]


def test_a_rate_limited_key_comes_after_its_wait_and_is_counted():
    clock = VirtualClock()
    queue = RateLimitingQueue(clock, ItemExponentialFailureRateLimiter(10, 1000))
    queue.add_rate_limited("a")
    assert queue.num_requeues("a") == 1
    assert queue.get() is None
    clock.advance(10)
    assert queue.get() == "a"
    queue.done("a")
    queue.add_rate_limited("a")
    assert queue.pending_ns("a") == 30
    queue.forget("a")
    assert queue.num_requeues("a") == 0
    assert queue.pending_ns("a") == 30


def test_a_second_failure_before_the_retry_is_counted_but_keeps_the_earlier_time():
    clock = VirtualClock()
    queue = RateLimitingQueue(clock, ItemExponentialFailureRateLimiter(10, 1000))
    queue.add_rate_limited("a")
    queue.add_rate_limited("a")
    assert (queue.num_requeues("a"), queue.pending_ns("a")) == (2, 10)


def test_a_queue_that_shut_down_counts_the_failure_and_adds_nothing():
    clock = VirtualClock()
    queue = RateLimitingQueue(clock, ItemExponentialFailureRateLimiter(10, 1000))
    queue.shut_down()
    queue.add_rate_limited("a")
    assert queue.num_requeues("a") == 1
    clock.advance(100)
    assert queue.get() is None
