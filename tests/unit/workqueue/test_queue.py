"""The basic queue: what client-go's queue_test.go states, as cases of our own."""

from tracekit.ports.workqueue.queue import Queue


def test_keys_come_out_in_the_order_in_which_they_were_first_added():
    queue = Queue()
    for key in ("b", "a", "c", "a"):
        queue.add(key)
    assert [queue.get(), queue.get(), queue.get(), queue.get()] == ["b", "a", "c", None]


def test_a_waiting_key_added_twice_is_handed_out_once():
    queue = Queue()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 1


def test_a_key_added_while_it_is_processed_waits_until_it_is_done():
    queue = Queue()
    queue.add("a")
    assert queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert queue.get() is None
    assert queue.is_processing("a")
    assert queue.is_dirty("a")
    queue.done("a")
    assert queue.get() == "a"
    queue.done("a")
    assert queue.get() is None


def test_a_key_that_is_done_and_was_not_added_again_is_gone():
    queue = Queue()
    queue.add("a")
    queue.get()
    queue.done("a")
    assert len(queue) == 0
    assert not queue.is_dirty("a")


def test_a_key_added_again_while_processed_goes_behind_those_that_wait():
    queue = Queue()
    queue.add("a")
    queue.get()
    queue.add("a")
    queue.add("b")
    queue.done("a")
    assert queue.waiting() == ("b", "a")


def test_after_shut_down_nothing_is_accepted_and_what_waits_is_handed_out():
    queue = Queue()
    queue.add("a")
    queue.shut_down()
    queue.add("b")
    assert queue.shutting_down
    assert queue.get() == "a"
    assert queue.get() is None


def test_a_key_marked_again_before_shut_down_is_still_queued_when_done():
    queue = Queue()
    queue.add("a")
    queue.get()
    queue.add("a")
    queue.shut_down()
    queue.done("a")
    assert queue.get() == "a"


def test_done_for_a_key_that_is_not_processed_does_nothing():
    queue = Queue()
    queue.done("a")
    assert queue.get() is None
