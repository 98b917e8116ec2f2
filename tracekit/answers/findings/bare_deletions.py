"""TK463: deletions that an audit log without bodies names."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.trace_model import Facts
from tracekit.answers.words import clock
from tracekit.base.kube.actors import controller_of

BARE_DELETION = Rule(
    "TK463", "a Job or CronJob that somebody deleted", Severity.INFO,
    "The audit log has a request that deleted it, by somebody other than a controller of the "
    "controller manager, and neither the object before nor the answer: how it stood is not known.",
    "One that had ended, and is deleted by intent.",
    "tracekit who TRACE --object NS/NAME lists all requests for it. A log at level "
    "RequestResponse tells how it stood: `tracekit manifests --audit-policy`.",
    rank=40,
)  # fmt: skip
_KINDS = {"jobs": "Job", "cronjobs": "CronJob"}


def bare_deletions(facts: Facts) -> Iterator[Case]:
    """A case for each."""
    for row in facts.bare_deletions:
        user, at_ns = str(row["actor"]), int(row["recv_ns"] or 0)
        if controller_of(user, row["actor_agent"]) == "":
            by = f" (with {row['actor_agent']})" if row["actor_agent"] else ""
            yield Case(
                BARE_DELETION,
                Target(_KINDS[row["stream"]], row["namespace"] or "", row["name"]),
                f"deletion was asked for by {user}", at_ns, at_ns,
                f"{clock(at_ns)}, by the audit log{by}; the log has no body of it: whether it had "
                "ended is not known",
                evidence={"user": user, "client": row["actor_agent"]},
                todo=f"tracekit who TRACE --object {row['namespace']}/{row['name']} lists all "
                f"requests for it; ask {user} why.",
            )  # fmt: skip
