"""Crews for tests: one in this process, and work that goes wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tracekit.crew.tasks import Done, Outcome, R, T, Work


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
