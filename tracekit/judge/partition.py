"""A trace cut into units that can be judged anywhere: Jobs that do not need each other.

A Job is searched alone; a CronJob needs the histories of its Jobs, and of those that have the name
of one of its slots. What belongs together so is a family, and a unit is some families. The largest
come first: nothing divides a family, so one that takes long must not be begun last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from tracekit.check.replay.cron_history import SLOT_NAME
from tracekit.ports.cronjob.children import OWNER_KIND
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.selection import Keys, Selection

Key = tuple[str, str]
#: What a Job costs besides its rows, as so many rows.
_JOB_ROWS: Final = 8
#: Which share of the rows is cut smaller, one in so many, and into how many times as many units.
_LAST: Final = 8
_SMALLER: Final = 4


class Unit(Struct, frozen=True):
    """Jobs and CronJobs, as (namespace, name) in order, that are judged together."""

    jobs: tuple[Key, ...]
    cron_jobs: tuple[Key, ...]
    #: What it takes, in rows.
    rows: int

    @property
    def keys(self) -> Keys:
        """The rows that it takes."""
        return Keys(self.jobs, tuple(sorted({namespace for namespace, _ in self.cron_jobs})))

    @property
    def objects(self) -> tuple[Key, ...]:
        """Jobs, then CronJobs."""
        return (*self.jobs, *self.cron_jobs)


class _Seen(Struct, frozen=True):
    """What a trace shows of its objects."""

    rows: Mapping[Key, int]  # of Jobs
    owned: frozenset[tuple[str, str, str]]  # namespace, Job, its CronJob
    cron_jobs: tuple[Key, ...]


def families(reader: TraceReader) -> list[Unit]:
    """All Jobs and CronJobs of a trace, each with those that it needs, by name."""
    seen = _seen(reader)
    cron_jobs = set(seen.cron_jobs)
    above: dict[Key, Key] = {}  # union and find; a CronJob's name has a slash before it

    def root(key: Key) -> Key:
        while key in above:
            key = above[key]
        return key

    def join(job: Key, cron_job: str) -> None:
        one, other = root(job), root((job[0], f"/{cron_job}"))
        if one != other:
            above[one] = other

    for namespace, job, cron_job in sorted(seen.owned):
        join((namespace, job), cron_job)
    for key in seen.rows:
        namespace, job = key
        slot_of = job.rpartition("-")[0]
        if SLOT_NAME.fullmatch(job) and (namespace, slot_of) in cron_jobs:
            join(key, slot_of)
    jobs: dict[Key, list[Key]] = defaultdict(list)
    crons: dict[Key, list[Key]] = defaultdict(list)
    for key in sorted(seen.rows):
        jobs[root(key)].append(key)
    for namespace, name in sorted(cron_jobs):
        crons[root((namespace, f"/{name}"))].append((namespace, name))
    found = [
        Unit(
            tuple(jobs[at]),
            tuple(crons[at]),
            sum(seen.rows[key] + _JOB_ROWS for key in jobs[at]) + _JOB_ROWS * len(crons[at]),
        )
        for at in {**jobs, **crons}
    ]
    return sorted(found, key=lambda unit: unit.objects[0])


def _seen(reader: TraceReader) -> _Seen:
    rows: dict[Key, int] = defaultdict(int)
    cron_jobs: set[Key] = set()
    started: set[Key] = set()  # Jobs that some CronJob owns
    for table in reader.batches(("namespace", "job", "stream", "owner_kind")):
        for namespace, job, count in _counted(table, ("namespace", "job")):
            if namespace is not None and job is not None:
                rows[namespace, job] += count
        of_jobs = pc.and_(
            pc.equal(table["stream"], "jobs"), pc.equal(table["owner_kind"], OWNER_KIND)
        )
        for namespace, job, _ in _counted(table.filter(of_jobs), ("namespace", "job")):
            started.add((namespace, job))
    for table in reader.batches(("namespace", "name"), streams=["cronjobs"]):
        for namespace, name, _ in _counted(table, ("namespace", "name")):
            if namespace is not None:
                cron_jobs.add((namespace, name or ""))
    owned = _owners(reader, started & rows.keys()) if cron_jobs else frozenset()
    return _Seen(rows, owned, tuple(sorted(cron_jobs)))


def _owners(reader: TraceReader, jobs: Collection[Key]) -> frozenset[tuple[str, str, str]]:
    """Of which CronJobs some Jobs are: it takes the texts of a narrow segment, but of few rows."""
    only = Selection(streams=("jobs",), keys=Keys(tuple(sorted(jobs))))
    return frozenset(
        (namespace, job, owner or "")
        for table in reader.select(only, ("namespace", "job", "owner_name"))
        for namespace, job, owner, _ in _counted(table, ("namespace", "job", "owner_name"))
        if job is not None
    )


def _counted(table: pa.Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The distinct values of some columns, with how many rows have them."""
    plain = pa.table({name: table[name].cast(pa.string()) for name in names})
    counts = plain.group_by(list(names)).aggregate([([], "count_all")])
    yield from zip(*(counts[name].to_pylist() for name in (*names, "count_all")), strict=True)


def cut(found: Sequence[Unit], pieces: int, *, small_last: bool = False) -> list[Unit]:
    """Families in about so many units of equal size, the largest first.

    `small_last`: a share of them in smaller ones: when one process is done, the others soon are.
    """
    rows = sum(unit.rows for unit in found)
    each = max(1, -(-rows // max(1, pieces)))
    units = [unit for unit in found if unit.rows >= each]
    small = [unit for unit in found if unit.rows < each]
    units += _packed(small, each, sum(unit.rows for unit in small) // _LAST if small_last else 0)
    return sorted(units, key=lambda unit: -unit.rows)


def _packed(found: Iterable[Unit], each: int, last_rows: int) -> Iterator[Unit]:
    """Small families together; `last_rows` of them in smaller units, which come last."""
    held: list[Unit] = []
    rows = done = 0
    for unit in found:
        if held and rows + unit.rows > (each if done >= last_rows else each // _SMALLER):
            yield _joined(held)
            held, rows = [], 0
        held.append(unit)
        rows += unit.rows
        done += unit.rows
    if held:
        yield _joined(held)


def _joined(found: Sequence[Unit]) -> Unit:
    return Unit(
        tuple(sorted(key for unit in found for key in unit.jobs)),
        tuple(sorted(key for unit in found for key in unit.cron_jobs)),
        sum(unit.rows for unit in found),
    )


def of_jobs(found: Sequence[Unit], jobs: Collection[Key]) -> list[Unit]:
    """Those of the Jobs of the families that are wanted, and none of their CronJobs."""
    wanted = frozenset(jobs)
    chosen = ([key for key in unit.jobs if key in wanted] for unit in found)
    return [Unit((key,), (), _JOB_ROWS) for keys in chosen for key in keys]
