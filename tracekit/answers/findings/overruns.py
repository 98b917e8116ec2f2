"""TK424, TK425: Jobs that outlasted activeDeadlineSeconds or ttlSecondsAfterFinished."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.answers.findings.controllers import BACKLOG, Spells
from tracekit.answers.findings.leaders import LEADER, to_lead
from tracekit.answers.findings.uncounted import behind
from tracekit.answers.harm import DELAYS
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import Facts, Job, State
from tracekit.answers.words import clock
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.versions.release_bugs import Bug

#: Later than that a time that was over is told.
OVERRUN_NS = 5 * NS_PER_S

OVERRUN = Rule(
    "TK424", "a deadline that was overrun", Severity.WARNING,
    "The Job was ended (or still ran) 5 s or more after `.status.startTime` + "
    "activeDeadlineSeconds.",
    "A user who has set the deadline after it had passed.",
    "Up to 1.22.11, 1.23.8 and 1.24.2 a failed pod takes the deadline's timer away: upgrade. "
    "activeDeadlineSeconds in the pod template is kept by the kubelet, whether a controller "
    "manager leads or not.",
    107226, rank=12,
    losses=DELAYS,
)  # fmt: skip
TTL_LATE = Rule(
    "TK425", "deleted after its TTL", Severity.WARNING,
    "The Job went, or was still there, 5 s or more after its end + ttlSecondsAfterFinished.",
    "A finalizer of somebody else on the Job; a TTL that was set a moment before the only look, "
    "where no managedFields tell of it.",
    "See whether the TTL controller runs: ttl-after-finished-controller among --controllers of the "
    "controller manager, and its log.", rank=33,
)  # fmt: skip


def overrun(facts: Facts, job: Job, spells: Spells) -> Iterator[Case]:
    """The case of a deadline that was over for a while before the Job was ended."""
    last = job.end or job.last
    seconds, start_ns = last.spec.get("activeDeadlineSeconds"), last.row["start_ns"]
    if not isinstance(seconds, int) or not start_ns or last.spec.get("suspend") is True:
        return
    due_ns = start_ns + seconds * NS_PER_S
    ended = job.first_at(_ending)
    ends = (None if ended is None else ended.at_ns, job.deletion_ns, facts.end_ns)
    until_ns = min(ns for ns in ends if ns is not None)
    edited_ns = _deadline_set(job)
    blind = facts.blind(job.namespace, due_ns, until_ns)
    if blind and ended is None and job.deletion_ns is None:
        until_ns = facts.as_of(job.namespace, "jobs")  # a look tells that it still is not over
    elif blind:
        return
    if until_ns - max(due_ns, edited_ns) < OVERRUN_NS or not job.managed:
        return
    cause: Rule | None = None
    todo: str | None = _of_overrun(facts)
    if blind:
        why = "it was not ended when it was looked at"
    elif (pause := facts.pause_between(due_ns, until_ns)) is not None:
        why, cause = "nobody led when it passed (TK208)", LEADER
        todo = to_lead(pause) or todo
    elif behind(spells, due_ns, until_ns):
        why, cause, todo = "its controller was behind (TK207)", BACKLOG, None
    elif not facts.is_whole:
        why = "its controller came late"
    else:
        why = "nothing woke its controller"
    yield Case(
        OVERRUN,
        job.target,
        f"overran its deadline: {why}",
        due_ns,
        until_ns,
        f"activeDeadlineSeconds {seconds} was over at {clock(due_ns)}; "
        + (
            f"ended {span(until_ns - due_ns)} later"
            if ended
            else f"it was not ended as of {clock(until_ns)}"
        ),
        job.cronjob,
        evidence={"deadline_s": seconds, "overrun_s": round((until_ns - due_ns) / NS_PER_S, 3)},
        todo=todo,
        cause=cause,
    )


_KEPT_BY_KUBELET = (
    "activeDeadlineSeconds in the pod template is kept by the kubelet, whether a controller "
    "manager leads or not."
)


def _of_overrun(facts: Facts) -> str:
    """What to do about a deadline that was not kept, by what is known of the release."""
    bug = facts.bugs.get(Bug.DEADLINE_TIMER_LOST)
    return _KEPT_BY_KUBELET if bug is None else f"{bug.remedy} {_KEPT_BY_KUBELET}"


def _ending(state: State) -> bool:
    """Whether a revision is the first that knows of an end."""
    kinds = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
    return any(state.true(kind) for kind in kinds)


def _deadline_set(job: Job) -> int:
    """When the deadline got the value that it has."""
    wanted = job.last.spec.get("activeDeadlineSeconds")
    since = job.first
    for state in job.states:
        if state.spec.get("activeDeadlineSeconds") != wanted:
            since = state
    if since is job.first:
        return job.created_ns
    place = job.states.index(since)
    return job.states[min(place + 1, len(job.states) - 1)].at_ns


def _written_ns(state: State) -> int:
    """When somebody wrote more than its status last, by managedFields; 0 where nothing tells."""
    written = (
        int(m["time_ns"] or 0) for m in state.row["managers"] or () if m["subresource"] != "status"
    )
    return max(written, default=0)


def ttl_overrun(facts: Facts, job: Job) -> Iterator[Case]:
    """The case of a Job that stayed for longer than its TTL."""
    seconds = job.last.spec.get("ttlSecondsAfterFinished")
    end = job.end
    if not isinstance(seconds, int) or end is None:
        return
    condition = end.true("Complete") or end.true("Failed") or {}
    at_ns = condition.get("last_transition_ns") or end.at_ns
    set_ns = next(
        (s.at_ns for s in job.states if s.spec.get("ttlSecondsAfterFinished") == seconds),
        end.at_ns,
    )
    if set_ns == job.first.at_ns:
        set_ns = _written_ns(job.first)  # it had that before the first look
    due_ns = max(int(at_ns) + seconds * NS_PER_S, set_ns)
    until_ns = job.deletion_ns or facts.end_ns
    if facts.blind(job.namespace, due_ns, until_ns):
        if job.deletion_ns is not None:
            return  # when it went within that time nobody saw
        until_ns = facts.as_of(job.namespace, "jobs")  # a look tells that it still is there
    if until_ns - due_ns < OVERRUN_NS:
        return
    pause = facts.pause_between(due_ns, until_ns)
    why, cause = "the TTL controller was late", None
    if job.deletion_ns is None:
        why = "the TTL controller has not deleted it"
    if pause is not None:
        why, cause = "nobody led when it was due (TK208)", LEADER
    yield Case(
        TTL_LATE,
        job.target,
        f"stayed longer than ttlSecondsAfterFinished: {why}",
        due_ns,
        until_ns,
        f"ttlSecondsAfterFinished {seconds} was over at {clock(due_ns)}; "
        + (
            f"it went {span(until_ns - due_ns)} later"
            if job.deletion_ns
            else f"it is still there (as of {clock(until_ns)})"
        ),
        job.cronjob,
        evidence={"ttl_s": seconds, "late_s": round((until_ns - due_ns) / NS_PER_S, 3)},
        todo=None if pause is None else to_lead(pause),
        cause=cause,
    )
