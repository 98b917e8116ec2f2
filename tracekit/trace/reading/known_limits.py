"""Which traces this user's tracekit has found within its limits (`format/limits.py`) before.

To count what the pages of a segment come to, and to compare its rows with what its footer says of
them (`footer_statements.py`), takes far longer than to compare its bytes with their checksums. A
trace of which all was counted leaves an empty file behind, under a digest that all of its checksums
follow from, and the limits of that day; bytes that fit these were counted then. A machine without a
place to write to counts each time.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tracekit.trace.format.limits import (
    GROUP_BYTES_MAX,
    RATIO_FROM_BYTES,
    RATIO_MAX,
    are_lifted,
)
from tracekit.trace.stores.cache_folder import cache_folder, make_room

#: The ones noted longest ago go when there are more; each is empty.
_MOST = 1_000


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


def _place(digest: str) -> Path:
    limits = f"footer-{GROUP_BYTES_MAX}-{RATIO_MAX}-{RATIO_FROM_BYTES}"
    return cache_folder() / "limits" / f"{digest}-{limits}"
