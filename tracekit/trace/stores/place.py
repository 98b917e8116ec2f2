"""From a word to the directory of a trace: the word itself, or the copy of what its URL names.

Every reader of traces passes here, so that a URL does wherever a directory does.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracekit.trace.stores.origin import Origin

#: From where the copies come that this process has brought up to date. Only a word of the user's
#: names an origin: nothing that lies in the directory of a trace does.
_origins: dict[Path, Origin] = {}
_URL = re.compile(r"[a-z][a-z0-9+.-]*://.+", re.IGNORECASE)


def is_url(word: str) -> bool:
    """Whether the word names something that lies in no directory of this machine."""
    return _URL.fullmatch(word) is not None


def local_trace(word: str | Path) -> Path:
    """The directory of a trace: the word itself, or for a URL an up-to-date copy of it."""
    if isinstance(word, Path) or not is_url(word):
        return Path(word)
    from tracekit.trace.stores.mirror import mirrored  # noqa: PLC0415 - slow to import

    copy, origin = mirrored(word)
    _origins[copy] = origin
    return copy


def origin_of(trace: Path) -> Origin | None:
    """Where the rest of a copy lies; None for the directory of a trace that is whole."""
    return _origins.get(trace)


def expand_url(pattern: str) -> list[str]:
    """The URLs of the traces that a pattern over folders names, like `s3://bucket/night-*`."""
    from tracekit.trace.stores.mirror import matching  # noqa: PLC0415 - slow to import

    return matching(pattern)


def known_copy(url: str) -> Path:
    """Where the copy of a trace lies, if there is one, without a look at the network."""
    from tracekit.trace.stores.mirror import folder_of  # noqa: PLC0415 - slow to import
    from tracekit.trace.stores.store import locate  # noqa: PLC0415 - slow to import

    return folder_of(locate(url))
