"""TK208: times without a leader, and what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tracekit.answers.harm import Harm
from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.pauses import Pause
from tracekit.answers.trace_model import Facts, Job, State
from tracekit.answers.words import clock, counted
from tracekit.base.durations import span
from tracekit.base.kube.leases import CONTROLLER_MANAGER_LEASE, CONTROLLER_MANAGER_LEASE_NAMESPACE
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.spans import Timed

LEADER = Rule(
    "TK208", "a time without a leader", Severity.WARNING,
    "The Lease kube-system/kube-controller-manager changed hands; the pause reaches from the last "
    "renewal to the first sign of the next holder; where a look alone shows the Lease, to that "
    "look, if it was not renewed for 5 minutes, or for 1 minute before another Lease of "
    "kube-system was. What it cost: ticks due in it that were missed, "
    "Jobs that waited in it. Without such a cost it is only info, unless it lasts.",
    "None known.",
    "Find out why the leader went away; a shorter --leader-elect-lease-duration shortens pauses.",
    rank=40,
)  # fmt: skip
#: What to do where nobody leads as of the look.
_LASTS = (
    "See whether kube-controller-manager runs, and why it cannot renew its Lease: kubectl -n "
    "kube-system get pods -l component=kube-controller-manager. Until one leads, no Job or CronJob "
    "is looked at."
)


def nobody_leads_since(facts: Facts, at_ns: int) -> Pause | None:
    """The pause that began before that time and had not ended at the look."""
    return next((p for p in facts.pauses if p.lasts and p.from_ns <= at_ns), None)


def to_lead(pause: Pause) -> str | None:
    """What to do about what a pause holds up, where that is not what TK208 says of all."""
    return "Until one leads, nothing becomes of it." if pause.lasts else None


def says_nobody_leads(case: Case) -> bool:
    """Whether a case is that nobody leads as of the look."""
    return case.rule is LEADER and case.cause is None and case.todo == _LASTS


#: So many of the Jobs that waited are named as evidence.
_NAMED = 50


@dataclass(slots=True)
class _Costs:
    """What a time without a leader cost."""

    missed: int = 0  # due times
    started: int = 0  # of them, late
    overdue: int = 0  # deadlines
    waited: int = 0  # Jobs
    #: The first ones of those, by namespace and name.
    names: list[str] = field(default_factory=list)


class Leaders:
    """What the times without a leader cost, part by part of a trace."""

    def __init__(self) -> None:
        self._costs: defaultdict[int, _Costs] = defaultdict(_Costs)

    def add(self, facts: Facts) -> None:
        """Add what each cost of what a part has."""
        if not facts.pauses:
            return
        jobs = facts.jobs
        due = Timed((tick["due_ns"], place) for place, tick in enumerate(facts.ticks))
        waits = Timed(
            (at_ns, place) for place, job in enumerate(jobs) for at_ns in _began_to_wait(job)
        )
        deadlines = Timed((at, place) for place, job in enumerate(jobs) for at in _deadlines(job))
        for number, pause in enumerate(facts.pauses):
            span_ns = pause.from_ns, pause.until_ns
            ticks = [facts.ticks[place] for place in due.within(*span_ns)]
            waited = [jobs[place] for place in waits.within(*span_ns)]
            near = (jobs[place] for place in deadlines.within(*span_ns))
            cost = self._costs[number]
            cost.missed += sum(
                t["outcome"] == "missed" and t["policy"] == "no-leader" for t in ticks
            )
            cost.started += sum(t["outcome"] == "started" for t in ticks)
            cost.overdue += sum(_deadline_in(job, pause) for job in near)
            cost.waited += len(waited)
            room = max(0, _NAMED - len(cost.names))
            cost.names += [f"{j.namespace}/{j.name}" for j in waited[:room]]

    def cases(self, whole: Facts) -> Iterator[Case]:
        """A case for each, once all parts were added."""
        for number, pause in enumerate(whole.pauses):
            yield _leaderless(pause, self._costs[number])


def _leaderless(pause: Pause, cost: _Costs) -> Case:
    counts = (
        (cost.missed, "tick", "missed"),
        (cost.started, "tick", "started late"),
        (cost.overdue, "deadline", "overrun"),
        (cost.waited, "Job", "kept waiting"),
    )
    costs = [f"{counted(found, noun)} {how}" for found, noun, how in counts if found]
    long = span(pause.until_ns - pause.from_ns)
    claim, from_to = f"nobody led for {long}", f"{clock(pause.from_ns)} to {clock(pause.until_ns)}"
    if pause.lasts:
        claim = f"nobody leads: it was last renewed {long} before the look"
        from_to = f"since {clock(pause.from_ns)} (as of {clock(pause.until_ns)})"
    return Case(
        LEADER,
        Target("Lease", CONTROLLER_MANAGER_LEASE_NAMESPACE, CONTROLLER_MANAGER_LEASE),
        claim + _cost_words(costs, pause),
        pause.from_ns,
        pause.until_ns,
        f"{from_to}: {pause.what}",
        severity=None if costs or pause.lasts else Severity.INFO,
        todo=_LASTS if pause.lasts else None,
        evidence={
            "seconds": round(pause.seconds, 3),
            "ticks_missed": cost.missed,
            "ticks_late": cost.started,
            "deadlines_overrun": cost.overdue,
            "jobs_waited": cost.names,
        },
        # What it made miss or overrun has findings of its own, which stand beneath.
        harm=Harm(late=cost.waited),
    )


def _cost_words(costs: list[str], pause: Pause) -> str:
    if costs:
        return f": {', '.join(costs)}"
    return "" if pause.lasts else ", at no cost that shows"


def _deadline_in(job: Job, pause: Pause) -> bool:
    """Whether the Job's deadline passed in a pause in which it did not end."""
    state = job.before_ns(pause.until_ns)
    if state is None or (job.ended_ns or pause.until_ns) < pause.until_ns:
        return False
    deadline_ns = _deadline_ns(state)
    return deadline_ns is not None and pause.holds(deadline_ns)


def _deadlines(job: Job) -> set[int]:
    """The deadlines that a Job had by any of its states."""
    return {found for state in job.states if (found := _deadline_ns(state)) is not None}


def _deadline_ns(state: State) -> int | None:
    seconds, start_ns = state.spec.get("activeDeadlineSeconds"), state.row["start_ns"]
    if not isinstance(seconds, int) or not start_ns:
        return None
    return int(start_ns) + seconds * NS_PER_S


def _began_to_wait(job: Job) -> Iterator[int]:
    """When something of a Job began to wait for its controller."""
    yield from (end.at_ns for pod in job.pods if (end := pod.end) is not None)
    if job.seen_from_birth:
        yield job.first.at_ns
