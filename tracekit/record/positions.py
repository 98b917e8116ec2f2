"""How far into its stream a watcher has got, and which frames it has seen before.

resourceVersions are opaque in principle. They are compared as numbers here for two things only:
never to resume earlier than what was seen when a server repeats or reorders frames, and to tell a
repeated delete from a new one. Revisions that are no numbers fall back to order of arrival.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

_REMEMBERED = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """Where a stream of an existing trace ends, and what lived then: uid → (revision, body)."""

    resource_version: str
    seen_ns: int
    objects: dict[str, tuple[str, bytes]]


def is_older(left: str, right: str | None) -> bool:
    """True when both are numbers and `left` is the smaller one."""
    if right is None or not (left.isdigit() and right.isdigit()):
        return False
    return int(left) < int(right)


class RecentFrames:
    """The latest frames of a stream, to notice repeats, and the latest deletes by uid."""

    def __init__(self) -> None:
        self._frames: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._deleted: OrderedDict[str, str] = OrderedDict()

    def is_repeat(self, frame_type: str, uid: str, resource_version: str) -> bool:
        """Tell whether this very frame was seen before, and remember it."""
        key = (frame_type, uid, resource_version)
        if key in self._frames:
            return True
        self._frames[key] = None
        if len(self._frames) > _REMEMBERED:
            self._frames.popitem(last=False)
        return False

    def deleted(self, uid: str, resource_version: str) -> None:
        """Remember a delete."""
        self._deleted[uid] = resource_version
        if len(self._deleted) > _REMEMBERED:
            self._deleted.popitem(last=False)

    def is_deleted_later(self, uid: str, resource_version: str) -> bool:
        """Tell whether a delete newer than this state was seen already."""
        return is_older(resource_version, self._deleted.get(uid))
