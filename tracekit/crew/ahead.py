"""Working ahead: the results of one task after the other, made by processes of this machine.

The work is a function of the task alone, so that who does it shows nowhere in the results.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final, Self, TypeVar

from tracekit.collecting import collecting_rarely

A = TypeVar("A")
B = TypeVar("B")

#: Tasks that are done here first: for a few no process is worth its beginning.
_FEW: Final = 3


class Ahead:
    """A number of processes, begun when a few tasks are done; they end with the `with`."""

    def __init__(self, processes: int, first: Callable[[], object] = int) -> None:
        """`first` is what each process does before it imports anything for its work."""
        self._processes = processes
        self._first = first
        self._pool: ProcessPoolExecutor | None = None
        self._ready: list[Future[None]] = []
        self._few = _FEW

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def map(self, work: Callable[[A], B], tasks: Iterable[A]) -> Iterator[B]:
        """The results in the order of the tasks, of which no more are taken than are needed.

        What a process was doing when it died is done here, and so is all that comes after it.
        """
        asked: deque[tuple[A, Future[B]]] = deque()
        for task in tasks:
            if not self._has_begun(work):
                yield work(task)
                continue
            # Each process has one to do and one to go on with: what is more is done here meanwhile.
            busy = sum(not future.done() for _, future in asked) > self._processes
            asked.append((task, _done(work(task)) if busy else self._submitted(work, task)))
            while asked and (asked[0][1].done() or len(asked) > 2 * self._processes + 1):
                yield _result(work, *asked.popleft())
        while asked:
            yield _result(work, *asked.popleft())

    def _has_begun(self, work: Callable[[A], B]) -> bool:
        """Whether a process is there; the first are begun when there is enough to do."""
        if self._few:
            self._few -= 1
            return False
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._processes, context, _begin, (self._first,))
            self._ready = [self._pool.submit(_import, work) for _ in range(self._processes)]
        return any(future.done() for future in self._ready)

    def _submitted(self, work: Callable[[A], B], task: A) -> Future[B]:
        assert self._pool is not None  # noqa: S101 - it has begun
        try:
            return self._pool.submit(work, task)
        except BrokenProcessPool as error:
            broken: Future[B] = Future()
            broken.set_exception(error)
            return broken


def _begin(first: Callable[[], object]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends the parent, which ends these
    first()


def _import(work: Callable[[A], B]) -> None:
    """Whoever is given the work has imported what it needs, and keeps it."""
    del work
    gc.freeze()
    collecting_rarely().__enter__()  # to the end of the process


def _done(result: B) -> Future[B]:
    future: Future[B] = Future()
    future.set_result(result)
    return future


def _result(work: Callable[[A], B], task: A, future: Future[B]) -> B:
    try:
        return future.result()
    except BrokenProcessPool:
        return work(task)
