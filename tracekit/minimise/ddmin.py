"""Delta debugging: the fewest of some things that still pass a test (Zeller, Hildebrandt 2002).

Deterministic: what is tried, and in which order, follows from the things' order alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def ddmin(things: Sequence[T], still: Callable[[Sequence[T]], bool]) -> list[T]:
    """Leave out ever smaller pieces as long as the rest passes; all of `things` passes already."""
    kept = list(things)
    if kept and still([]):
        return []
    pieces = 2
    while kept:
        size = -(-len(kept) // pieces)
        start, smaller = 0, False
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if rest != kept and still(rest):
                kept, smaller = rest, True  # the next piece begins where this one did
            else:
                start += size
        if size == 1 and not smaller:
            break
        pieces = min(len(kept), pieces if smaller and size == 1 else pieces * 2) or 1
    return kept
