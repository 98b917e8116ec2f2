"""Row groups that are brought here before they are read, several at a time, if they lie elsewhere.

What does not fit its checksum is told when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from tracekit.trace.reading.files import SegmentFile
from tracekit.trace.stores.store import REQUESTS_AT_ONCE

#: Ahead of a reader, who may have seen enough after the first.
_AHEAD_MAX = 64

_File = TypeVar("_File")


def bring(parts: Iterable[tuple[object, int]]) -> None:
    """See that row groups are there."""
    wanted = [
        (file, group) for file, group in parts if isinstance(file, SegmentFile) and file.is_copy
    ]
    if not wanted:
        return
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        for one in [pool.submit(file.bring, group) for file, group in wanted]:
            one.result()


def brought(parts: Iterable[tuple[_File, int]]) -> Iterator[tuple[_File, int]]:
    """The same row groups one after the other, brought some ahead: ever more of them."""
    left, ahead = iter(parts), 1
    while some := list(islice(left, ahead)):
        bring(some)
        yield from some
        ahead = min(2 * ahead, _AHEAD_MAX)
