"""Events of syncs that left nothing but an Event.

Such a sync was refused, met a conflict, or wrote what was there already. It is looked for between
the syncs that are explained: the controller is run on what its caches can have held there, and a
sync that would have left no write is asked which Events it hands out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from tracekit.base.kube.events import COMBINED, REFUSED_CALLS
from tracekit.base.kube.views import PodView
from tracekit.check.diff.events import EVENT_SLACK_NS, events_of
from tracekit.check.replay.explanations import CutSearch
from tracekit.check.replay.history import DELETED_POD, EventRow, Revision
from tracekit.check.replay.interruptions import CUT_OFF_NS
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.recorded_api import PredictedEvent
from tracekit.check.replay.search_state import Explanation, KeyReplay, SilentSync, WithoutSync
from tracekit.check.verdict import Reason

_WARNING = "Warning"

_OF_DELETIONS = ("SuccessfulDelete", "FailedDelete")
_GONE_POD = re.compile(r'Error deleting: pods "([^"]*)" not found')

#: After so many of the last explained syncs are rows of syncs without a write looked for.
_ROWS_AFTER = 4


class LoneEvents:
    """What syncs of one key without a write may have told."""

    def __init__(self, search: CutSearch, syncs: Sequence[Explanation]) -> None:
        self._search = search
        self._syncs = [sync for sync in syncs if sync.job is not None]
        #: By the number of the explained sync that came before, and whether syncs in a row were
        #: tried, and one that the record's end cut off: what may have been told after it.
        self._by_sync: dict[tuple[int, bool, bool], set[tuple[str, str, str]]] = {}

    @cached_property
    def _positions(self) -> dict[int, int]:
        """Where each revision of the Job stands."""
        return {job.rv: job.position for job in self._search.history.jobs}

    def _around(self, number: int) -> tuple[Explanation | None, Explanation | None]:
        """The explained syncs before and after, where so many came before."""
        syncs = self._syncs
        return syncs[number - 1] if number else None, (
            syncs[number] if number < len(syncs) else None
        )

    def may_tell(self, row: EventRow) -> bool:
        """Whether such a sync can have handed out this Event before it arrived."""
        if row.reason in REFUSED_CALLS and row.event_type != _WARNING:
            return False
        if row.reason in REFUSED_CALLS and any(sync.refused for sync in self._syncs):
            return True
        wanted = {(row.event_type, row.reason, row.message.removeprefix(COMBINED))}
        if row.reason in REFUSED_CALLS:
            wanted.add((row.event_type, row.reason, ""))
        # The newest first: an Event is posted soon after it is told.
        numbers = [
            number
            for number in range(len(self._syncs), -1, -1)
            if self._begun(number, row) and self._can_have_read(number, row)
        ]
        ended = row.recv_ns >= self._search.facts.run_context.end_ns - CUT_OFF_NS
        return (
            any(wanted & self._after(number, ended=ended) for number in numbers)
            or any(wanted & self._after(number, in_a_row=True) for number in numbers[:_ROWS_AFTER])
            or bool(wanted & self._of_a_second_deletion(row, numbers))
            or bool(wanted & self._on_older_pods(row))
            or bool(wanted & self._on_an_older_job(row))
            or any(wanted & reported for reported in self._before_a_conflict(row))
        )

    def _by_ns(self, row: EventRow) -> int:
        """By when it was handed out, as closely as the times of writes are known."""
        width_ns = self._search.facts.run_context.width_ns(row.recv_ns)
        return row.recv_ns + EVENT_SLACK_NS + width_ns

    def _begun(self, number: int, row: EventRow) -> bool:
        """Whether a sync after that many explained ones can have begun by then."""
        return not number or self._syncs[number - 1].writes[0].recv_ns <= self._by_ns(row)

    def _can_have_read(self, number: int, row: EventRow) -> bool:
        """Whether a sync after that many explained ones can have read the Job the Event names.

        One that was counted up names the Job of its first time.
        """
        named = self._positions.get(row.involved_rv)
        if named is None or row.count > 1:
            return True
        before, following = self._around(number)
        return (before is None or before.job is None or before.job.position <= named) and (
            following is None or following.job is None or named <= following.job.position
        )

    def _on_an_older_job(self, row: EventRow) -> set[tuple[str, str, str]]:
        """What a sync may have told that fits an older Job as well, and what one after it.

        Where a status is put over whatever the server holds (up to 1.22) nothing but the Event
        tells which Job it was: by its revision, if it is the first; else any that fits may be it.
        """
        named = self._positions.get(row.involved_rv)
        found: set[tuple[str, str, str]] = set()
        if named is None or not self._search.rules.overwrites_status:
            return found
        by_ns = self._by_ns(row)
        fitting = self._fit_an_older_job(named)
        for number in range(len(self._syncs), 0, -1):
            before, following = self._around(number)
            assert before is not None and before.job is not None  # noqa: S101, PT018
            if before.job.position <= named:
                continue
            begun = before.due_ns <= by_ns  # on the newest Job that fits; else on an older one
            known = {_identity(event) for event in before.events} if begun else set()
            for position in range(named, before.job.position if row.count > 1 else named + 1):
                older = self._search.on_job(before, position, whatever_before=number - 1 <= fitting)
                if older is None or older.due_ns > by_ns:
                    continue
                reported = {_identity(event) for event, at_ns in events_of(older) if at_ns <= by_ns}
                found |= reported - known
                if row.count > 1 or not self._begun(number, row):
                    continue
                served = [(older.writes[-1].recv_ns, older.writes[-1].rv + 1)]
                for silent in self._search.silent_between(older, following, served=served):
                    found |= _identities(silent)
        return found

    def _before_a_conflict(self, row: EventRow) -> Iterator[set[tuple[str, str, str]]]:
        """What a sync on the Job that the Event names may have told, and made a write besides.

        Its status met a conflict, so that the search puts that write down to the sync after it. One
        that was counted up names the Job of its first time.
        """
        named = self._positions.get(row.involved_rv)
        if named is None or self._search.rules.overwrites_status:
            return
        by_ns = self._by_ns(row)
        for sync in reversed(self._syncs):
            assert sync.job is not None  # noqa: S101 - those without one are left out
            if sync.writes[0].recv_ns > by_ns:
                continue
            last = sync.job.position if row.count > 1 else min(named + 1, sync.job.position)
            for position in range(named, last):
                for first in self._search.broken_off(sync, position):
                    yield {_identity(event) for event, at_ns in events_of(first) if at_ns <= by_ns}

    def _fit_an_older_job(self, position: int) -> int:
        """How many syncs, one after the other, fit a Job as old as that."""
        for number, sync in enumerate(self._syncs):
            newer = sync.job is not None and sync.job.position > position
            if newer and self._search.on_job(sync, position, whatever_before=True) is None:
                return number
        return len(self._syncs)

    def _after(
        self, number: int, *, in_a_row: bool = False, ended: bool = False
    ) -> set[tuple[str, str, str]]:
        found = self._by_sync.get((number, in_a_row, ended))
        if found is None:
            before, following = self._around(number)
            found = self._by_sync[number, in_a_row, ended] = set()
            served = []
            if before is not None:  # what is gone by the next one may still be there
                served.append((before.writes[-1].recv_ns, before.writes[-1].rv + 1))
            facts = self._search.facts
            ending_rv = facts.run_context.namespaces_ending.get(facts.history.namespace)
            if ending_rv is not None:  # until then creations were answered otherwise
                served.append((facts.run_context.end_ns, ending_rv - 1))
            for silent in self._search.silent_between(
                before, following, served=served, in_a_row=in_a_row, cut_off=True, ended=ended
            ):
                found |= _identities(silent)
                if silent.refused:
                    found.add((_WARNING, "FailedCreate", ""))
        return found

    def _of_a_second_deletion(
        self, row: EventRow, numbers: Sequence[int]
    ) -> set[tuple[str, str, str]]:
        """What a sync may have told that deleted a pod which was on its way out already.

        Or one that was no longer the Job's: what a slow client asks for, a cache said long before.
        """
        if row.reason != "SuccessfulDelete":
            return set()
        ending = self._ending(row)
        if ending is None:
            return set()
        # The sync that it is put down to may have found it done: one that failed came before.
        begun = sum(sync.writes[0].rv < ending.rv for sync in self._syncs)
        over = sum(sync.writes[-1].rv < ending.rv for sync in self._syncs)
        # One that had ended is gone at once: by this very call, where nobody else's is known.
        met_rv = ending.rv + (ending.view.deleted_ns is not None)
        served = [(self._by_ns(row), met_rv)]
        return {
            reported
            for number in sorted({begun, over})
            if number in numbers
            for silent in self._search.silent_between(*self._around(number), served=served)
            for reported in _identities(silent)
        }

    def _on_older_pods(self, row: EventRow) -> set[tuple[str, str, str]]:
        """What a sync may have told that older pods fit as well, and what one after it.

        Of the pods that explain its writes the search takes the newest, and so has it begin as late
        as can be: after its own Event, if a slow client held up the status. And one that had not
        seen a pod's deletion asks for it once more, which leaves no other trace.
        """
        by_ns = self._by_ns(row)
        wanted = row.event_type, row.reason, row.message.removeprefix(COMBINED)
        ending = self._ending(row) if row.reason in _OF_DELETIONS else None
        # The sync that a pod's deletion is put down to, and the one after it.
        begun = sum(s.writes[0].rv <= ending.rv for s in self._syncs) if ending is not None else -1
        for number, sync in enumerate(self._syncs, 1):
            known = {_identity(event) for event in sync.events}
            if sync.due_ns > by_ns:
                if wanted not in known:
                    continue
                known = set()
            elif number not in (begun, begun + 1):
                continue
            newest = sync.pod_cut - 1 if ending is None else min(sync.pod_cut - 1, ending.position)
            for older in self._search.on_older_pods(sync, newest):
                reported = {_identity(event) for event, at_ns in events_of(older) if at_ns <= by_ns}
                found = reported - known
                if number == begun and row.count > 1:  # it told of the deletion, and another did
                    for silent in self._search.silent_between(older, self._around(number)[1]):
                        found |= _identities(silent)
                if wanted in found:
                    return found
        return self._in_a_row_on_older_pods(row, ending, begun) if ending is not None else set()

    def _in_a_row_on_older_pods(
        self, row: EventRow, ending: Revision[PodView], begun: int
    ) -> set[tuple[str, str, str]]:
        """What syncs may have told that had not seen a pod's end, if all before them had not."""
        by_ns, found = self._by_ns(row), set[tuple[str, str, str]]()
        after: Explanation | None = None
        for sync in self._syncs[begun:]:
            newest = min(sync.pod_cut - 1, ending.position)
            fitting = list(self._search.on_older_pods(sync, newest, after))
            if not fitting or sync.silent:
                break
            for older in fitting:
                found |= {_identity(event) for event, at_ns in events_of(older) if at_ns <= by_ns}
            after = fitting[-1]  # the oldest leaves the most open
        return found

    def _ending(self, row: EventRow) -> Revision[PodView] | None:
        """The revision in which the pod that an Event says was deleted is on its way out."""
        message = row.message.removeprefix(COMBINED)
        gone = _GONE_POD.fullmatch(message)
        name = gone[1] if gone else message.removeprefix(DELETED_POD)
        return next(
            (
                pod
                for pod in self._search.history.pods
                if pod.view.name == name
                and (pod.view.deleted_ns is not None or pod.type == "DELETED")
            ),
            None,
        )


