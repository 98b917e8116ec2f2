"""Work in pieces: what an executor is given, and what became of each piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

T = TypeVar("T")
R = TypeVar("R")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Work(Protocol[T_contra, R_co]):
    """Something that can be done piece by piece; it is sent to other processes."""

    def do(self, task: T_contra, /) -> R_co:
        """Do one piece, in whatever process."""
        ...


class Done(Struct, Generic[T, R], frozen=True):
    """A piece that was done."""

    task: T
    result: R


class Lost(Struct, Generic[T], frozen=True):
    """A piece that cannot be divided, and that killed each worker which was given it."""

    task: T
    why: str


Outcome = Done[T, R] | Lost[T]


class Executor(Protocol):
    """Workers that do pieces in any order."""

    @property
    def size(self) -> int:
        """How many pieces are done at a time."""
        ...

    @property
    def shares_disk(self) -> bool:
        """Whether all of them see the files of this machine."""
        ...

    def begin(self, ready: Callable[[], object], /) -> None:
        """Have the workers get ready, without waiting for them: each calls this once."""
        ...

    def run(
        self,
        work: Work[T, R],
        tasks: Sequence[T],
        divide: Callable[[T], Sequence[T]],
    ) -> Iterator[Outcome[T, R]]:
        """What became of each task, as it is done; begun in the order of the tasks.

        `divide` gives the parts of a task that kills its workers, or nothing if it has none.
        What a piece raises is raised here.
        """
        ...
