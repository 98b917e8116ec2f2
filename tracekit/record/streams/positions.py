"""How far into its stream a watcher has got, and which frames it has seen before.

resourceVersions are opaque in principle. They are compared as numbers here for two things only:
never to resume earlier than what was seen when a server repeats or reorders frames, and to tell a
repeated delete from a new one. Revisions that are no numbers fall back to order of arrival.
"""

from __future__ import annotations

from msgspec import Struct

from tracekit.base.numbers import whole_number

_REMEMBERED = 4096


class ResumePoint(Struct, frozen=True, kw_only=True):
    """Where a stream of an existing trace ends, and what lived then: uid → (revision, body)."""

    resource_version: str
    seen_ns: int
    objects: dict[str, tuple[str, bytes]]


def is_older(left: str, right: str | None) -> bool:
    """True when both are numbers and `left` is the smaller one."""
    if right is None:
        return False
    left_number, right_number = whole_number(left), whole_number(right)
    return left_number is not None and right_number is not None and left_number < right_number


class RecentFrames:
    """The latest frames of a stream, to notice repeats, and the latest deletes by uid.

    Two generations: when the younger one is full, the older one is forgotten whole.
    """

    def __init__(self) -> None:
        self._frames: set[tuple[str, str, str]] = set()
        self._older_frames: set[tuple[str, str, str]] = set()
        self._deleted: dict[str, str] = {}
        self._older_deleted: dict[str, str] = {}

    def seen(self, frame_type: str, uid: str, resource_version: str) -> None:
        """Remember a frame."""
        self._frames.add((frame_type, uid, resource_version))
        if len(self._frames) >= _REMEMBERED:
            self._older_frames, self._frames = self._frames, set()

    def is_repeat(self, frame_type: str, uid: str, resource_version: str) -> bool:
        """Tell whether this very frame was seen before, and remember it."""
        key = (frame_type, uid, resource_version)
        if key in self._frames or key in self._older_frames:
            return True
        self.seen(*key)
        return False

    def deleted(self, uid: str, resource_version: str) -> None:
        """Remember a delete."""
        self._deleted[uid] = resource_version
        if len(self._deleted) >= _REMEMBERED:
            self._older_deleted, self._deleted = self._deleted, {}

    def is_deleted_later(self, uid: str, resource_version: str) -> bool:
        """Tell whether a delete newer than this state was seen already."""
        deleted = self._deleted.get(uid) or self._older_deleted.get(uid)
        return is_older(resource_version, deleted)
