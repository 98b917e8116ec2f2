"""What contradicts the rules, read again: only what stands in every admissible reading is told.

Three things a record may leave open. An audit log does not tell the revision of some writes, only
between which it lies: the order that was chosen is one of several. Without Events nobody knows
whether admission refused what the controller wrote. And without Leases nobody knows whether a new
controller manager took over, which has forgotten all that the one before remembered.
A key without divergences is never read twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace
from msgspec.structs import replace as copied

from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.base.kube.views import JobView, PodView
from tracekit.check.diff.judge import KeyJudgement, judge_key
from tracekit.check.diff.unrecorded import unknowable
from tracekit.check.replay.history import History, Revision, build_history
from tracekit.check.replay.run_context import Outage, Refusing, RunContext
from tracekit.check.verdict import Judgement
from tracekit.versions.job import JobRules

WHY_REFUSED = (
    "refused writes explain it, and the Events that would tell of them are not in the record"
)
_RESTARTS_MAX = 4
V = TypeVar("V", JobView, PodView)


def judge_as_known(history: History, rules: JobRules, run_context: RunContext) -> KeyJudgement:
    """Judge one key; what contradicts the rules must do so in every reading of its record."""
    first = judge_key(history, rules, run_context)
    if not _diverges(first) or run_context.not_searched(history.namespace, history.name):
        return first
    for latest in (True, False):
        other = _in_another_order(history, latest=latest)
        if other is None:
            break
        again = judge_key(other, rules, run_context)
        if not _diverges(again):
            return again
    if not run_context.events_recorded:
        first = _with_refusals(first, history, rules, run_context)
    if "leases" not in run_context.not_recorded or not _diverges(first):
        return first
    return _with_restarts(first, history, rules, run_context)


def _diverges(judged: KeyJudgement) -> bool:
    return any(judgement.divergent for judgement in judged.judgements)


# Another order.


def _in_another_order(history: History, *, latest: bool) -> History | None:
    """The same record with each chosen revision as late, or as early, as it can be."""
    revisions: list[Revision[JobView] | Revision[PodView]] = [*history.jobs, *history.pods]
    if all(revision.rv_after is None for revision in revisions):
        return None
    taken = {revision.rv for revision in revisions if revision.rv_after is None}
    jobs = _placed(history.jobs, taken, latest=latest)
    pods = _placed(history.pods, taken, latest=latest)
    return build_history(
        history.namespace, history.name, jobs, pods, history.events, history.refused
    )


def _placed(
    revisions: Iterable[Revision[V]], taken: set[int], *, latest: bool
) -> list[Revision[V]]:
    """Copies, in their order within each object."""
    of_object: dict[str, list[Revision[V]]] = {}
    for revision in revisions:
        of_object.setdefault(revision.view.uid, []).append(revision)
    found: list[Revision[V]] = []
    for mine in of_object.values():
        bound: int | None = None
        for revision in reversed(mine) if latest else mine:
            rv = revision.rv
            if revision.rv_after is not None:
                rv = _chosen(revision, bound, taken, latest=latest)
                taken.add(rv)
            bound = rv
            found.append(copied(revision, rv=rv, view=copied(revision.view, rv=rv), previous=None))
    return found


def _chosen(revision: Revision[V], bound: int | None, taken: set[int], *, latest: bool) -> int:
    """The last, or first, revision of its range that no other of the key has."""
    low, high = revision.rv_after, revision.rv_before
    assert low is not None  # noqa: S101 - the caller looked
    if latest:
        ends = [end for end in (high, bound) if end is not None]
        if not ends:
            return max(revision.rv, max(taken, default=0) + 1)
        candidates: Sequence[int] = range(min(ends) - 1, low, -1)
    else:
        end = high if high is not None else revision.rv + 1
        candidates = range(max(low, bound or 0) + 1, end)
    return next((rv for rv in candidates if rv not in taken), revision.rv)


# Refusals that nothing tells of.


def judge_as_refused(history: History, rules: JobRules, run_context: RunContext) -> KeyJudgement:
    """Judge one key as if admission might have refused what the controller wrote."""
    unrecorded = Refusing("Events were not recorded", run_context.end_ns)
    refusing = {**run_context.refusing, history.namespace: unrecorded}
    return judge_key(history, rules, replace(run_context, refusing=refusing))


def _with_refusals(
    first: KeyJudgement, history: History, rules: JobRules, run_context: RunContext
) -> KeyJudgement:
    """What refused writes explain is unknowable; all else stands."""
    again = judge_as_refused(history, rules, run_context)
    wrong = {_same(judged): judged for judged in first.judgements if judged.divergent}
    left = {_same(judged) for judged in again.judgements if judged.divergent}
    if not left < wrong.keys():
        return first
    reported = {key: unknowable(wrong[key], WHY_REFUSED) for key in wrong.keys() - left}
    return _without(again, reported)


# Restarts that nothing tells of.


def _with_restarts(
    first: KeyJudgement, history: History, rules: JobRules, run_context: RunContext
) -> KeyJudgement:
    """What a new controller manager explains is unknowable; all else stands."""
    judged, context = first, run_context
    reported: dict[tuple[str, ...], Judgement] = {}
    for _ in range(_RESTARTS_MAX):
        wrong = [judgement for judgement in judged.judgements if judgement.divergent]
        if not wrong:
            break
        writes_ns = (write.recv_ns for write in history.writes)
        since_ns = max((at for at in writes_ns if at < wrong[0].time_ns), default=0)
        outage = Outage(since_ns, wrong[0].time_ns, "a restart that no Lease tells of")
        context = replace(context, restarts=tuple(sorted((*context.restarts, outage))))
        again = judge_key(history, rules, context)
        left = {_same(judgement) for judgement in again.judgements if judgement.divergent}
        if len(left) >= len(wrong) or not left <= {_same(judgement) for judgement in wrong}:
            break
        why = (
            "no Lease tells of restarts, and a controller manager that began between "
            f"{format_rfc3339(since_ns)} and {format_rfc3339(wrong[0].time_ns)} explains it"
        )
        for judgement in wrong:
            if _same(judgement) not in left:
                reported[_same(judgement)] = unknowable(judgement, why)
        judged = again
    if not reported:
        return first
    since_ns = min(outage.from_ns for outage in {*context.restarts} - {*run_context.restarts})
    return _without(_with_timers_unknown(judged, since_ns), reported)


def _with_timers_unknown(judged: KeyJudgement, since_ns: int) -> KeyJudgement:
    """From then on no timer of the key proves that it was ready.

    The restart explains what is there as well if it was earlier, before failures that are counted
    in the back-off then, and so later than here.
    """
    timing = judged.timing
    services = tuple(
        replace(service, judged=False)
        if service.timed and service.served_ns >= since_ns
        else service
        for service in timing.services
    )
    pending = tuple(action for action in timing.pending if not action.timed)
    return replace(judged, timing=replace(timing, services=services, pending=pending))


def _without(judged: KeyJudgement, reported: Mapping[tuple[str, ...], Judgement]) -> KeyJudgement:
    """The judgements, those that only a restart explains unknowable."""
    kept = [judgement for judgement in judged.judgements if _same(judgement) not in reported]
    found = sorted(
        (*kept, *reported.values()),
        key=lambda j: (j.time_ns, j.resource_version, j.action, j.subject),
    )
    return replace(judged, judgements=tuple(found))


def _same(judgement: Judgement) -> tuple[str, ...]:
    """What tells a judgement from all others of its key."""
    return (judgement.action, judgement.resource_version, judgement.subject)
