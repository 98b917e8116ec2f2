"""Judgements as an Arrow table and back: for the SQL views, and to keep them on this machine.

What is kept is one Parquet file (`kept.py`): a row for each judgement, those of a Job beside each
other, in the order in which they were judged; in its footer the Jobs. It is written and read a row
group at a time, so that a trace of any size can be judged, asked and explained in bounded memory.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracekit.check.compare.fields import FieldDifference
from tracekit.check.verdict import (
    DIVERGENT,
    Assumption,
    Judgement,
    ObjectRef,
    Reason,
    Verdict,
    in_order,
)
from tracekit.judge.verdict_cache import CacheWriter, open_cached

if TYPE_CHECKING:
    from pathlib import Path

    from pyarrow.dataset import Dataset

    from tracekit.check.diff.report import DiffReport

_FIELDS = pa.list_(
    pa.struct([("path", pa.string()), ("expected", pa.string()), ("observed", pa.string())])
)
_ASSUMPTIONS = pa.list_(
    pa.struct(
        [
            ("kind", pa.string()),
            ("from_ns", pa.int64()),
            ("until_ns", pa.int64()),
            ("evidence", pa.string()),
        ]
    )
)
VERDICT_SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("controller", pa.string()),
        ("kind", pa.string()),
        ("namespace", pa.string()),
        ("name", pa.string()),
        ("uid", pa.string()),
        ("action", pa.string()),
        ("verdict", pa.string()),
        ("divergent", pa.bool_()),
        ("time_ns", pa.int64()),
        ("resource_version", pa.string()),
        ("subject", pa.string()),
        ("why", pa.string()),
        ("fields", _FIELDS),
        ("lag_observations", pa.int64()),
        ("lag_ns", pa.int64()),
        ("reason", pa.string()),
        ("forced", pa.bool_()),
        ("ambiguous", pa.bool_()),
        ("silent_syncs", pa.int64()),
        ("assumptions", _ASSUMPTIONS),
    ]
)
#: `told`: fields and assumptions as JSON, as they were; null where there are none.
KEPT_SCHEMA = VERDICT_SCHEMA.append(pa.field("told", pa.string()))
_JOBS_KEY = "tracekit.jobs"
_MISFIT_KEY = "tracekit.misfit"
#: Judgements that are written at a time.
_GROUP_ROWS = 20_000
#: Verdicts that are held in memory, about 100 MiB of them.
_HELD_ROWS = 200_000
_PLAIN = ("action", "time_ns", "resource_version", "subject", "why", "lag_observations", "lag_ns",
          "forced", "ambiguous", "silent_syncs")  # fmt: skip
_WHERE = ("kind", "namespace", "name", "uid")
ORDER = ("time_ns", "namespace", "name", "resource_version", "action", "subject")
#: What is taken of a judgement as it is, all at once: there are many.
_NAMES = ("controller", "verdict", "reason", "fields", "assumptions", *_PLAIN, *_WHERE)
_ENTRIES = attrgetter(*(f"object.{name}" if name in _WHERE else name for name in _NAMES))
_VERDICTS = {verdict: verdict.value for verdict in Verdict}
_READ = ("controller", "verdict", "reason", "told", *_WHERE, *_PLAIN)


def verdict_table(judgements: Sequence[Judgement]) -> pa.Table:
    """Judgements as a table; the column `trace` is empty."""
    entries = zip(*map(_ENTRIES, judgements), strict=True) if judgements else repeat(())
    columns: dict[str, Sequence[Any]] = dict(zip(_NAMES, entries, strict=False))
    columns |= {
        "trace": [""] * len(judgements),
        "verdict": [_VERDICTS[verdict] for verdict in columns["verdict"]],
        "divergent": [verdict in DIVERGENT for verdict in columns["verdict"]],
        "reason": [reason and reason.value for reason in columns["reason"]],
        "fields": [_differing(found) if found else () for found in columns["fields"]],
        "assumptions": [
            [held._asdict() for held in found] if found else () for found in columns["assumptions"]
        ],
    }
    arrays = [pa.array(columns[field.name], field.type) for field in VERDICT_SCHEMA]
    return pa.table(arrays, schema=VERDICT_SCHEMA)


def _differing(found: Sequence[FieldDifference]) -> list[dict[str, str]]:
    return [
        {"path": f.path, "expected": _json(f.expected), "observed": _json(f.observed)}
        for f in found
    ]


def cached_table(judgements: Sequence[Judgement]) -> pa.Table:
    """The same with all that they are built from again."""
    reported = pa.array(map(_details, judgements), pa.string())
    return verdict_table(judgements).append_column("told", reported)


def _json(value: object) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS).decode()


class VerdictWriter:
    """Takes the judgements of a whole trace, one after the other, and keeps them under a key."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._writer = CacheWriter(key, KEPT_SCHEMA)
        self._waiting: list[Judgement] = []
        self._jobs: list[tuple[str, str]] = []
        self._misfit = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.discard()

    @property
    def has_place(self) -> bool:
        """Whether anything can be kept on this machine."""
        return self._writer.is_open

    def misfit(self, why: str) -> None:
        """Note that the record as a whole contradicts the rules."""
        self._misfit = why

    def job(self, job: tuple[str, str]) -> None:
        """Note a Job that is judged, as (namespace, name)."""
        self._jobs.append(job)

    def take(self, judgement: Judgement) -> None:
        """Add a judgement."""
        self._waiting.append(judgement)
        if len(self._waiting) >= _GROUP_ROWS:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            self._writer.write(cached_table(self._waiting))
            self._waiting = []

    def take_rows(self, rows: pa.Table) -> None:
        """Add judgements that somebody made a `cached_table` of."""
        self._write()
        self._writer.write(rows)

    def again(self, jobs: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Do without what was taken of some Jobs: all of it will come again."""
        if not jobs:
            return jobs
        self._write()
        before, self._writer = self._writer, CacheWriter(self._key, KEPT_SCHEMA)
        gone = pa.array(sorted(f"{namespace}/{name}" for namespace, name in jobs), pa.string())
        for table in before.written():
            keys = pc.binary_join_element_wise(table["namespace"], table["name"], "/")
            self._writer.write(table.filter(pc.invert(pc.is_in(keys, value_set=gone))))
        if not before.is_open:  # what it had is lost, and what comes is not all of it
            self._writer.discard()
        before.discard()
        return jobs

    def change(self, _before: Judgement, after: Judgement) -> None:
        """Add a judgement of a Job that comes again."""
        self.take(after)

    def done(self) -> None:
        """Put it in place; in vain where there is none."""
        self._write()
        self._writer.done({_JOBS_KEY: _packed(sorted(self._jobs)), _MISFIT_KEY: self._misfit})


def with_misfit(table: pa.Table, why: str) -> pa.Table:
    """The table, with how the record as a whole contradicts the rules."""
    return table.replace_schema_metadata({_MISFIT_KEY: why})


def misfit_in(found: CachedVerdicts | pa.Table) -> str:
    """How the record of some verdicts contradicts the rules; empty: it does not."""
    if isinstance(found, CachedVerdicts):
        return found.misfit
    return str((found.schema.metadata or {}).get(_MISFIT_KEY.encode(), b""), "utf-8")


def _details(judgement: Judgement) -> str | None:
    if not (judgement.fields or judgement.assumptions):
        return None
    parts = ([tuple(f) for f in judgement.fields], [tuple(a) for a in judgement.assumptions])
    return orjson.dumps(parts, default=str).decode()


def _packed(jobs: list[tuple[str, str]]) -> str:
    return base64.b64encode(zlib.compress(orjson.dumps(jobs))).decode()


class CachedVerdicts:
    """All judgements of a trace, as they were kept: any part of them without the others."""

    def __init__(self, path: Path, file: pq.ParquetFile) -> None:
        self._path = path
        self._file = file
        schema = file.metadata.schema
        self._leaves = {schema.column(i).path: i for i in range(file.metadata.num_columns)}

    @cached_property
    def jobs(self) -> list[tuple[str, str]]:
        """The Jobs that were judged, as (namespace, name)."""
        packed = (self._file.metadata.metadata or {})[_JOBS_KEY.encode()]
        return [
            (namespace, name)
            for namespace, name in orjson.loads(zlib.decompress(base64.b64decode(packed)))
        ]

    @cached_property
    def misfit(self) -> str:
        """That the record as a whole contradicts the rules, in sentences; empty if it does not."""
        return str((self._file.metadata.metadata or {})[_MISFIT_KEY.encode()], "utf-8")

    @property
    def are_many(self) -> bool:
        """Whether they should be asked where they lie: in memory they take much."""
        return bool(self._file.metadata.num_rows > _HELD_ROWS)

    def tables(self) -> Iterator[pa.Table]:
        """All of them, as `verdict_table` has them: few by time, many as they were judged."""
        if not self.are_many:
            yield self._by_time()
            return
        for group in range(self._file.num_row_groups):
            table = self._file.read_row_group(group, VERDICT_SCHEMA.names, use_threads=False)
            yield table.cast(VERDICT_SCHEMA)

    def kept(self) -> Dataset | pa.Table:
        """The same for queries; of many one reads the columns and row groups that it needs."""
        if not self.are_many:
            return self._by_time()
        from pyarrow import dataset  # noqa: PLC0415 - slow to import

        return dataset.dataset(self._path, format="parquet")

    def _by_time(self) -> pa.Table:
        table = self._file.read(VERDICT_SCHEMA.names, use_threads=False)
        table = table.cast(VERDICT_SCHEMA).combine_chunks()
        return table.sort_by([(name, "ascending") for name in ORDER])

    def judgements(
        self,
        controllers: Sequence[str],
        namespace: str | None,
        name: str | None,
    ) -> list[Judgement]:
        """Those of some controllers, by time; in a namespace; that name one object as theirs.

        A name is that of the object itself, or of what was acted upon.
        """
        parts = self._parts(_READ, controllers, namespace, name)
        return in_order(judgement for table in parts for judgement in built(table))

    def tally(self, report: DiffReport, controllers: Sequence[str], namespace: str | None) -> None:
        """Count what is no divergence in the report, and keep the rest."""
        for table in self._parts((*_READ, "divergent"), controllers, namespace, None):
            count_rows(report, table.filter(pc.invert(table["divergent"])))
            for judgement in built(table.filter(table["divergent"])):
                report.take(judgement)
        if "job" in controllers:
            report.misfit = self.misfit
            report.jobs += [job for job in self.jobs if namespace in (None, job[0])]

    def _parts(
        self,
        columns: Sequence[str],
        controllers: Sequence[str],
        namespace: str | None,
        name: str | None,
    ) -> Iterator[pa.Table]:
        """The wanted rows; a row group is read whole only if it holds one."""
        where = ("controller", "namespace", "name", "subject")
        for group in range(self._file.num_row_groups):
            if namespace is not None and not self._may_hold(group, "namespace", namespace):
                continue
            table = self._file.read_row_group(group, where, use_threads=False)
            wanted = pc.is_in(table["controller"], value_set=pa.array(controllers, pa.string()))
            if namespace is not None:
                wanted = pc.and_(wanted, pc.equal(table["namespace"], namespace))
            if name is not None:
                named = pc.or_(pc.equal(table["name"], name), pc.equal(table["subject"], name))
                wanted = pc.and_(wanted, named)
            if pc.any(wanted).as_py():
                whole = self._file.read_row_group(group, columns, use_threads=False)
                yield whole.filter(wanted)

    def _may_hold(self, group: int, column: str, value: str) -> bool:
        statistics = self._file.metadata.row_group(group).column(self._leaves[column]).statistics
        if statistics is None or not statistics.has_min_max:
            return True
        low, high = statistics.min, statistics.max
        return bool(low <= value <= high)


def tables_of(found: CachedVerdicts | pa.Table) -> Iterator[pa.Table]:
    """All verdicts of a trace, some at a time, wherever they are."""
    return iter([found]) if isinstance(found, pa.Table) else found.tables()


def count_rows(report: DiffReport, rows: pa.Table) -> None:
    """Count judgements in a report that are not kept, without building them."""
    counts = rows.group_by(["controller", "action", "verdict"]).aggregate(
        [("lag_ns", "count"), ("lag_ns", "max")]
    )
    for row in counts.to_pylist():
        where = (row["controller"], row["action"], Verdict(row["verdict"]))
        report.count(*where, row["lag_ns_count"], row["lag_ns_max"])


def built(table: pa.Table) -> Iterator[Judgement]:
    """The judgements that a `cached_table` was made of."""
    for (
        controller, verdict, reason, reported, kind, namespace, name, uid,
        action, time_ns, rv, subject, why, lagging, lag_ns, forced, ambiguous, silent,
    ) in zip(*(table[column].to_pylist() for column in _READ), strict=True):  # fmt: skip
        fields, assumptions = orjson.loads(reported) if reported is not None else ((), ())
        yield Judgement(
            controller,
            ObjectRef(kind, namespace, name, uid),
            action,
            Verdict(verdict),
            time_ns,
            rv,
            subject,
            why,
            tuple(FieldDifference(*entry) for entry in fields),
            lagging,
            lag_ns,
            Reason(reason) if reason is not None else None,
            forced,
            ambiguous,
            silent,
            tuple(Assumption(*entry) for entry in assumptions),
        )


def load_verdicts(key: str) -> CachedVerdicts | None:
    """What was kept under a key; None if there is nothing that can be believed."""
    found = open_cached(key)
    return CachedVerdicts(*found) if found is not None else None
