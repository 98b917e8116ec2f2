"""Retries of a key that its queue counted and the record does not show (up to 1.27).

What waited for the retry of a failed sync comes when a back-off of its key is over. Each is twice
as long as the one before, so that a wait tells how many the queue had counted. A sync that left no
write may have failed as well: one on an old cache finds a failure again, and puts the same status
over itself or meets a conflict. Such a wait is right if so many can have failed, and if what came
after it goes with their count, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from tracekit.check.diff.key_queue import (
    DELIVERY_JITTER_NS,
    Due,
    EarlyCandidate,
    Wake,
    all_old,
    conflicts,
    due,
    excused,
    first_write,
    open_wakes,
    timers_of,
)
from tracekit.check.replay.attempts import Exhausted
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS
from tracekit.check.replay.explanations import CutSearch
from tracekit.check.replay.history import History
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.run_context import INFORMER_LAG_NS
from tracekit.check.replay.search_state import Explanation, State
from tracekit.check.replay.silent_syncs import SILENT_ROW

#: With so many retries more the back-off is the longest in any case.
RETRIES_UNSEEN = 8
_COUNTED = "its failures waited for retries of syncs that left no write as well, or it was late"


def due_with_unseen(
    search: CutSearch, syncs: Sequence[Explanation], number: int, known: Due
) -> Due:
    """When a sync was due, if it waited for more retries than are known; else what is known."""
    facts, sync, before = search.facts, syncs[number], syncs[number - 1] if number else None
    rules, called_ns = facts.rules, sync.writes[0].called_ns
    if known.timed or called_ns <= known.certain_ns + INFORMER_LAG_NS or before is None:
        return known
    if not rules.queue_delays_failures or before.job is None or rules.tracks(before.job.view):
        return known
    counted = before.state.memory.requeues
    fitting = [
        (since_ns + rules.retries.backoff_ns(counted + more), more)
        for since_ns in (before.writes[-1].recv_ns, facts.inputs_shown_ns(sync.job, sync.pod_cut))
        for more in range(1, RETRIES_UNSEEN + 1)
    ]
    over = [fits for fits in fitting if fits[0] <= called_ns + CLOCK_SLACK_NS]
    certain_ns, more = max(over, default=(0, 0))
    if certain_ns <= known.certain_ns or retries_unseen(search, syncs[: number + 1], more) < more:
        return known
    fits = _goes_on_with(search, syncs, number, more)
    return replace(known, certain_ns=certain_ns) if fits else known


def counted_otherwise(search: CutSearch, syncs: Sequence[Explanation]) -> Iterator[EarlyCandidate]:
    """The syncs that were late but for retries that left no trace."""
    facts = search.facts
    for number, (before, sync) in enumerate(pairwise(syncs), 1):
        if before.job is None or sync.job is None or sync.timed or excused(facts, before, sync):
            continue
        if not facts.rules.queue_delays_failures or facts.rules.tracks(before.job.view):
            continue
        known = due(facts, before, sync, unreported=False)
        met = conflicts(facts, before)
        if met or due_with_unseen(search, syncs, number, known) is not known:
            timers = [timer for other in syncs[:number] for timer in timers_of(facts, other)]
            if _came_early(facts, before, sync, timers):
                continue
            first = first_write(search.history.key, sync.writes[0])
            wake = Wake(known.earliest_ns, known.certain_ns)
            yield EarlyCandidate(first, sync.writes[0].called_ns, (wake,), _COUNTED)


def _came_early(
    facts: KeyEvidence, before: Explanation, sync: Explanation, timers: Sequence[Wake]
) -> bool:
    """Whether nothing recent can have made a sync ready."""
    at_ns = sync.writes[0].recv_ns + DELIVERY_JITTER_NS
    return all_old(open_wakes(facts, before, sync, timers), at_ns) is not None


def retries_unseen(search: CutSearch, syncs: Sequence[Explanation | None], most: int) -> int:
    """How many syncs without a write may have failed since the queue forgot its count, up to most.

    Each of them something had woken before the cache showed what the failed sync had written: a
    change of a pod that came no later after that than caches of this key have lagged. None, as the
    last of the syncs, stands for the end of the record.
    """
    history, found = search.history, 0
    lag_ns = max((_lag_ns(history, sync) for sync in syncs if sync is not None), default=0)
    for following, sync in pairwise(reversed(syncs)):
        counted = sync.state.memory.requeues if sync is not None else 0
        if sync is None or not counted or found >= most:
            break
        first_ns, until_ns = sync.writes[0].recv_ns, sync.writes[-1].recv_ns + lag_ns
        wakes = sum(first_ns <= pod.recv_ns <= until_ns for pod in history.pods)
        may_fail = min(most - found, wakes, SILENT_ROW)
        if not may_fail:
            continue
        if following is None:
            silents = search.silent_between(sync, None, in_a_row=True)
            counts = (silent.retries for silent in silents if silent.error)
            found += min(may_fail, max(counts, default=counted) - counted)
        else:
            state = replace(sync.state, index=following.writes[0].index)
            found += sum(1 for _ in search.failed_again(state, counted + may_fail))
    return found


def _lag_ns(history: History, sync: Explanation) -> int:
    """By how much the caches of a sync lagged, at least."""
    first = sync.writes[0]
    job_ns = 0
    if sync.job is not None:
        later = history.jobs[sync.job.position + 1 : history.jobs_below(first.rv)]
        job_ns = first.recv_ns - later[0].recv_ns if later else 0
    return max(job_ns, sync.lag_ns)


def _goes_on_with(search: CutSearch, syncs: Sequence[Explanation], number: int, more: int) -> bool:
    """Whether a sync and those after it fit so many retries more, until the queue forgets them."""
    facts = search.facts
    timers = [timer for sync in syncs[: number - 1] for timer in timers_of(facts, sync)]
    for before, sync in pairwise(syncs[number - 1 :]):
        if not before.state.memory.requeues or sync.job is None or sync.began is None:
            break
        counted = replace(before, state=_with_more(before.state, more))
        follows = sync is not syncs[number] and not excused(facts, before, sync)
        if follows and _came_early(facts, counted, sync, timers):
            return False  # it came before such a retry
        try:
            again = [*search.alike(_with_more(sync.began.state, more), [sync])]
        except Exhausted:
            return True  # nobody knows
        if not any(found.writes == sync.writes for found in again):
            return False
        timers += timers_of(facts, counted)
    return True


def _with_more(state: State, retries: int) -> State:
    memory = state.memory.copy()
    memory.requeues += retries
    return replace(state, memory=memory)
