"""The states of one object as rows, each with a revision: told by the log, or chosen."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from tracekit.trace.format.model import Origin, RowType
from tracekit.trace.importers.audit.entry import Entry
from tracekit.trace.importers.audit.objects import Step
from tracekit.trace.importers.audit.revisions import RevisionClock
from tracekit.trace.importers.audit.unanswered import metadata_of
from tracekit.trace.importers.observation import Observation

Raw = dict[str, Any]

#: How many steps wait for a later revision.
_WAITING_MAX = 4096


def placed(
    steps: Iterable[Step],
    clock: RevisionClock,
    stream: str,
) -> Iterator[Observation | Step]:
    """The rows with a revision each; requests without a state pass as they are."""
    placer = _Placer(clock, stream)
    waiting: deque[Step] = deque()  # for the next revision that is known
    for step in steps:
        if step.type is RowType.CALL or step.held is None:
            yield step
            continue
        if step.rv is None and len(waiting) < _WAITING_MAX:
            waiting.append(step)
            continue
        while waiting:
            yield placer.place(waiting.popleft(), step.rv)
        yield placer.place(step, None)
    while waiting:
        yield placer.place(waiting.popleft(), None)


class _Placer:
    """Gives the states of one object, in their order, a revision each."""

    def __init__(self, clock: RevisionClock, stream: str) -> None:
        self._clock, self._stream = clock, stream
        self._last_rv = self._known_rv = 0

    def place(self, step: Step, following: int | None) -> Observation:
        """The row of a state; `following`: the next revision behind it that is known."""
        entry = step.entry
        at_ns = entry.at_ns or 0
        received_ns = entry.received_ns or at_ns
        low: int | None = None
        high: int | None = None
        rv, raw = step.rv, step.raw
        is_known = rv is not None
        if rv is None:
            rv, low, high = self._chosen(step, received_ns, at_ns, following)
        else:
            self._known_rv = max(self._known_rv, rv)
        obj: Raw | None = None
        if raw is None or not is_known or step.derived_from is not None:
            obj = step.obj or {}
            obj = {**obj, "metadata": {**metadata_of(obj), "resourceVersion": str(rv)}}
        self._last_rv = max(self._last_rv, rv)
        origin = Origin(
            derived_from=step.derived_from,
            rv_after=low,
            rv_before=high,
            not_before_ns=received_ns,
            actor=entry.username or None,
            actor_agent=entry.agent,
            verb=verb_of(entry),
        )
        return Observation(self._stream, step.type, at_ns, obj, raw, rv, origin)

    def _chosen(
        self, step: Step, received_ns: int, at_ns: int, following: int | None
    ) -> tuple[int, int, int | None]:
        """A revision, and between which it was chosen."""
        low, high = self._clock.bounds(received_ns, at_ns)
        low = max(low, self._known_rv)
        high = min(h for h in (high, following) if h is not None) if high or following else None
        if high is not None and high <= low:
            low, high = self._known_rv, following  # the clocks of several API servers disagree
        near = self._clock.likely(received_ns, at_ns)
        if step.latest and high is not None:
            near = high
        return self._clock.choose(max(low, self._last_rv), high, near=near), low, high


def verb_of(entry: Entry) -> str:
    """The verb, with the subresource if there is one."""
    sub = entry.ref.subresource if entry.ref is not None else ""
    return f"{entry.verb}/{sub}" if sub else entry.verb
