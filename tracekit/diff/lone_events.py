"""Events of syncs that left nothing but an Event.

Such a sync was refused, met a conflict, or wrote what was there already. What it emitted is judged
by running the controller after the record's last write, on the Job that the Event names and each
state of the pods by then.
"""

from __future__ import annotations

from tracekit.cache.pods import PodCache
from tracekit.controllers.job.memory import JobMemory
from tracekit.diff.events import ENDING_REASONS, FAILURES
from tracekit.kube.timestamps import NS_PER_S
from tracekit.kube.views import JobView
from tracekit.replay.cuts import Cut, CutSearch
from tracekit.replay.history import EventRow, History, Revision
from tracekit.replay.key_facts import KeyFacts
from tracekit.replay.recorded_api import Assumptions

#: How long a sync may go on with a Job that is not the newest any more.
_STALE_JOB_NS = 2 * NS_PER_S
_CUTS_TRIED = 50


def may_be_lone(search: CutSearch, row: EventRow) -> bool:
    """Whether a sync on the revision that the Event names could have emitted it."""
    history = search.history
    seen = sum(1 for revision in history.pods if revision.recv_ns <= row.recv_ns)
    for job in history.jobs:
        if job.type == "DELETED" or not _may_be_of(history, job, row):
            continue
        cache = PodCache()
        for position in range(seen, max(0, seen - _CUTS_TRIED) - 1, -1):
            cache.move_to(history.pods, position)
            if _emits(search, Cut(job, position, cache, JobMemory()), row):
                return True
    return False


def _emits(search: CutSearch, cut: Cut, row: EventRow) -> bool:
    assume = Assumptions(
        refusals=row.reason == "FailedCreate",
        retries_unseen=cut.job.view.spec.backoff_limit,
        lenient=True,
    )
    api = search.after_the_record(cut, row.recv_ns, assume)
    if row.reason == "FailedCreate" and api.refused:
        return True
    if row.reason in ENDING_REASONS and api.problems:
        return False  # such a sync would have written something that shows
    if row.reason == "SuccessfulDelete" and not any(e.reason in FAILURES for e in api.events):
        return False  # expectations hold any other deletion back until it shows
    told = {(event.type, event.reason, event.message) for event in api.events}
    return (row.event_type, row.reason, row.message) in told


def of_unseen_sync(facts: KeyFacts, row: EventRow) -> bool:
    """Whether the sync that emitted the Event may lie in a time that was not seen."""
    history = facts.history
    if not any(job.view.uid == row.involved_uid for job in history.jobs):
        return True
    if not facts.blind_until_ns:
        return False
    return row.involved_rv not in history.jobs_rv or any(
        row.involved_rv <= job.rv and job.view.uid == row.involved_uid for job in history.listings()
    )


def _may_be_of(history: History, job: Revision[JobView], row: EventRow) -> bool:
    """Whether a lone Event may come from a sync of this revision.

    The repetition of an ending comes from a sync of a Job that was out of date for a moment; a
    merged Event goes on naming the revision of the first one. One that was never merged names its
    own, however late it arrives.
    """
    if row.reason not in ENDING_REASONS or (row.count == 1 and row.involved_rv == job.rv):
        return job.rv == row.involved_rv
    newer = history.jobs[job.position + 1 : job.position + 2]
    return job.recv_ns <= row.recv_ns and all(
        row.recv_ns <= revision.recv_ns + _STALE_JOB_NS for revision in newer
    )
