"""The folder in which this user's tracekit keeps what can be made again, and how it stays small."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from tracekit.base.errors import UsageError
from tracekit.base.home import own_folder

CACHE_VARIABLE = "TRACEKIT_CACHE_DIR"


def cache_folder() -> Path:
    """Where this user's tracekit keeps what can be made again; it need not be there yet.

    Raises:
        UsageError: The user has no home directory, and named no folder; or somebody else can write
            in the one that is theirs, and so the verdicts that would be read from it.
    """
    root = os.environ.get(CACHE_VARIABLE)
    if root:
        return Path(root)
    folder = own_folder("XDG_CACHE_HOME", ".cache")
    if folder is None:
        raise UsageError(
            "this user has no home directory to keep verdicts and copies in: name a folder that "
            f"it may write with {CACHE_VARIABLE}"
        )
    with suppress(OSError):
        about = folder.stat()
        if about.st_uid not in {0, os.geteuid()} or about.st_mode & stat.S_IWOTH:
            raise UsageError(
                f"{folder}: others can write there, and what is kept there is believed: make it "
                f"yours alone (chown, chmod 700), or name another folder with {CACHE_VARIABLE}"
            )
    return folder


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
