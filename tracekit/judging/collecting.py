"""Looking for cycles among a replay's objects seldom: they live long or die at once, with none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OBJECTS_BETWEEN_COLLECTIONS: Final = 200_000


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Collect seldom inside of the block."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
