"""Narrow segments as DuckDB reads them: wide copies, kept in the user's own cache directory.

DuckDB cannot put texts together, so what a trace keeps narrow is widened before a query. A copy is
what `write_segment` writes, in a folder of its own under `TRACEKIT_CACHE_DIR` (else
`$XDG_CACHE_HOME/tracekit`), named by the content of the segment and by this code; it is verified
before it is believed. On a machine without a place for it, it lies among the temporary files for as
long as the session does.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from tracekit.judge.verdict_cache import code_digest
from tracekit.trace.format.model import LOG_DIR
from tracekit.trace.format.seal import DamageError
from tracekit.trace.format.segments import Segment, segment_name, write_segment
from tracekit.trace.reading.files import SegmentFile
from tracekit.trace.stores.cache_folder import cache_folder

_FOLDER = "wide"
#: The ones used longest ago go when there is more.
_BYTES_MAX = 4 << 30
_LEVEL = 1


def wide_copy(file: SegmentFile) -> SegmentFile:
    """The rows of a narrow segment in a file that has all columns.

    `DamageError` if its texts cannot be put together.
    """
    folder = _folder(file)
    if folder is not None:
        found = _verified(file, folder)
        if found is not None:
            return found
        with suppress(OSError):
            _make_room(folder.parent)
            return _written(file, folder)
    temporary = Path(mkdtemp(prefix="tracekit-"))
    try:
        return _written(file, temporary)
    finally:
        # What is open stays open.
        shutil.rmtree(temporary, ignore_errors=True)


def _folder(file: SegmentFile) -> Path | None:
    """Where the copy of this content belongs; None: nowhere."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{code_digest()} {file.content_digest}".encode())
    try:
        folder = cache_folder() / _FOLDER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder / digest.hexdigest()


def _verified(file: SegmentFile, folder: Path) -> SegmentFile | None:
    first, last = file.segment.first, file.segment.last
    segment = Segment(first, last, folder / LOG_DIR / segment_name(first, last))
    try:
        copy = SegmentFile(segment)
        copy.verify()
        os.utime(folder)  # used just now
    except (DamageError, OSError):
        return None
    return copy if copy.is_sealed and not copy.is_narrow else None


def _written(file: SegmentFile, folder: Path) -> SegmentFile:
    (folder / LOG_DIR).mkdir(mode=0o700, parents=True, exist_ok=True)
    first, last = file.segment.first, file.segment.last
    segment = write_segment(folder, file.unsorted(), first=first, last=last, level=_LEVEL)
    return SegmentFile(segment)


def _make_room(folder: Path) -> None:
    used = sorted(
        (entry.stat().st_mtime_ns, entry, sum(_sizes(entry))) for entry in folder.iterdir()
    )
    over = sum(size for _, _, size in used) - _BYTES_MAX
    for _, entry, size in used:
        if over <= 0:
            return
        shutil.rmtree(entry, ignore_errors=True)
        over -= size


def _sizes(folder: Path) -> Iterator[int]:
    return (path.stat().st_size for path in folder.rglob("*") if path.is_file())
