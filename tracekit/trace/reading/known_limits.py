"""Which traces this user's tracekit has found within its limits (`format/limits.py`) before.

To count what the pages of a segment come to, and to compare its rows with what its footer says of
them (`footer_statements.py`), takes far longer than to compare its bytes with their checksums. A
trace of which all was counted leaves an empty file behind, under a digest that all of its checksums
follow from, and the limits of that day; bytes that fit these were counted then. So does each footer
that Arrow can be asked about (`format/footers.py`). A machine without a place to write to counts
each time.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq

from tracekit.trace.format.footers import CHECKS, check_chunks
from tracekit.trace.format.limits import (
    GROUP_BYTES_MAX,
    RATIO_FROM_BYTES,
    RATIO_MAX,
    are_lifted,
)
from tracekit.trace.stores.cache_folder import cache_folder, make_room

#: The ones noted longest ago go when there are more; each is empty.
_MOST = 1_000
_FOOTERS_MOST = 20_000


def is_known_within(digest: str) -> bool:
    """Whether a trace of this content was counted before."""
    with suppress(OSError, RuntimeError):
        return _place(digest).exists()
    return False


def note_within(digest: str) -> None:
    """Remember that all of a trace of this content is within the limits."""
    if are_lifted():
        return
    with suppress(OSError, RuntimeError):
        place = _place(digest)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_room(place.parent, _MOST, most_bytes=0)
        place.touch(mode=0o600)


def check_once(metadata: pq.FileMetaData, footer: bytes, size: int) -> None:
    """`check_chunks` of a file, unless one of the very same footer was found in order before."""
    digest = hashlib.blake2b(footer, digest_size=20).hexdigest()
    place: Path | None = None
    with suppress(OSError, RuntimeError):
        place = cache_folder() / "footers" / f"{digest}-{size}-{CHECKS}"
        if place.exists():
            return
    check_chunks(metadata, footer, size)
    if place is not None:
        with suppress(OSError):
            if not place.parent.exists():
                place.parent.mkdir(mode=0o700, parents=True)
            _make_room_once(place.parent)
            place.touch(mode=0o600)


@cache
def _make_room_once(folder: Path) -> None:
    """At each footer of a long trace it would be dear; so there may be more for a while."""
    make_room(folder, _FOOTERS_MOST, most_bytes=0)


def _place(digest: str) -> Path:
    limits = f"footer-{GROUP_BYTES_MAX}-{RATIO_MAX}-{RATIO_FROM_BYTES}"
    return cache_folder() / "limits" / f"{digest}-{limits}"
