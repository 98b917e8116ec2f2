"""A whole trace, replayed and judged key by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tracekit.diff.judge import KeyJudgement, judge_key
from tracekit.diff.key_queue import FirstWrite
from tracekit.diff.lateness import KeyTiming, Process, contradicted, early, late
from tracekit.eras.job import JobRules
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
    timings: list[KeyTiming] = []
    for judged in judge_groups(groups, rules, run_context):
        seen(judged)
        report.jobs.append((judged.replay.history.namespace, judged.replay.history.name))
        report.judgements += judged.judgements
        timings.append(judged.timing)
    report.judgements = settled(report.judgements, timings, run_context)
    report.judgements.sort(key=_order)
    return report


def settled(
    judgements: Iterable[Judgement], timings: Sequence[KeyTiming], run_context: RunContext
) -> list[Judgement]:
    """The judgements of all keys, and what the process as a whole tells: early, late, missing."""
    process = Process(
        [service for timing in timings for service in timing.services],
        sorted(at_ns for timing in timings for at_ns in timing.calls_ns),
        [(outage.from_ns, outage.until_ns) for outage in run_context.interruptions],
        whole=run_context.whole,
    )
    untimely = {service.first: (Verdict.LATE, why) for service, why in late(process)}
    for timing in timings:
        for hurried in timing.hurried:
            why = early(process, hurried)
            if why is not None:
                untimely[hurried.first] = (Verdict.EARLY, why)
    for behind, why in contradicted(process, timings):
        untimely[behind.first] = (Verdict.EXTRA, why)
    found = [_timely(judgement, untimely) for judgement in judgements]
    for timing in timings:
        for owed in timing.owed:
            until_ns = run_context.end_ns if owed.until_ns is None else owed.until_ns
            proof = process.proof(owed.certain_ns, until_ns, timed=owed.timed)
            if proof is not None:
                found.append(replace(owed.judgement, why=f"{owed.judgement.why}; {proof}"))
    return found


def _timely(judgement: Judgement, untimely: Mapping[FirstWrite, tuple[Verdict, str]]) -> Judgement:
    """The judgement, turned into a divergence if it is of the first write of an untimely sync."""
    where = judgement.object
    key = FirstWrite(
        f"{where.namespace}/{where.name}", judgement.action, judgement.resource_version
    )
    found = untimely.get(key)
    if found is None or judgement.divergent:
        return judgement
    verdict, why = found
    return replace(judgement, verdict=verdict, why=f"{why}; {judgement.why}")


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
