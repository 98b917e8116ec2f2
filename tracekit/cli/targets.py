"""Files that a verb writes for its user: made anew, unless --force says that one may be replaced.

Whether one is there is asked before the long work, and by the system again when it is put in its
place: a file or a link that somebody puts there meanwhile is not written to. It is written beside
its place and gets its name when it is whole, so that a full disk or Ctrl-C leaves no half of one,
and takes none away that was there.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from tracekit.base.errors import UsageError

#: What more room helps against.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: Of a file system that has no second names for a file.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
#: Where names stand for what a process has opened already: to be written on, not replaced.
_OPEN_ALREADY = ("/dev", "/proc")


def check_free(target: Path, *, force: bool, option: str = "-o") -> None:
    """Refuse to replace a file, or a link, also one that leads nowhere.

    Raises:
        UsageError: It is there, and `force` is not given.
    """
    if not force and os.path.lexists(target):
        raise UsageError(f"{target} exists: choose another name with {option}, or add --force")


def unwritable(target: Path | str, error: OSError, instead: str) -> UsageError:
    """That an output cannot be written, and what to do; `instead`: what to name."""
    room = "make room, or " if error.errno in _FULL else ""
    why = error.strerror or error
    return UsageError(f"{target} cannot be written ({why}): {room}name {instead}")


@contextmanager
def opened(
    target: Path, *, force: bool, instead: str = "another file with -o"
) -> Iterator[BinaryIO]:
    """The file to write bytes to; `instead`: what to name if this one cannot be written.

    Raises:
        UsageError: It cannot be made or written, or is there without `force`.
    """
    try:
        if _is_to_be_written_on(target, force=force):
            with target.open("wb") as file:
                yield file
            return
        with _beside(Path(os.path.realpath(target)) if force else target, force=force) as file:
            yield file
    except BrokenPipeError:  # of a pipe whose reader went away
        raise
    except OSError as error:
        raise unwritable(target, error, instead) from error


@contextmanager
def text_opened(
    target: Path, *, force: bool, instead: str = "another file with -o"
) -> Iterator[TextIO]:
    """As `opened`, for text with line feeds as they are."""
    with (
        opened(target, force=force, instead=instead) as file,
        io.TextIOWrapper(file, encoding="utf-8", newline="") as text,
    ):
        yield text


def _is_to_be_written_on(target: Path, *, force: bool) -> bool:
    """Whether it is a pipe, a device, or a file in a folder in which nothing can be made."""
    if not force or not target.exists():
        return False
    if not target.is_file() or target.absolute().is_relative_to(_OPEN_ALREADY[0]):
        return True
    folder = Path(os.path.realpath(target)).parent
    return target.absolute().is_relative_to(_OPEN_ALREADY[1]) or not os.access(folder, os.W_OK)


@contextmanager
def _beside(target: Path, *, force: bool) -> Iterator[BinaryIO]:
    place = target.with_name(f".tracekit-{secrets.token_hex(8)}")
    try:
        with place.open("xb") as file:
            if force:
                _take_after(target, file.fileno())
            yield cast("BinaryIO", file)
        _put(place, target, force=force)
    finally:
        place.unlink(missing_ok=True)


def _take_after(old: Path, new: int) -> None:
    """Give the owner and the mode of the file that is replaced, as a redirection leaves them."""
    with suppress(FileNotFoundError):
        was = old.stat()
        with suppress(OSError):
            os.fchown(new, was.st_uid, was.st_gid)
        os.fchmod(new, stat.S_IMODE(was.st_mode))


def _put(place: Path, target: Path, *, force: bool) -> None:
    try:
        if force:
            place.replace(target)
        else:
            target.hardlink_to(place)
    except OSError as error:
        if force and error.errno == errno.EBUSY:  # a file that is mounted there for itself
            shutil.copyfile(place, target)
        elif not force and error.errno in _NO_LINKS and not os.path.lexists(target):
            place.rename(target)
        else:
            raise
