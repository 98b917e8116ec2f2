"""What the libraries of archives say of one that is damaged, made one kind of error.

An archive may come from anybody, and `tarfile` and `zipfile` raise at odd bytes whatever their
parsing trips over: a number that is none, a name that is no text, a method that they have not.
"""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from tarfile import TarError
from typing import IO

from tracekit.base.errors import TracekitError
from tracekit.trace.importers.source import Unpacked

#: `RuntimeError`: a password is asked for, a method is not known. `ValueError`: also texts.
_RAISED = (
    *(TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, OSError, RuntimeError, ValueError, ArithmeticError, LookupError),
)


class BrokenArchiveError(Exception):
    """An archive, or a file in it, is not what it should be; the text says in what."""


@contextmanager
def archive_errors() -> Iterator[None]:
    """Make every complaint of a library about an archive a `BrokenArchiveError`."""
    try:
        yield
    except (TracekitError, BrokenArchiveError):
        raise
    except _RAISED as error:
        raise BrokenArchiveError(_said(error)) from error


def _said(error: Exception) -> str:
    """The complaint as the rest of a sentence; zipfile prints its own objects in one of them."""
    if "password required" in str(error):
        return "it is encrypted"
    if isinstance(error, RecursionError):  # tarfile reads header after header by calling itself
        return "one file in it has more headers than any archive needs"
    return str(error) or type(error).__name__


class Member(io.RawIOBase):
    """A file in an archive; `unpacked` counts what the library unpacks by itself."""

    def __init__(self, file: IO[bytes], unpacked: Unpacked | None = None) -> None:
        self._file, self._unpacked = file, unpacked

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """As `RawIOBase`."""
        with archive_errors():
            data = self._file.read(len(buffer))
        if self._unpacked is not None:
            self._unpacked.take(data)
        buffer[: len(data)] = data
        return len(data)
