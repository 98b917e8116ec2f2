"""What the API server said to those who may not write Jobs and CronJobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tracekit.trace.importers.audit.entry import Entry

_BAD_REQUEST = 400
#: So much of a refusal's message is repeated where nothing else can be told.
_WORDS = 300
_KINDS = {"jobs": "Jobs", "cronjobs": "CronJobs"}


class Refusals:
    """Writes to Jobs and CronJobs that were refused, and the words about one of them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._number: Counter[str] = Counter()
        self._one = ""

    def note(self, stream: str, entry: Entry) -> None:
        """Count an entry of a stream, if it is about such a write that was refused."""
        if stream not in _KINDS or (entry.code or 0) < _BAD_REQUEST:
            return
        self._number[stream] += 1
        ref, at = entry.ref, entry.at or entry.received or entry.timestamp
        name = "" if ref is None else "/".join(filter(None, (ref.namespace, ref.name)))
        message = (entry.answer.message or "") if entry.answer is not None else ""
        self._one = (
            f"{entry.verb} of {name} by {entry.username} at {at} ({entry.code}): {message[:_WORDS]}"
        )

    def if_all(self, written: Mapping[str, int]) -> str | None:
        """What is said where each write (by stream: how many) to these was refused; else None."""
        number = sum(written.get(stream, 0) for stream in _KINDS)
        if not number or self._number.total() < number:
            return None
        kinds = " and ".join(kind for stream, kind in _KINDS.items() if written.get(stream))
        writes, which = ("write", "it") if number == 1 else ("writes", "all of them; one")
        return (
            f"the log has {number:,} {writes} to {kinds}, and the API server refused {which}: "
            f"{self._one}"
        )
