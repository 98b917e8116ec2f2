"""The pods of one key as the controller's informer held them, at any position of the pod stream.

A search for the cut that explains a sync walks through the positions of the stream, mostly from
the newest backwards. A cache that moves in both directions makes each step one assignment, where
building it anew would be one for each revision before the cut.

Upstream: client-go/tools/cache/store.go, of which this is the part that a lister reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tracekit.base.kube.views import PodView

DELETED = "DELETED"


class PodDelta(Protocol):
    """One revision of a pod in the stream, linked to the revision before it."""

    @property
    def type(self) -> str:
        """The type of its watch event."""
        ...

    @property
    def view(self) -> PodView:
        """The state that it brought; the last one if it is a deletion."""
        ...

    @property
    def previous(self) -> PodDelta | None:
        """The revision of the same pod before it."""
        ...


class PodCache:
    """An informer's cache that reads a given stream of deltas and can be moved along it.

    It holds exactly what applying the first `position` deltas of the stream to an empty cache
    would; the views in it are shared and never changed.
    """

    __slots__ = ("_pods", "position")

    def __init__(self) -> None:
        """Begin before the first delta."""
        self._pods: dict[str, PodView] = {}
        self.position = 0  # how many deltas of the stream have arrived

    def copy(self) -> PodCache:
        """A cache of its own at the same position."""
        result = PodCache()
        result._pods = dict(self._pods)
        result.position = self.position
        return result

    def pods(self) -> list[PodView]:
        """The pods, as a lister hands them out; in no order that means anything."""
        return list(self._pods.values())

    def move_to(self, deltas: Sequence[PodDelta], position: int) -> None:
        """Go forward or back until the first `position` of `deltas` have arrived."""
        pods = self._pods
        while self.position < position:
            delta = deltas[self.position]
            if delta.type == DELETED:
                pods.pop(delta.view.uid, None)
            else:
                pods[delta.view.uid] = delta.view
            self.position += 1
        while self.position > position:
            self.position -= 1
            before = deltas[self.position].previous
            if before is None or before.type == DELETED:
                pods.pop(deltas[self.position].view.uid, None)
            else:
                pods[before.view.uid] = before.view
