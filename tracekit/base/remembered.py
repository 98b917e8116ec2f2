"""What was made of a text, for when that text comes again; for so many bytes of texts.

`functools.lru_cache` counts entries: a few thousand texts of some megabytes each fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Generic, TypeVar

K = TypeVar("K", bound=Sized)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Makes something of each text once, until there are too many texts; then it begins anew."""

    def __init__(self, make: Callable[[K], V], most: int) -> None:
        """`make` gives no None; `most`: bytes, or characters, of texts that are remembered.

        What is made may take many times as much. A text that is longer by itself is not remembered.
        """
        self._make = make
        self._most = most
        self._known: dict[K, V] = {}
        self._length = 0

    def of(self, text: K) -> V:
        """What is made of the text."""
        found = self._known.get(text)
        if found is None:
            found = self._make(text)
            if self._length + len(text) > self._most:
                self._known, self._length = {}, 0
            if len(text) <= self._most:
                self._known[text] = found
                self._length += len(text)
        return found
