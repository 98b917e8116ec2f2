"""How far the server is known to have got, and since when: what a stream's distance is measured by.

Lists, bookmarks and events of any stream show a revision that the server had then. A stream whose
own revision is smaller may lack something since the first such moment; it lacks nothing once its
own events or a bookmark bring it there. So the distance is an upper bound: that of a quiet stream
in a busy cluster grows until the next bookmark, about a minute, proves that nothing happened.
"""

from __future__ import annotations

import threading
from collections import deque

#: Moments closer together than this are one.
_GRAIN_NS = 250_000_000
_MOMENTS_MAX = 2400


class Horizon:
    """The revisions of one server over time; used by the threads of several streams."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._moments: deque[tuple[int, int]] = deque(maxlen=_MOMENTS_MAX)
        self._latest = -1
        self._latest_ns = 0

    def saw(self, revision: int, at_ns: int) -> None:
        """Note that the server had a revision at a time."""
        if revision <= self._latest:
            return
        with self._lock:
            if revision > self._latest:
                self._latest, self._latest_ns = revision, at_ns
                if not self._moments or at_ns - self._moments[-1][1] >= _GRAIN_NS:
                    self._moments.append((revision, at_ns))

    def forget(self) -> None:
        """Begin anew: the server went back."""
        with self._lock:
            self._moments.clear()
            self._latest = -1

    def behind_ns(self, revision: int, now_ns: int) -> int:
        """Tell for how long the server has been known to be beyond a revision; 0 if it is not."""
        with self._lock:
            if self._latest <= revision:
                return 0
            since_ns = next((at for seen, at in self._moments if seen > revision), self._latest_ns)
        return max(0, now_ns - since_ns)
