"""TK460: ended Jobs that were started by hand, which no history limit counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job
from tracekit.answers.words import clock, counted

#: As many Jobs the default history limits of one CronJob keep: 3 successful ones, 1 failed.
_KEPT: Final = 4
#: Set by `kubectl create job --from=cronjob/…`, Argo CD's and Rancher's buttons, and others.
_ANNOTATION: Final = "cronjob.kubernetes.io/instantiate"

BY_HAND = Rule(
    "TK460", "runs by hand that no history limit deletes", Severity.INFO,
    "More than four ended Jobs that an ownerReference puts down to one CronJob (or, of one "
    "namespace, to none) have the annotation cronjob.kubernetes.io/instantiate: manual, no "
    "ttlSecondsAfterFinished and no owner with controller: true: a CronJob counts and deletes the "
    "Jobs that it controls, no others.",
    "Jobs that somebody keeps by intent.",
    "kubectl delete job NAME once you have its logs; ttlSecondsAfterFinished in the CronJob's "
    "jobTemplate lets those that come go by themselves (its scheduled runs, too).", rank=67,
)  # fmt: skip


def started_by_hand(facts: Facts) -> Iterator[Case]:
    """A case for each of them, where one CronJob, or a namespace, has many."""
    found: defaultdict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in facts.jobs:
        if _is_kept(job):
            found[job.namespace, facts.started_from.get(job.uid, "")].append(job)
    for (_, cronjob), jobs in found.items():
        if len(jobs) <= _KEPT:
            continue
        for job in jobs:
            over = job.last.true("Complete") or job.last.true("Failed")
            ended_ns = int((over and over["last_transition_ns"]) or job.ended_ns or 0)
            yield Case(
                BY_HAND, job.target,
                "stays, as it was started by hand: no history limit counts such Jobs",
                ended_ns, facts.as_of(job.namespace, "jobs"),
                f"ended at {clock(ended_ns)}; {counted(len(jobs), 'such Job')} "
                f"{f'of CronJob {cronjob}' if cronjob else 'in the namespace'}; no ownerReference "
                "with controller: true",
                cronjob or None,
                evidence={"jobs": len(jobs)},
            )  # fmt: skip


def _is_kept(job: Job) -> bool:
    by_hand = job.last.annotations.get(_ANNOTATION) == "manual" and not job.last.row["owner_kind"]
    stays = job.ended_ns is not None and job.deletion_ns is None
    return by_hand and stays and job.spec.get("ttlSecondsAfterFinished") is None
