"""Reading files that a configuration names: plain files of bounded size, whatever leads to them.

A pipe would have its reader wait for somebody who writes, a device has no end. Links are followed:
Kubernetes mounts tokens and certificates behind some.
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

#: A pipe must not make the opening wait for somebody who writes to it.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class NoPlainFileError(Exception):
    """A file that is none to read whole; the message says why, and not its name."""


def read_plain_file(path: str | Path, *, bytes_max: int) -> bytes:
    """The whole content of a file.

    Raises:
        NoPlainFileError: it is a pipe, device or folder, or larger.
        OSError: it cannot be read.
    """
    with os.fdopen(os.open(path, _FLAGS), "rb", buffering=0, closefd=True) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NoPlainFileError("is no plain file, which alone can be read again")
        return _read(file, bytes_max)


def read_bounded(path: str | Path, *, bytes_max: int) -> bytes:
    """The whole content of what a user names, which may be a pipe of the shell's (`<(…)`).

    In a folder of somebody else's that may be a link to a device without an end.

    Raises:
        NoPlainFileError: it is larger.
        OSError: it cannot be read.
    """
    with Path(path).open("rb", buffering=0) as file:
        return _read(file, bytes_max)


def _read(file: io.RawIOBase, bytes_max: int) -> bytes:
    found = bytearray()
    while len(found) <= bytes_max and (part := file.read(bytes_max + 1 - len(found))):
        found += part
    if len(found) > bytes_max:
        raise NoPlainFileError(f"has more than {_shown(bytes_max)}")
    return bytes(found)


def _shown(size: int) -> str:
    return f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB"
