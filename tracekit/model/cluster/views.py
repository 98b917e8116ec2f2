"""What is stored, as the views that its readers want: each part is read once.

Nobody changes what is stored, and a write shares with the revision before it whatever it leaves
alone. So a part that was read before need not be read again, whoever asks: an informer, a client
that gets its answer, or validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from tracekit.base.kube.views import JobView, PodView, job_from_raw, pod_from_raw

T = TypeVar("T")
#: So many parts are kept, to bound what a long run remembers.
_KEPT: Final = 20_000


class Views:
    """Reads the objects of one store."""

    __slots__ = ("_read",)

    def __init__(self) -> None:
        #: By identity; the part is kept with what was read, so that no other takes its place.
        self._read: dict[tuple[int, Callable[[Any], Any]], tuple[Any, Any]] = {}

    def job(self, raw: Mapping[str, Any]) -> JobView:
        """The view of a stored Job."""
        return self._once(self._job, raw)

    def pod(self, raw: Mapping[str, Any]) -> PodView:
        """The view of a stored Pod; each revision has but one reader, so its parts are kept."""
        return pod_from_raw(raw, self._once)

    def _job(self, raw: Mapping[str, Any]) -> JobView:
        return job_from_raw(raw, self._once)

    def _once(self, read: Callable[[Any], T], part: Any) -> T:
        key = (id(part), read)
        known = self._read.get(key)
        if known is not None:
            found: T = known[1]
            return found
        if len(self._read) >= _KEPT:
            self._read.clear()
        made = read(part)
        self._read[key] = (part, made)
        return made
