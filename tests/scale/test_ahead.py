"""Working ahead: results come in the order of the tasks, whoever makes them and whatever dies."""

from __future__ import annotations

import os
import signal
import time
from itertools import count

from tracekit.crew.ahead import Ahead


def squared(number: int) -> tuple[int, int]:
    """The square, and who made it."""
    return number * number, os.getpid()


def deadly(parent_and_number: tuple[int, int]) -> int:
    """One task kills the process that is not the parent."""
    parent, number = parent_and_number
    if number == 11 and os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_results_come_in_order_and_from_others() -> None:
    with Ahead(2) as ahead:
        found = []
        tasks = count()
        for square, who in ahead.map(squared, tasks):
            found.append(square)
            if who != os.getpid():
                break
        assert who != os.getpid()
        # A second round has the processes at once, and no more is taken than they can do.
        taken = []
        second = ahead.map(squared, (taken.append(n) or n for n in range(50)))
        assert next(second)[1] != os.getpid()
        assert len(taken) <= 6
        assert [square for square, _ in second] == [n * n for n in range(1, 50)]
    assert found == [n * n for n in range(len(found))]


def slowly(number: int) -> tuple[int, int]:
    """Who took its time."""
    time.sleep(0.02)
    return number, os.getpid()


def test_who_would_wait_for_others_does_some_of_it() -> None:
    with Ahead(1) as ahead:
        for _, who in ahead.map(slowly, count()):
            if who != os.getpid():
                break
        found = list(ahead.map(slowly, range(40)))
        assert [number for number, _ in found] == list(range(40))
        here = sum(who == os.getpid() for _, who in found)
        assert 0 < here < 40


def test_what_a_process_did_when_it_died_is_done_here() -> None:
    with Ahead(1) as ahead:
        for _, who in ahead.map(squared, count()):
            if who != os.getpid():
                break
        tasks = [(os.getpid(), number) for number in range(20)]
        assert list(ahead.map(deadly, tasks)) == list(range(20))


def test_a_few_tasks_begin_no_process() -> None:
    with Ahead(2) as ahead:
        assert {who for _, who in ahead.map(squared, range(2))} == {os.getpid()}
