"""What stands when no cut explains a write: the attempt that leaves the least unexplained."""

from __future__ import annotations

from itertools import islice

from msgspec.structs import replace

from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.check.replay.cuts import Effort
from tracekit.check.replay.explanations import CutSearch
from tracekit.check.replay.recorded_api import Assumptions, Problem
from tracekit.check.replay.search_state import Explanation, State

_FUTURE_NS = (1 << 62) + 1
_JOBS_TRIED = 3
_PODS_TRIED = 40


def nearest(search: CutSearch, state: State) -> Explanation:
    """The attempt at the next write that leaves the least unexplained, told with its problems."""
    write = search.history.writes[state.index]
    assume = Assumptions(
        refusals=search.facts.refused.creations_within(write.index) is not None, lenient=True
    )
    best: tuple[tuple[int, int, int], Explanation] | None = None
    for job in islice(search.job_candidates(state, Effort.HANDLERS), _JOBS_TRIED):
        for cut in search.cuts(state, job, deepest=_PODS_TRIED):
            for now_ns in (write.recv_ns, _FUTURE_NS):
                found, timers = search.attempt(state, cut, now_ns, assume)
                if found is None:
                    continue
                if now_ns > write.recv_ns:
                    if found.problems:
                        continue  # what it did not do would be told by a clock that never was
                    found = _reported_early(_without_waiting(found), timers)
                if not found.problems:
                    continue  # the strict search refused it: something that counts is wrong
                misses = found.writes[0].index != state.index
                rank = (len(found.problems) + 2 * misses, -job.position, found.pods_unseen)
                if best is None or rank < best[0]:
                    # What the controller waits for after a divergence is not known.
                    found.state.memory.expectations = None
                    best = (rank, found)
    if best is None or best[1].writes[0].index != state.index:
        return _alone(search, state)
    return best[1]


def _without_waiting(found: Explanation) -> Explanation:
    """The attempt without the rule that only the far future fulfils: nobody waited so long."""
    return replace(found, notes=tuple(note for note in found.notes if note.rule != "expired"))


def _reported_early(found: Explanation, timers: list[int]) -> Explanation:
    """An attempt in the far future: what it explains came before its timer."""
    first = found.writes[0]
    bounds = [at_ns for at_ns in timers if at_ns > first.recv_ns]
    if found.problems or not bounds:
        return found
    due = format_rfc3339(min(bounds))
    early = Problem(first.kind, "early", first, f"nothing of the kind before {due}")
    return replace(found, problems=(early,))


def _alone(search: CutSearch, state: State) -> Explanation:
    """A write that no attempt even comes near to."""
    write = search.history.writes[state.index]
    problem = Problem(write.kind, "extra", write, "nothing of the kind at any cut")
    after = replace(state, done=state.done | {write.index}, not_before_ns=write.recv_ns)
    return Explanation(
        writes=(write,),
        job=None,
        pod_cut=state.pod_floor,
        pods_unseen=0,
        lag_ns=0,
        now_ns=write.recv_ns,
        due_ns=write.recv_ns,
        timed=False,
        events=(),
        problems=(problem,),
        refused=0,
        rest=None,
        notes=(),
        error=True,
        wake_after_ns=None,
        state=after,
    )
