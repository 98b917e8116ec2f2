"""The delaying queue: one pending time per key, the earliest wins, `add` cancels nothing."""

from tracekit.base.sim.clock import VirtualClock
from tracekit.ports.workqueue.delaying import DelayingQueue


def make():
    clock = VirtualClock(1_000)
    return DelayingQueue(clock), clock


def test_a_delayed_key_comes_when_its_time_has_come_and_not_before():
    queue, clock = make()
    queue.add_after("a", 50)
    clock.advance(49)
    assert queue.get() is None
    clock.advance(1)
    assert queue.get() == "a"


def test_a_delay_of_zero_or_less_adds_at_once():
    queue, _ = make()
    queue.add_after("a", 0)
    queue.add_after("b", -5)
    assert [queue.get(), queue.get()] == ["a", "b"]


def test_of_two_delays_the_earlier_one_counts_whichever_came_first():
    queue, clock = make()
    queue.add_after("a", 100)
    queue.add_after("a", 10)
    queue.add_after("b", 10)
    queue.add_after("b", 100)
    assert queue.pending_ns("a") == queue.pending_ns("b") == 1_010
    clock.advance(10)
    assert [queue.get(), queue.get()] == ["a", "b"]
    queue.done("a")
    queue.done("b")
    clock.advance(500)
    assert queue.get() is None


def test_a_short_retry_swallows_a_pending_deadline_timer():
    """Spec job-legacy 18.47: the 60 s deadline is gone once the 10 s retry has fired."""
    queue, clock = make()
    queue.add_after("job", 60)
    queue.add_after("job", 10)
    clock.advance(10)
    assert queue.get() == "job"
    queue.done("job")
    assert queue.next_ready_ns() is None


def test_add_leaves_a_pending_timer_alone():
    queue, clock = make()
    queue.add_after("a", 50)
    queue.add("a")
    assert queue.get() == "a"
    queue.done("a")
    assert queue.pending_ns("a") == 1_050
    clock.advance(50)
    assert queue.get() == "a"


def test_a_delay_of_zero_leaves_a_pending_timer_alone():
    queue, _ = make()
    queue.add_after("a", 50)
    queue.add_after("a", 0)
    assert queue.get() == "a"
    assert queue.pending_ns("a") == 1_050


def test_a_timer_that_fires_while_the_key_waits_adds_nothing():
    queue, clock = make()
    queue.add_after("a", 5)
    queue.add("a")
    clock.advance(5)
    assert len(queue) == 1
    assert queue.pending_ns("a") is None


def test_a_timer_that_fires_while_the_key_is_processed_queues_it_again():
    queue, clock = make()
    queue.add("a")
    queue.get()
    queue.add_after("a", 5)
    clock.advance(5)
    assert queue.get() is None
    queue.done("a")
    assert queue.get() == "a"


def test_due_keys_are_added_in_the_order_of_their_times():
    queue, clock = make()
    for key, delay in (("c", 30), ("a", 10), ("b", 20)):
        queue.add_after(key, delay)
    clock.advance(100)
    assert [queue.get(), queue.get(), queue.get()] == ["a", "b", "c"]


def test_equal_times_keep_the_order_of_the_first_request():
    queue, clock = make()
    queue.add_after("z", 30)
    queue.add_after("a", 10)
    queue.add_after("z", 10)
    clock.advance(10)
    assert [queue.get(), queue.get()] == ["z", "a"]


def test_the_next_timer_is_told_without_firing_it():
    queue, clock = make()
    assert queue.next_ready_ns() is None
    queue.add_after("a", 30)
    queue.add_after("a", 20)
    queue.add_after("b", 25)
    assert queue.next_ready_ns() == 1_020
    clock.advance_to(1_020)
    queue.poll()
    assert queue.next_ready_ns() == 1_025


def test_after_shut_down_no_timer_is_accepted_and_none_adds():
    queue, clock = make()
    queue.add_after("a", 10)
    queue.shut_down()
    queue.add_after("b", 10)
    assert queue.pending_ns("b") is None
    clock.advance(10)
    assert queue.get() is None
