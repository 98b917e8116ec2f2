"""Watch logs of the shipped traces as rows, and lies to plant in them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from tests.support.judged_rows import judgements_of
from tests.support.traces import TRACES, about, json_lines
from tracekit.check.verdict import Judgement
from tracekit.versions.cronjob import CronJobEra, cron_job_era
from tracekit.versions.version import KubeVersion

NS = 10**9


class WatchRow(NamedTuple):
    """One line of a watch log."""

    recv_ns: int
    resource: str
    type: str
    object: Mapping[str, Any]


def era_of(name: str) -> CronJobEra:
    facts = about(name)
    gates = dict(pair.split("=") for pair in facts["feature_gates"].split(",") if pair)
    return cron_job_era(
        KubeVersion.parse(facts["gitVersion"]), {k: v == "true" for k, v in gates.items()}
    )


@cache
def log(name: str) -> tuple[WatchRow, ...]:
    """The rows of a record; shared, so change copies only."""
    return tuple(
        WatchRow(line["recv"], line["resource"], line["type"], line["object"])
        for line in json_lines(TRACES / name / "watch.jsonl.zst")
    )


def without_pods(rows: Sequence[WatchRow]) -> list[int]:
    """The places of all rows that are not about pods."""
    return [place for place, row in enumerate(rows) if row.resource != "pods"]


def judge(
    name: str, rows: Sequence[WatchRow], *, process_zone: str | None = None
) -> list[Judgement]:
    """What is said of CronJobs and TTLs, of the rows as an import takes them in."""
    lines = (
        {"recv": row.recv_ns, "resource": row.resource, "type": row.type, "object": row.object}
        for row in rows
    )
    found = judgements_of(lines, name, process_zone=process_zone)
    return [judgement for judgement in found if judgement.controller in ("cronjob", "ttl")]


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
    """The rows with the chosen ones received earlier or later, in the order in which all came."""
    moved = (
        row._replace(recv_ns=row.recv_ns + int(seconds * NS)) if choose(row) else row
        for row in rows
    )
    return sorted(moved, key=lambda row: row.recv_ns)
