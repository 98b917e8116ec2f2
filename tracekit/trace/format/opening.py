"""Opening what lies inside a trace: plain files only, and nothing through a link.

A trace may come from anybody. A name in it that is a link, a pipe or a device would have tracekit
read, wait for or write something else than the trace; so every file and folder below the trace's
own directory is opened by its own name, and must be what it should be. The directory of the trace
itself is the user's word: it may be a link.
"""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tracekit.base.errors import TraceFormatError

#: A pipe must not make the opening wait for somebody who writes to it.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHANGE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKS = frozenset({errno.ELOOP, errno.EMLINK})


def open_inside(trace: Path, *names: str, change: bool = False) -> BinaryIO:
    """Open the file `trace/names…` for reading; `FileNotFoundError` if it is not there.

    `change`: for writing into it, too.
    """
    path = trace.joinpath(*names)
    with _folder(trace, *names[:-1]) as folder:
        try:
            descriptor = _opened(names[-1], folder, _CHANGE if change else _READ)
        except OSError as error:
            raise _explained(error, path) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise TraceFormatError(
            f"{path} is not a plain file: a trace has only files and folders; take it out"
        )
    return os.fdopen(descriptor, "rb+" if change else "rb", buffering=0)


def _opened(name: str, folder: int, how: int) -> int:
    try:
        return os.open(name, how, dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EMFILE or not more_files():
            raise
    return os.open(name, how, dir_fd=folder)


def more_files() -> bool:
    """Take as many open files as this process may have; whether that is more than before.

    A snapshot keeps all of its files open.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return True


def read_inside(trace: Path, name: str, *, bytes_max: int) -> bytes:
    """The content of a small file of the trace."""
    with open_inside(trace, name) as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise TraceFormatError(
            f"{trace / name} is larger than {bytes_max >> 20} MiB, which no writer makes it: "
            "restore it from a copy of the trace"
        )
    return content


def names_inside(trace: Path, *folder: str) -> list[str]:
    """The names in a folder of the trace; `FileNotFoundError` if it is not there."""
    with _folder(trace, *folder) as descriptor:
        return os.listdir(descriptor)  # noqa: PTH208 - a descriptor has no path


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Make a file of this process's own, in place of what was left under its name."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, _NEW, 0o644), "wb") as file:
        yield file


def require_folder(path: Path) -> None:
    """Refuse to write into a folder of a trace that leads elsewhere."""
    if path.is_symlink():
        raise TraceFormatError(_link(path))


@contextmanager
def _folder(trace: Path, *names: str) -> Iterator[int]:
    path = trace
    descriptor = os.open(trace, _FOLDER)
    try:
        for name in names:
            path /= name
            try:
                inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            except OSError as error:
                raise _explained(error, path) from error
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _explained(error: OSError, path: Path) -> Exception:
    if error.errno in _LINKS or (error.errno == errno.ENOTDIR and path.is_symlink()):
        return TraceFormatError(_link(path))
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return TraceFormatError(
            f"{path} cannot be opened, too many files are: allow more with `ulimit -n`, or name "
            "fewer traces"
        )
    return error


def _link(path: Path) -> str:
    return (
        f"{path} is a link, and nothing in a trace is read or written through one: put what it "
        "leads to in its place if it belongs to the trace"
    )
