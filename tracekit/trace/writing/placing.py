"""A trace that is there whole or not at all: written beside its place, and renamed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracekit.base.errors import UsageError
from tracekit.trace.writing.lock import TraceLock

_TRACE = "trace"


@contextmanager
def placed(target: Path, doing: str) -> Iterator[Path]:
    """Where to write the trace: in a folder of its own, with room for more than it.

    What one that was killed left there goes; of one that still runs nothing does.

    Raises:
        TraceFormatError: Another process is writing it.
        UsageError: There is no room for it, or nobody may write there.
    """
    folder = target.with_name(f".{target.name}.{doing}")
    place = folder / _TRACE
    if folder.exists():
        if place.exists():
            TraceLock(place).release()
        shutil.rmtree(folder)
    try:
        yield place
        _put(place, target)
    except OSError as error:
        if error.filename is not None and folder.name not in str(error.filename):
            raise  # of something that was read
        raise UsageError(
            f"{target} cannot be written ({error.strerror or error}): make room, or choose "
            "another place for the output"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
