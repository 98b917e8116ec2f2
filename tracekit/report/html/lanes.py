"""What a report draws beside Jobs: findings, CronJobs with their ticks, revisions of pods."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracekit.findings.model import Finding
from tracekit.report.findings import advice, thread_url
from tracekit.sql.session import Session

#: So many ticks are drawn; what is beyond them is in the view cron_ticks.
MAX_TICKS = 20_000
#: So many changed fields of pods one report carries.
MAX_POD_ENTRIES = 20_000
_CASES = 40

Milliseconds = Callable[[int | None], float | None]


def finding_row(finding: Finding, ms: Milliseconds) -> dict[str, Any]:
    """One finding as the page shows it."""
    return {
        "id": finding.id,
        "severity": finding.severity.value,
        "title": finding.rule.title,
        "text": finding.text,
        "do": advice(finding),
        "thread": finding.thread,
        "url": None if finding.thread is None else thread_url(finding.thread),
        "from": ms(finding.from_ns),
        "until": ms(finding.until_ns),
        "cases": [
            [
                case.target.kind,
                case.target.namespace,
                case.target.name,
                case.target.uid,
                case.detail,
                ms(case.from_ns),
                ms(case.until_ns),
            ]
            for case in finding.cases[:_CASES]
        ],
        "left": max(0, len(finding.cases) - _CASES),
    }


def cron_lanes(
    session: Session, holds: Callable[[str, str, str], bool], ms: Milliseconds
) -> list[dict[str, Any]]:
    """Each CronJob with its schedule and the ticks that were due while it was recorded."""
    session.table("SELECT 1 FROM cron_ticks LIMIT 0")
    lanes: dict[tuple[str, str], dict[str, Any]] = {}
    for row in session.rows(
        "SELECT namespace, name, arg_max(spec, _order) AS spec FROM internal._states "
        "WHERE stream = 'cronjobs' GROUP BY namespace, name ORDER BY namespace, name"
    ):
        if holds("CronJob", row["namespace"], row["name"]):
            lanes[row["namespace"], row["name"]] = {
                "namespace": row["namespace"],
                "name": row["name"],
                "schedule": _schedule(row["spec"]),
                "ticks": [],
            }
    for row in session.rows(
        "SELECT namespace, cronjob, due_ns, outcome, policy, job, started_ns, why "
        "FROM internal._cron_ticks ORDER BY due_ns LIMIT $most",
        most=MAX_TICKS,
    ):
        lane = lanes.get((row["namespace"], row["cronjob"]))
        if lane is not None:
            lane["ticks"].append(
                [
                    ms(row["due_ns"]), row["outcome"], row["policy"], row["job"],
                    ms(row["started_ns"]), row["why"],
                ]
            )  # fmt: skip
    return list(lanes.values())


def _schedule(spec: str | None) -> str:
    try:
        found = json.loads(spec or "{}")
    except ValueError:
        return ""
    zone = f" ({found['timeZone']})" if found.get("timeZone") else ""
    return f"{found.get('schedule', '')}{zone}{', suspended' if found.get('suspend') else ''}"


def pod_diffs(
    session: Session,
    found: Sequence[Finding],
    jobs: Sequence[str] | None,
    ms: Milliseconds,
    flatten: Callable[[Any], dict[str, Any]],
) -> Mapping[str, list[Any]]:
    """By pod uid: its revisions with the fields that changed, for the Jobs of findings.

    `jobs` are those of a report on one Job or CronJob, whose pods are all told.
    """
    names = list(jobs) if jobs is not None else _named(found)
    before: dict[str, dict[str, Any]] = {}
    diffs: dict[str, list[Any]] = {}
    entries = 0
    cursor = session.connection.cursor()
    cursor.execute(
        "SELECT uid, rv, recv_ns, raw FROM internal._states WHERE stream = 'pods' "
        "AND list_contains($names, job) ORDER BY namespace, job, uid, _order, seq",
        {"names": names},
    )
    while (row := cursor.fetchone()) is not None and entries < MAX_POD_ENTRIES:
        uid, rv, recv_ns, raw = row
        try:
            now = flatten(json.loads(raw))
        except (TypeError, ValueError):
            continue
        old = before.get(uid)
        before[uid] = now
        if old is None:
            continue
        changed = [
            [path, old.get(path), now.get(path)]
            for path in dict.fromkeys([*old, *now])
            if old.get(path) != now.get(path)
        ]
        entries += len(changed)
        if changed:
            diffs.setdefault(uid, []).append([ms(recv_ns), rv, changed])
    return diffs


def _named(found: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(t.name for f in found for t in f.objects if t.kind == "Job"))
