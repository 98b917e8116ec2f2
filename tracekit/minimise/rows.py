"""Which rows of a trace may belong to what is shown, and which of them may be left out of a record.

A record that lacks rows must still be one: no object without the row that first shows it, none that
seems to live on after its deletion, no list without its bounds. Rows go by whole objects, by the
revisions between an object's first row and its deletion, and from the end of the record. Gaps stay,
and so does what tells of one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE
from tracekit.trace.format.model import STATE_TYPES, RowType
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.reading.table_reader import in_file_order

_BOUNDS = frozenset({str(RowType.LIST_BEGIN), str(RowType.LIST_END)})
#: Told of the record itself, and never left out before its end.
_MARKS = frozenset({str(RowType.GAP), str(RowType.ERROR), str(RowType.NOTE)})

Key = tuple[str, str, str]  # "Job" or "CronJob", namespace, name


def rows_about(reader: TraceReader, keys: Collection[Key] | None) -> pa.Table:
    """The rows about some Jobs and CronJobs, in file order; None: all rows.

    With a Job come its pods, its Events, its CronJob and the pods that nobody owns in its
    namespace; with a CronJob come its Jobs too. Namespaces, quotas, the controller manager's lease
    and all that is about the record itself come always.
    """
    owners = None if keys is None else _families(reader, keys)
    parts = [
        table if owners is None else table.filter(_about(table, owners))
        for table in reader.batches(NAMES)
    ]
    parts = [table for table in parts if table.num_rows]
    if not parts:
        return in_file_order(pa.table({"seq": pa.array([], pa.int64())}))
    return in_file_order(pa.concat_tables(parts).unify_dictionaries())


@dataclass(slots=True)
class _Families:
    """Namespaces with the names in them."""

    jobs: dict[str, set[str]] = field(default_factory=dict)
    cronjobs: dict[str, set[str]] = field(default_factory=dict)

    @property
    def namespaces(self) -> list[str]:
        return sorted({*self.jobs, *self.cronjobs})


def _families(reader: TraceReader, keys: Collection[Key]) -> _Families:
    """The Jobs and CronJobs whose rows belong together with those of the keys."""
    found = _Families()
    for kind, namespace, name in keys:
        names = found.cronjobs if kind == "CronJob" else found.jobs
        names.setdefault(namespace, set()).add(name)
    chosen = {(n, name) for n, names in found.cronjobs.items() for name in names}
    for table in reader.batches(("namespace", "job", "cronjob"), streams=["jobs"]):
        for row in table.group_by(["namespace", "job", "cronjob"]).aggregate([]).to_pylist():
            namespace, job, cronjob = row["namespace"] or "", row["job"], row["cronjob"]
            if not job:
                continue
            slot = any(n == namespace and job.startswith(f"{name}-") for n, name in chosen)
            if (namespace, cronjob) in chosen or slot:
                found.jobs.setdefault(namespace, set()).add(job)
            elif cronjob and job in found.jobs.get(namespace, ()):
                found.cronjobs.setdefault(namespace, set()).add(cronjob)
    return found


def _about(table: pa.Table, families: _Families) -> pa.ChunkedArray:
    """Which rows of a table belong to the families, or to none and to all."""

    def text(name: str) -> pa.ChunkedArray:
        return pc.fill_null(pc.cast(table[name], pa.string()), "")

    def among(name: str, values: Collection[str]) -> pa.ChunkedArray:
        return pc.is_in(text(name), pa.array(sorted(values), pa.string()))

    control = pc.and_(pc.is_null(table["uid"]), pc.invert(among("type", ["CALL"])))
    lease = pc.and_(among("stream", ["leases"]), among("name", [CONTROLLER_MANAGER_LEASE]))
    spaces = pc.and_(among("stream", ["namespaces"]), among("name", families.namespaces))
    mask = pc.or_(pc.or_(control, lease), spaces)
    for namespace in families.namespaces:
        inside = among("namespace", [namespace])
        jobs = among("job", families.jobs.get(namespace, ()))
        orphan = pc.and_(among("stream", ["pods"]), pc.equal(text("owner_uid"), ""))
        quota = among("stream", ["resourcequotas"])
        own = among("cronjob", families.cronjobs.get(namespace, ()))
        own = pc.and_(own, among("stream", ["cronjobs", "events"]))
        mine = pc.or_(pc.or_(jobs, own), pc.or_(orphan, quota))
        mask = pc.or_(mask, pc.and_(inside, mine))
    return mask


@dataclass(slots=True)
class Parts:
    """The rows of a table as what may be left out of it together; numbers are places in it."""

    table: pa.Table
    #: Places in order of arrival.
    order: list[int]
    #: The rows of each Job with its pods and Events, and of each thing that belongs to none.
    families: list[tuple[int, ...]]
    #: The rows of each object.
    objects: list[tuple[int, ...]]
    #: Rows that may go alone.
    revisions: list[tuple[int, ...]]

    @classmethod
    def of(cls, table: pa.Table) -> Parts:
        """Part a table in file order."""
        names = ("seq", "stream", "type", "uid", "namespace", "job", "name")
        columns = {name: table[name].to_pylist() for name in names}
        order = sorted(range(table.num_rows), key=columns["seq"].__getitem__)
        families: dict[tuple[str, str], list[int]] = {}
        objects: dict[tuple[str, str], list[int]] = {}
        revisions: list[tuple[int, ...]] = []
        for place in order:
            kind, stream = columns["type"][place], columns["stream"][place] or ""
            uid = columns["uid"][place] or ""
            if kind in STATE_TYPES:
                mine = objects.setdefault((stream, uid), [])
                if mine and kind == RowType.MODIFIED:
                    revisions.append((place,))
                mine.append(place)
                job = columns["job"][place]
                space = columns["namespace"][place] or ""
                family = (space, job) if job else (stream, uid)
                families.setdefault(family, []).append(place)
            elif kind not in _BOUNDS and kind not in _MARKS:
                revisions.append((place,))
        return cls(
            table,
            order,
            [tuple(places) for places in families.values()],
            [tuple(places) for places in objects.values()],
            revisions,
        )

    def taken(self, places: Collection[int]) -> pa.Table:
        """The table with these rows only, still in file order."""
        return self.table.take(pa.array(sorted(places), pa.int64()))


def within(units: Sequence[tuple[int, ...]], kept: Collection[int]) -> list[tuple[int, ...]]:
    """What of the units is still there."""
    return [left for unit in units if (left := tuple(p for p in unit if p in kept))]
