"""The rows of a trace that the replay of CronJobs and of TTL deletions reads, with their objects.

Only rows that can matter are decoded: CronJobs, Jobs of a CronJob, with a TTL or with a name that
a slot may want, Events about CronJobs, the controller manager's leases, namespaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracekit.controllers.cronjob.children import OWNER_KIND
from tracekit.errors import TraceFormatError
from tracekit.judging.run_context import silences, successions
from tracekit.replay.cron_history import SLOT_NAME, VANISHED, WatchRow
from tracekit.replay.cron_run_context import (
    START_NS,
    BlindTime,
    CronRunContext,
    cron_run_context_of,
)
from tracekit.replay.history import Actor
from tracekit.trace.reading.reader import TraceReader

_COLUMNS = (
    "seq", "recv_ns", "stream", "type", "name", "uid", "owner_kind", "involved_kind", "synthesized",
    "derived_from", "actor", "actor_agent", "raw",
)  # fmt: skip
_STREAMS = ("cronjobs", "events", "jobs", "leases", "namespaces")
_TTL_FIELD = '"ttlSecondsAfterFinished"'


def cron_rows(reader: TraceReader) -> tuple[list[WatchRow], CronRunContext]:
    """The rows in order of arrival, and what the whole trace says about their time."""
    parts = list(reader.batches(_COLUMNS, streams=_STREAMS))
    rows: list[WatchRow] = []
    if parts:
        jobs = pa.array({uid for table in parts for uid in _wanted_jobs(table)}, pa.string())
        kept = pa.concat_tables([_wanted(table, jobs) for table in parts])
        rows = list(_decoded(kept.unify_dictionaries().sort_by("seq")))
    run_context = cron_run_context_of(rows)
    last = [stream.last_ns for stream in reader.streams() if stream.last_ns is not None]
    gaps = [
        BlindTime(gap.from_ns or 0, gap.until_ns or (1 << 62), f"gap in {gap.stream}")
        for gap in reader.gaps()
        if gap.stream in ("jobs", "cronjobs")
    ]
    followed = [
        BlindTime(time.from_ns, time.until_ns + START_NS, time.why) for time in successions(reader)
    ]
    return rows, replace(
        run_context,
        end_ns=max([run_context.end_ns, *last]),
        blind=(*run_context.blind, *gaps, *followed),
        quiet=tuple(BlindTime(*time) for time in silences(reader)),
    )


def _text(table: pa.Table, name: str) -> Any:
    return pc.cast(table[name], pa.string())


def _is(value: Any) -> Any:
    """A comparison with null counted as no."""
    return pc.fill_null(value, False)  # noqa: FBT003


def _wanted_jobs(table: pa.Table) -> list[str]:
    """Uids of the Jobs that ever had a CronJob, a TTL or the name of a slot.

    All rows of such a Job are wanted, also those after its TTL or its owner was taken away.
    """
    any_of = pc.or_(
        _is(pc.equal(_text(table, "owner_kind"), OWNER_KIND)),
        pc.or_(
            _is(pc.match_substring_regex(_text(table, "name"), f"^{SLOT_NAME.pattern}$")),
            _is(pc.match_substring(table["raw"], _TTL_FIELD)),
        ),
    )
    found = table.filter(pc.and_(_is(pc.equal(_text(table, "stream"), "jobs")), any_of))
    return [uid for uid in pc.unique(_text(found, "uid")).to_pylist() if uid is not None]


def _wanted(table: pa.Table, jobs: pa.Array) -> pa.Table:
    """Drop the rows that no CronJob and no TTL has to do with."""
    other = pc.is_in(_text(table, "stream"), pa.array(["cronjobs", "leases", "namespaces"]))
    event = _is(pc.equal(_text(table, "involved_kind"), OWNER_KIND))
    job = pc.is_in(_text(table, "uid"), jobs)
    control = pc.is_null(table["name"])
    return table.filter(pc.or_(pc.or_(other, event), pc.or_(job, control)))


def _decoded(table: pa.Table) -> Iterator[WatchRow]:
    for row in table.to_pylist():
        vanished = row["synthesized"] and row["derived_from"] is None
        row_type = VANISHED if vanished else row["type"]
        user = row["actor"]
        actor = None if user is None else Actor(user, row["actor_agent"] or "")
        yield WatchRow(row["recv_ns"] or 0, row["stream"], row_type, _object(row["raw"]), actor)


def _object(raw: str | None) -> dict[str, Any]:
    try:
        value = orjson.loads(raw) if raw else {}
    except orjson.JSONDecodeError as error:
        raise TraceFormatError(
            f"the trace has an object that is not JSON ({error}): no writer makes such a row, do "
            "not trust the trace"
        ) from error
    return value if isinstance(value, dict) else {}
