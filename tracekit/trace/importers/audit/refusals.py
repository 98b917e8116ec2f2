"""What the API server said to those who may not write, and who deleted some Jobs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from tracekit.base.kube.rights import missing_right
from tracekit.trace.importers.audit.entry import Entry
from tracekit.trace.importers.audit.placing import verb_of

_BAD_REQUEST = 400
#: So much of a refusal's message is repeated where nothing else can be told.
_WORDS = 300
#: So many deletions are named.
_SHOWN = 3
_KINDS = {"jobs": "Jobs", "cronjobs": "CronJobs", "pods": "Pods"}
#: Those of which all writes have to be refused, to be told; what is asked for most comes first.
_TOGETHER = (("jobs", "cronjobs"), ("pods",))


class Refusals:
    """Writes to Jobs, CronJobs and pods that were refused, and the words about one of them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._number: Counter[str] = Counter()
        #: By stream: the last one, and what to do.
        self._one: dict[str, str] = {}
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
        message = (entry.answer.words or "") if entry.answer is not None else ""
        right = missing_right(message)
        todo = f". {right.todo}" if right is not None else ""
        verb = verb_of(entry)
        self._one[stream] = (
            f"{verb} of {name} by {entry.username} at {at} ({entry.code}): {message[:_WORDS]}{todo}"
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
        return next(filter(None, (self._all_of(streams, written) for streams in _TOGETHER)), None)

    def _all_of(self, streams: Sequence[str], written: Mapping[str, int]) -> str | None:
        number = sum(written.get(stream, 0) for stream in streams)
        if not number or sum(self._number[stream] for stream in streams) < number:
            return None
        there = [stream for stream in streams if written.get(stream)]
        kinds = " and ".join(_KINDS[stream] for stream in there)
        writes, which = ("write", "it") if number == 1 else ("writes", "all of them; one")
        return (
            f"the log has {number:,} {writes} to {kinds}, and the API server refused {which}: "
            f"{self._one[there[0]]}"
        )
