"""TK459: Jobs that somebody makes anew each time that their TTL has taken them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tracekit.answers.findings.gone_at_end import past_its_ttl
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Job
from tracekit.answers.words import clock
from tracekit.base.durations import span
from tracekit.base.kube.actors import controller_of

#: So many Jobs of one name were made by somebody who keeps making them. A choice: one more may be a
#: release.
_RUNS: Final = 3
#: Who applies manifests, by a part of its name as a user or in managedFields, and what lets that
#: leave an ended Job alone.
_APPLIERS: Final = {
    "argocd": "Argo CD takes a Job that is not there for drift: make it a hook "
    "(argocd.argoproj.io/hook, with hook-delete-policy BeforeHookCreation), or leave "
    "ttlSecondsAfterFinished out.",
    "kustomize-controller": "Flux makes what is not there at each reconciliation: leave "
    "ttlSecondsAfterFinished out.",
}

MADE_AGAIN = Rule(
    "TK459", "a Job that is made anew after its TTL, again and again", Severity.WARNING,
    "Three Jobs of one name and without an owner were made one after the other, each after "
    "ttlSecondsAfterFinished had taken the ended one before: its work is done again each time.",
    "Somebody who starts the Job again by intent.",
    "Whoever makes it takes its absence for something to repair: leave ttlSecondsAfterFinished out "
    "of it, and let its maker delete ended ones.", rank=31,
)  # fmt: skip


def made_again(jobs: Sequence[Job]) -> Iterator[Case]:
    """The case among the Jobs of one name, oldest first."""
    found = sorted(jobs, key=lambda job: job.first.rv)
    runs = found[-1:]
    for job in reversed(found[:-1]):
        if not _by_ttl(job) or not runs[0].seen_from_birth:
            break
        runs.insert(0, job)
    if len(runs) < _RUNS or any(job.last.row["owner_kind"] for job in runs):
        return
    last, before = runs[-1], runs[-2]
    who, first_ns, last_ns = _creator(last), runs[0].created_ns, last.created_ns
    by = f" by {who}" if who else ""
    yield Case(
        MADE_AGAIN, last.target, f"is made anew{by} each time that its TTL has taken it",
        first_ns, last_ns,
        f"{len(runs)} times from {clock(first_ns)} to {clock(last_ns)}, each after "
        f"ttlSecondsAfterFinished {before.spec['ttlSecondsAfterFinished']} had taken the ended one "
        f"before, the last {span(last_ns - (before.deletion_ns or 0))} later",
        evidence={"times": len(runs), "by": who or None},
        todo=next((text for part, text in _APPLIERS.items() if part in who), None),
    )  # fmt: skip


def _by_ttl(job: Job) -> bool:
    """Whether it went as its TTL was over, by nobody else as far as anything tells."""
    if past_its_ttl(job) is None or job.gone_ns is None:
        return False
    going = job.deletion
    by = None if going is None else controller_of(going.row["actor"], going.row["actor_agent"])
    return by is None or by.startswith("ttl")


def _creator(job: Job) -> str:
    """Who made it: by the audit log, else by the managedFields of its first revision."""
    row = job.first.row
    if row["actor"]:
        return str(row["actor"])
    return next((str(m["manager"]) for m in row["managers"] or () if not m["subresource"]), "")
