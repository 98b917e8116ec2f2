"""A trace judged in pieces: units go to a crew, what they tell comes back, in any order.

`Pieces` is the map of docs/architecture.md's "Judging in pieces"; sum and sweep are its caller's.
The bytes that come out are those of one process: what a unit tells has no order but its keys'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tracekit.cron.zones import load_zone
from tracekit.crew.tasks import Crew, Lost
from tracekit.diff.cronjob import CronJobJudge
from tracekit.diff.readings import judge_as_known
from tracekit.diff.sweep import Sweep
from tracekit.diff.ttl import TtlJudge
from tracekit.eras.cronjob import CronJobEra
from tracekit.eras.era import Era
from tracekit.eras.job import JobRules
from tracekit.errors import TracekitError, TraceFormatError
from tracekit.judging.collecting import collecting_rarely
from tracekit.judging.found import Failure, Found, decoded, encoded
from tracekit.judging.units import Key, Unit, cut, families, of_jobs
from tracekit.replay.cron_runner import CronRunner
from tracekit.replay.feed import COLUMNS, RowGroup, histories
from tracekit.replay.run_context import RunContext
from tracekit.trace.format.limits import are_lifted, lifted
from tracekit.trace.reading.groups import groups_of
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.spreading import Portion, Stretch, Wanters, portion_rows, stretches
from tracekit.verdict import Judgement

#: Units for each worker: the smaller the last ones, the less the others wait for it.
_UNITS_EACH: Final = 6
#: Stretches of the trace for each worker to read.
_STRETCHES_EACH: Final = 4
#: Rows that are held in memory at a time, but for a family that has more.
_UNIT_ROWS: Final = 131_072
#: Into how many parts a unit is divided that killed its worker.
_PARTS: Final = 8


@dataclass(frozen=True, slots=True)
class Source:
    """A trace as one process has seen it, for all others to see the same."""

    trace: str
    end_seq: int  # what was written later is not looked at
    rows: int  # that the trace had then
    segments: tuple[str, ...]  # the files that it had then
    around_damage: bool
    no_limits: bool

    def reader(self) -> TraceReader:
        """The trace; opened once in each process."""
        return _reader(self)


@lru_cache(maxsize=2)
def _reader(source: Source) -> TraceReader:
    reader = TraceReader(source.trace, on_damage="skip" if source.around_damage else "raise")
    if reader.end_seq < source.end_seq or (
        reader.end_seq == source.end_seq and reader.rows != source.rows
    ):
        raise TraceFormatError(
            f"{source.trace} has lost rows since it was first read: see that nobody deletes or "
            "moves it, and run again"
        )
    return reader


@dataclass(frozen=True, slots=True)
class SpreadRows:
    """The work of reading a trace once for all units: its rows go to a folder, by unit."""

    source: Source
    units: tuple[Unit, ...]
    folder: str

    def do(self, stretch: Stretch) -> list[Portion] | None:
        """Read some row groups; nothing if the files are others by now: they were merged."""
        wanters = Wanters(tuple(unit.keys for unit in self.units))
        reader, known = self.source.reader(), self.source.segments
        if tuple(s.path.name for s in reader.segments[: len(known)]) != known:
            return None
        with lifted(on=self.source.no_limits):
            return wanters.write(reader, stretch, COLUMNS, Path(self.folder))


@dataclass(frozen=True, slots=True)
class Ready:
    """A unit whose rows lie in a folder."""

    unit: Unit
    portions: tuple[Portion, ...]


@dataclass(frozen=True, slots=True)
class JudgeUnits:
    """The work on units: what a process must know to judge any of them."""

    source: Source
    era: Era
    context: RunContext  # of the trace as a whole

    def do(self, task: Unit | Ready) -> bytes:
        """Judge a unit."""
        with lifted(on=self.source.no_limits), collecting_rarely():
            if isinstance(task, Ready):
                groups = groups_of(portion_rows(task.portions), COLUMNS)
                return encoded(self._found(task.unit, groups))
            last = self.source.end_seq - 1
            groups = self.source.reader().groups(COLUMNS, keys=task.keys, last_seq=last)
            return encoded(self._found(task, groups))

    def _found(self, unit: Unit, groups: Iterable[RowGroup]) -> Found:
        rules, jobs = JobRules.of(self.era), self.context.watching("jobs", "pods")
        sweep, failures = Sweep(), list[Failure]()
        judged_jobs, judgements = list[Key](), list[Judgement]()
        cron_jobs, ttl = others(self.era, self.context, sweep, frozenset(unit.cron_jobs))
        for history in histories(cron_jobs.passing(groups), frozenset(unit.jobs)):
            key = (history.namespace, history.name)
            try:
                judged = judge_as_known(history, rules, jobs)
                ttl.add(history)
            except TracekitError:
                raise
            except Exception as error:  # noqa: BLE001 - one key must not cost all others
                failures.append(Failure(*key, f"{type(error).__name__}: {error}"))
                continue
            cron_jobs.job(history)
            sweep.add(judged.timing)
            judged_jobs.append(key)
            judgements += judged.judgements
        cron = cron_jobs.told()
        return Found(judged_jobs, judgements, sweep.told(), cron, ttl.told(), failures)


def others(
    era: Era,
    context: RunContext,
    sweep: Sweep,
    cron_jobs: Collection[Key] | None = None,
) -> tuple[CronJobJudge, TtlJudge]:
    """The judges of the other controllers, which the Jobs' histories are handed on to."""
    rules = CronJobEra.of(era)
    runner = CronRunner(rules, load_zone(era.process_zone))
    watched = context.watching("jobs", "cronjobs")
    return (
        CronJobJudge(runner, watched, sweep.beside("cronjob"), cron_jobs),
        TtlJudge(rules, context.watching("jobs"), sweep.beside("ttl")),
    )