def _identities(silent: SilentSync) -> set[tuple[str, str, str]]:
    return {_identity(event) for event in silent.events}


def _identity(event: PredictedEvent) -> tuple[str, str, str]:
    return event.type, event.reason, event.message


def why_unseen(facts: KeyEvidence, replay: KeyReplay, row: EventRow) -> Reason | None:
    """Why the record may not show the sync that emitted the Event; None if it must."""
    history, context = facts.history, facts.run_context
    of_gap = Reason.GAP if context.gaps else Reason.BEFORE_RECORD
    if not any(job.view.uid == row.involved_uid for job in history.jobs):
        return of_gap
    if row.recv_ns > context.end_ns - EVENT_SLACK_NS:
        return Reason.CENSORED  # the record ended before the other streams had come as far
    for sync in replay.syncs:
        hidden = any(assumed.kind == "unseen-writes" for assumed in sync.assumptions)
        if hidden and sync.job is not None and sync.job.rv == row.involved_rv:
            return of_gap if context.gaps else Reason.CENSORED
    for unsynced in replay.of(WithoutSync.UNKNOWABLE):
        base = history.job_before(unsynced.write.rv)  # or what it wrote itself, if that is a status
        if row.involved_rv == unsynced.write.rv or (
            base is not None and base.rv == row.involved_rv
        ):
            return unsynced.unknowable
    last_blind_ns = facts.blind.last_ns
    if last_blind_ns is None:
        return None
    named = [job for job in history.jobs if job.rv == row.involved_rv]
    # The Job that it names was not seen, or was still the newest when the record was blind.
    return of_gap if not named or any(job.recv_ns <= last_blind_ns for job in named) else None
