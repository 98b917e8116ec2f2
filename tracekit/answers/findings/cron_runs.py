"""TK312, TK313: a stale status.active, runs that are replaced before they end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tracekit.answers.harm import Harm
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import CronJob, Facts, Job
from tracekit.answers.words import clock, counted
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S

#: A finished Job that stands in status.active for so long is stale.
STALE_NS = 60 * NS_PER_S
#: A Replace deletes a Job and creates the next one within so long.
REPLACED_NS = 5 * NS_PER_S

STALE_ACTIVE = Rule(
    "TK312", "a finished Job in status.active", Severity.ERROR,
    "The CronJob's last `.status.active` names a Job that had ended 60 s or more before the end of "
    "the record; with concurrencyPolicy Forbid that Job blocks each later start.",
    "A controller manager that does not lead.",
    "Take the entry out: kubectl edit cronjob NAME --subresource=status; or delete the Job that it "
    "names, once you have its logs.",
    108023, rank=6,
)  # fmt: skip
STARVED = Rule(
    "TK313", "runs that are replaced before they end", Severity.WARNING,
    "concurrencyPolicy is Replace, and two Jobs or more were deleted unfinished within 5 s "
    "of the creation of the next one.",
    "Runs that are meant to be cut off.",
    "Let the schedule's interval be longer than a run, or use concurrencyPolicy Forbid.", rank=14,
)  # fmt: skip
RULES = (STALE_ACTIVE, STARVED)


def stale_active(facts: Facts, cron: CronJob, jobs: Sequence[Job]) -> Case | None:
    """The Job that status.active names although it has ended."""
    if cron.last.gone:
        return None
    named = {entry["uid"] for entry in cron.last.row["cron_active"] or ()}
    for job in jobs:
        end = job.end
        if job.uid not in named or end is None:
            continue
        condition = end.true("Complete") or end.true("Failed") or {}
        at_ns = int(condition.get("last_transition_ns") or end.at_ns)
        as_of_ns = facts.as_of(cron.namespace, "cronjobs", "jobs")
        if as_of_ns - at_ns < STALE_NS:
            continue
        kind = str(condition.get("type"))
        policy = cron.last.spec.get("concurrencyPolicy", "Allow")
        blocks = ", which blocks every start (Forbid)" if policy == "Forbid" else ""
        return Case(
            STALE_ACTIVE, cron.target,
            f"its status.active names {job.name}, which is {kind}{blocks}",
            at_ns, as_of_ns,
            f"{kind} since {clock(at_ns)}, {span(as_of_ns - at_ns)} ago (as of "
            f"{clock(as_of_ns)})",
            evidence={"job": job.name, "uid": job.uid},
        )  # fmt: skip
    return None


def starved(cron: CronJob, jobs: Sequence[Job]) -> Iterator[Case]:
    """Runs that a Replace cut off."""
    if cron.last.spec.get("concurrencyPolicy") != "Replace":
        return
    runs = sorted(jobs, key=lambda j: j.first.rv)
    cut = [
        job
        for job, after in pairwise(runs)
        if job.ended_ns is None
        and job.deletion_ns is not None
        and abs(after.first.at_ns - job.deletion_ns) <= REPLACED_NS
    ]
    if len(cut) < 2:  # noqa: PLR2004 - one is what the policy is for
        return
    whole = len(runs) - 1
    lived_ns = max((j.deletion_ns or 0) - j.created_ns for j in cut)
    yield Case(
        STARVED, cron.target,
        f"{len(cut)} of {counted(whole, 'run')} were replaced before they ended (Replace)",
        cut[0].created_ns, cut[-1].deletion_ns or cut[-1].last.at_ns,
        f"from {clock(cut[0].created_ns)} on; none of them got more than {span(lived_ns)} "
        f"({cron.last.spec.get('schedule')})",
        evidence={"replaced": len(cut), "runs": whole}, harm=Harm(missed_runs=len(cut)),
    )  # fmt: skip
