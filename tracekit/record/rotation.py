"""Names and retention of rotated traces: one folder, one trace per period, the old ones deleted.

A trace is named by the time it was begun, so names sort by time and `tracekit sql FOLDER/*` reads
them in order. Only what has such a name and is a trace is ever deleted.
"""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

from tracekit.trace.lock import LOCK_NAME
from tracekit.trace.model import HEADER_NAME

_NAME = re.compile(r"\d{8}T\d{6}Z(?:-\d+)?")
_NS = 1_000_000_000


def new_trace_path(folder: Path, now_ns: int) -> Path:
    """Choose the path of a trace that begins now."""
    stamp = datetime.fromtimestamp(now_ns // _NS, UTC).strftime("%Y%m%dT%H%M%SZ")
    path = folder / stamp
    number = 1
    while path.exists():
        number += 1
        path = folder / f"{stamp}-{number}"
    return path


def rotated_traces(folder: Path) -> list[Path]:
    """List the traces of a folder, oldest first."""
    if not folder.is_dir():
        return []
    found = [
        path
        for path in folder.iterdir()
        if _NAME.fullmatch(path.name) and (path / HEADER_NAME).is_file()
    ]
    return sorted(found, key=lambda path: path.name)


def delete_expired(folder: Path, *, keep_ns: int, now_ns: int, current: Path) -> list[Path]:
    """Delete traces that were last written before the retention; returns what went."""
    deleted = []
    for path in rotated_traces(folder):
        if path == current or (path / LOCK_NAME).exists():
            continue
        newest_ns = max((entry.stat().st_mtime_ns for entry in path.rglob("*")), default=0)
        if now_ns - newest_ns > keep_ns:
            shutil.rmtree(path, ignore_errors=True)
            deleted.append(path)
    return deleted
