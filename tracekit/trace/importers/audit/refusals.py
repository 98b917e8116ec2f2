"""What the API server said to those who may not write Jobs and CronJobs, and who deleted some."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

from tracekit.base.kube.rights import missing_right
from tracekit.trace.importers.audit.entry import Entry

_BAD_REQUEST = 400
#: So much of a refusal's message is repeated where nothing else can be told.
_WORDS = 300
#: So many deletions are named.
_SHOWN = 3
_KINDS = {"jobs": "Jobs", "cronjobs": "CronJobs"}


class Refusals:
    """Writes to Jobs and CronJobs that were refused, and the words about one of them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._number: Counter[str] = Counter()
        self._one = ""
        self._todo = ""
        #: Of Jobs, by whom and when.
        self._deletions: deque[str] = deque(maxlen=_SHOWN)
        self._deleted = 0

    def note(self, stream: str, entry: Entry) -> None:
        """Count an entry of a stream, if it is about such a write that was refused, or deletes."""
        if stream not in _KINDS:
            return
        ref, at = entry.ref, entry.at or entry.received or entry.timestamp
        name = "" if ref is None else "/".join(filter(None, (ref.namespace, ref.name)))
        if (entry.code or 0) < _BAD_REQUEST:
            if stream == "jobs" and str(entry.verb or "").startswith("delete"):
                said = f"{entry.verb} of {name} by {entry.username} at {at}"
                self._deletions.append(said[:_WORDS])
                self._deleted += 1
            return
        self._number[stream] += 1
        message = (entry.answer.message or "") if entry.answer is not None else ""
        right = missing_right(message)
        self._todo = f". {right.todo}" if right is not None else ""
        self._one = (
            f"{entry.verb} of {name} by {entry.username} at {at} ({entry.code}): {message[:_WORDS]}"
        )

    def deletions(self) -> str:
        """Who deleted Jobs, of several the last ones, as a part of a sentence; "" where nobody."""
        if not self._deletions:
            return ""
        more = self._deleted - len(self._deletions)
        before = f"; {more:,} before" if more else ""
        return f" ({', '.join(self._deletions)}{before})"

    def if_all(self, written: Mapping[str, int]) -> str | None:
        """What is said where each write (by stream: how many) to these was refused; else None."""
        number = sum(written.get(stream, 0) for stream in _KINDS)
        if not number or self._number.total() < number:
            return None
        kinds = " and ".join(kind for stream, kind in _KINDS.items() if written.get(stream))
        writes, which = ("write", "it") if number == 1 else ("writes", "all of them; one")
        return (
            f"the log has {number:,} {writes} to {kinds}, and the API server refused {which}: "
            f"{self._one}{self._todo}"
        )
