"""What happens on the virtual clock, in order: calls at a time, and tasks that wait.

A task is code that sleeps in the midst of what it does, as a controller's sync does while a request
is under way; meanwhile others run. It is a greenlet, so that the ports of the controllers stay the
plain functions that upstream has. One thing runs at a time; what is due at the same nanosecond runs
in the order in which it was asked for.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import greenlet

from tracekit.base.sim.clock import VirtualClock


class Task:
    """Code that runs until it sleeps, and goes on when its time has come."""

    __slots__ = ("_greenlet", "_loop")

    def __init__(self, loop: Loop, run: Callable[[], None]) -> None:
        self._loop = loop
        self._greenlet = greenlet.greenlet(run)

    def resume(self) -> None:
        """Run until it sleeps again; nothing where it has ended."""
        if not self._greenlet.dead:
            self._greenlet.parent = greenlet.getcurrent()
            self._greenlet.switch()

    def kill(self) -> None:
        """End it where it sleeps: what it would have done next is never done."""
        if not self._greenlet.dead and self._greenlet is not greenlet.getcurrent():
            self._greenlet.parent = greenlet.getcurrent()
            self._greenlet.throw(greenlet.GreenletExit)


class Loop:
    """The order of all that happens in a run."""

    __slots__ = ("_due", "_seq", "calls_left", "clock")

    def __init__(self, clock: VirtualClock, calls_max: int | None = None) -> None:
        self.clock = clock
        #: So many things may still happen; None: any number.
        self.calls_left = calls_max
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._seq = 0

    @property
    def now_ns(self) -> int:
        """The current time."""
        return self.clock.now_ns

    def at(self, at_ns: int, call: Callable[[], None]) -> None:
        """Call something at a time; a time that is past means now, after what is due now."""
        self._seq += 1
        now_ns = self.clock.now_ns
        heapq.heappush(self._due, (max(now_ns, at_ns), self._seq, call))

    def after(self, delay_ns: int, call: Callable[[], None]) -> None:
        """Call something once a delay has passed."""
        self.at(self.clock.now_ns + delay_ns, call)

    def task(self, run: Callable[[], None]) -> Task:
        """Start a task now, after what is due now."""
        task = Task(self, run)
        self.at(self.clock.now_ns, task.resume)
        return task

    def sleep_until(self, at_ns: int) -> None:
        """Let the task that calls this go on at a time; not for code that is no task's."""
        current = greenlet.getcurrent()
        parent = current.parent
        if parent is None:
            raise RuntimeError("only a task can sleep")
        self.at(at_ns, lambda: _go_on(current))
        parent.switch()

    def run_until(self, end_ns: int) -> None:
        """Let everything happen that is due up to and at a time, and move the clock there.

        Where no calls are left the clock stays at the last of them.
        """
        while self._due and self._due[0][0] <= end_ns:
            if self.calls_left is not None:
                if self.calls_left == 0:
                    return
                self.calls_left -= 1
            at_ns, _, call = heapq.heappop(self._due)
            self.clock.advance_to(at_ns)
            call()
        self.clock.advance_to(max(end_ns, self.clock.now_ns))


def _go_on(task: greenlet.greenlet) -> None:
    if not task.dead:
        task.parent = greenlet.getcurrent()
        task.switch()
