"""A trace judged in pieces: units go to an executor, their results come back, in any order.

`PartitionedJudge` is the map of docs/architecture.md's "Judging in pieces"; its caller sums up.
The bytes that come out are those of one process: what a unit tells has no order but its keys'.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time_ns
from typing import Final

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.collecting import collecting_rarely
from tracekit.base.errors import TraceFormatError, TracekitError, UsageError
from tracekit.check.diff.alternative_readings import judge_as_known
from tracekit.check.diff.cross_key_timing import CrossKeyTiming
from tracekit.check.diff.registry import Others, Scope
from tracekit.check.diff.trace import recheck
from tracekit.check.replay.feed import COLUMNS, RowGroup, histories
from tracekit.check.replay.run_context import RunContext
from tracekit.check.verdict import Judgement
from tracekit.judge.clocks import as_recorded, on_clock
from tracekit.judge.executors.tasks import Executor, Lost
from tracekit.judge.partition import Key, Unit, cut, families, of_jobs
from tracekit.judge.plugins import load_plugins
from tracekit.judge.sink import Sink
from tracekit.judge.unit_result import Failure, Found, decoded, encoded, is_part
from tracekit.judge.verdict_cache import code_digest
from tracekit.trace.format.limits import are_lifted, lifted
from tracekit.trace.reading.groups import groups_of
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.shuffle import Portion, Stretch, Wanters, portion_rows, stretches
from tracekit.trace.stores.parts import Parts
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

#: Units for each worker: the smaller the last ones, the less the others wait for it.
_UNITS_EACH: Final = 16
#: Stretches of the trace for each worker to read.
_STRETCHES_EACH: Final = 4
#: Rows that a unit has whose part is kept: so many are lost at most when a run is cut.
_PART_ROWS: Final = 50_000
#: Rows that are held in memory at a time, but for a family that has more.
_UNIT_ROWS: Final = 65_536
#: Into how many parts a unit is divided that killed its worker.
_PARTS: Final = 8


class Source(Struct, frozen=True):
    """A trace as one process has seen it, for all others to see the same."""

    trace: str
    end_seq: int  # what was written later is not looked at
    rows: int  # that the trace had then
    segments: tuple[str, ...]  # the files that it had then
    around_damage: bool
    no_limits: bool
    code: str  # of the tracekit that asks

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


class SpreadRows(Struct, frozen=True):
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


class Ready(Struct, frozen=True):
    """A unit whose rows lie in a folder."""

    unit: Unit
    portions: tuple[Portion, ...]


class JudgeUnits(Struct, frozen=True):
    """The work on units: what a process must know to judge any of them."""

    source: Source
    era: Era
    context: RunContext  # of the trace as a whole
    built: bool = False  # whether every judgement is wanted as such, not only divergences
    parts: Parts | None = None  # where what is found is kept
    run: str = ""  # what tells this run from those over other rows, or by other rules

    def do(self, task: Unit | Ready) -> bytes:
        """Judge a unit, unless its part is there."""
        check_code(self.source.code)
        name = part_name(_unit(task))
        if self.parts is not None:
            known = self.parts.read(self.run, name)
            if known is not None and is_part(known):
                return known
        found = self._judged(task)
        if self.parts is not None and not decoded(found)[0].failures:
            self.parts.write(self.run, name, found)
        return found

    def _judged(self, task: Unit | Ready) -> bytes:
        with lifted(on=self.source.no_limits), collecting_rarely():
            clock = self.context.clock
            if isinstance(task, Ready):
                groups = groups_of(portion_rows(task.portions), COLUMNS)
                return self._found(task.unit, on_clock(groups, clock))
            last = self.source.end_seq - 1
            groups = self.source.reader().groups(COLUMNS, keys=task.keys, last_seq=last)
            return self._found(task, on_clock(groups, clock))

    def _found(self, unit: Unit, groups: Iterable[RowGroup]) -> bytes:
        begun_ns = process_time_ns()
        load_plugins()
        rules, jobs = JobRules.of(self.era), self.context.watching("jobs", "pods")
        cross_key, failures = CrossKeyTiming(), list[Failure]()
        judged_jobs, judgements = list[Key](), list[Judgement]()
        others = Others(Scope(self.era, self.context, cross_key, frozenset(unit.cron_jobs)))
        written_ns = jobs.written_ns
        for history in histories(others.passing(groups), frozenset(unit.jobs), written_ns):
            key = (history.namespace, history.name)
            try:
                judged = judge_as_known(history, rules, jobs)
            except TracekitError:
                raise
            except Exception as error:  # noqa: BLE001 - one key must not cost all others
                failures.append(Failure(*key, f"{type(error).__name__}: {error}"))
                continue
            others.job(history)
            cross_key.add(judged.timing)
            judged_jobs.append(key)
            judgements += judged.judgements
        summary = others.summary()
        kept = [j for j in judgements if self.built or j.divergent]
        clock = self.context.clock  # these go on as rows, and nobody builds them again
        rest = [as_recorded(j, clock) for j in judgements if not (self.built or j.divergent)]
        spent_ns = process_time_ns() - begun_ns
        found = Found(judged_jobs, kept, cross_key.summary(), summary, failures, spent_ns)
        return encoded(found, rest)


def ready() -> None:
    """What a worker does before there is work: all that judging imports, this module among it."""
    load_plugins()


def part_name(unit: Unit) -> str:
    """By what the part of a unit is known."""
    digest = hashlib.blake2b(repr((unit.jobs, unit.cron_jobs)).encode(), digest_size=16)
    return f"{digest.hexdigest()}.parquet"


def check_code(theirs: str) -> None:
    """Raise unless this process has the very code of the one that asks."""
    if code_digest() != theirs:
        raise UsageError(
            "a worker has another tracekit of the same version: start workers from the same image "
            "as this one"
        )


@dataclass
class PartitionedJudge:
    """A trace, and the executor that judges it."""

    reader: TraceReader
    era: Era
    #: What the trace as a whole tells: read by this process while the others read their parts.
    context_of: Callable[[], RunContext]
    executor: Executor
    #: Where what is found of each unit is kept, and under which name; None: nowhere.
    kept: tuple[Parts, str] | None = None
    failures: list[Failure] = field(default_factory=list)
    sent_bytes: int = 0
    cpu_ns: int = 0  # of those who judged

    @cached_property
    def context(self) -> RunContext:
        """What the trace as a whole tells."""
        return self.context_of()

    @cached_property
    def _families(self) -> list[Unit]:
        return families(self.reader)

    @cached_property
    def source(self) -> Source:
        """The trace as those who judge it find it."""
        reader = self.reader
        return Source(
            reader.snapshot.word,
            reader.end_seq,
            reader.rows,
            tuple(segment.path.name for segment in reader.segments),
            reader.skips_damage,
            are_lifted(),
            code_digest(),
        )

    def judge_into(self, sink: Sink, as_recorded: Callable[[Judgement], Judgement]) -> None:
        """Judge all of the trace; the sink is told what one process would tell it."""
        cross_key = CrossKeyTiming()
        with self._tasks() as tasks:
            others = Others(Scope(self.era, self.context, cross_key))
            for found, rest in self._run(tasks, built=False):
                cross_key.merge(found.summary)
                others.merge(found.others)
                for job in found.jobs:
                    sink.job(job)
                for judgement in found.judgements:
                    sink.take(as_recorded(judgement))
                if rest.num_rows:
                    sink.take_rows(rest)
        if self.failures:  # whose calls are missing: nothing follows from silence
            others.distrust_silence()
        whole = self.context.whole and not self.failures
        jobs = replace(self.context.watching("jobs", "pods"), whole=whole)

        def groups() -> Iterator[RowGroup]:
            return on_clock(self.reader.groups(COLUMNS), jobs.clock)

        settled = recheck(cross_key.settled(jobs), groups, JobRules.of(self.era), jobs)
        for found, _ in self._again(sink.again(settled.keys)):
            for judgement in found.judgements:
                sink.change(judgement, as_recorded(settled.of(judgement)))
        for judgement in (*settled.missing, *others.report()):
            sink.take(as_recorded(judgement))

    @contextmanager
    def _tasks(self) -> Iterator[list[Unit | Ready]]:
        """The units to judge; an executor that sees this machine's disk finds their rows there."""
        if self.kept is None:
            pieces = max(self.executor.size * _UNITS_EACH, -(-self.reader.rows // _UNIT_ROWS))
        else:  # the same for any executor: another one may go on with it
            pieces = -(-self.reader.rows // _PART_ROWS)
        lost = {(failure.namespace, failure.name) for failure in self.failures}
        left = [f for f in self._families if not lost.intersection(f.objects)]
        units = cut(left, pieces, small_last=self.kept is None)
        there = self.kept[0].names(self.kept[1]) if self.kept is not None else frozenset()
        known = [unit for unit in units if part_name(unit) in there]
        new = [unit for unit in units if part_name(unit) not in there]
        with TemporaryDirectory(prefix="tracekit-") as folder:
            tasks = self._spread(new, folder) if new and self.executor.shares_disk else new
            yield [*tasks, *known]

    def _spread(self, units: Sequence[Unit], folder: str) -> list[Unit | Ready]:
        """The units with their rows, which are read once for all of them."""
        work = SpreadRows(self.source, tuple(units), folder)
        each = min(_UNIT_ROWS, -(-self.reader.rows // (_STRETCHES_EACH * self.executor.size)))
        portions: dict[int, list[Portion]] = defaultdict(list)
        for outcome in self.executor.run(work, stretches(self.reader, each), lambda _: ()):
            if isinstance(outcome, Lost) or outcome.result is None:
                return list(units)  # each reads its own
            _ = self.context  # read now: the others are busy
            for portion in outcome.result:
                portions[portion.wanter].append(portion)
        return [
            Ready(unit, tuple(sorted(portions[number], key=lambda portion: portion.path)))
            for number, unit in enumerate(units)
        ]

    def _again(self, jobs: Collection[Key]) -> Iterator[tuple[Found, pa.Table]]:
        """What some Jobs tell that are searched a second time."""
        units = of_jobs(self._families, jobs)
        return self._run(cut(units, self.executor.size), built=True) if units else iter(())

    def _run(
        self, tasks: Sequence[Unit | Ready], *, built: bool
    ) -> Iterator[tuple[Found, pa.Table]]:
        parts, run = self.kept if self.kept is not None and not built else (None, "")
        work = JudgeUnits(self.source, self.era, self.context, built, parts, run)
        for outcome in self.executor.run(work, tasks, self._parts):
            if isinstance(outcome, Lost):
                self.failures.append(Failure(*_unit(outcome.task).objects[0], outcome.why))
            else:
                self.sent_bytes += len(outcome.result)
                found, others = decoded(outcome.result)
                self.failures += found.failures
                self.cpu_ns += found.cpu_ns
                yield found, others

    def _parts(self, task: Unit | Ready) -> list[Unit]:
        """The parts of a unit that killed its worker, down to one family."""
        unit = _unit(task)
        own = frozenset(unit.objects)
        inside = [family for family in self._families if family.objects[0] in own]
        return cut(inside, _PARTS) if len(inside) > 1 else []


def _unit(task: Unit | Ready) -> Unit:
    return task.unit if isinstance(task, Ready) else task
