"""The executor of this process alone: where there is one core, or one thing to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tracekit.judge.executors.tasks import Done, Outcome, R, T, Work


class Inline:
    """Does one task after the other."""

    size = 1
    shares_disk = True

    def begin(self, ready: Callable[[], object]) -> None:
        """This process is there."""
        del ready

    def run(
        self,
        work: Work[T, R],
        tasks: Sequence[T],
        divide: Callable[[T], Sequence[T]],
    ) -> Iterator[Outcome[T, R]]:
        """What became of each task."""
        del divide
        for task in tasks:
            yield Done(task, work.do(task))
