"""Which states need not be gone on from, since another one leads wherever they do.

A sync decides by its memory and by what its caches hold. Of two states with the same memory, the
one whose caches may be older admits every sync that the other one does.
"""

from __future__ import annotations

from collections.abc import Hashable

from tracekit.check.replay.handlers import may_tell
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.recall import MemoryAsked
from tracekit.check.replay.search_state import State

#: In so many pod revisions the next one is looked for that changes the memory. Where it comes later
#: two states may count as different that are not: that costs time and nothing else.
_LOOKED_AT = 200


def stands_for(one: State, other: State) -> bool:
    """Whether a state admits all syncs that another one of its memory class does."""
    return (
        one.job_floor <= other.job_floor
        and one.pod_floor <= other.pod_floor
        and len(one.silent) <= len(other.silent)
    )


def memory_class(facts: KeyEvidence, asked: MemoryAsked, state: State) -> Hashable:
    """All by which syncs can tell two states apart, but for how old their caches may be."""
    pods, handled = facts.history.pods, state.handled
    end = min(len(pods), handled + _LOOKED_AT)
    while handled < end and not may_tell(pods[handled], state.memory):
        handled += 1
    own, jobs = state.own_status, facts.history.jobs
    return (
        state.index,
        state.done,
        handled,
        # Whether handlers that were behind are so still depends on how old the caches are.
        (state.handled, state.pod_floor) if state.handled < state.pod_floor else None,
        own.position if own is not None else -1,
        jobs[state.job_floor].view.uid if jobs else "",
        state.own_pods,
        max(0, state.written - state.index),
        state.not_before_ns,
        state.restarts_seen,
        state.listings_seen,
        state.certain,
        state.backoff_known,
        asked(state.memory),
        state.heuristic,
    )
