"""Crews for tests: one in this process, a scheduler of its own, and work that goes wrong."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.support.traces import ROOT
from tracekit.judge.executors.tasks import Done, Outcome, R, T, Work


@dataclass
class Here:
    """Does the pieces in this process, the last one first."""

    size: int = 2
    shares_disk: bool = True
    done: list[object] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, ready: Callable[[], object]) -> None:
        ready()

    def run(
        self, work: Work[T, R], tasks: Sequence[T], divide: Callable[[T], Sequence[T]]
    ) -> Iterator[Outcome[T, R]]:
        del divide
        for task in reversed(tasks):
            self.done.append(task)
            yield Done(task, work.do(task))


@dataclass(frozen=True)
class Sums:
    """Adds up numbers; `poison` among them kills the process, `once` only the first time."""

    poison: int | None = None
    once: int | None = None
    memory: str = ""

    def do(self, task: tuple[int, ...]) -> int:
        if self.poison in task:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.once in task:
            died = Path(self.memory)
            if not died.exists():
                died.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return sum(task)


def halves(task: tuple[int, ...]) -> list[tuple[int, ...]]:
    middle = len(task) // 2
    return [task[:middle], task[middle:]] if middle else []


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


@contextmanager
def scheduler(workers: int, **more: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler of its own, with so many workers, as somebody runs them.

    `more` is set in their environment.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    commands = [
        ["dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
        *[["dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]] * workers,
    ]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{command[0]}", *command[1:]],
            env=environment(**more),
            stderr=subprocess.DEVNULL,
        )
        for command in commands
    ]
    try:
        _wait_for(port)
        yield address, running[0]
    finally:
        for process in running:
            process.kill()
            process.wait()


def _wait_for(port: int) -> None:
    for _ in range(1200):
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the scheduler did not begin")
