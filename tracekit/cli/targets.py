"""Files that a verb writes for its user: made anew, unless --force says that one may be replaced.

Whether one is there is asked before the long work, and by the system again when it is made: a file
or a link that somebody puts in its place meanwhile is not written to.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from tracekit.base.errors import UsageError


def check_free(target: Path, *, force: bool, option: str = "-o") -> None:
    """Refuse to replace a file, or a link, also one that leads nowhere.

    Raises:
        UsageError: It is there, and `force` is not given.
    """
    if not force and os.path.lexists(target):
        raise UsageError(f"{target} exists: choose another name with {option}, or add --force")


def opened(target: Path, *, force: bool) -> BinaryIO:
    """The file to write bytes to.

    Raises:
        OSError: It cannot be made, or is there without `force`.
    """
    return cast("BinaryIO", target.open("wb" if force else "xb"))


def text_opened(target: Path, *, force: bool) -> TextIO:
    """As `opened`, for text with line feeds as they are."""
    return cast("TextIO", target.open("w" if force else "x", encoding="utf-8", newline=""))
