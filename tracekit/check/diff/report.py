"""What a replay of a trace found, as its readers get it: without the engine that finds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tracekit.check.verdict import ACTIONS, Judgement, Verdict, time_order

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
    #: That the record as a whole contradicts the rules, in sentences; empty if it does not.
    misfit: str = ""
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
            self.misfit,
        )

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
