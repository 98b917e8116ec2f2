"""A whole trace, replayed and judged key by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from tracekit.diff.judge import KeyJudgement
from tracekit.diff.lateness import KeyTiming
from tracekit.diff.readings import judge_as_known
from tracekit.diff.registry import ACTIONS
from tracekit.diff.sweep import Settled, Sweep
from tracekit.eras.job import JobRules
from tracekit.replay.feed import RowGroup, histories
from tracekit.replay.run_context import RunContext
from tracekit.verdict import Judgement, Verdict, time_order

Summary = dict[str, dict[str, dict[str, int]]]


@dataclass(slots=True)
class DiffReport:
    """What a replay of a trace found.

    `take` keeps a judgement, or only counts it, so that what is found of a large trace fits in
    memory: the divergences are always kept.
    """

    observations: int
    judgements: list[Judgement] = field(default_factory=list)
    #: The Jobs that were judged, as (namespace, name).
    jobs: list[tuple[str, str]] = field(default_factory=list)
    #: Those that were only counted, by controller, action and verdict.
    _counted: Counter[tuple[str, str, Verdict]] = field(default_factory=Counter)
    _counted_lag_ns: int = 0

    def take(self, judgement: Judgement, *, keep: bool = False) -> None:
        """Count a judgement, and keep it if it is a divergence or wanted."""
        if keep or judgement.divergent:
            self.judgements.append(judgement)
            return
        where = (judgement.controller, judgement.action, judgement.verdict)
        self.count(*where, 1, judgement.lag_ns)

    def count(
        self, controller: str, action: str, verdict: Verdict, number: int, lag_ns: int
    ) -> None:
        """Count some that are not kept; `lag_ns` is the longest of their lags."""
        self._counted[controller, action, verdict] += number
        self._counted_lag_ns = max(self._counted_lag_ns, lag_ns)

    def change(self, before: Judgement, after: Judgement) -> None:
        """Replace a judgement that was only counted."""
        self._counted[before.controller, before.action, before.verdict] -= 1
        self.take(after)

    @property
    def actions(self) -> int:
        """How many judgements there are, kept or counted."""
        return len(self.judgements) + self._counted.total()

    def how_many(self, *verdicts: Verdict) -> int:
        """How many judgements have one of these verdicts."""
        kept = sum(1 for judgement in self.judgements if judgement.verdict in verdicts)
        return kept + sum(n for (_, _, verdict), n in self._counted.items() if verdict in verdicts)

    @property
    def explained(self) -> int:
        """How many actions the rules explain."""
        return self.how_many(Verdict.MATCH, Verdict.MATCH_LAGGED)

    @property
    def decided(self) -> int:
        """How many actions the rules explain or contradict: neither foreign nor unknowable."""
        return self.actions - self.how_many(Verdict.FOREIGN, Verdict.UNKNOWABLE)

    @property
    def longest_lag_ns(self) -> int:
        """The longest lag that an explanation took."""
        kept_ns = max((judgement.lag_ns for judgement in self.judgements), default=0)
        return max(kept_ns, self._counted_lag_ns)

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
        self.sort()

    def sort(self) -> None:
        """Bring what is kept into the order of time."""
        self.judgements.sort(key=time_order)

    def summary(self) -> Summary:
        """Counts by controller, action and verdict; every cell is there."""
        counts: Summary = {
            controller: {action: {v.value: 0 for v in Verdict} for action in actions}
            for controller, actions in ACTIONS.items()
        }
        for judgement in self.judgements:
            counts[judgement.controller][judgement.action][judgement.verdict.value] += 1
        for (controller, action, verdict), count in self._counted.items():
            counts[controller][action][verdict.value] += count
        return counts


def diff_groups(
    groups: Iterable[RowGroup],
    rules: JobRules,
    run_context: RunContext,
    *,
    observations: int,
    sweep: Sweep | None = None,
    seen: Callable[[KeyJudgement], None] = lambda _: None,
    again: Callable[[Settled], Settled] = lambda found: found,
) -> DiffReport:
    """Judge every Job of the groups; `seen` gets each key's replay, not yet judged for lateness.

    `again` searches the Jobs once more that the others contradict (`upheld`).
    """
    report = DiffReport(observations)
    sweep = Sweep() if sweep is None else sweep
    for judged in judge_groups(groups, rules, run_context):
        seen(judged)
        report.jobs.append((judged.replay.history.namespace, judged.replay.history.name))
        report.judgements += judged.judgements
        sweep.add(judged.timing)
    found = again(sweep.settled(run_context))
    report.judgements = [*map(found.of, report.judgements), *found.missing]
    report.sort()
    return report


def upheld(
    found: Settled,
    groups: Callable[[], Iterable[RowGroup]],
    rules: JobRules,
    run_context: RunContext,
) -> Settled:
    """What was found, but for what contradicts Jobs that newer caches explain as well.

    A Job is searched alone, and the first explanation counts. Where the others had seen more by
    then, it is searched once more with that as a floor; `groups` gives the rows a second time.
    """
    if not found.contradicted:
        return found
    known = replace(run_context, shown=found.shown)
    return found.but_for(
        frozenset(
            (judged.replay.history.namespace, judged.replay.history.name)
            for judged in judge_groups(groups(), rules, known, found.contradicted)
            if found.upholds(judged.judgements, judged.timing.behind)
        )
    )


def settled(
    judgements: Iterable[Judgement], timings: Iterable[KeyTiming], run_context: RunContext
) -> list[Judgement]:
    """The judgements of all keys, and what the process as a whole tells: early, late, missing."""
    sweep = Sweep()
    for timing in timings:
        sweep.add(timing)
    found = sweep.settled(run_context)
    return [*map(found.of, judgements), *found.missing]


def judge_groups(
    groups: Iterable[RowGroup],
    rules: JobRules,
    run_context: RunContext,
    only: Collection[tuple[str, str]] | None = None,
) -> Iterator[KeyJudgement]:
    """Judge key by key, in the order of the groups; `only` some Jobs, by (namespace, name)."""
    for history in histories(groups, only):
        yield judge_as_known(history, rules, run_context)
