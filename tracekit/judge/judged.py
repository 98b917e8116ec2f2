"""A trace with its verdicts: which era it is of, and what the ported controllers say of it.

This is where a reader of traces and the pure rooms meet: commands, views of SQL and the Python API
all judge through here, so that the same trace has the same verdicts everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.errors import UnsupportedVersionError, UsageError
from tracekit.base.suggest import hint
from tracekit.base.time_input import ALWAYS, TimeRange
from tracekit.check.diff.report import DiffReport
from tracekit.check.replay.run_context import RunContext
from tracekit.check.verdict import ACTIONS, Judgement
from tracekit.judge.detected import detected_gates, detected_version
from tracekit.judge.executors.tasks import Executor
from tracekit.judge.fact_cache import cached_objects
from tracekit.judge.plugins import load_plugins
from tracekit.judge.verdict_cache import verdicts_key
from tracekit.judge.verdict_table import (
    CachedVerdicts,
    VerdictWriter,
    built,
    count_rows,
    load_verdicts,
    verdict_table,
    with_misfit,
)
from tracekit.trace.format.model import STATELESS
from tracekit.trace.reading.objects import Objects
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.stores.parts import Parts
from tracekit.versions.detect import Detection
from tracekit.versions.era import Era, nearest_known
from tracekit.versions.inferred_gates import ShownGate
from tracekit.versions.overrides import AskedRules
from tracekit.versions.recorded_gates import reconcile_gates
from tracekit.versions.texts import parse_feature_gates, parse_process_zone, parse_version
from tracekit.versions.version import KubeVersion

if TYPE_CHECKING:
    from tracekit.check.diff.judge import KeyJudgement
    from tracekit.check.replay.cron_runner import CronRunner
    from tracekit.judge.engine import Engine
    from tracekit.judge.unit_result import Failure


def open_under(rules: AskedRules, place: str | Path, *, around_damage: bool = False) -> TraceReader:
    """A trace, with what the user says of its controller manager and its clock.

    `around_damage`: what is damaged is left out and said, else it is an error.
    """
    return TraceReader(
        place,
        on_damage="skip" if around_damage else "raise",
        controller_flags=rules.controller_flags,
        clock_offset_ns=rules.clock_offset_ns,
    )


def resolve_era(
    reader: TraceReader,
    kubernetes_version: str | None,
    feature_gates: str | None,
    process_zone: str | None = None,
    search_all: bool = False,
) -> Era:
    """The era of a trace: what the command line says, else what the trace says or shows.

    Only what the command line says can be refused; a gate of the trace that its version does not
    allow is a warning of the era.
    """
    if reader.header.scope.get(STATELESS):
        raise UsageError(
            f"nothing of the trace can be judged: {reader.header.scope[STATELESS]}; `tracekit "
            "diagnose` says what it tells"
        )
    text = parse_version(kubernetes_version)
    named = KubeVersion.parse(text) if text is not None else None
    recorded = _recorded_version(reader, needed=named is None)
    typed = parse_feature_gates(feature_gates)
    zone = process_zone or str(reader.header.scope.get("process_zone") or "UTC")
    parse_process_zone(zone)
    # Else the objects show the gates of another version.
    as_shown = named is None or recorded is None or named == recorded

    def resolved(version: KubeVersion, *said: str) -> Era:
        brought = reconcile_gates(
            reader.header.feature_gates,
            nearest_known(version),
            recorded_at=recorded,
        )
        gates = brought.settings | typed
        era = Era.resolve(version, gates)
        warnings = (*era.warnings, *said, *brought.warnings)
        if as_shown:
            shown = [gate for gate in detected_gates(reader, era) if gate.gate.value not in gates]
            if shown:
                settings = {**gates, **{gate.gate.value: gate.on for gate in shown}}
                era = replace(Era.resolve(era.basis, settings), version=era.version)
                warnings = (*warnings, _objects_show(shown))
        return replace(era, warnings=warnings, process_zone=zone, search_all=search_all)

    version = named or recorded
    if version is not None:
        return resolved(version)
    found = _detected(reader)
    others = list[Era]()
    for release in found.releases:
        with suppress(UnsupportedVersionError, UsageError):  # it has not a gate that is typed
            others.append(resolved(release))
    return replace(resolved(found.best, _says_no_version(found)), also_fits=tuple(others))


def _recorded_version(reader: TraceReader, *, needed: bool) -> KubeVersion | None:
    """The version that the trace says; one that is none matters only where it is needed."""
    text = reader.header.kubernetes_version
    try:
        return KubeVersion.parse(text) if text is not None else None
    except UnsupportedVersionError:
        if needed:
            raise
        return None


def _detected(reader: TraceReader) -> Detection:
    """The versions that the objects of a trace fit which does not say its own."""
    found = detected_version(reader)
    if not found.evidence:
        raise UsageError(
            "the trace does not say which Kubernetes version it is from, nor do its objects: name "
            "it with --kubernetes-version v1.36.3"
        )
    return found


def _says_no_version(found: Detection) -> str:
    return (
        "the trace does not say which Kubernetes version it is from; its objects fit "
        f"{found.describe()}; the rules of {found.best} are used, "
        "--kubernetes-version names another."
    )


def _objects_show(shown: Sequence[ShownGate]) -> str:
    return (
        f"the objects of the trace show feature gates {', '.join(g.describe() for g in shown)}: "
        "taken as such, --feature-gates sets them otherwise."
    )


class Asked(Struct, frozen=True):
    """Which of a trace's verdicts somebody wants to see; None asks for no part."""

    namespace: str | None = None
    #: A Job or CronJob, as "namespace/name".
    job: str | None = None
    controllers: Sequence[str] | None = None
    times: TimeRange = ALWAYS
    #: Fewer actions than that, and without a divergence, decide nothing.
    min_actions: int = 0

    @property
    def part(self) -> str:
        """The part that is asked for, in words; empty for all of it."""
        words = []
        if self.controllers is not None:
            words.append(f"controller {','.join(self.controllers)}")
        if self.job is not None:
            words.append(self.job)
        elif self.namespace is not None:
            words.append(f"namespace {self.namespace}")
        return " ".join(filter(None, (" in ".join(words), str(self.times))))


