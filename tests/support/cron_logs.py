"""Watch logs of the shipped traces as rows, and lies to plant in them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from tests.support.raw_histories import histories_of
from tests.support.traces import TRACES, about, json_lines
from tracekit.diff.ttl import TtlJudge
from tracekit.eras.cronjob import CronJobEra, cron_job_era
from tracekit.eras.version import KubeVersion
from tracekit.replay.cron_history import WatchRow
from tracekit.replay.cron_run_context import cron_run_context_of
from tracekit.replay.cron_runner import CronRunner
from tracekit.replay.observed_cronjob import judge_cron_jobs
from tracekit.verdict import Judgement

NS = 10**9


def era_of(name: str) -> CronJobEra:
    facts = about(name)
    gates = dict(pair.split("=") for pair in facts["feature_gates"].split(",") if pair)
    return cron_job_era(
        KubeVersion.parse(facts["gitVersion"]), {k: v == "true" for k, v in gates.items()}
    )


@cache
def log(name: str) -> tuple[WatchRow, ...]:
    """The rows that the validators read; shared, so change copies only."""
    return tuple(
        WatchRow(line["recv"], line["resource"], line["type"], line["object"])
        for line in json_lines(TRACES / name / "watch.jsonl.zst")
        if line["resource"] != "pods"
    )


def judge(name: str, rows: Sequence[WatchRow]) -> list[Judgement]:
    era = era_of(name)
    run_context = cron_run_context_of(rows)
    return [
        *judge_cron_jobs(rows, CronRunner(era), run_context),
        *judge_ttl(rows, era),
    ]


def judge_ttl(rows: Sequence[WatchRow], era: CronJobEra) -> list[Judgement]:
    histories, context = histories_of(
        {"recv": row.recv_ns, "resource": row.resource, "type": row.type, "object": row.object}
        for row in rows
        if row.resource in ("jobs", "leases", "namespaces")
    )
    ttl = TtlJudge(era, replace(context, end_ns=max(row.recv_ns for row in rows)))
    for history in histories:
        ttl.add(history)
    return ttl.report()


def divergences(name: str, rows: Sequence[WatchRow]) -> list[Judgement]:
    return [judgement for judgement in judge(name, rows) if judgement.divergent]


def name_of(row: WatchRow) -> str:
    return row.object.get("metadata", {}).get("name", "")


def is_job(row: WatchRow, name: str) -> bool:
    return row.resource == "jobs" and name_of(row) == name


def is_cron_job(row: WatchRow, name: str) -> bool:
    return row.resource == "cronjobs" and name_of(row) == name and row.type != "BOOKMARK"


def tells_of(row: WatchRow, cron_job: str, word: str) -> bool:
    """Whether it is an Event about the CronJob whose message has the word."""
    return (
        row.resource == "events"
        and row.object.get("involvedObject", {}).get("name") == cron_job
        and word in row.object.get("message", "")
    )


def jobs_of(rows: Sequence[WatchRow], cron_job: str) -> list[str]:
    """The names of the CronJob's Jobs, in order of their creation."""
    return [
        name_of(row)
        for row in rows
        if row.resource == "jobs"
        and row.type == "ADDED"
        and any(
            o.get("name") == cron_job for o in row.object["metadata"].get("ownerReferences", ())
        )
    ]


def edited(
    rows: Sequence[WatchRow], choose: Callable[[WatchRow], bool], edit: Callable[[dict], None]
) -> list[WatchRow]:
    """The rows with a copy of each chosen one edited."""
    found = []
    for row in rows:
        if choose(row):
            changed = copy.deepcopy(dict(row.object))
            edit(changed)
            row = row._replace(object=changed)  # noqa: PLW2901
        found.append(row)
    return found


def without_tick(rows: Sequence[WatchRow], cron_job: str, job: str) -> list[WatchRow]:
    """The record without a Job, the statuses that knew it, its end and its Events."""
    found, active = [], False
    for row in rows:
        if is_job(row, job) or tells_of(row, cron_job, job):
            continue
        if is_cron_job(row, cron_job):
            was, active = active, job in json.dumps(row.object.get("status", {}).get("active", []))
            if active or was:
                continue
        found.append(row)
    return found


def shifted(
    rows: Sequence[WatchRow], choose: Callable[[WatchRow], bool], seconds: float
) -> list[WatchRow]:
    """The rows with the chosen ones received earlier or later."""
    return [
        row._replace(recv_ns=row.recv_ns + int(seconds * NS)) if choose(row) else row
        for row in rows
    ]
