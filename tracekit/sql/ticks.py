"""The ticks of a trace's CronJobs as a table; `diff.cron_ticks` decides what became of each."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import duckdb
import pyarrow as pa

from tracekit.base.coverage import Coverage
from tracekit.base.errors import TracekitError
from tracekit.base.kube.cronjob_views import CronJobStatus, CronJobView, cron_spec_from_raw
from tracekit.base.kube.stored import spec_of
from tracekit.check.diff.cron_ticks import (
    SCHEDULED_AT,
    SeenCronJob,
    StartedJob,
    Surroundings,
    ticks_of_cron_job,
)
from tracekit.check.replay.cron_runner import CronRunner
from tracekit.sql.computed_schemas import TICK_SCHEMA
from tracekit.versions.cronjob import CronJobEra
from tracekit.versions.era import NEWEST, Era
from tracekit.versions.texts import parse_process_zone
from tracekit.versions.version import KubeVersion

_CRONJOBS = """
SELECT seq, recv_ns, type, namespace, name, uid, created_ns, last_schedule_ns, spec
FROM internal._states WHERE trace = $trace AND stream = 'cronjobs' ORDER BY _order, seq
"""
_JOBS = """
SELECT namespace, cronjob, owner_uid, name, any_value(uid) AS uid,
       max(annotations ->> $annotation) AS scheduled, min(created_ns) AS created_ns,
       min(coalesce(completion_ns, finished_condition(conditions).last_transition_ns)) FILTER (
         finished_condition(conditions) IS NOT NULL) AS finished_ns,
       max(recv_ns) FILTER (type = 'DELETED') AS gone_ns
FROM internal._states WHERE trace = $trace AND stream = 'jobs' AND cronjob IS NOT NULL
GROUP BY namespace, cronjob, owner_uid, name, uid
"""
_OTHERS = """
SELECT namespace, name, min(created_ns) AS created_ns,
       max(recv_ns) FILTER (type = 'DELETED') AS gone_ns
FROM internal._states
WHERE trace = $trace AND stream = 'jobs' AND cronjob IS NULL AND regexp_matches(name, '-[0-9]+$')
GROUP BY namespace, name, uid
"""
_LEADERLESS = """
SELECT epoch_ns(from_at) - (without_leader_s * 1e9)::BIGINT AS from_ns,
       epoch_ns(from_at) AS until_ns
FROM leaders WHERE trace = $trace AND lease = 'kube-controller-manager' AND without_leader_s > 0
"""
# Repetitions count up in one Event: all of its states tell how long it went on.
_GAVE_UP = """
SELECT namespace, cronjob, min(first_ns) AS from_ns, max(last_ns) AS until_ns
FROM internal._states
WHERE trace = $trace AND stream = 'events' AND reason = 'FailedNeedsStart' AND cronjob IS NOT NULL
GROUP BY namespace, cronjob, uid
"""


def ticks_of(
    connection: duckdb.DuckDBPyConnection,
    trace: str,
    kubernetes_version: str | None,
    process_zone: str,
    coverage: Coverage,
) -> pa.Table:
    """The ticks of every CronJob of the trace, by the rules of that version in that zone.

    `coverage`: where and when the trace saw Jobs and CronJobs.
    """
    cursor = connection.cursor()
    rows = _rows(cursor, _CRONJOBS, trace=trace)
    if not rows:
        return TICK_SCHEMA.empty_table()
    runner = CronRunner(_era(kubernetes_version), parse_process_zone(process_zone))
    around = _surroundings(cursor, trace, coverage)
    jobs: defaultdict[tuple[str, str], list[StartedJob]] = defaultdict(list)
    for row in _rows(cursor, _JOBS, trace=trace, annotation=f'$."{SCHEDULED_AT}"'):
        started = StartedJob.of(
            row["name"] or "",
            row["scheduled"],
            row["created_ns"] or 0,
            row["finished_ns"],
            row["gone_ns"],
        )
        jobs[row["namespace"], row["owner_uid"]].append(started)
    by_uid: defaultdict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_uid[row["namespace"], row["name"], row["uid"]].append(row)
    found: list[dict[str, Any]] = []
    for (namespace, name, uid), revisions in by_uid.items():
        seen = [_seen(row) for row in revisions]
        where = {"trace": trace, "namespace": namespace, "cronjob": name, "cronjob_uid": uid}
        found += [
            {**where, **tick._asdict()}
            for tick in ticks_of_cron_job(seen, jobs[namespace, uid], around, runner)
        ]
    found.sort(key=lambda tick: (tick["due_ns"], tick["namespace"] or "", tick["cronjob"] or ""))
    return pa.Table.from_pylist(found, TICK_SCHEMA)


def _rows(cursor: Any, query: str, **values: str) -> list[dict[str, Any]]:
    cursor.execute(query, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _era(version: str | None) -> CronJobEra:
    """The rules of the recorded version, of the newest known one where that cannot be told."""
    try:
        return CronJobEra.of(Era.resolve(KubeVersion.parse(version) if version else NEWEST))
    except (TracekitError, ValueError):
        return CronJobEra.of(Era.resolve(NEWEST))


def _surroundings(cursor: Any, trace: str, coverage: Coverage) -> Surroundings:
    end = cursor.execute(
        "SELECT max(trace_end_ns) FROM internal._ends WHERE trace = ?", [trace]
    ).fetchone()[0]
    pauses = [(r["from_ns"], r["until_ns"]) for r in _rows(cursor, _LEADERLESS, trace=trace)]
    gave_up: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for row in _rows(cursor, _GAVE_UP, trace=trace):
        gave_up[row["namespace"], row["cronjob"]].append((row["from_ns"], row["until_ns"]))
    others = {
        (row["namespace"], row["name"]): (row["created_ns"] or 0, row["gone_ns"] or 1 << 62)
        for row in _rows(cursor, _OTHERS, trace=trace)
    }
    return Surroundings(end or 0, coverage, pauses, gave_up, others)


def _seen(row: dict[str, Any]) -> SeenCronJob:
    spec = cron_spec_from_raw(spec_of("cronjobs", row["spec"]))
    view = CronJobView(
        row["namespace"] or "",
        row["name"] or "",
        row["uid"] or "",
        0,
        0,
        row["created_ns"] or row["recv_ns"] or 0,
        None,
        spec,
        CronJobStatus((), row["last_schedule_ns"]),
    )
    return SeenCronJob(row["recv_ns"] or 0, row["type"], view)
