"""Working ahead: results come in the order of the tasks, whoever makes them and whatever dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from tracekit.judge.executors.work_ahead import Ahead
from tracekit.trace.importers.watch import Mapped


def numbers(last: int | None = None) -> Iterator[bytes]:
    """Tasks, in their order."""
    return map(str.encode, map(str, count() if last is None else range(last)))


def squared(number: bytes) -> bytes:
    """The square, and who made it."""
    return f"{int(number) ** 2} {os.getpid()}".encode()


def deadly(number: bytes) -> bytes:
    """One task kills the process that is not the parent."""
    if number == b"11" and multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def slowly(number: bytes) -> bytes:
    """Who took its time."""
    time.sleep(0.02)
    return squared(number)


def is_from_here(result: bytes) -> bool:
    return int(result.split()[1]) == os.getpid()


def begun(ahead: Ahead, folder: Path) -> Mapped:
    """What `map` does, once others do something."""
    mapped = ahead.mapped_in(folder)
    assert any(not is_from_here(result) for result in mapped(squared, numbers()))
    return mapped


def test_results_come_in_order_and_from_others(tmp_path: Path) -> None:
    with Ahead(2) as ahead:
        mapped = ahead.mapped_in(tmp_path)
        found = []
        for result in mapped(squared, numbers()):
            found.append(int(result.split()[0]))
            if not is_from_here(result):
                break
        # A second round has the processes at once, and no more is taken than they can do.
        taken = []
        second = mapped(squared, (taken.append(n) or n for n in numbers(50)))
        assert not is_from_here(next(second))
        assert len(taken) <= 8
        assert [int(result.split()[0]) for result in second] == [n * n for n in range(1, 50)]
    assert found == [n * n for n in range(len(found))]


def test_who_would_wait_for_others_does_some_of_it(tmp_path: Path) -> None:
    with Ahead(1) as ahead:
        mapped = begun(ahead, tmp_path)
        found = list(mapped(slowly, numbers(40)))
        assert [int(result.split()[0]) for result in found] == [n * n for n in range(40)]
        assert 0 < sum(map(is_from_here, found)) < 40


def test_what_a_process_did_when_it_died_is_done_here(tmp_path: Path) -> None:
    with Ahead(1) as ahead:
        mapped = begun(ahead, tmp_path)
        assert list(mapped(deadly, numbers(20))) == list(numbers(20))


def test_what_finds_no_room_is_done_here(tmp_path: Path) -> None:
    files = tmp_path / "files"
    with Ahead(1) as ahead:
        mapped = begun(ahead, files)
        files.rename(tmp_path / "elsewhere")
        assert all(map(is_from_here, mapped(squared, numbers(20))))


def test_nothing_is_left_of_what_went_between_them(tmp_path: Path) -> None:
    with Ahead(1) as ahead:
        mapped = begun(ahead, tmp_path)
        before = set(tmp_path.iterdir())
        for _ in mapped(slowly, numbers(40)):
            assert len(set(tmp_path.iterdir()) - before) <= 4
        assert set(tmp_path.iterdir()) <= before


def test_one_task_begins_no_process(tmp_path: Path) -> None:
    with Ahead(2) as ahead:
        assert all(map(is_from_here, ahead.mapped_in(tmp_path)(squared, numbers(1))))
        assert not multiprocessing.active_children()
