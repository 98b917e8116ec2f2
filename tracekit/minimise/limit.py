"""The time that a search may take, also where one attempt of it would not end."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from tracekit.base.stopping import on_signals

_T = TypeVar("_T")
#: What is raised amid a destructor is lost, so it is raised again.
_AGAIN_S: Final = 1.0


class OutOfTimeError(BaseException):
    """The time is over. No `except Exception` on the way may take it for a failure."""


class TimeLimit:
    """A time that is counted from `counting` on; what `run` runs ends with it."""

    def __init__(self, seconds: float = math.inf) -> None:
        self.seconds = seconds
        #: Whether it is over.
        self.is_over = False
        self._may_raise = False

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count. For the main thread alone."""
        with on_signals(self._came, signal.SIGALRM):
            signal.setitimer(signal.ITIMER_REAL, self.seconds, _AGAIN_S)
            try:
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _came(self) -> None:
        self.is_over = True
        if self._may_raise:
            raise OutOfTimeError

    def run(self, act: Callable[[], _T]) -> _T:
        """What `act` gives.

        Raises:
            OutOfTimeError: The time was over before that, or is now.
        """
        if self.is_over:
            raise OutOfTimeError
        try:
            try:
                self._may_raise = True
                return act()
            finally:
                self._may_raise = False
        except OutOfTimeError:  # it may have come amid the line above
            self._may_raise = False
            raise
        except Exception as error:  # amid a read of ours DuckDB makes an error of its own of it
            if self.is_over:
                raise OutOfTimeError from error
            raise
