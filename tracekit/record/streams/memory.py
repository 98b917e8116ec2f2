"""What one stream has shown so far: which objects live, which frames came, how far revisions got.

A revision beyond all that was met cannot be a repeat nor out of order; that is nearly every frame,
and the only one whose price counts. The others are looked up.
"""

from __future__ import annotations

from tracekit.base.live_objects import KnownObjects
from tracekit.base.numbers import whole_number
from tracekit.record.streams.frames import Frame
from tracekit.record.streams.positions import RecentFrames, ResumePoint, is_older


class StreamMemory:
    """Tells repeats from news, and keeps the last state of what lives."""

    def __init__(self, *, keeps_bodies: bool) -> None:
        self.known = KnownObjects()
        self._keeps_bodies = keeps_bodies
        self._recent = RecentFrames()
        #: The greatest revision met.
        self._newest = -1

    def resume(self, point: ResumePoint) -> None:
        """Start with what a trace knows."""
        self.met(point.resource_version)
        for uid, (revision, body) in point.objects.items():
            self.known.put(uid, revision, body)
            self.met(revision)

    def met(self, revision: str) -> None:
        """Note a revision of a list, a bookmark or an object."""
        number = whole_number(revision)
        if number is not None and number > self._newest:
            self._newest = number

    def is_news(self, frame: Frame) -> bool:
        """Tell whether a frame is beyond all that was met; then it must be given to `keep_news`."""
        number = whole_number(frame.resource_version)
        if number is None or number <= self._newest:
            return False
        self._newest = number
        return True

    def keep_news(self, frame: Frame, raw: bytes) -> None:
        """Remember a frame that is news, and the text written for it."""
        uid, revision = frame.uid, frame.resource_version
        self._recent.seen(frame.type, uid, revision)
        if frame.type == "DELETED":
            self.known.drop(uid)
            self._recent.deleted(uid, revision)
        else:
            self.known.put(uid, revision, raw if self._keeps_bodies else b"")

    def is_repeat(self, frame: Frame) -> bool:
        """Tell whether a frame that is no news was written before, and remember it."""
        if self._recent.is_repeat(frame.type, frame.uid, frame.resource_version):
            return True
        # After a resume: what the trace (or the list) has already. A delete leaves nothing known.
        if frame.type == "DELETED":
            return False
        return self.known.revision(frame.uid) == frame.resource_version

    def keep(self, frame: Frame, raw: bytes) -> None:
        """Remember the state in a frame that is no news, unless a later one is known."""
        uid, revision = frame.uid, frame.resource_version
        if frame.type == "DELETED":
            self.known.drop(uid)
            self._recent.deleted(uid, revision)
        elif not self._recent.is_deleted_later(uid, revision):
            self.keep_state(uid, revision, raw)

    def keep_state(self, uid: str, revision: str, raw: bytes) -> None:
        """Remember an object's state unless a later one is known."""
        if not is_older(revision, self.known.revision(uid)):
            self.known.put(uid, revision, raw if self._keeps_bodies else b"")
        self.met(revision)
