"""The traces of a folder that a recorder rotates: one for each period, named by when it was begun.

Such names sort by time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from tracekit.kube.timestamps import NS_PER_S
from tracekit.trace.format.model import HEADER_NAME

_NAME = re.compile(r"\d{8}T\d{6}Z(?:-\d+)?")


def new_trace_path(folder: Path, now_ns: int) -> Path:
    """Choose the path of a trace that begins now."""
    stamp = datetime.fromtimestamp(now_ns // NS_PER_S, UTC).strftime("%Y%m%dT%H%M%SZ")
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
