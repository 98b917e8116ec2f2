"""TK431, TK432: Jobs that go with their end: by their TTL, or by who waited for it."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.answers.findings.job_failures import failure_rule
from tracekit.answers.harm import NO_HARM
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job
from tracekit.answers.words import clock
from tracekit.base.durations import span
from tracekit.base.kube.actors import controller_of
from tracekit.base.kube.timestamps import NS_PER_S

#: A failed Job whose TTL takes it so soon after its end leaves nobody the time to read its logs.
EVIDENCE_NS = 300 * NS_PER_S
#: A Job that is there for so short a time after its end is gone before most clients look.
UNSEEN_NS = NS_PER_S
#: So soon after its end somebody who deletes it waited for that. A choice, above what a client's
#: watch and its next request take.
_AT_ITS_END_NS = 5 * NS_PER_S

TTL_TOOK = Rule(
    "TK431", "the TTL deletes the evidence", Severity.WARNING,
    "A failed Job with ttlSecondsAfterFinished went within 5 minutes of its end, not before the "
    "TTL was over.",
    "Somebody who keeps logs elsewhere.",
    "Raise ttlSecondsAfterFinished, or keep logs elsewhere: with the Job its pods and logs go.",
    rank=32,
)  # fmt: skip
UNSEEN_END = Rule(
    "TK432", "an end that nobody can see", Severity.INFO,
    "A Job with ttlSecondsAfterFinished 0 went within a second of its condition Complete; or an "
    "audit log names who deleted it within 5 s of that.",
    "Clients that do not wait for it.",
    "Let whoever waits for the Job (a hook of Argo CD or Helm) watch it, or raise "
    "ttlSecondsAfterFinished to some minutes.", rank=58,
)  # fmt: skip


def ttl_took(facts: Facts, job: Job) -> Iterator[Case]:
    """A Job that the TTL took so early that nobody saw its end, or could read why it failed."""
    if (stay := past_its_ttl(job)) is None:
        return
    seconds, ended_ns, gone_ns = stay
    stayed_ns = gone_ns - ended_ns
    evidence = {"ttl_s": seconds, "stayed_s": round(stayed_ns / NS_PER_S, 3)}
    if job.failure is not None and stayed_ns <= EVIDENCE_NS:
        # The TTL counts from the condition's time, which has whole seconds.
        failed_ns = int(job.failure["last_transition_ns"] or ended_ns)
        yield Case(
            TTL_TOOK, job.target,
            "failed, and ttlSecondsAfterFinished took it with its pods and logs",
            ended_ns, gone_ns,
            f"failed at {clock(failed_ns)}, deleted {span(gone_ns - failed_ns)} later "
            f"(ttlSecondsAfterFinished {seconds})",
            job.cronjob, evidence=evidence, todo=TTL_TOOK.todo,
            cause=failure_rule(facts, job), harm=NO_HARM,  # it counts with what it failed by
        )  # fmt: skip
    elif job.failure is None and seconds == 0 and stayed_ns <= UNSEEN_NS:
        yield Case(
            UNSEEN_END, job.target,
            "went as it became Complete (ttlSecondsAfterFinished 0): who polls never sees the end",
            ended_ns, gone_ns,
            f"Complete at {clock(ended_ns)}, deleted {span(stayed_ns)} later",
            job.cronjob, evidence=evidence,
        )  # fmt: skip


def past_its_ttl(job: Job) -> tuple[int, int, int] | None:
    """The TTL in seconds, when the Job ended and when it went; None: somebody was faster."""
    seconds, gone_ns, ended_ns = (
        job.spec.get("ttlSecondsAfterFinished"), job.deletion_ns, job.ended_ns,
    )  # fmt: skip
    if not isinstance(seconds, int) or gone_ns is None or ended_ns is None:
        return None
    # The TTL counts from whole seconds.
    return (seconds, ended_ns, gone_ns) if gone_ns - ended_ns >= (seconds - 1) * NS_PER_S else None


def taken_at_its_end(job: Job) -> Iterator[Case]:
    """A Job that somebody deleted as it became Complete (a hook's policy, a workflow engine)."""
    going = job.deletion
    ended_ns = job.ended_ns
    if going is None or ended_ns is None or job.failure is not None or not going.row["actor"]:
        return
    by = str(going.row["actor"])
    if controller_of(by, going.row["actor_agent"]) or going.at_ns - ended_ns > _AT_ITS_END_NS:
        return
    yield Case(
        UNSEEN_END, job.target,
        f"was deleted by {by} as it became Complete: who polls may never see the end",
        ended_ns, going.at_ns,
        f"Complete at {clock(ended_ns)}, deleted {span(going.at_ns - ended_ns)} later (audit log)",
        job.cronjob, evidence={"by": by},
        todo="Let whoever waits for the Job watch it, or let its deletion wait (Helm and Argo CD: "
             "hook-delete-policy before-hook-creation instead of hook-succeeded).",
    )  # fmt: skip
