"""The folder in which this user's tracekit keeps what can be made again, and how it stays small."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "TRACEKIT_CACHE_DIR"


def cache_folder() -> Path:
    """Where this user's tracekit keeps what can be made again; it need not be there yet."""
    root = os.environ.get(CACHE_VARIABLE)
    if root:
        return Path(root)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracekit"


def make_room(folder: Path, most: int, most_bytes: int) -> None:
    """Let those files of a folder go that were used longest ago, where there are too many."""
    kept = sorted(
        (status.st_mtime_ns, status.st_size, path)
        for path in folder.iterdir()
        for status in (path.stat(),)
    )
    left, over = len(kept), sum(size for _, size, _ in kept) - most_bytes
    for _, size, path in kept:
        if left < most and over <= 0:
            return
        path.unlink(missing_ok=True)
        left, over = left - 1, over - size
