"""Which active pods go first when there are too many.

Ranked ascending, the first is deleted first: unassigned before assigned; Pending before Unknown
before Running; not ready before ready; ready for a shorter time; more restarts (of the regular
containers, then, `by_sidecars`, of the sidecars); younger. Upstream's sort is not stable, so pods
that rank equal are a choice; `preferred` states it.

Upstream: pkg/controller/controller_utils.go:ActivePods, from 1.11 on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cmp_to_key, partial

from tracekit.base.kube.views import UNKNOWN_COMPLETION_INDEX, PodView
from tracekit.ports.job.indexes import Intervals

_PHASE_RANK = {"Pending": 0, "Unknown": 1, "Running": 2}


def compare_active_pods(left: PodView, right: PodView, *, by_sidecars: bool = True) -> int:
    """Negative where `left` is deleted before `right`, 0 where upstream has no preference."""
    if left.node_name != right.node_name and (not left.node_name or not right.node_name):
        return 1 if left.node_name else -1
    by_phase = _PHASE_RANK.get(left.phase, 0) - _PHASE_RANK.get(right.phase, 0)
    if by_phase:
        return by_phase
    if left.ready != right.ready:
        return int(left.ready) - int(right.ready)
    if left.ready and left.ready_since_ns != right.ready_since_ns:
        return _later_first(left.ready_since_ns, right.ready_since_ns)
    by_restarts = right.restarts_max - left.restarts_max
    if not by_restarts and by_sidecars:
        by_restarts = right.sidecar_restarts_max - left.sidecar_restarts_max
    if by_restarts or left.created_ns == right.created_ns:
        return by_restarts
    return _later_first(left.created_ns or None, right.created_ns or None)


def _later_first(left_ns: int | None, right_ns: int | None) -> int:
    """A missing time counts as the latest."""
    if left_ns is None or right_ns is None:
        return -1 if left_ns is None else 1
    return -1 if left_ns > right_ns else 1


def rank_active_pods(
    pods: Sequence[PodView], preferred: Collection[str], *, by_sidecars: bool = True
) -> list[PodView]:
    """The pods in deletion order; among equals those whose uid is preferred come first."""
    listed = sorted(pods, key=lambda pod: (pod.uid not in preferred, pod.name))
    return sorted(listed, key=cmp_to_key(partial(compare_active_pods, by_sidecars=by_sidecars)))


def pods_for_removal(
    pods: Sequence[PodView],
    at_least: int,
    *,
    completions: int | None,
    preferred: Collection[str],
    by_sidecars: bool = True,
) -> list[PodView]:
    """The active pods to remove: at least that many, duplicates and invalid indexes always.

    `completions` is the number of indexes of an Indexed Job and None for any other.
    """
    removed: list[PodView] = []
    left: Sequence[PodView] = pods
    if completions is not None:
        removed, left = _split_by_index(pods, completions, preferred, by_sidecars=by_sidecars)
    if len(removed) < at_least:
        ranked = rank_active_pods(left, preferred, by_sidecars=by_sidecars)
        removed += ranked[: at_least - len(removed)]
    return removed


def _split_by_index(
    pods: Sequence[PodView], completions: int, preferred: Collection[str], *, by_sidecars: bool
) -> tuple[list[PodView], list[PodView]]:
    by_index: dict[int, list[PodView]] = {}
    for pod in sorted(pods, key=lambda pod: (pod.completion_index, pod.name)):
        by_index.setdefault(pod.completion_index, []).append(pod)
    removed: list[PodView] = []
    left: list[PodView] = []
    for index, same in by_index.items():
        if index == UNKNOWN_COMPLETION_INDEX or index >= completions:
            removed += same
        elif len(same) == 1:
            left += same
        else:
            ranked = rank_active_pods(same, preferred, by_sidecars=by_sidecars)
            removed += ranked[:-1]
            left.append(ranked[-1])
    return removed, left


def indexes_of(pods: Sequence[PodView]) -> Intervals:
    """The valid completion indexes of the pods."""
    found = sorted({pod.completion_index for pod in pods} - {UNKNOWN_COMPLETION_INDEX})
    return tuple((index, index) for index in found)