class Judge:
    """The verdicts of a trace by the rules of one era: the one answer that all verbs read.

    A trace is always judged as a whole, once: what one Job's controller was busy with decides
    whether another Job was late. Every view of it (a namespace, a Job, a controller) is a part of
    those same judgements.
    """

    def __init__(
        self,
        reader: TraceReader,
        era: Era,
        *,
        kept_as: str | None = None,
        before_judging: Callable[[int], None] | None = None,
        executor: Executor | None = None,
        parts: Parts | None = None,
    ) -> None:
        """`kept_as`: the key under which this machine keeps the verdicts; None: nowhere.

        `before_judging` is called with the number of observations, where none are kept yet.
        `executor`: who judges the trace in pieces; None: this process does, as a whole.
        `parts`: where the pieces are kept, under the same key.
        """
        load_plugins()
        self.era = era
        self._reader = reader
        self._kept_as = kept_as
        self._before_judging = before_judging
        self._executor = executor
        self._parts = parts
        self._made: Engine | None = None

    @classmethod
    def under(
        cls,
        rules: AskedRules,
        reader: TraceReader,
        before_judging: Callable[[int], None] | None = None,
    ) -> Judge:
        """The judge by what the user says of the rules; this machine keeps the verdicts."""
        era = resolve_era(reader, *rules.era)
        key = verdicts_key(reader.snapshot, *rules.era)
        return cls(reader, era, kept_as=key, before_judging=before_judging)

    @property
    def _engine(self) -> Engine:
        """Who makes verdicts: nobody, as long as those that are kept are enough."""
        if self._made is None:
            from tracekit.judge.engine import Engine  # noqa: PLC0415 - slow to import

            place = None
            if self._parts is not None and self._kept_as is not None:
                place = (self._parts, self._kept_as)
            self._made = Engine(self._reader, self.era, self._executor, place, self._kept_as)
        return self._made

    @cached_property
    def objects(self) -> Objects:
        """The Jobs and CronJobs that there are to judge."""
        return cached_objects(self._reader)

    @property
    def run_context(self) -> RunContext:
        """What the trace as a whole tells the Job controller: its end, gaps, restarts."""
        return self._engine.run_context

    def sampled(self) -> list[KeyJudgement]:
        """What was judged already to learn that the record fits the rules; handed out once."""
        return self._engine.sampled()

    @property
    def cron_context(self) -> RunContext:
        """What the trace as a whole tells the CronJob controller."""
        return self._engine.cron_context

    @property
    def cron_runner(self) -> CronRunner:
        """The CronJob controller of the era, in the zone of its process."""
        return self._engine.cron_runner

    @property
    def failures(self) -> list[Failure]:
        """The Jobs that could not be judged: each costs its own verdicts, and no others."""
        return self._made.failures if self._made is not None else []

    def report(self, asked: Asked | None = None) -> DiffReport:
        """What was found, or the part of it that is asked for.

        Raises:
            UsageError: The part names something that is not there, or holds nothing, or too little.
        """
        asked = asked or Asked()
        controllers, key = self._checked(asked)
        part = _Part(asked, key)
        found = self._found(controllers, *(key or (asked.namespace, None)))
        if part.narrows:
            found = found.only(part.has, part.has_job)
        if asked.times:
            busy = {(j.object.namespace, j.object.name) for j in found.judgements}
            found.jobs = [job for job in found.jobs if job in busy]
        return _enough(found, asked)

    def tally(self, asked: Asked | None = None) -> DiffReport:
        """As `report`, with all that is not a divergence counted and not kept.

        Memory does not grow with what is judged: some hundred bytes for each sync, of a trace of
        any size. Keys whose judgements change when all others are known are judged a second time.
        """
        asked = asked or Asked()
        if asked.times:  # which Jobs are of a time is seen by their judgements
            return self.report(asked)
        controllers, key = self._checked(asked)
        report, known = DiffReport(self._reader.rows), self.kept
        counts = _Counts(report, _Part(asked, key), controllers)
        if known is None:
            self._engine.judge_into(counts)
        elif key is None:
            known.tally(report, controllers, asked.namespace)
        else:
            counts.misfit(known.misfit)
            for job in known.jobs:
                counts.job(job)
            for judgement in known.judgements(controllers, *key):
                counts.take(judgement)
        report.jobs.sort()
        report.sort()
        return _enough(report, asked)

    @cached_property
    def kept(self) -> CachedVerdicts | None:
        """All verdicts, as this machine keeps them; None if it has no place, or the trace is lossy.

        Verdicts are kept under the checksums of the trace, so that its bytes must still fit these.
        """
        if self._kept_as is None or self._reader.losses:
            return None
        snapshot, known = self._reader.snapshot, load_verdicts(self._kept_as)
        # What lies in object storage is not fetched only to be compared with its checksums.
        if (known is None or snapshot.origin is None) and not snapshot.is_as_sealed():
            return None
        if known is None:
            with VerdictWriter(self._kept_as) as writer:
                if writer.has_place:
                    if self._before_judging is not None:
                        self._before_judging(self._reader.rows)
                    self._engine.judge_into(writer)
                    if not self.failures:
                        writer.done()
            known = load_verdicts(self._kept_as)
        return known

    def verdicts(self) -> CachedVerdicts | pa.Table:
        """All judgements, with the columns of the view `verdicts`: where they are kept, or here."""
        if self.kept is not None:
            return self.kept
        report = self.report()
        return with_misfit(verdict_table(report.judgements), report.misfit)

    def _checked(self, asked: Asked) -> tuple[tuple[str, ...], tuple[str, str] | None]:
        """The controllers and the object that are asked for, if they are there."""
        controllers = check_controllers(asked.controllers)
        key = None
        if asked.namespace is not None:
            self.objects.check_namespace(asked.namespace)
        if asked.job is not None:
            key = self.objects.key(asked.job, asked.namespace)
        return controllers, key

    def about(self, kind: str, namespace: str, name: str) -> list[Judgement]:
        """Every judgement about one Job or CronJob, of all controllers, by time."""
        return [
            judgement
            for judgement in self._found(tuple(ACTIONS), namespace, name).judgements
            if is_about(judgement, namespace, name, kind)
        ]

    def of(self, controller: str, namespace: str) -> list[Judgement]:
        """Every judgement of one controller in a namespace, by time."""
        return [
            judgement
            for judgement in self._found((controller,), namespace, None).judgements
            if judgement.object.namespace == namespace
        ]

    def job(self, namespace: str, name: str) -> KeyJudgement | None:
        """The replay of one Job, sync by sync, with the verdicts of the whole; None: not judged.

        It costs no more than to judge the trace, and little once that is done.
        """
        kept = self._engine.job(namespace, name, alone=self.kept is not None)
        if kept is None:
            return None
        mine = tuple(j for j in self.about("Job", namespace, name) if j.controller == "job")
        return self._engine.with_forced(replace(kept, judgements=mine))

    def calls_ns(self, controller: str) -> list[int]:
        """When a controller was seen to make a call, in order."""
        return self._engine.calls_ns(controller)

    def _found(
        self, controllers: Sequence[str], namespace: str | None, name: str | None
    ) -> DiffReport:
        """What was found of some controllers; at least all of a namespace, and about a name."""
        report, known = DiffReport(self._reader.rows), self.kept
        if known is not None:
            report.judgements = known.judgements(controllers, namespace, name)
            if "job" in controllers:
                report.jobs += known.jobs
                report.misfit = known.misfit
            return report
        self._engine.found(report, controllers)
        return report


