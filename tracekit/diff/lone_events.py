"""Events of syncs that left nothing but an Event.

Such a sync was refused, met a conflict, or wrote what was there already. It is looked for between
the syncs that are explained: the controller is run on what its caches can have held there, and a
sync that would have left no write is asked which Events it hands out.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracekit.diff.events import EVENT_SLACK_NS
from tracekit.replay.explanations import CutSearch
from tracekit.replay.history import EventRow
from tracekit.replay.key_facts import KeyFacts
from tracekit.replay.search_state import Explanation

#: Events about calls that were refused: their messages end in the server's words.
_REFUSALS = ("FailedCreate", "FailedDelete")


class LoneEvents:
    """What syncs of one key without a write may have told."""

    def __init__(self, search: CutSearch, syncs: Sequence[Explanation]) -> None:
        self._search = search
        self._syncs = [sync for sync in syncs if sync.job is not None]
        #: By the number of the explained sync that came before: what may have been told after it.
        self._told: dict[int, set[tuple[str, str, str]]] = {}

    def may_tell(self, row: EventRow) -> bool:
        """Whether such a sync can have handed out this Event before it arrived."""
        if row.reason in _REFUSALS and any(sync.refused for sync in self._syncs):
            return True
        wanted = (row.event_type, row.reason, "" if row.reason in _REFUSALS else row.message)
        for number in range(len(self._syncs) + 1):
            before = self._syncs[number - 1] if number else None
            if before is not None and before.writes[0].recv_ns > row.recv_ns + EVENT_SLACK_NS:
                break
            if wanted in self._after(number):
                return True
        return False

    def _after(self, number: int) -> set[tuple[str, str, str]]:
        found = self._told.get(number)
        if found is None:
            before = self._syncs[number - 1] if number else None
            following = self._syncs[number] if number < len(self._syncs) else None
            found = self._told[number] = set()
            for silent in self._search.silent_between(before, following, right_after=True):
                found |= {(event.type, event.reason, event.message) for event in silent.events}
                if silent.refused:
                    found.add(("Warning", "FailedCreate", ""))
        return found


def of_unseen_sync(facts: KeyFacts, row: EventRow) -> bool:
    """Whether the sync that emitted the Event may lie in a time that was not seen."""
    history = facts.history
    if not any(job.view.uid == row.involved_uid for job in history.jobs):
        return True
    if not facts.blind_until_ns:
        return False
    last_blind_ns = max(facts.blind_until_ns)
    named = [job for job in history.jobs if job.rv == row.involved_rv]
    # The Job that it names was not seen, or was still the newest when the record was blind.
    return not named or any(job.recv_ns <= last_blind_ns for job in named)
