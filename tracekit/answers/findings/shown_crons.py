"""TK455: CronJobs of which a table or a description shows that nothing was started when due."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracekit.answers.findings.cron_stalls import DUE_NS, SURE, due_times, read_schedule, times_due
from tracekit.answers.model import Rule, Severity
from tracekit.answers.trace_model import Facts, Seen
from tracekit.answers.words import in_kubectl
from tracekit.base.cron import CronSpecError, Schedule
from tracekit.base.cron.zones import UnknownZoneError, Zone
from tracekit.base.kube.printed.ages import age_of
from tracekit.base.kube.printed.model import Shown
from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339

LONG_AGO = Rule(
    "TK455", "a CronJob that was shown without a start for long", Severity.WARNING,
    "Where it was shown last it is not suspended, and two times or more of its schedule lie "
    "between its LAST SCHEDULE (`<none>`: its creation), as young as its age may be, and one "
    "minute before the look.",
    "A schedule that was edited since; a text that is older than the time that it is given (--at).",
    "`kubectl get cronjob NAME -o yaml` has its concurrencyPolicy and status.active, "
    "`kubectl get jobs` the run that it may wait for.",
    rank=18,
)  # fmt: skip
_NEVER = "<none>"


def long_ago(facts: Facts, looks: Sequence[Seen]) -> Iterator[str]:
    """What was due since its last start, with what is shown of a run that may hold it up."""
    last = looks[-1].shown
    at_ns = looks[-1].at_ns
    if not isinstance(last, Shown) or last.suspended or not at_ns:
        return
    reading = _reading(facts, last)
    since_ns = _last_start(last, at_ns)
    if reading is None or since_ns is None:
        return
    due = due_times(reading, since_ns, at_ns - DUE_NS)
    if len(due) < SURE:
        return
    cells = (f"{name} {last.printed[name]}" for name in _CELLS if last.printed.get(name))
    shown = ", ".join(cells) or f"last start {last.last_schedule or 'unset'}"
    yield f"{shown} ({last.schedule}): {times_due(due)} due since{_blocker(facts, last)}"


def held_up(last: Shown) -> tuple[str, str] | None:
    """What is said of a description whose Active Jobs hold up the next run, and what to do."""
    active = last.printed.get("Active Jobs", _NEVER)
    if last.printed.get("Concurrency Policy") != "Forbid" or active == _NEVER:
        return None
    named = in_kubectl(last.namespace, active.partition(",")[0])
    todo = (
        f"See why that run does not end: kubectl describe job {named}, and its pods. If no such "
        "Job is there, its entry in status.active is stale: kubectl edit cronjob NAME "
        "--subresource=status. An activeDeadlineSeconds in jobTemplate ends runs that hang."
    )
    return f"waits for {active} to end: its concurrencyPolicy is Forbid", todo


_CELLS = ("LAST SCHEDULE", "ACTIVE", "Last Schedule Time", "Active Jobs", "Concurrency Policy")


def _reading(facts: Facts, last: Shown) -> tuple[Schedule, Zone] | None:
    zone = None if last.time_zone == "<unset>" else last.time_zone
    try:
        return read_schedule(last.schedule or "", zone, facts.generation)
    except (CronSpecError, UnknownZoneError, ValueError):
        return None


def _last_start(last: Shown, at_ns: int) -> int | None:
    """The latest time at which it may have started something last; None where that is not known."""
    if last.last_schedule is not None:
        return parse_rfc3339(last.last_schedule)
    printed = last.printed.get("LAST SCHEDULE")
    age = age_of(last.printed.get("AGE", "") if printed == _NEVER else printed or "")
    return None if age is None else at_ns - age[0] * NS_PER_S


def _blocker(facts: Facts, last: Shown) -> str:
    """What is shown of a Job of its that has not ended; else what ACTIVE tells."""
    for seen in facts.shown:
        job = seen.shown
        if (
            isinstance(job, Shown)
            and (job.kind, job.namespace) == ("Job", last.namespace)
            and job.name.rpartition("-")[0] == last.name
            and job.status not in ("Complete", "Failed")
            and (job.succeeded or 0) < (job.completions or 1)
        ):
            return f"; of its Jobs, {job.name} is shown as not ended"
    if last.active:
        return (
            "; a run that has not ended, or an entry of status.active that is stale, holds up the "
            "next one where concurrencyPolicy is Forbid"
        )
    return ""