@dataclass
class Pieces:
    """A trace, and the crew that judges it."""

    reader: TraceReader
    era: Era
    context: RunContext
    crew: Crew
    around_damage: bool = False
    failures: list[Failure] = field(default_factory=list)
    sent_bytes: int = 0

    @cached_property
    def _families(self) -> list[Unit]:
        return families(self.reader)

    @cached_property
    def _work(self) -> JudgeUnits:
        return JudgeUnits(self._source, self.era, self.context)

    @cached_property
    def _source(self) -> Source:
        reader = self.reader
        return Source(
            str(reader.path),
            reader.end_seq,
            reader.rows,
            tuple(segment.path.name for segment in reader.segments),
            self.around_damage,
            are_lifted(),
        )

    def found(self) -> Iterator[Found]:
        """What each unit tells, as it is done; what could not be judged is in `failures`."""
        pieces = max(self.crew.size * _UNITS_EACH, -(-self.reader.rows // _UNIT_ROWS))
        units = cut(self._families, pieces)
        with TemporaryDirectory(prefix="tracekit-") as folder:
            yield from self._run(self._spread(units, folder))

    def _spread(self, units: Sequence[Unit], folder: str) -> list[Unit | Ready]:
        """The units with their rows, which are read once for all of them."""
        work = SpreadRows(self._source, tuple(units), folder)
        each = min(_UNIT_ROWS, -(-self.reader.rows // (_STRETCHES_EACH * self.crew.size)))
        portions: dict[int, list[Portion]] = defaultdict(list)
        for outcome in self.crew.run(work, stretches(self.reader, each), lambda _: ()):
            if isinstance(outcome, Lost) or outcome.result is None:
                return list(units)  # each reads its own
            for portion in outcome.result:
                portions[portion.wanter].append(portion)
        return [
            Ready(unit, tuple(sorted(portions[number], key=lambda portion: portion.path)))
            for number, unit in enumerate(units)
        ]

    def again(self, jobs: Collection[Key]) -> Iterator[Found]:
        """What some Jobs tell that are searched a second time."""
        units = of_jobs(self._families, jobs)
        return self._run(cut(units, self.crew.size)) if units else iter(())

    def _run(self, tasks: Sequence[Unit | Ready]) -> Iterator[Found]:
        for outcome in self.crew.run(self._work, tasks, self._parts):
            if isinstance(outcome, Lost):
                unit = _unit(outcome.task)
                self.failures.append(Failure(*(*unit.jobs, *unit.cron_jobs)[0], outcome.why))
            else:
                self.sent_bytes += len(outcome.result)
                found = decoded(outcome.result)
                self.failures += found.failures
                yield found

    def _parts(self, task: Unit | Ready) -> list[Unit]:
        """The parts of a unit that killed its worker, down to one family."""
        unit = _unit(task)
        own = frozenset((*unit.jobs, *unit.cron_jobs))
        inside = [f for f in self._families if (f.jobs or f.cron_jobs)[0] in own]
        return cut(inside, _PARTS) if len(inside) > 1 else []

    def settling(self, context: RunContext) -> RunContext:
        """What may be concluded from silence, now that it is known who could not be judged."""
        return replace(context, whole=False) if self.failures else context


def _unit(task: Unit | Ready) -> Unit:
    return task.unit if isinstance(task, Ready) else task
