"""How many pods of a Job lived at a time, and how many it wanted. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import zip_longest

from tracekit.answers.trace_model import Job, Pod


def can_crowd(job: Job) -> bool:
    """Whether it had so many pods in all that one can have been too many."""
    indexes = [pod.index for pod in job.pods]
    if None not in indexes:
        return len({*indexes}) < len(indexes)
    wanted = job.first.spec.get("parallelism", 1)
    if not isinstance(wanted, int) or any(pod.first.rv <= job.first.rv for pod in job.pods):
        return True
    return len(job.pods) > wanted or len({*indexes}) > 1


class Living:
    """How many pods of a Job lived at each revision, and how many it wanted at most until then."""

    def __init__(self, job: Job) -> None:
        """Put the revisions of its pods in order."""
        self._from: defaultdict[int | None, list[int]] = defaultdict(list)
        self._until: defaultdict[int | None, list[int]] = defaultdict(list)
        for pod in job.pods:
            for index in (None,) if pod.index is None else (None, pod.index):
                self._add(job, pod, index)
        for revisions in (*self._from.values(), *self._until.values()):
            revisions.sort()
        self._states: list[int] = []
        self._most: list[int | None] = []
        most: int | None = None
        for state in sorted(job.states, key=lambda s: s.rv):
            wanted = state.spec.get("parallelism", 1)
            if isinstance(wanted, int):
                most = wanted if most is None else max(most, wanted)
            self._states.append(state.rv)
            self._most.append(most)

    def _add(self, job: Job, pod: Pod, index: int | None) -> None:
        for state, after in zip_longest(pod.states, pod.states[1:]):
            if state.is_live_pod_of(job.uid):
                self._from[index].append(state.rv)
                if after is not None:
                    self._until[index].append(after.rv)

    def count(self, pod: Pod) -> int:
        """The pods that lived just before a pod was first seen: of its index, if it has one."""
        rv = pod.first.rv
        begun = bisect_left(self._from[pod.index], rv)
        return begun - bisect_left(self._until[pod.index], rv)

    def most_wanted(self, rv: int) -> int:
        """The highest parallelism before a revision."""
        at = bisect_left(self._states, rv)
        most = self._most[at - 1] if at else None
        return 1 if most is None else most
