"""From the typed columns of a trace to the revisions of its CronJobs and the Events about them.

Their rows belong to no Job, so they come with the first group of their namespace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tracekit.base.kube.cronjob_views import (
    ActiveRef,
    CronJobSpec,
    CronJobStatus,
    CronJobView,
    cron_spec_from_raw,
)
from tracekit.check.replay.feed import (
    REVISION,
    STATES,
    Decoder,
    RowGroup,
    Rows,
    Texts,
    event_rows,
    scalars,
    structs,
)
from tracekit.check.replay.history import Actor, EventRow, Revision
from tracekit.check.replay.row_evidence import RowEvidence
from tracekit.ports.cronjob.children import OWNER_KIND

_CRON_JOB: Final = (
    "namespace", "name", "uid", "generation", "created_ns", "deleted_ns", "last_schedule_ns",
    "last_successful_ns",
)  # fmt: skip
_REF: Final = ("name", "uid", "namespace", "kind", "api_version", "resource_version")

_spec: Decoder[CronJobSpec] = Decoder(cron_spec_from_raw)


def cron_jobs_of(group: RowGroup) -> Iterator[Revision[CronJobView]]:
    """The revisions of the CronJobs of a namespace."""
    rows = _rows(group, "cronjobs")
    if not rows:
        return
    held = Rows(group.window)
    refs = structs(group.window, rows, "cron_active", _REF)
    specs = Texts(group.window, "spec", _spec).take(rows)
    cells = scalars(group.window, rows, (*REVISION, *_CRON_JOB))
    for row, active, spec, (
        rv, recv_ns, seq, kind, synthesized, derived_from, after, before, user, agent, came,
        namespace, name, uid, generation, created_ns, deleted_ns, last_ns, successful_ns,
    ) in zip(rows, refs, specs, cells, strict=True):  # fmt: skip
        refs_of = tuple(ActiveRef(*(value or "" for value in ref)) for ref in active)
        view = CronJobView(
            namespace or "",
            name or "",
            uid,
            rv,
            generation or 0,
            created_ns or 0,
            deleted_ns,
            spec,
            CronJobStatus(refs_of, last_ns, successful_ns),
        )
        gone = bool(synthesized) and derived_from is None
        by = None if user is None else Actor(user, agent or "")
        evidence = RowEvidence(held, row)
        yield Revision(rv, recv_ns or 0, seq, kind, view, evidence, gone, by, after, before, came)


def cron_events_of(group: RowGroup) -> Iterator[tuple[str, EventRow]]:
    """The Events about CronJobs of a namespace, each with the CronJob's name."""
    rows = _rows(group, "events")
    names = scalars(group.window, rows, ("cronjob",)) if rows else ()
    for (name,), event in zip(names, event_rows(group.window, rows, OWNER_KIND), strict=True):
        if name is not None and event is not None:
            yield name, event


def _rows(group: RowGroup, stream: str) -> list[int]:
    """The rows of a group that show states of a stream."""
    part: Any = group.window.select(["stream", "type", "rv", "uid"]).slice(group.start, group.count)
    columns = (column.to_pylist() for column in part.columns)
    return [
        group.start + row
        for row, (name, kind, rv, uid) in enumerate(zip(*columns, strict=True))
        if name == stream and kind in STATES and rv is not None and uid is not None
    ]
