"""TK421: the Jobs that lost most to back-off."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from tracekit.answers.harm import DELAYS
from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.trace_model import Facts, Job
from tracekit.answers.words import counted
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S

#: Time between a failed pod and its successor, summed, from which on it is told.
BACKOFF_NS = 30 * NS_PER_S
_COSTLIEST = 5
COSTLY = Rule(
    "TK421", "much time lost to back-off", Severity.INFO,
    "The times between a failed pod and its successor of the same Job (and index) add up to 30 s "
    "or more; the five Jobs that lost most.",
    "A pod whose replacement waited for room, too.",
    "See which pods failed first; exit codes that never recover belong into a podFailurePolicy.",
    rank=64, losses=DELAYS,
)  # fmt: skip


class Costliest:
    """The Jobs that lost most, part by part of a trace."""

    def __init__(self) -> None:
        #: What the costliest Jobs of each part lost, and which they are.
        self._lost: list[tuple[int, Target]] = []

    def of_part(self, facts: Facts) -> Iterator[Case]:
        """Those of a part."""
        for lost_ns, case in _costly(facts):
            self._lost.append((lost_ns, case.target))
            yield case

    def settled(self, cases: list[Case]) -> list[Case]:
        """The cases of all parts without those that lost less than the costliest of all."""
        most = heapq.nsmallest(_COSTLIEST, self._lost, key=_costliest)
        costliest = {target for _, target in most}
        return [case for case in cases if case.rule is not COSTLY or case.target in costliest]


def _costliest(entry: tuple[int, Target]) -> tuple[int, str, str]:
    lost_ns, target = entry
    return -lost_ns, target.namespace, target.name


def _costly(facts: Facts) -> Iterator[tuple[int, Case]]:
    """The Jobs that lost most to back-off, and how much, ns."""
    found = []
    for job in facts.jobs:
        lost_ns, retries = _backoff(job)
        if lost_ns >= BACKOFF_NS:
            found.append((lost_ns, retries, job))
    found.sort(key=lambda entry: _costliest((entry[0], entry[2].target)))
    for lost_ns, retries, job in found[:_COSTLIEST]:
        yield (
            lost_ns,
            Case(
                COSTLY,
                job.target,
                "lost much time to back-off",
                job.created_ns,
                job.ended_ns or facts.end_ns,
                f"{span(lost_ns)} between {counted(retries, 'failed pod')} and "
                + ("its successor" if retries == 1 else "their successors"),
                job.cronjob,
                evidence={"backoff_s": round(lost_ns / NS_PER_S, 3), "retries": retries},
            ),
        )


def _backoff(job: Job) -> tuple[int, int]:
    """Time between failures and the next creation of the Job (and index), and the retries."""
    begins: defaultdict[int | None, list[int]] = defaultdict(list)
    for pod in job.pods:
        begins[pod.index].append(pod.first.at_ns)
    for times in begins.values():
        times.sort()
    spells: dict[tuple[int | None, int], int] = {}
    retries = 0
    for pod in job.pods:
        if pod.ended_ns is None or pod.phase != "Failed":
            continue
        times = begins[pod.index]
        place = bisect_right(times, pod.ended_ns)
        if place < len(times):
            retries += 1
            key = (pod.index, times[place])
            spells[key] = max(spells.get(key, 0), times[place] - pod.ended_ns)
    return sum(spells.values()), retries
