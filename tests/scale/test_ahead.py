"""Working ahead: results come in the order of the tasks, whoever makes them and whatever dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from itertools import count

from tracekit.crew.ahead import Ahead


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


def begun(ahead: Ahead) -> None:
    """Go on until others do something."""
    assert any(not is_from_here(result) for result in ahead.map(squared, numbers()))


def test_results_come_in_order_and_from_others() -> None:
    with Ahead(2) as ahead:
        found = []
        for result in ahead.map(squared, numbers()):
            found.append(int(result.split()[0]))
            if not is_from_here(result):
                break
        # A second round has the processes at once, and no more is taken than they can do.
        taken = []
        second = ahead.map(squared, (taken.append(n) or n for n in numbers(50)))
        assert not is_from_here(next(second))
        assert len(taken) <= 8
        assert [int(result.split()[0]) for result in second] == [n * n for n in range(1, 50)]
    assert found == [n * n for n in range(len(found))]


def test_who_would_wait_for_others_does_some_of_it() -> None:
    with Ahead(1) as ahead:
        begun(ahead)
        found = list(ahead.map(slowly, numbers(40)))
        assert [int(result.split()[0]) for result in found] == [n * n for n in range(40)]
        assert 0 < sum(map(is_from_here, found)) < 40


def test_what_a_process_did_when_it_died_is_done_here() -> None:
    with Ahead(1) as ahead:
        begun(ahead)
        assert list(ahead.map(deadly, numbers(20))) == list(numbers(20))


def test_what_finds_no_room_is_done_here(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Ahead(1) as ahead:
        begun(ahead)
        (files,) = tmp_path.iterdir()
        files.rename(tmp_path / "elsewhere")
        assert all(map(is_from_here, ahead.map(squared, numbers(20))))


def test_nothing_is_left_of_what_went_between_them(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Ahead(1) as ahead:
        begun(ahead)
        before = set(tmp_path.glob("*/*"))
        for _ in ahead.map(slowly, numbers(40)):
            assert len(set(tmp_path.glob("*/*")) - before) <= 4
        assert set(tmp_path.glob("*/*")) <= before
    assert not list(tmp_path.iterdir())


def test_one_task_begins_no_process() -> None:
    with Ahead(2) as ahead:
        assert all(map(is_from_here, ahead.map(squared, numbers(1))))
        assert not multiprocessing.active_children()
