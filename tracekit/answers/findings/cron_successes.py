"""TK319: CronJobs that go on starting runs of which none succeeds, as a single look tells it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracekit.answers.findings.cron_stalls import due_times, times_due
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import CronJob, Facts, Job
from tracekit.answers.words import clock, counted
from tracekit.base.cron import Schedule
from tracekit.base.cron.zones import Zone
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S

UNSUCCESSFUL = Rule(
    "TK319", "a CronJob none of whose runs succeeds", Severity.WARNING,
    "Nobody watched it, and between its `.status.lastSuccessfulTime` (else its creation, where the "
    "release is said and writes one) and its lastScheduleTime, or its oldest run that has not "
    "ended, three times or more of its schedule lie. Not where it starts nothing (TK315), a Job of "
    "its that is there has succeeded since, or its Jobs have a ttlSecondsAfterFinished below a "
    "minute: they may go before their CronJob's controller has seen them succeed.",
    "A schedule that was edited, or a CronJob that was suspended for most of that time.",
    "Look at a run while it is there: kubectl get jobs; its pods' logs. A higher "
    "failedJobsHistoryLimit keeps more of them.",
    rank=33,
)  # fmt: skip
#: So many starts without a success are no coincidence. A choice: with less one bad night is told.
_MANY = 3
#: The controller sees a Job end within seconds. A choice, far above that.
_SHORT_TTL_S = 60


def unsuccessful(
    facts: Facts, cron: CronJob, jobs: Sequence[Job], reading: tuple[Schedule, Zone]
) -> Iterator[Case]:
    """The case, if the CronJob is one."""
    state = cron.last
    last_ns = state.row["last_schedule_ns"]
    if state.gone or not last_ns or any(s.row["type"] != "LIST" for s in cron.states):
        return
    since_ns = state.row["last_successful_ns"]
    if (since_ns is None and not facts.release.tells_successes) or _goes_at_once(cron):
        return
    until_ns = _begun_by(cron, jobs, int(last_ns))
    from_ns = int(since_ns or cron.created_ns)
    due = due_times(reading, from_ns, until_ns) if until_ns else []
    if len(due) < _MANY or any(_succeeded_after(job, from_ns) for job in jobs):
        return
    as_of_ns = facts.as_of(cron.namespace, "cronjobs")
    since, last = f"since {clock(from_ns)}", f"lastSuccessfulTime {clock(from_ns)}"
    if since_ns is None:
        since, last = "since its creation", f"no lastSuccessfulTime, created at {clock(from_ns)}"
    failed = [job for job in jobs if job.failure is not None]
    listed = f"; {counted(len(failed), 'failed Job')} of it listed" if failed else ""
    yield Case(
        UNSUCCESSFUL, cron.target,
        f"starts runs, and none has succeeded {since}",
        from_ns, as_of_ns,
        f"{last}, last start for {clock(int(last_ns))}, {span(int(last_ns) - from_ns)} later: "
        f"{times_due(due)} due in between ({state.spec.get('schedule')}){listed} "
        f"(as of {clock(as_of_ns)})",
        evidence={"due": len(due), "jobs": [job.name for job in failed[:20]]},
    )  # fmt: skip


def _succeeded_after(job: Job, at_ns: int) -> bool:
    return job.created_ns > at_ns and job.last.true("Complete") is not None


def _goes_at_once(cron: CronJob) -> bool:
    template = cron.last.spec.get("jobTemplate") or {}
    seconds = (template.get("spec") or {}).get("ttlSecondsAfterFinished")
    return isinstance(seconds, int) and seconds < _SHORT_TTL_S


def _begun_by(cron: CronJob, jobs: Sequence[Job], last_ns: int) -> int:
    """Until when its runs have begun that have all ended; 0 where that is not known."""
    at_work = {job.uid: job for job in jobs if job.ended_ns is None and job.gone_ns is None}
    named = [entry["uid"] for entry in cron.last.row["cron_active"] or ()]
    if any(uid not in at_work for uid in named):
        return 0
    oldest_ns = min((job.created_ns for job in at_work.values()), default=last_ns + NS_PER_S)
    return min(last_ns, oldest_ns - NS_PER_S)
