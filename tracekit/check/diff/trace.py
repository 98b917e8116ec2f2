"""A whole trace, replayed and judged key by key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec.structs import replace

from tracekit.check.diff.alternative_readings import WHY_REFUSED, judge_as_known, judge_as_refused
from tracekit.check.diff.cross_key_timing import CrossKeyTiming, TimingResult
from tracekit.check.diff.judge import KeyJudgement
from tracekit.check.diff.lateness import KeyTiming
from tracekit.check.diff.report import DiffReport
from tracekit.check.replay.feed import RowGroup, histories
from tracekit.check.replay.run_context import RunContext
from tracekit.check.verdict import Judgement
from tracekit.versions.job import JobRules


def diff_groups(
    groups: Iterable[RowGroup],
    rules: JobRules,
    run_context: RunContext,
    *,
    observations: int,
    cross_key: CrossKeyTiming | None = None,
    seen: Callable[[KeyJudgement], None] = lambda _: None,
    again: Callable[[TimingResult], TimingResult] = lambda found: found,
    known: Iterable[KeyJudgement] = (),
) -> DiffReport:
    """Judge every Job of the groups, not by time; `seen` gets each key's replay before that.

    `again` searches the Jobs once more that the others contradict (`recheck`); `known` is that of
    `judge_groups`.
    """
    report = DiffReport(observations)
    cross_key = CrossKeyTiming() if cross_key is None else cross_key
    for judged in judge_groups(groups, rules, run_context, known=known):
        seen(judged)
        report.jobs.append((judged.replay.history.namespace, judged.replay.history.name))
        report.judgements += judged.judgements
        cross_key.add(judged.timing)
    found = again(cross_key.settled(run_context))
    report.judgements = [*map(found.of, report.judgements), *found.missing]
    return report


def recheck(
    found: TimingResult,
    groups: Callable[[], Iterable[RowGroup]],
    rules: JobRules,
    run_context: RunContext,
) -> TimingResult:
    """What was found, but for what contradicts Jobs that newer caches explain as well.

    A Job is searched alone, and the first explanation counts. Where the others had seen more by
    then, it is searched once more with that as a floor; where the process had the time to go on
    with a sync, as one that no end of the record cut off. `groups` gives the rows a second time.
    """
    if not found.contradicted:
        return found
    known = replace(run_context, shown=found.shown, went_on=frozenset(found.went_on))
    cleared, lacking = set(), {}
    for judged in judge_groups(groups(), rules, known, found.contradicted):
        history = judged.replay.history
        if found.upholds(judged.judgements, judged.timing.behind):
            cleared.add((history.namespace, history.name))
        elif not run_context.events_recorded:
            again = judge_as_refused(history, rules, known)
            if found.upholds(again.judgements, again.timing.behind):
                lacking[history.namespace, history.name] = WHY_REFUSED
    return found.without(cleared, lacking)


def settled(
    judgements: Iterable[Judgement], timings: Iterable[KeyTiming], run_context: RunContext
) -> list[Judgement]:
    """The judgements of all keys, and what the process as a whole tells: early, late, missing."""
    cross_key = CrossKeyTiming()
    for timing in timings:
        cross_key.add(timing)
    found = cross_key.settled(run_context)
    return [*map(found.of, judgements), *found.missing]


def judge_groups(
    groups: Iterable[RowGroup],
    rules: JobRules,
    run_context: RunContext,
    only: Collection[tuple[str, str]] | None = None,
    known: Iterable[KeyJudgement] = (),
) -> Iterator[KeyJudgement]:
    """Judge key by key, in the order of the groups; `only` some Jobs, by (namespace, name).

    `known`: what these rules say of some of them in this context, which need not be asked again.
    """
    made = {
        (judged.replay.history.namespace, judged.replay.history.name): judged for judged in known
    }
    for history in histories(groups, only, run_context.written_ns):
        judged = made.pop((history.namespace, history.name), None)
        yield judge_as_known(history, rules, run_context) if judged is None else judged
