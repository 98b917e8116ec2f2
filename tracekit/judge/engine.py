"""The engine at work on a trace: the ported controllers, run over its rows and judged.

`judged` asks it for what is not kept. It stands apart because it is slow to import: who only reads
verdicts that were made before goes without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from tracekit.base.collecting import collecting_rarely
from tracekit.base.cron.zones import load_zone
from tracekit.check.diff.cronjob import CronJobJudge
from tracekit.check.diff.cross_key_timing import CrossKeyTiming, TimingResult
from tracekit.check.diff.forced import with_forced
from tracekit.check.diff.judge import KeyJudgement
from tracekit.check.diff.registry import Others, Scope
from tracekit.check.diff.report import DiffReport
from tracekit.check.diff.trace import diff_groups, judge_groups, recheck
from tracekit.check.diff.unrecorded import as_far_as_recorded
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.check.replay.feed import COLUMNS, RowGroup, histories
from tracekit.check.replay.run_context import Misfit, RunContext, Sample
from tracekit.check.verdict import Judgement, Reason, Verdict
from tracekit.judge.clocks import as_recorded, on_clock
from tracekit.judge.detected import shown_versions
from tracekit.judge.executors.tasks import Executor
from tracekit.judge.fact_cache import cached_fact, cached_objects
from tracekit.judge.lost_time import LostTime
from tracekit.judge.misfit import Sources, Systematic, sample_of
from tracekit.judge.partition import families
from tracekit.judge.partitioned import PartitionedJudge, ready
from tracekit.judge.run_context import whole_context
from tracekit.judge.sink import Counting, Kept, Sink
from tracekit.judge.unit_result import Failure
from tracekit.judge.unsaid_version import HeldBack, Place, doubted, in_doubt, place_of
from tracekit.trace.format.model import STATE_TYPES, RowType
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.selection import Keys
from tracekit.trace.stores.parts import Parts
from tracekit.versions.cronjob import CronJobEra
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules


class Engine:
    """Makes the verdicts of one trace by the rules of one era."""

    def __init__(
        self,
        reader: TraceReader,
        era: Era,
        executor: Executor | None = None,
        place: tuple[Parts, str] | None = None,
        kept_as: str | None = None,
    ) -> None:
        """`executor`: who judges in pieces, None: this process; `place`: where these are kept.

        `kept_as`: under what this machine keeps what the sample tells; None: nowhere.
        """
        self._kept_as = kept_as
        self.era = era
        self._reader = reader
        self._kept: dict[tuple[str, str], KeyJudgement] = {}
        self._of_jobs: DiffReport | None = None
        self._of_others: list[Judgement] = []
        self._cross_keys: tuple[CrossKeyTiming, ...] = ()
        self._executor = executor
        self._place = place
        #: Jobs of the sample, where it was searched just now and the record fits the rules.
        self._sampled: list[KeyJudgement] = []

    @cached_property
    def run_context(self) -> RunContext:
        """What the trace as a whole tells the Job controller: its end, gaps, restarts."""
        return self._whole_context.watching("jobs", "pods")

    @cached_property
    def _plain_context(self) -> RunContext:
        return whole_context(self._reader)

    @cached_property
    def _whole_context(self) -> RunContext:
        return replace(self._plain_context, sample=self.sample)

    @property
    def misfit(self) -> Misfit | None:
        """That the record as a whole contradicts the rules."""
        return self.sample.misfit

    @cached_property
    def sample(self) -> Sample:
        """What a sample of the Jobs tells of the record as a whole."""
        if self.era.search_all:
            return Sample()
        reader = self._reader

        def made() -> Sample:
            context = self._plain_context.watching("jobs", "pods")
            objects, sampled = cached_objects(reader), list[KeyJudgement]()
            sources = self._sources(context)
            found = sample_of(objects.jobs, self.era, context, sources, sampled.append)
            self._sampled = sampled if found.misfit is None else []
            return found

        if self._kept_as is None:
            return made()
        return cached_fact(reader.snapshot, f"sample-{self._kept_as}", Sample, made)

    def _sources(self, context: RunContext) -> Sources:
        """What a record is asked through that contradicts the rules as a whole."""
        reader = self._reader

        def of_families(controller: str, keys: Collection[tuple[str, str]]) -> Iterator[RowGroup]:
            wanted, jobs, namespaces = set(keys), set[tuple[str, str]](), set[str]()
            for family in families(reader):
                own = family.cron_jobs if controller == "cronjob" else family.jobs
                if wanted.intersection(own):
                    jobs.update(family.jobs)
                    namespaces.update(namespace for namespace, _ in family.cron_jobs)
            return self._groups(keys=Keys(tuple(sorted(jobs)), tuple(sorted(namespaces))))

        return Sources(
            lambda keys: self._groups(keys=keys),
            of_families,
            lambda judgement: self._by_this_record(judgement, context),
            lambda: shown_versions(reader),
        )

    def _contradicts(self, found: Systematic) -> str:
        """How the record as a whole contradicts the rules, in sentences; empty: it does not."""
        if self.era.search_all:
            return ""
        said = [self.misfit.why] if self.misfit is not None else []
        context, sampled = self._plain_context, self.misfit is not None
        said += found.whys(self.era, context, self._sources(context), sampled=sampled)
        return " ".join(said)

    def _groups(self, **selection: Any) -> Iterator[RowGroup]:
        """The rows of the trace, on the clock that they are judged on."""
        groups = self._reader.groups(COLUMNS, **selection)
        return on_clock(groups, self._plain_context.clock)

    @property
    def cron_context(self) -> RunContext:
        """What the trace as a whole tells the CronJob controller."""
        return self._whole_context.watching("jobs", "cronjobs")

    @property
    def cron_runner(self) -> CronRunner:
        """The CronJob controller of the era, in the zone of its process."""
        return CronRunner(CronJobEra.of(self.era), load_zone(self.era.process_zone))

    def _others(self, cross_key: CrossKeyTiming) -> Others:
        """The judges of the other controllers, which the Jobs' histories are handed on to."""
        return Others(Scope(self.era, self._whole_context, cross_key))

    @cached_property
    def _pieces(self) -> PartitionedJudge | None:
        if self._executor is None:
            return None
        self._executor.begin(ready)
        return PartitionedJudge(
            self._reader, self.era, lambda: self._whole_context, self._executor, self._place
        )

    @property
    def failures(self) -> list[Failure]:
        """The Jobs that could not be judged: each costs its own verdicts, and no others."""
        return self._pieces.failures if self._pieces is not None else []

    def judge_into(self, sink: Sink) -> None:
        """Judge all of the trace; what becomes of the judgements is the sink's affair."""
        held = HeldBack(sink)
        counted = Counting(held if self.era.also_fits else sink)
        self._judge_into(counted)
        self._settle(held, counted)

    def _settle(self, held: HeldBack, counted: Counting) -> None:
        """Pass on what waits for the rest: divergences, and what the record as a whole is."""
        why = self._contradicts(counted.systematic)
        if why:
            counted.misfit(why)
        doubts = {} if why else in_doubt(held.places, self.era, self._divergent_by)
        held.release(lambda j: doubted(j, self.era, doubts.get(place_of(j))))

    def _divergent_by(self, era: Era, places: Collection[Place]) -> frozenset[Place] | None:
        """Where the record has divergences by another era that may explain some of the places.

        None: it explains none, or the record contradicts it as a whole.
        """
        held, engine = HeldBack(Kept(DiffReport(0), ())), self._by(era)
        if not self._by(replace(era, search_all=True)).may_explain(places):
            return None
        if engine.misfit is not None:
            return None
        engine.judge_into(held)
        return None if held.is_misfit else held.places

    def _by(self, era: Era) -> Engine:
        """The engine of another era, for the same rows at the same times."""
        engine = Engine(self._reader, era)
        engine._plain_context = self._plain_context
        return engine

    def may_explain(self, places: Iterable[Place]) -> bool:
        """Whether some of the places have no divergence that their own search tells."""
        for place in places:
            found = None
            if place.controller == "job":
                found = self.job(place.namespace, place.name, alone=True)
            if found is None or not any(self._as_recorded(j).divergent for j in found.judgements):
                return True
        return False

    def _judge_into(self, sink: Sink) -> None:
        if self._pieces is not None:
            self._pieces.judge_into(sink, self._as_recorded)
            return
        cross_key = CrossKeyTiming()
        others = self._others(cross_key)
        with collecting_rarely():
            groups = others.passing(self._groups())
            for judged in self._judged_keys(groups, known=self.sampled()):
                cross_key.add(judged.timing)
                others.job(judged.replay.history)
                sink.job((judged.replay.history.namespace, judged.replay.history.name))
                for judgement in judged.judgements:
                    sink.take(self._as_recorded(judgement))
            found = self._recheck(cross_key.settled(self.run_context))
            again = sink.again(found.keys)
            for judged in self._judged_keys(self._groups() if again else (), again):
                for judgement in judged.judgements:
                    sink.change(judgement, self._as_recorded(found.of(judgement)))
            for judgement in (*found.missing, *others.report()):
                sink.take(self._as_recorded(judgement))

    def _recheck(self, found: TimingResult) -> TimingResult:
        """What was found, after a second search for Jobs that all others contradict."""
        return recheck(found, self._groups, JobRules.of(self.era), self.run_context)

    def _judged_keys(
        self,
        groups: Iterable[RowGroup],
        only: Collection[tuple[str, str]] | None = None,
        known: Iterable[KeyJudgement] = (),
    ) -> Iterator[KeyJudgement]:
        """The Jobs of the trace, judged one by one and each alone."""
        return judge_groups(groups, JobRules.of(self.era), self.run_context, only, known)

    def sampled(self) -> list[KeyJudgement]:
        """What was judged already to learn that the record fits the rules; handed out once."""
        sampled, self._sampled = (self._sampled if self.misfit is None else []), []
        return sampled

    def job(self, namespace: str, name: str, *, alone: bool) -> KeyJudgement | None:
        """The replay of one Job, with what its own search says; None: not judged.

        `alone`: the verdicts of the others are wanted from elsewhere, or known.
        """
        key = (namespace, name)
        if key not in self._kept:
            if not alone and self._of_jobs is None:
                self._judge_jobs(keep=key)
            else:
                rows = self._groups(keys=Keys((key,)))
                for judged in judge_groups(rows, JobRules.of(self.era), self.run_context):
                    self._keep(judged, key)
        return self._kept.get(key)

    def with_forced(self, judged: KeyJudgement) -> KeyJudgement:
        """The same with `forced` in the judgements of what syncs wrote."""
        return with_forced(judged, JobRules.of(self.era), self.run_context)

    def _keep(self, judged: KeyJudgement, key: tuple[str, str]) -> None:
        if (judged.replay.history.namespace, judged.replay.history.name) == key:
            self._kept = {key: judged}

    def _judge_jobs(self, keep: tuple[str, str] | None = None) -> DiffReport:
        """Judge all Jobs, and keep the replay of one."""
        if self._of_jobs is None:
            cross_key = CrossKeyTiming()
            others = self._others(cross_key)

            def seen(judged: KeyJudgement) -> None:
                others.job(judged.replay.history)
                if keep is not None:
                    self._keep(judged, keep)

            with collecting_rarely():
                self._of_jobs = diff_groups(
                    others.passing(self._groups()),
                    JobRules.of(self.era),
                    self.run_context,
                    observations=self._reader.rows,
                    cross_key=cross_key,
                    seen=seen,
                    again=self._recheck,
                    known=self.sampled(),
                )
                self._of_others = others.report()
                self._cross_keys = (
                    cross_key,
                    *(judge.cross_key for judge in others.judges.values()),
                )
        return self._of_jobs

    def calls_ns(self, controller: str) -> list[int]:
        """When a controller was seen to make a call, in order."""
        self._judge_jobs()
        return next(
            cross_key.calls_ns
            for cross_key in self._cross_keys
            if cross_key.controller == controller
        )

    def found(self, report: DiffReport, controllers: Collection[str]) -> None:
        """Put into a report all that is found of some controllers, by time."""
        kept = Kept(report, controllers)
        if self._pieces is not None:
            self.judge_into(kept)
            report.jobs.sort()
            report.sort()
            return
        held = HeldBack(kept)
        jobs, counted = self._judge_jobs(), Counting(held if self.era.also_fits else kept)
        if "job" in controllers:
            report.jobs += jobs.jobs
        with collecting_rarely():
            for judgement in (*jobs.judgements, *self._of_others):
                counted.take(self._as_recorded(judgement))
            self._settle(held, counted)
            report.sort()

    def _as_recorded(self, judgement: Judgement) -> Judgement:
        """The judgement, as far as the record can tell, by the recorder's clock."""
        if judgement.divergent:
            judgement = self._by_this_record(judgement, self.run_context)
        if judgement.divergent and judgement.controller == "job":
            where = judgement.object
            why = self.run_context.not_searched(where.namespace, where.name)
            if why is not None:
                changes = {"verdict": Verdict.UNKNOWABLE, "reason": Reason.MISFIT, "why": why}
                judgement = replace(judgement, fields=(), **changes)
        return as_recorded(judgement, self._plain_context.clock)

    def _by_this_record(self, judgement: Judgement, context: RunContext) -> Judgement:
        """The judgement, unless what it would contradict the rules by is not in the record."""
        if judgement.divergent and self._reader.losses:
            judgement = self._without_losses(judgement)
        return as_far_as_recorded(judgement, context, self._there_before)

    def _without_losses(self, judgement: Judgement) -> Judgement:
        """The judgement, unless what contradicts the rules may follow from rows that are lost."""
        loss = self._lost_time.hiding(as_recorded(judgement, self._plain_context.clock))
        if loss is None:
            return judgement
        return replace(
            judgement,
            verdict=Verdict.UNKNOWABLE,
            reason=Reason.GAP,
            why=f"rows {loss.first} to {loss.last} of the trace are lost, and this "
            f"{judgement.object.kind} lived then; without them: {judgement.why}",
        )

    @cached_property
    def _there_before(self) -> frozenset[str]:
        """Uids of what a source that lists nothing first shows after its creation."""
        if not self._plain_context.unlisted:
            return frozenset()
        rows = self._reader.table(
            ("uid", "type"), streams=["jobs", "cronjobs"], types=sorted(STATE_TYPES)
        ).to_pylist()
        created = {row["uid"] for row in rows if row["type"] == RowType.ADDED}
        return frozenset(row["uid"] for row in rows if row["uid"] and row["uid"] not in created)

    @cached_property
    def _lost_time(self) -> LostTime:
        return LostTime(self._reader)


def judge_cron_jobs(reader: TraceReader, era: Era, run_context: RunContext) -> list[Judgement]:
    """The CronJob controller's part alone, of a record that grows, as the context knows it."""
    runner = CronRunner(CronJobEra.of(era), load_zone(era.process_zone))
    judge = CronJobJudge(runner, run_context.watching("jobs", "cronjobs"))
    groups = judge.passing(on_clock(reader.groups(COLUMNS), run_context.clock))
    for history in histories(groups, None, run_context.written_ns):
        judge.job(history)
    return judge.report()
