"""The three streams that a program is begun with, which need be neither open nor of any use.

Called by `main` before anything else is opened.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: The name that errors of stdout have.
STDOUT = "stdout"


def stand_in_for_closed() -> None:
    """Open what the caller closed (`>&-`), as git does: with nothing in it, and nobody behind it.

    Else the next file that is opened gets the number: a segment of the trace is stdout then, and
    what is printed, or written to /dev/stdout, goes into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the program's own
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - as above


def say_what_can_be_said() -> None:
    """Let no note be an error: a full disk or a lost terminal behind stderr changes no answer.

    A reader that went away (`2>&1 | head`) is told as ever, by `BrokenPipeError`.
    """
    encoding = "utf-8" if sys.stderr is None else sys.stderr.encoding
    raw = io.BufferedWriter(_Unheard(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(raw, encoding, "backslashreplace", line_buffering=True)


def name_what_is_printed() -> None:
    """Let an error of stdout's say that it is: a full disk behind it is not that of TMPDIR."""
    old = sys.stdout
    raw = io.BufferedWriter(_Named(1, "w", closefd=False))
    sys.stdout = io.TextIOWrapper(
        raw, old.encoding, old.errors, line_buffering=bool(old.line_buffering)
    )


class _Named(io.FileIO):
    """A file whose errors have its name."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write as much as can be."""
        try:
            return super().write(data)
        except OSError as error:
            error.filename = STDOUT
            raise


class _Unheard(io.FileIO):
    """A file in which what cannot be written is lost without a word."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write as much as can be; `BrokenPipeError` where nobody reads any more."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            return memoryview(data).nbytes
