"""One writer per trace: an advisory lock on `.lock` inside the trace.

The kernel gives the lock back when its holder dies, however it dies, so nothing is ever stale.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from tracekit.base.errors import TraceFormatError

LOCK_NAME = ".lock"


class TraceLock:
    """The right to write to a trace; taken when made, given back by `release` or `with`."""

    def __init__(self, trace: Path) -> None:
        self._path = trace / LOCK_NAME
        self._descriptor: int | None = None
        while self._descriptor is None:
            descriptor = self._opened()
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                raise TraceFormatError(
                    f"{trace} is being written by another tracekit: stop it first, or write to "
                    "another trace"
                ) from None
            if self._still_named(descriptor):
                self._descriptor = descriptor
            else:  # its last holder deleted the file between our open and our lock
                os.close(descriptor)

    def _opened(self) -> int:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            return os.open(self._path, flags, 0o644)
        except OSError as error:
            if self._path.is_symlink():
                raise TraceFormatError(
                    f"{self._path} is a link, and nothing in a trace is written through one: "
                    "delete it"
                ) from error
            raise

    def _still_named(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Give the lock back and leave no file."""
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