class _Part(Struct, frozen=True):
    """The part of a trace's verdicts that is asked for."""

    asked: Asked
    key: tuple[str, str] | None

    @property
    def narrows(self) -> bool:
        """Whether more is asked than which controllers it is about."""
        return bool(self.asked.namespace is not None or self.key is not None or self.asked.times)

    def has(self, judgement: Judgement) -> bool:
        """Whether a judgement is of it."""
        return (
            self.asked.namespace in (None, judgement.object.namespace)
            and (self.key is None or is_about(judgement, *self.key))
            and self.asked.times.holds(judgement.time_ns)
        )

    def has_job(self, job: tuple[str, str]) -> bool:
        """Whether a Job, as (namespace, name), is of it."""
        return self.asked.namespace in (None, job[0]) and (self.key is None or self.key == job)


class _Counts(Struct, frozen=True):
    """Counts what is asked for, and keeps its divergences."""

    report: DiffReport
    part: _Part
    controllers: Collection[str]

    def misfit(self, why: str) -> None:
        if "job" in self.controllers:
            self.report.misfit = why

    def job(self, job: tuple[str, str]) -> None:
        if "job" in self.controllers and self.part.has_job(job):
            self.report.jobs.append(job)

    def take(self, judgement: Judgement) -> None:
        if self._wants(judgement):
            self.report.take(judgement)

    def take_rows(self, rows: pa.Table) -> None:
        if self.part.key is not None:
            for judgement in built(rows):
                self.take(judgement)
            return
        names = pa.array(self.controllers, pa.string())
        wanted = pc.is_in(rows["controller"], value_set=names)
        if self.part.asked.namespace is not None:
            wanted = pc.and_(wanted, pc.equal(rows["namespace"], self.part.asked.namespace))
        count_rows(self.report, rows.filter(wanted))

    def again(self, jobs: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
        return frozenset(filter(self.part.has_job, jobs))

    def change(self, before: Judgement, after: Judgement) -> None:
        if after is not before and not before.divergent and self._wants(before):
            self.report.change(before, after)

    def _wants(self, judgement: Judgement) -> bool:
        return judgement.controller in self.controllers and self.part.has(judgement)


def _enough(found: DiffReport, asked: Asked) -> DiffReport:
    """What was found; an error if it is nothing, for nothing would never diverge, or too little."""
    if asked.part and not found.actions and not found.jobs:
        raise UsageError(
            f"there is nothing to judge of {asked.part}: no action of it was recorded, and a "
            "replay of nothing would find no divergence"
        )
    if found.decided < asked.min_actions and not found.divergences:
        raise UsageError(
            f"{found.decided} actions could be judged, and {asked.min_actions} are asked for "
            "at least (--min-actions): see what the trace holds with `tracekit info`"
        )
    return found


def check_controllers(names: Sequence[str] | None) -> tuple[str, ...]:
    """The controllers that are named, or all; a UsageError for none and for an unknown one."""
    load_plugins()
    if names is None:
        return tuple(ACTIONS)
    for name in names or ("",):
        if name not in ACTIONS:
            meant = hint(name, ACTIONS, f"name some of {', '.join(ACTIONS)}")
            raise UsageError(f"{name!r} is no controller{meant}")
    return tuple(names)


def is_about(judgement: Judgement, namespace: str, name: str, kind: str | None = None) -> bool:
    """Whether a judgement is about an object: its own, or what another controller did to it."""
    where = judgement.object
    if where.namespace != namespace:
        return False
    if where.name == name and kind in (None, where.kind):
        return True
    acted_upon = judgement.subject if judgement.action.startswith("job-") else None
    return kind in (None, "Job") and acted_upon == name
