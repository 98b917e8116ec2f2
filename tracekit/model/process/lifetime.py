"""The life of one process: what it does ends with it.

Everything a process plans goes through here, so that a death cuts off what is under way, in the
midst of a sync as well, and nothing of it happens later.
"""

from __future__ import annotations

from collections.abc import Callable

from tracekit.base.sim.loop import Loop, Task


class Life:
    """One run of the controller manager, from its start to its death."""

    __slots__ = ("_tasks", "alive", "loop")

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.alive = True
        self._tasks: dict[Task, None] = {}

    @property
    def now_ns(self) -> int:
        """The process's clock."""
        return self.loop.now_ns

    def at(self, at_ns: int, call: Callable[[], None]) -> None:
        """Call something at a time, unless the process is dead by then."""
        self.loop.at(at_ns, lambda: self._if_alive(call))

    def after(self, delay_ns: int, call: Callable[[], None]) -> None:
        """Call something after a delay, unless the process is dead by then."""
        self.at(self.loop.now_ns + delay_ns, call)

    def task(self, run: Callable[[], None]) -> None:
        """Start a goroutine."""

        def whole() -> None:
            try:
                run()
            finally:
                self._tasks.pop(task, None)

        task = self.loop.task(whole)
        self._tasks[task] = None

    def end(self) -> None:
        """Die, at once."""
        self.alive = False
        for task in tuple(self._tasks):
            task.kill()

    def _if_alive(self, call: Callable[[], None]) -> None:
        if self.alive:
            call()
