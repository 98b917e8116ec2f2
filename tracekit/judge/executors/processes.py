"""An executor of processes on this machine.

The pool is Python's own (`concurrent.futures`): on one machine it does all that Dask would, and
needs no package. Each process begins anew: a fork of one whose libraries run threads may hang.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Final, Self

from tracekit.base.children import spawning
from tracekit.judge.executors.tasks import Done, Lost, Outcome, R, T, Work

#: So often a task may kill a worker that it has for itself before it is taken to be the reason.
_DEATHS: Final = 2


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processes:
    """A number of processes, begun with the first work; `close` ends them, as `with` does."""

    def __init__(self, size: int, first: Callable[[], object] = int) -> None:
        """`first` is what each process does before it imports anything for its work."""
        self.size = size
        self.shares_disk = True
        self._first = first
        self._context = spawning()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes; what they have not begun is not begun."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def begin(self, ready: Callable[[], object]) -> None:
        """Start the processes: what they must import takes as long as planning their work."""
        if self._pool is None:
            self._pool = self._new_pool(self.size)
            for _ in range(self.size):
                self._pool.submit(ready)

    def run(
        self,
        work: Work[T, R],
        tasks: Sequence[T],
        divide: Callable[[T], Sequence[T]],
    ) -> Iterator[Outcome[T, R]]:
        """What became of each task, as it is done."""
        waiting = list(tasks)
        while waiting:
            asked = self._submitted(work, waiting)
            try:
                yield from _results(asked)
            except BrokenProcessPool:
                self.close()
            # Begun in this order, and one more than there are processes may have been.
            left = list(asked.values())
            suspects, waiting = left[: self.size + 1], left[self.size + 1 :]
            for task in suspects:
                yield from self._alone(work, task, divide)

    def _submitted(self, work: Work[T, R], tasks: Sequence[T]) -> dict[Future[R], T]:
        if self._pool is not None:
            try:
                return {self._pool.submit(work.do, task): task for task in tasks}
            except BrokenProcessPool:  # a process died before it had work
                self.close()
        pool = self._pool = self._new_pool(self.size)
        return {pool.submit(work.do, task): task for task in tasks}

    def _new_pool(self, size: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(size, self._context, self._first)

    def _alone(
        self, work: Work[T, R], task: T, divide: Callable[[T], Sequence[T]]
    ) -> Iterator[Outcome[T, R]]:
        """A task that ran when a worker died, in a process of its own."""
        for _ in range(_DEATHS):
            with self._new_pool(1) as pool:
                try:
                    result = pool.submit(work.do, task).result()
                except BrokenProcessPool:
                    continue
            yield Done(task, result)
            return
        parts = divide(task)
        if not parts:
            yield Lost(task, f"it killed the process that worked on it {_DEATHS} times")
        for part in parts:
            yield from self._alone(work, part, divide)


def _results(asked: dict[Future[R], T]) -> Iterator[Outcome[T, R]]:
    """The results as they come, taken out of what was asked; an error when a worker dies."""
    while asked:
        done, _ = wait(asked, return_when=FIRST_COMPLETED)
        finished = [future for future in done if not _is_broken(future)]
        for future in finished:
            yield Done(asked.pop(future), future.result())
        if len(finished) < len(done):
            raise BrokenProcessPool


def _is_broken(future: Future[R]) -> bool:
    return isinstance(future.exception(), BrokenProcessPool)
