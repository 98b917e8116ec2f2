"""What came of a Job or CronJob, in one sentence: the first thing that an account says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.diff.cron_ticks import UNLISTED
from tracekit.report.narrative import Narrative
from tracekit.report.narrative_closing import after_its_start
from tracekit.report.table import counted
from tracekit.sql.session import Session

_JOB = """
SELECT namespace, job, outcome, reason, message, duration_s, backoff_s, retries, pods, succeeded,
       active, restarts, backoff_limit, active_deadline_s, completion_mode, job_uid
FROM jobs
WHERE namespace = $namespace AND job = $name
ORDER BY created_at DESC NULLS LAST
"""
#: Asked only where it is told: it takes as long again. Pods that the Job controller ended (as the
#: Job was suspended, or failed) failed by no error of their own.
_EXIT_CODES = """
SELECT job_uid, histogram(exit_code) AS exit_codes FROM attempts
WHERE namespace = $namespace AND job = $name
  AND phase = 'Failed' AND ended_by IS DISTINCT FROM 'job-controller'
  -- beside this reason the kubelet makes the code up
  AND reason IS DISTINCT FROM 'ContainerStatusUnknown'
GROUP BY job_uid
"""
_CRONJOB = """
SELECT outcome, count(*) AS ticks, policy IS NOT DISTINCT FROM $unlisted AS unlisted FROM cron_ticks
WHERE namespace = $namespace AND cronjob = $name
GROUP BY outcome, unlisted ORDER BY ticks DESC, outcome
"""


def conclusion(session: Session, narrative: Narrative) -> str:
    """The sentence; empty where the record holds no state of the object."""
    where = {"namespace": narrative.namespace, "name": narrative.name}
    if narrative.kind == "CronJob":
        rows = session.rows(_CRONJOB, **where, unlisted=UNLISTED)
        ticks = [row for row in rows if not row["unlisted"]]
        total = sum(row["ticks"] for row in ticks)
        parts = ", ".join(f"{row['ticks']} {row['outcome']}" for row in ticks)
        rest = "more than " if len(ticks) < len(rows) else ""
        after = "; the later ones are not listed" if rest else ""
        return f"{rest}{counted(total, 'due time')}: {parts}{after}.".capitalize() if ticks else ""
    found = _sentence(_jobs(session, **where))
    against = narrative.divergences
    if found and against:
        found += f" {counted(len(against), 'divergence')} from the rules."
    return found


def job_conclusions(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """The sentence of every Job, by (namespace, name).

    `rows` are those of the view `jobs`, the newest last, with the exit codes of their failed pods
    and how many had each.
    """
    jobs: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        jobs.setdefault((row["namespace"], row["job"]), []).append(row)
    return {key: _sentence(of_name[::-1]) for key, of_name in jobs.items()}


def _jobs(session: Session, **where: str) -> list[dict[str, Any]]:
    """The Jobs, the newest first; how their pods ended stands with those that need it."""
    jobs = session.rows(_JOB, **where)
    if any(job["outcome"] == "Failed" and not _took_too_long(job) for job in jobs):
        found = session.rows(_EXIT_CODES, **where)
        exit_codes = {row["job_uid"]: row["exit_codes"] for row in found}
        for job in jobs:
            job["exit_codes"] = exit_codes.get(job["job_uid"])
    return jobs


def _took_too_long(job: Mapping[str, Any]) -> bool:
    """Whether its deadline says all: how its pods ended does not matter."""
    return job["reason"] == "DeadlineExceeded" and job["active_deadline_s"] is not None


def _sentence(jobs: Sequence[Mapping[str, Any]]) -> str:
    """What came of the last one of the Jobs with one name."""
    if not jobs:
        return ""
    others = f" The name was used {counted(len(jobs), 'time')}." if len(jobs) > 1 else ""
    return f"{_of_job(jobs[0])}{others}"


def _of_job(job: Mapping[str, Any]) -> str:
    took = "" if job["duration_s"] is None else f" {after_its_start(_ns(job['duration_s']))}"
    lost = ""
    if job["backoff_s"] >= 1:
        # Indexes wait side by side: their sum may be more than the Job took.
        indexed = job["completion_mode"] == "Indexed"
        waited = "of back-off, summed over its indexes" if indexed else "of it back-off"
        lost = f"; {span(_ns(job['backoff_s']))} {waited}"
    match job["outcome"]:
        case "Failed":
            return f"Failed{took}: {_cause(job)}{lost}."
        case "Complete":
            tried = f", {counted(job['retries'], 'retry', 'retries')}" if job["retries"] else ""
            return f"Complete{took}: {counted(job['succeeded'], 'pod')} succeeded{tried}{lost}."
        case "Deleted":
            return f"Deleted unfinished, after {counted(job['pods'], 'pod')}."
        case outcome:
            return f"{outcome} at the end of the trace: {counted(job['active'], 'pod')} active."


def _cause(job: Mapping[str, Any]) -> str:
    if _took_too_long(job):
        return f"longer than activeDeadlineSeconds {job['active_deadline_s']}"
    ended = ", ".join(
        f"{counted(count, 'pod')} exited {code}"
        for code, count in (job["exit_codes"] or {}).items()
    )
    limit = job["backoff_limit"]
    match job["reason"]:
        case "BackoffLimitExceeded" if limit is not None and _ended_more_often(job, limit):
            return f"{ended}, more than backoffLimit {limit} allows"
        case "BackoffLimitExceeded" if limit is not None and job["restarts"] >= max(limit, 1):
            restarts = counted(job["restarts"], "restart")
            return f"{restarts} of its containers, backoffLimit {limit}"
        case reason:
            said = f"{reason}: {job['message']}" if job["message"] else str(reason)
            return f"{said} ({ended})" if ended else said


def _ended_more_often(job: Mapping[str, Any], limit: int) -> bool:
    return bool(sum((job["exit_codes"] or {}).values()) > limit)


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)
