"""What nobody can know of a run beforehand: delays, names, the order of a Go map.

The model asks for each such choice here, and whoever starts a run answers, from a seed or from a
record. The rooms of the model draw nothing themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Draws(Protocol):
    """The choices of one run; delays are nanoseconds."""

    def latency_ns(self) -> int:
        """How long a request takes, there and back."""
        ...

    def answer_ns(self, latency_ns: int) -> int:
        """From a commit to the answer, as a part of what the request takes."""
        ...

    def watch_lag_ns(self, kind: str) -> int:
        """From a commit to the informer of the controller manager."""
        ...

    def handler_lag_ns(self) -> int:
        """From an informer's cache to its event handlers."""
        ...

    def kubelet_lag_ns(self) -> int:
        """From the commit of a pod's deletion until what the kubelet does no longer ignores it."""
        ...

    def collection_ns(self) -> int:
        """From what the garbage collector sees to what it does."""
        ...

    def record_lag_ns(self, kind: str) -> int:
        """From a commit to the recorder."""
        ...

    def turn_ns(self) -> int:
        """From when a key is ready until a worker that slept takes it."""
        ...

    def sync_ns(self) -> int:
        """What a sync computes before its first request."""
        ...

    def suffix(self) -> str:
        """Five characters behind a generateName."""
        ...

    def uid(self) -> str:
        """The uid of a new object."""
        ...

    def pick(self, count: int) -> int:
        """One of so many things that are alike, by its place."""
        ...

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in the order of a Go map."""
        ...
