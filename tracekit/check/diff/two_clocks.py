"""What hangs on two clocks: a back-off begins by a kubelet's clock and ends by the manager's.

From 1.27 on a Job's back-off counts from when its pods ended, as their status has it
(`ports/job/backoff.py`), so that the controller compares times of another machine's clock with its
own. Where these are known to differ, a verdict that would not stand if they were the same says
nothing of the controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import PodView
from tracekit.check.diff.key_queue import FirstWrite, first_write
from tracekit.check.diff.unrecorded import unknowable
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS
from tracekit.check.replay.history import WriteKind
from tracekit.check.replay.key_facts import KeyEvidence
from tracekit.check.replay.search_state import Explanation
from tracekit.check.verdict import Judgement
from tracekit.ports.job.backoff import finish_time_ns

#: What follows from whether pods were made; no Event: it tells by its own time.
_HANGS = frozenset(
    kind.action
    for kind in (WriteKind.POD_CREATE, WriteKind.STATUS_UPDATE, WriteKind.FINALIZER_REMOVAL)
)


class TwoClocks(NamedTuple):
    """That something is due by a clock that differs from the controller manager's."""

    ahead_ns: int  # of the manager's; below 0: behind
    why: str


class Hanging(NamedTuple):
    """A sync that was due by two clocks."""

    first: FirstWrite
    clocks: TwoClocks


class BackoffClocks:
    """By whose clocks the back-offs of one key end."""

    def __init__(self, facts: KeyEvidence) -> None:
        self._facts = facts

    @cached_property
    def _ends(self) -> dict[int, TwoClocks]:
        """When its back-offs may end, where a clock that differs says so."""
        context, rules = self._facts.run_context, self._facts.rules
        found: dict[int, TwoClocks] = {}
        if not rules.pod_backoff_base_ns or not context.clocks_differ:
            return found
        for pod in self._facts.history.pods:
            clocks = self._of(pod.view)
            if clocks is None:
                continue
            delay_ns, ended_ns = rules.pod_backoff_base_ns, finish_time_ns(pod.view)
            while delay_ns < 2 * rules.pod_backoff_limit_ns:
                found[ended_ns + min(delay_ns, rules.pod_backoff_limit_ns)] = clocks
                delay_ns *= 2
        return found

    def _of(self, pod: PodView) -> TwoClocks | None:
        context = self._facts.run_context
        if any(container.exit_code is not None for container in pod.containers):
            ahead_ns = context.kubelets_ahead_ns.get(pod.node_name, 0)
            whose = f"the clock of the kubelet of {pod.node_name}"
        elif pod.deleted_ns is not None:
            ahead_ns, whose = -context.servers_behind_ns, "the API server's clock"
        else:
            return None
        if not ahead_ns:
            return None
        way = "behind" if ahead_ns < 0 else "ahead of"
        return TwoClocks(
            ahead_ns,
            f"a back-off counts from when a pod ended, by {whose}, which was "
            f"{abs(ahead_ns) / NS_PER_S:.1f} s {way} the controller manager's",
        )

    def due(self, times_ns: Iterable[int]) -> TwoClocks | None:
        """The clock by which a back-off ends at one of these times, if it differs."""
        return next(filter(None, (self._ends.get(at_ns) for at_ns in times_ns)), None)

    def hanging(self, syncs: Iterable[Explanation]) -> Iterator[Hanging]:
        """The syncs that were due by such a clock."""
        for sync in syncs if self._ends else ():
            clocks = self.due((sync.due_ns,)) if sync.timed else None
            if clocks is not None:
                yield Hanging(first_write(self._facts.history.key, sync.writes[0]), clocks)

    def as_far_as_known(self, judgements: Iterable[Judgement]) -> list[Judgement]:
        """The judgements, unknowable where a back-off was over by one clock then, and not by both.

        What the same sync and those right after it write follows from the pods that it made: the
        status that has them, and finalizers that go once that is written.
        """
        judged = list(judgements)
        if not self._ends:
            return judged
        pods = (j for j in judged if j.divergent and j.action == WriteKind.POD_CREATE.action)
        found = [(j.time_ns, clocks) for j in pods if (clocks := self._over_by_one(j.time_ns))]

        def near(judgement: Judgement) -> TwoClocks | None:
            if not judgement.divergent or judgement.action not in _HANGS:
                return None
            at_ns = judgement.time_ns
            near = (clocks for of_ns, clocks in found if abs(at_ns - of_ns) <= CLOCK_SLACK_NS)
            return next(near, None)

        return [
            judgement if (clocks := near(judgement)) is None else unknowable(judgement, clocks.why)
            for judgement in judged
        ]

    def _over_by_one(self, at_ns: int) -> TwoClocks | None:
        for end_ns, clocks in self._ends.items():
            both = (end_ns, end_ns - clocks.ahead_ns)
            if min(both) - CLOCK_SLACK_NS <= at_ns <= max(both) + CLOCK_SLACK_NS:
                return clocks
        return None
