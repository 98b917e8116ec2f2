"""Retention of rotated traces (`tracekit.trace.stores.rotated`): the old ones are deleted.

Only what has such a name and is a trace is ever deleted, and only with its lock: the file of a lock
alone says nothing, a recorder that was killed leaves it behind.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from tracekit.base.errors import TraceFormatError
from tracekit.trace.stores.rotated import rotated_traces
from tracekit.trace.writing.lock import LOCK_NAME, TraceLock


def delete_expired(
    folder: Path,
    *,
    keep_ns: int | None,
    keep_bytes: int | None = None,
    now_ns: int,
    current: Path | None,
) -> list[Path]:
    """Delete what is past the retention, oldest first; returns what went.

    That is what was last written longer than `keep_ns` ago, and then as many as it takes to have
    no more than `keep_bytes` in the folder. The `current` trace stays; of too many the last stays.
    """
    traces = rotated_traces(folder)
    written_ns, sizes = {}, {}
    for path in traces:
        found = _stats(path)
        written_ns[path] = max((one.st_mtime_ns for one in found), default=0)
        sizes[path] = sum(one.st_size for one in found)
    total = sum(sizes.values())
    deleted = []
    for path in traces:
        is_old = keep_ns is not None and now_ns - written_ns[path] > keep_ns
        is_too_much = keep_bytes is not None and total > keep_bytes and path != traces[-1]
        if path != current and (is_old or is_too_much) and delete_trace(path):
            total -= sizes[path]
            deleted.append(path)
    return deleted


def _stats(trace: Path) -> list[os.stat_result]:
    """Look at all files of a trace; compaction may delete some meanwhile."""
    found = []
    for entry in trace.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            found.append(entry.stat())
    return found


def delete_trace(trace: Path) -> bool:
    """Delete a trace unless somebody writes to it; whether it went."""
    if not (trace / LOCK_NAME).exists():
        shutil.rmtree(trace, ignore_errors=True)
        return True
    try:
        lock = TraceLock(trace)
    except (OSError, TraceFormatError):
        return False
    shutil.rmtree(trace, ignore_errors=True)
    lock.release()
    return True
