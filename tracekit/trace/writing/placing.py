"""A trace that is there whole or not at all: written beside its place, and renamed."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tracekit.base.errors import UsageError
from tracekit.base.stopping import INTERRUPTS
from tracekit.trace.writing.lock import TraceLock

_TRACE = "trace"
#: What more room helps against.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def check_absent(target: Path, what: str) -> None:
    """Refuse to replace anything, a link that leads nowhere too; `what`: as which it is made.

    Raises:
        UsageError: Something has that name.
    """
    if os.path.lexists(target):
        raise UsageError(f"{target} exists: choose another name for the {what}")


def unwritable(target: Path, error: OSError) -> UsageError:
    """That a trace cannot be written, and what to do."""
    room = "make room, or " if error.errno in _FULL else ""
    why = error.strerror or error
    return UsageError(
        f"{target} cannot be written ({why}): {room}choose another place for the output"
    )


@contextmanager
def placed(target: Path, doing: str) -> Iterator[Path]:
    """Where to write the trace: in a folder of its own, with room for more than it.

    What one that was killed left there goes; of one that still runs nothing does. The folder is
    made at once: nobody works for minutes to learn that there is no such place.

    Raises:
        TraceFormatError: Another process is writing it.
        UsageError: There is no room for it, or nobody may write there.
    """
    folder = target.with_name(f".{target.name}.{doing}")
    place = folder / _TRACE
    absent = [above for above in target.parents if not above.exists()]
    try:
        try:
            _make(folder)
        except OSError as error:
            raise unwritable(target, error) from error
        yield place
        with INTERRUPTS.put_off():
            _put(place, target)
    except OSError as error:
        if error.filename is not None and folder.name not in str(error.filename):
            raise  # of something that was read
        raise unwritable(target, error) from error
    finally:
        with INTERRUPTS.put_off():
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # what was made for nothing is empty
            for above in absent:
                above.rmdir()


def _make(folder: Path) -> None:
    """Make an empty folder."""
    if folder.exists():
        if (folder / _TRACE).exists():
            TraceLock(folder / _TRACE).release()
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def _put(finished: Path, target: Path) -> None:
    """Put the finished trace in the place of an older one, if there is one."""
    if not target.exists():
        finished.rename(target)
        return
    TraceLock(target).release()
    old = target.with_name(f".{target.name}.replaced")
    shutil.rmtree(old, ignore_errors=True)
    target.rename(old)
    finished.rename(target)
    shutil.rmtree(old)
