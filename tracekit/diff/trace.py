"""A whole trace, replayed and judged key by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from tracekit.diff.judge import KeyJudgement, judge_key
from tracekit.diff.timing import Delay, late_syncs
from tracekit.eras.job import JobRules
from tracekit.kube.timestamps import NS_PER_S
from tracekit.replay.feed import RowGroup, histories
from tracekit.replay.run_context import RunContext
from tracekit.verdict import CRON_JOB_ACTIONS, JOB_ACTIONS, TTL_ACTIONS, Judgement, Verdict

#: The actions of each controller, in the order of the report.
ACTIONS: dict[str, tuple[str, ...]] = {
    "job": JOB_ACTIONS,
    "cronjob": CRON_JOB_ACTIONS,
    "ttl": TTL_ACTIONS,
}

Summary = dict[str, dict[str, dict[str, int]]]


@dataclass(slots=True)
class DiffReport:
    """What a replay of a trace found."""

    observations: int
    judgements: list[Judgement] = field(default_factory=list)
    #: The Jobs that were judged, as (namespace, name).
    jobs: list[tuple[str, str]] = field(default_factory=list)

    @property
    def decided(self) -> int:
        """How many actions the rules explain or contradict: neither foreign nor unknowable."""
        undecided = (Verdict.FOREIGN, Verdict.UNKNOWABLE)
        return sum(1 for judgement in self.judgements if judgement.verdict not in undecided)

    @property
    def longest_lag_ns(self) -> int:
        """The longest lag that an explanation took."""
        return max((judgement.lag_ns for judgement in self.judgements), default=0)

    @property
    def divergences(self) -> list[Judgement]:
        """The judgements that say no, by time."""
        return [judgement for judgement in self.judgements if judgement.divergent]

    def only(
        self,
        wanted: Callable[[Judgement], bool],
        jobs: Callable[[tuple[str, str]], bool] = lambda _: True,
    ) -> DiffReport:
        """The part of it that is wanted; no verdict changes by that."""
        return DiffReport(
            self.observations,
            [judgement for judgement in self.judgements if wanted(judgement)],
            [key for key in self.jobs if jobs(key)],
        )

    def add(self, judgements: Iterable[Judgement]) -> None:
        """Take in what was found about other controllers."""
        self.judgements += judgements
        self.judgements.sort(key=_order)

    def summary(self) -> Summary:
        """Counts by controller, action and verdict; every cell is there."""
        counts: Summary = {
            controller: {action: {v.value: 0 for v in Verdict} for action in actions}
            for controller, actions in ACTIONS.items()
        }
        for judgement in self.judgements:
            counts[judgement.controller][judgement.action][judgement.verdict.value] += 1
        return counts


def diff_groups(
    groups: Iterable[RowGroup],
    rules: JobRules,
    run_context: RunContext,
    *,
    observations: int,
    seen: Callable[[KeyJudgement], None] = lambda _: None,
) -> DiffReport:
    """Judge every Job of the groups; `seen` gets each key's replay, not yet judged for lateness."""
    report = DiffReport(observations)
    delays: list[Delay] = []
    for judged in judge_groups(groups, rules, run_context):
        seen(judged)
        report.jobs.append((judged.replay.history.namespace, judged.replay.history.name))
        report.judgements += judged.judgements
        delays += judged.delays
    mark_late(report.judgements, delays)
    report.judgements.sort(key=_order)
    return report


def mark_late(judgements: list[Judgement], delays: list[Delay]) -> None:
    """Turn the first write of every late sync into a divergence."""
    late = {
        (delay.key, delay.action, str(delay.rv)): (delay, bound_ns)
        for delay, bound_ns in late_syncs(delays)
    }
    if not late:
        return
    for position, judgement in enumerate(judgements):
        where = judgement.object
        found = late.get(
            (f"{where.namespace}/{where.name}", judgement.action, judgement.resource_version)
        )
        if found is None or judgement.divergent:
            continue
        delay, bound_ns = found
        why = (
            f"{delay.delay_ns / NS_PER_S:.1f} s after all that this sync needed was there "
            f"(bound {bound_ns / NS_PER_S:.1f} s, from the syncs around it); {judgement.why}"
        )
        judgements[position] = replace(judgement, verdict=Verdict.LATE, why=why)


def judge_groups(
    groups: Iterable[RowGroup], rules: JobRules, run_context: RunContext
) -> Iterator[KeyJudgement]:
    """Judge key by key, in the order of the groups."""
    for history in histories(groups):
        yield judge_key(history, rules, run_context)


def _order(judgement: Judgement) -> tuple[int, str, str, str, str, str]:
    where = judgement.object
    return (
        judgement.time_ns,
        where.namespace,
        where.name,
        judgement.resource_version,
        judgement.action,
        judgement.subject,
    )
