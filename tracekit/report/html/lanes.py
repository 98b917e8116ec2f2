"""What a report draws beside Jobs: findings, CronJobs with their ticks, revisions of pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tracekit.answers.findings.advice import advice, commands
from tracekit.answers.model import Finding
from tracekit.base.kube.stored import spec_of
from tracekit.report.findings import thread_url
from tracekit.report.html.about import About
from tracekit.report.html.diffs import changes, revisions
from tracekit.report.html.scope import Key, Scope
from tracekit.sql.session import Session

#: So many ticks are drawn; what is beyond them is in the view cron_ticks.
MAX_TICKS = 20_000
#: So many changed fields of pods one report carries.
MAX_POD_ENTRIES = 20_000
#: So many objects of one finding one report carries: those of a record of 10,000 Jobs, in practice.
_CASES = 5_000

Milliseconds = Callable[[int | None], float | None]


def finding_row(finding: Finding, ms: Milliseconds, trace: str) -> dict[str, Any]:
    """One finding as the page of that trace shows it."""
    return {
        "id": finding.id,
        "severity": finding.severity.value,
        "title": finding.rule.title,
        "text": finding.text,
        "do": advice(finding, trace),
        "commands": commands(finding, trace),
        # Who did it, where the sentences do not say it.
        "actors": _actors(finding),
        "thread": finding.thread,
        "url": None if finding.thread is None else thread_url(finding.thread),
        # A time of 0 is none: nobody knows when it began.
        "from": ms(finding.from_ns or None),
        "until": ms(finding.until_ns or None),
        "cause": None if finding.cause is None else finding.cause.id,
        "cases": [
            [
                case.target.kind,
                case.target.namespace,
                case.target.name,
                case.target.uid,
                case.detail,
                ms(case.from_ns or None),
                ms(case.until_ns or None),
            ]
            for case in finding.cases[:_CASES]
        ],
        "left": max(0, len(finding.cases) - _CASES),
    }


def _actors(finding: Finding) -> list[str]:
    """Who did it, each once, without those that the sentences name."""
    summary = finding.text + "".join(case.detail for case in finding.cases)
    actors = dict.fromkeys(case.actor for case in finding.cases if case.actor is not None)
    return [actor for actor in actors if actor not in summary]


def cron_lanes(
    session: Session, scope: Scope, ms: Milliseconds, problems: list[str]
) -> list[dict[str, Any]]:
    """Each CronJob with its schedule and the ticks that were due while it was recorded."""
    session.compute("cron_ticks")
    lanes: dict[tuple[str, str], dict[str, Any]] = {}
    ticks = 0
    for row in session.rows(
        "SELECT namespace, name, arg_max(spec, _order) AS spec FROM internal._states "
        "WHERE stream = 'cronjobs' GROUP BY namespace, name ORDER BY namespace, name"
    ):
        if scope.holds("CronJob", row["namespace"], row["name"]):
            lanes[row["namespace"], row["name"]] = {
                "namespace": row["namespace"],
                "name": row["name"],
                "schedule": _schedule(row["spec"]),
                "ticks": [],
            }
    for row in session.rows(
        "SELECT namespace, cronjob, due_ns, outcome, policy, job, started_ns, why "
        "FROM internal._cron_ticks ORDER BY due_ns"
    ):
        lane = lanes.get((row["namespace"], row["cronjob"]))
        if lane is None or not scope.times.holds(row["due_ns"]):
            continue
        ticks += 1
        if ticks <= MAX_TICKS:
            lane["ticks"].append(
                [
                    ms(row["due_ns"]), row["outcome"], row["policy"], row["job"],
                    ms(row["started_ns"]), row["why"],
                ]
            )  # fmt: skip
    if ticks > MAX_TICKS:
        problems.append(
            f"of {ticks:,} due times the first {MAX_TICKS:,} are drawn: ask for a CronJob or a "
            "time to see its own"
        )
    return list(lanes.values())


def _schedule(spec: str | None) -> str:
    """When it is due, and what of its spec decides whether a Job is started then."""
    found = spec_of("cronjobs", spec)
    zone = f" ({found['timeZone']})" if found.get("timeZone") else ""
    said = [f"{found.get('schedule', '')}{zone}"]
    if found.get("concurrencyPolicy", "Allow") != "Allow":
        said.append(str(found["concurrencyPolicy"]))
    if found.get("startingDeadlineSeconds") is not None:
        said.append(f"startingDeadlineSeconds {found['startingDeadlineSeconds']}")
    if found.get("suspend"):
        said.append("suspended")
    return ", ".join(said)


def pod_diffs(about: About) -> Mapping[str, list[Any]]:
    """By pod uid: its revisions with the fields that changed.

    Told are the pods of the Jobs that are asked for; where all are, those of Jobs with findings.
    """
    scope = about.scope if about.scope.jobs is not None else Scope(_named(about.found))
    rows = revisions(about.session, scope, "pods", "uid, rv, recv_ns, raw", "job, uid, _order, seq")

    def full() -> None:
        about.problems.append(
            "the report would be too large with every diff of pods: ask for one Job to see its"
        )

    diffs: dict[str, list[Any]] = {}
    for (uid, rv, recv_ns, _), changed in changes(rows, 3, itemgetter(0), MAX_POD_ENTRIES, full):
        if changed:
            diffs.setdefault(uid, []).append([about.ms(recv_ns), rv, changed])
    return diffs


def _named(found: Sequence[Finding]) -> frozenset[Key]:
    targets = (target for finding in found for target in finding.objects)
    return frozenset((t.namespace, t.name) for t in targets if t.kind == "Job")
