"""TK201 and TK210: pods that are ready and a status that does not tell so, and why."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.answers.findings.refused_statuses import refused
from tracekit.answers.harm import HOLDS
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job, Pod, State, writes_of
from tracekit.answers.words import clock
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.versions.release_bugs import Bug

#: No back-off between failures and the next creation is longer.
BACKOFF_MOST_NS = 600 * NS_PER_S

#: A Job whose status tells another number of ready pods for so long has a controller without news.
BLIND_NS = 30 * NS_PER_S

STALE = Rule(
    "TK201", "a write on old news", Severity.WARNING,
    "Replay explains a write of the controller only with caches that were 5 s old or more "
    "(`match-lagged`) while it was not throttled (TK207); or for 30 s or more the Job's `.status."
    "ready` differs from the pods that are ready, although a controller manager led (its Lease, or "
    "what it wrote for other Jobs meanwhile).",
    "A controller manager that was stopped and continued (a debugger, a frozen virtual machine).",
    "Look for a broken watch between controller manager and API server at that time (its log, "
    "the API server's watch cache); a restart of the controller manager lists anew.",
    130683, rank=30,
)  # fmt: skip
REFUSED_IN_BACKOFF = Rule(
    "TK210", "a status that is refused while creations are in back-off", Severity.WARNING,
    "As TK201 for `.status.ready`, up to 10 minutes after a pod of the Job failed while another "
    "ran, under a release that refuses a status with more ready pods than active ones and counts "
    "active as 0 while the back-off holds creations back.",
    "A broken watch at the same time.",
    "Upgrade to 1.34.10, 1.35.7, 1.36.3 or later.",
    139428, rank=29, losses=HOLDS,
)  # fmt: skip


def refused_in_backoff(facts: Facts, job: Job, from_ns: int, until_ns: int) -> Case:
    """The case of a time in which no status could be written."""
    return Case(
        REFUSED_IN_BACKOFF,
        job.target,
        "each status is refused during the back-off (active 0 < ready)",
        from_ns,
        until_ns,
        f"for {span(until_ns - from_ns)} from {clock(from_ns)} no status was written: "
        "this release tells active 0 while creations are held back",
        job.cronjob,
        evidence={"seconds": round((until_ns - from_ns) / NS_PER_S, 3)},
        todo=facts.bugs[Bug.ACTIVE_TOLD_AS_0_IN_BACKOFF].remedy,
    )


def has_uncountable(job: Job) -> bool:
    """Whether a pod's uid stands in the list of the phase that it is no longer in."""
    done = frozenset(job.last.row["uncounted_succeeded"] or ())
    dead = frozenset(job.last.row["uncounted_failed"] or ())
    return any(
        (p.uid in done and p.phase == "Failed") or (p.uid in dead and p.phase == "Succeeded")
        for p in job.pods
    )


def hidden_by_backoff(facts: Facts, job: Job, at_ns: int) -> bool:
    """Whether a failure held creations back then, in a release that tells active 0 meanwhile."""
    if Bug.ACTIVE_TOLD_AS_0_IN_BACKOFF not in facts.bugs:
        return False
    failed = [p for p in job.pods if p.phase == "Failed" and p.ended_ns is not None]
    fresh = any(0 <= at_ns - (p.ended_ns or 0) <= BACKOFF_MOST_NS for p in failed)
    living = any(
        p.first.at_ns <= at_ns and (p.ended_ns is None or p.ended_ns > at_ns) for p in job.pods
    )
    return fresh and living


def without_news(facts: Facts, job: Job) -> Iterator[Case]:
    """A number of ready pods that the status does not tell for long."""
    if not job.managed or not any(s.row["ready"] is not None for s in job.states):
        return
    if (job.end is not None or job.gone_ns is not None) and _lived_ns(job) < BLIND_NS:
        return  # it was over before anything could be hidden for so long
    changes: list[tuple[Pod | None, State]] = [(pod, s) for pod in job.pods for s in pod.states]
    changes += [(None, s) for s in job.states]
    changes.sort(key=lambda change: change[1].rv)
    ready: set[str] = set()
    since: int | None = None
    written = 0  # statuses up to this change
    reported: int | None = None
    for pod, state in changes:
        at_ns = state.at_ns
        if pod is not None:
            (ready.add if _is_ready(state) else ready.discard)(pod.uid)
        while written < len(job.states) and job.states[written].rv <= state.rv:
            reported = job.states[written].number("ready")
            written += 1
        differs = reported is not None and reported != len(ready)
        if differs and since is None:
            since = at_ns
        elif not differs and since is not None:
            yield from _blind_case(facts, job, since, at_ns)
            since = None
        if pod is None and (state.gone or state is job.end):
            return
    if since is not None:
        yield from _blind_case(facts, job, since, facts.end_ns)


def _lived_ns(job: Job) -> int:
    """How long it and its pods were heard of."""
    times = [state.at_ns for life in (job, *job.pods) for state in life.states]
    return max(times) - min(times)


def _at_work(facts: Facts, job: Job, from_ns: int, until_ns: int) -> bool:
    """Whether the record shows that a controller ran: its Lease, or what it wrote meanwhile."""
    if facts.streams.get("leases"):
        return True
    own = sum(from_ns < at_ns < until_ns for at_ns in writes_of(job))
    return facts.writes_between(from_ns, until_ns) > own


def _is_ready(state: State) -> bool:
    return (
        not state.gone
        and bool(state.row["pod_ready"])
        and state.row["deleted_ns"] is None
        and state.row["phase"] == "Running"
    )


def _blind_case(facts: Facts, job: Job, from_ns: int, until_ns: int) -> Iterator[Case]:
    if facts.led_ns(from_ns, until_ns) < BLIND_NS or facts.blind(job.namespace, from_ns, until_ns):
        return
    if has_uncountable(job):
        return  # TK209 says why no status is written
    if refused(facts, job):
        return  # so does TK211 or TK212
    if hidden_by_backoff(facts, job, from_ns):
        yield refused_in_backoff(facts, job, from_ns, until_ns)
        return
    if not _at_work(facts, job, from_ns, until_ns):
        return
    yield Case(
        STALE,
        job.target,
        "the controller had no news of its pods",
        from_ns,
        until_ns,
        f"for {span(until_ns - from_ns)} from {clock(from_ns)} the status did not tell which pods "
        "were ready",
        job.cronjob,
        evidence={"seconds": round((until_ns - from_ns) / NS_PER_S, 3)},
    )
