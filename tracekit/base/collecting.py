"""Looking for cycles seldom where millions of objects are made that live long or die at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

_OBJECTS_BETWEEN_COLLECTIONS: Final = 1_000_000


class _Inside:
    """How many blocks run, of all threads, and the thresholds that there were before the first."""

    lock: Final = Lock()
    blocks = 0
    before: tuple[int, int, int] = (0, 0, 0)
    #: What blocks have left since the last one after which cycles were looked for.
    left = 0


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Collect seldom inside of the block, and not at its end because of what was made in it."""
    with _Inside.lock:
        if _Inside.blocks == 0:
            _Inside.before = gc.get_threshold()
            gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *_Inside.before[1:])
        _Inside.blocks += 1
    try:
        yield
    finally:
        with _Inside.lock:
            _Inside.blocks -= 1
            if _Inside.blocks == 0:
                _leave()


def _leave() -> None:
    """Set the thresholds back; what is new counts as old, unless there is much of it by now."""
    _Inside.left += gc.get_count()[0]
    if _Inside.left < _OBJECTS_BETWEEN_COLLECTIONS and gc.get_freeze_count() == 0:
        # The lists of all generations are joined, and nothing is looked through.
        gc.freeze()
        gc.unfreeze()
    else:
        _Inside.left = 0
    gc.set_threshold(*_Inside.before)
