"""Working ahead: the results of one task after the other, made by processes of this machine.

Tasks and results are bytes, megabytes of them. They go from one process to the other by files: a
pipe takes 64 KiB at a time, and for each of them the thread that reads it must wait for the
interpreter. The work is a function of the task alone, so that who does it shows nowhere in the
results.
"""

from __future__ import annotations

import gc
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, Protocol, Self

from tracekit.base.children import spawning
from tracekit.base.collecting import collecting_rarely

Work = Callable[[bytes], bytes]

#: Tasks that are done here first: for them alone no process is worth its beginning.
_FEW: Final = 1
#: Tasks that lie ready for each process beside the one that it does, since who hands them out has
#: more to do than that.
_READY: Final = 2


class Ahead:
    """A number of processes, begun when a few tasks are done; they end with the `with`."""

    def __init__(self, processes: int, first: Callable[[], object] = int) -> None:
        """`first` is what each process does before it imports anything for its work."""
        self._processes = processes
        self._first = first
        self._executor: _Executor | None = None
        self._few = _FEW

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.end()
            self._executor = None

    def mapped_in(self, folder: Path) -> Callable[[Work, Iterable[bytes]], Iterator[bytes]]:
        """What `map` does, with the files in a folder that is the caller's to remove."""
        return partial(self._map, folder)

    def _map(self, folder: Path, work: Work, tasks: Iterable[bytes]) -> Iterator[bytes]:
        """The results in the order of the tasks, of which no more are taken than are needed.

        What a process was doing when it died is done here, and so is all that comes after it.
        """
        asked: deque[_Asked] = deque()
        most = (1 + _READY) * self._processes
        for task in tasks:
            executor = self._executor_for(work, folder)
            if executor is None:
                yield work(task)
                continue
            # What is more than is given to the processes is done here meanwhile.
            busy = sum(not one.done for one in asked) >= most
            asked.append(_Here(work(task)) if busy else executor.asked(work, task))
            while asked and (asked[0].done or len(asked) > most + 1):
                yield asked.popleft().result()
        while asked:
            yield asked.popleft().result()

    def _executor_for(self, work: Work, folder: Path) -> _Executor | None:
        """The processes, once one is there; they are begun when there is enough to do."""
        if self._few:
            self._few -= 1
            return None
        if self._executor is None:
            self._executor = _Executor(self._processes, self._first, work, folder)
        return self._executor if self._executor.is_there else None


class _Executor:
    """The processes, and the folder of the files that go between them and this one."""

    def __init__(
        self, processes: int, first: Callable[[], object], work: Work, folder: Path
    ) -> None:
        context = spawning()
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._names = count()
        self._pool = ProcessPoolExecutor(processes, context, _begin, (first,))
        self._ready = [self._pool.submit(_import, work) for _ in range(processes)]

    @property
    def is_there(self) -> bool:
        """Whether one of them has begun."""
        return any(future.done() for future in self._ready)

    def asked(self, work: Work, task: bytes) -> _Asked:
        """Have the task done by one of them; here, if that is not possible."""
        file = self._folder / str(next(self._names))
        try:
            file.write_bytes(task)
            return _There(work, task, file, self._pool.submit(_exchange, work, file))
        except (BrokenProcessPool, OSError):
            return _Here(work(task))

    def end(self) -> None:
        """Wait for their end."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Asked(Protocol):
    """A task that is given to somebody."""

    @property
    def done(self) -> bool: ...
    def result(self) -> bytes:
        """What was made of it; waits for that."""


class _Here:
    """A task that was done here."""

    done = True

    def __init__(self, result: bytes) -> None:
        self._result = result

    def result(self) -> bytes:
        return self._result


class _There:
    """A task that a process was given in a file, which it puts the result into."""

    def __init__(self, work: Work, task: bytes, file: Path, future: Future[None]) -> None:
        self._work, self._task, self._file, self._future = work, task, file, future

    @property
    def done(self) -> bool:
        return self._future.done()

    def result(self) -> bytes:
        try:
            self._future.result()
            result = self._file.read_bytes()
        except (BrokenProcessPool, OSError):  # the process died, or the disk is full
            result = self._work(self._task)
        self._file.unlink(missing_ok=True)
        return result


def _begin(first: Callable[[], object]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends the parent, which ends these
    first()


def _import(work: Work) -> None:
    """Whoever is given the work has imported what it needs, and keeps it."""
    del work
    gc.freeze()
    collecting_rarely().__enter__()  # to the end of the process


def _exchange(work: Work, file: Path) -> None:
    """Put the result where the task was."""
    file.write_bytes(work(file.read_bytes()))
