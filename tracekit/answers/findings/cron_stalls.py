"""TK315, TK316: CronJobs that start nothing, as a single look tells it: since when, and why."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile

from tracekit.answers.findings.advice import advice_of
from tracekit.answers.findings.jobs import holds
from tracekit.answers.findings.leaders import LEADER, to_lead
from tracekit.answers.findings.pulls import unpulled, unpulled_case
from tracekit.answers.findings.refused_pods import refused_case, refused_to_the_end
from tracekit.answers.harm import Harm
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.refusals import refusal_advice, refusal_of
from tracekit.answers.trace_model import CronJob, Facts, Job, Row, State
from tracekit.answers.words import clock, counted, in_kubectl, shortened
from tracekit.base.cron import CronSpecError, Generation, Schedule, activations, parse
from tracekit.base.cron.zones import UTC, UnknownZoneError, Zone, load_zone
from tracekit.base.durations import span
from tracekit.base.escaping import for_shell
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.versions.constants import CRON_POLL_PERIOD_NS

#: A time of the schedule that is so long ago should have been started. A choice, as TK315 says it:
#: with less a start that is on its way is told as missing; with more the finding comes later.
DUE_NS = 60 * NS_PER_S
#: So many times have passed in whatever zone the controller reads the schedule.
SURE = 2
#: Times counted at most. A choice: what is told is then "at least" or "more than" so many.
MOST_DUE = 10_000
#: So often the polling controller looks.
_POLL_S = CRON_POLL_PERIOD_NS // NS_PER_S
#: Upstream: pkg/controller/cronjob/cronjob_controllerv2.go; a start is made beside this Event.
_MANY_MISSED = "TooManyMissedTimes"
#: Warnings after which it goes on: a Job of its that it did not create, `TZ=` in its schedule.
_BESIDE = ("UnexpectedJob", "UnsupportedSchedule")
_ZONE = (
    "Name a zone that the time zone data of the controller manager has (perhaps an older name of "
    "it), or give the controller manager newer data."
)
_UNLED = "nobody led when it was due (TK208)"
_LATE = (
    "See why the controller came late (its log; nobody led, or it was behind), or raise "
    "startingDeadlineSeconds."
)
_LEASE = (
    "See whether the controller manager runs and leads (kubectl -n kube-system get lease "
    "kube-controller-manager -o yaml), and what its log says of the CronJob."
)

STALLED = Rule(
    "TK315", "a CronJob that starts nothing", Severity.ERROR,
    "A CronJob that is not suspended has times of its schedule between its lastScheduleTime (else "
    "its creation, or the time of its newest Job) and one minute before the last look at it, and "
    "nobody watched what became of them (else TK301 to TK306 tell it). Or (a warning) its "
    "lastScheduleTime lies 5 minutes or more after that look: nothing is due before it.",
    "A startingDeadlineSeconds that was meant to let these times go; a schedule that was edited, "
    "or a resume, less than a minute ago.",
    _LEASE, rank=8,
)  # fmt: skip
UNREADABLE = Rule(
    "TK316", "a schedule or time zone that cannot be read", Severity.ERROR,
    "The cron library of the release refuses the CronJob's schedule, or its timeZone is none: the "
    "controller starts nothing and tells so in an Event.",
    "A zone that the cluster's own time zone data has, and no other.",
    "Correct .spec.schedule or .spec.timeZone: `tracekit cron next` says how it is read.", rank=7,
)  # fmt: skip
SUSPENDED = Rule(
    "TK305", "due while it was suspended", Severity.INFO,
    "spec.suspend was true at a time of the schedule.",
    "None known.",
    "kubectl patch cronjob NAME -p '{\"spec\":{\"suspend\":false}}' if that is not intended.",
    rank=60,
)  # fmt: skip
RULES = (STALLED, UNREADABLE, SUSPENDED)
#: So far ahead of the look a lastScheduleTime is no matter of two clocks. A choice.
_AHEAD_NS = 300 * NS_PER_S

_Why = tuple[str, str, str | None, Rule | None]


def read_schedule(text: str, zone: str | None, generation: Generation) -> tuple[Schedule, Zone]:
    """What a CronJob's schedule and timeZone mean to its controller.

    Raises:
        CronSpecError, UnknownZoneError, ValueError: The library refuses one of them.
    """
    full = f"TZ={zone} {text}" if zone and "TZ=" not in text else text
    return parse(full, generation), load_zone(zone) if zone else UTC


def unreadable(facts: Facts, cron: CronJob) -> Iterator[Case]:
    """A CronJob whose schedule or zone the controller cannot read."""
    state = cron.last
    text, zone = str(state.spec.get("schedule", "")), state.spec.get("timeZone")
    claim = None
    try:
        read_schedule(text, zone, facts.generation)
    except UnknownZoneError:
        claim = f"starts nothing: there is no time zone {zone or text.partition(' ')[0]!r}"
    except (CronSpecError, ValueError) as error:
        claim = f"starts nothing: its schedule {text!r} cannot be read ({error})"
        if zone and zone in str(error):
            claim = f"starts nothing: there is no time zone {zone!r}"
    if claim is not None and not state.gone:
        yield Case(
            UNREADABLE, cron.target, claim, cron.first.at_ns, state.at_ns,
            f"as of {clock(facts.as_of(cron.namespace, 'cronjobs'))}",
            evidence={"schedule": text, "timeZone": zone},
        )  # fmt: skip


def stalled(
    facts: Facts,
    cron: CronJob,
    jobs: Sequence[Job],
    ticks: Sequence[Row],
    reading: tuple[Schedule, Zone],
    started_ns: Callable[[Job], int | None],
) -> Iterator[Case]:
    """A CronJob whose times have passed for a while without a start that anybody saw."""
    state = cron.last
    if state.gone or cron.deletion_ns is not None:
        return
    as_of_ns = facts.as_of(cron.namespace, "cronjobs")
    last_ns = int(state.row["last_schedule_ns"] or 0)
    is_on = as_of_ns and state.spec.get("suspend") is not True
    if is_on and last_ns - as_of_ns >= _AHEAD_NS:
        yield _ahead(cron, last_ns, as_of_ns, reading)
        return
    starts = [slot for job in jobs if (slot := started_ns(job)) is not None]
    since_ns = max(last_ns, int(state.row["created_ns"] or 0), *starts, 0)
    decided = [t for t in ticks if t["due_ns"] > since_ns and t["outcome"] != "unknown"]
    if all(t["outcome"] == "suspended" for t in decided) and not cron.seen_from_birth:
        decided = []  # what was due before the first look counts, too
    if not since_ns or decided:
        return
    due = due_times(reading, since_ns, as_of_ns - DUE_NS)
    if len(due) < SURE and (not due or not _fits(reading, state.row["last_schedule_ns"])):
        return
    if state.spec.get("suspend") is True:
        yield _suspended(facts, cron, due, as_of_ns)
        return
    claim, why, todo, cause = _why(facts, cron, jobs, due[0])
    last = state.row["last_schedule_ns"]
    yield Case(
        STALLED, cron.target, claim, due[0], as_of_ns,
        f"{_last_start(last)}; {times_due(due)} due since {clock(due[0])} (as of "
        f"{clock(as_of_ns)}, {state.spec.get('schedule')}): {why}",
        severity=Severity.WARNING if cause is not None else None,
        evidence={"due": len(due), "last_schedule": clock(int(last)) if last else None},
        todo=todo, cause=cause, harm=Harm(missed_runs=len(due)),
    )  # fmt: skip


def _ahead(cron: CronJob, last_ns: int, as_of_ns: int, reading: tuple[Schedule, Zone]) -> Case:
    """A CronJob whose last start is said to lie ahead: nothing is due before the time after it.

    Upstream: pkg/controller/cronjob/utils.go (mostRecentScheduleTime).
    """
    schedule, zone = reading
    next_ns = schedule.next_ns(last_ns, zone=zone)
    until = f"until {clock(next_ns)}" if next_ns is not None else "any more"
    patch = json.dumps({"status": {"lastScheduleTime": clock(as_of_ns).replace(" ", "T")}})
    return Case(
        STALLED, cron.target, f"starts nothing {until}: its lastScheduleTime lies ahead",
        as_of_ns, as_of_ns,
        f"lastScheduleTime {clock(last_ns)} is {span(last_ns - as_of_ns)} after the look (as of "
        f"{clock(as_of_ns)}); the controller counts what is due from there, by its own clock",
        severity=Severity.WARNING,
        evidence={"due": 0, "last_schedule": clock(last_ns)},
        todo="See whether the clock of the controller manager's machine is right, and who wrote it "
             "(managedFields). To set it back: kubectl patch cronjob "
             f"{in_kubectl(cron.namespace, cron.name)} --subresource=status --type=merge -p "
             f"{for_shell(patch)}",
    )  # fmt: skip


def _fits(reading: tuple[Schedule, Zone], last_ns: int | None) -> bool:
    """Whether the last start lies where the schedule is read to have a time.

    Where it does not, the schedule was edited since, or the controller has a zone of its own.
    """
    schedule, zone = reading
    return not last_ns or schedule.next_ns(int(last_ns) - 1, zone=zone) == int(last_ns)


def _last_start(last_ns: int | None) -> str:
    return f"last start for {clock(int(last_ns))}" if last_ns else "none was ever started"


def _suspended(facts: Facts, cron: CronJob, due: list[int], as_of_ns: int) -> Case:
    """A suspended CronJob whose times have passed before anybody watched."""
    last = cron.last.row["last_schedule_ns"]
    return Case(
        SUSPENDED, cron.target, "is suspended, and was due", due[0], as_of_ns,
        f"{_last_start(last)}; {counted(len(due), 'time')} due since {clock(due[0])} (as of "
        f"{clock(as_of_ns)}){facts.suspension(cron.uid)}",
        evidence={"ticks": len(due)}, harm=Harm(missed_runs=len(due)),
    )  # fmt: skip


def due_times(reading: tuple[Schedule, Zone], from_ns: int, until_ns: int) -> list[int]:
    """Times of a schedule after one time and up to another (Unix ns), at most `MOST_DUE`."""
    schedule, zone = reading
    times = activations(schedule, from_ns, zone=zone)
    return list(islice(takewhile(lambda at_ns: at_ns <= until_ns, times), MOST_DUE))


def times_due(due: Sequence[int]) -> str:
    """How many times `due_times` found, in words."""
    return f"{'at least ' if len(due) >= MOST_DUE else ''}{counted(len(due), 'time')}"


def _why(facts: Facts, cron: CronJob, jobs: Sequence[Job], first_ns: int) -> _Why:
    """Claim, detail, advice and cause: what holds it by its status, by an Event, else by rules."""
    for found in (_blocked(facts, cron, jobs), _warned(facts, cron), _by_rules(facts, cron)):
        if found is not None:
            return found
    pause = facts.pause_between(first_ns, facts.end_ns)
    if pause is not None:
        return f"starts nothing: {_UNLED}", pause.what, to_lead(pause), LEADER
    why = f"nothing in the record tells why{_short_deadline(cron)}"
    return "has started nothing that was due, and the record does not tell why", why, None, None


def _short_deadline(cron: CronJob) -> str:
    """What is added about a startingDeadlineSeconds that forgives next to no delay."""
    deadline_s = cron.last.spec.get("startingDeadlineSeconds")
    if not isinstance(deadline_s, int) or deadline_s >= _POLL_S:
        return ""
    return f"; a start that is {deadline_s} s late is let go (startingDeadlineSeconds)"


def _blocked(facts: Facts, cron: CronJob, jobs: Sequence[Job]) -> _Why | None:
    """The Job that status.active names, where concurrencyPolicy is Forbid."""
    active = cron.last.row["cron_active"] or ()
    if cron.last.spec.get("concurrencyPolicy") != "Forbid" or not active:
        return None
    if any(not entry["name"] for entry in active):
        return (
            "starts nothing: its status.active has an entry without a name (Forbid)",
            "the controller can look up no such Job",
            "Take the entry out: kubectl edit cronjob NAME --subresource=status.",
            None,
        )
    by_uid = {job.uid: job for job in jobs}
    for entry in active:
        job = by_uid.get(entry["uid"])
        if job is None or job.ended_ns is not None:
            continue
        claim = f"starts nothing: {job.name} has not ended (concurrencyPolicy Forbid)"
        found = job_waits(facts, job)
        if found is not None:
            return claim, f"{job.name}: {found.claim}", advice_of(found), found.rule
        age = span(facts.as_of(cron.namespace, "jobs") - job.created_ns)
        return claim, f"{job.name} runs for {age}", hang_advice(job), None
    return None


def job_waits(facts: Facts, job: Job) -> Case | None:
    """What holds a Job that has not ended, where that is known."""
    if job.ended_ns is not None or job.gone_ns is not None:
        return None
    if job.managed and (found := unpulled(job)) is not None:
        return unpulled_case(facts, job, found, facts.end_ns)
    if job.managed and refused_to_the_end(facts, job):
        return refused_case(facts, job, facts.end_ns)
    return holds(facts, job)


def hang_advice(job: Job) -> str:
    """What to do about a run that holds up others, by what its spec has already."""
    look = f"Look why it hangs: kubectl describe job {in_kubectl(job.namespace, job.name)}."
    if isinstance(job.spec.get("activeDeadlineSeconds"), int):
        return f"{look} Its activeDeadlineSeconds ends it in the end."
    return f"{look} An activeDeadlineSeconds in the CronJob's jobTemplate would end such a run."


def _warned(facts: Facts, cron: CronJob) -> _Why | None:
    """What the newest Event of type Warning about the CronJob says."""
    since_ns = int(cron.last.row["last_schedule_ns"] or 0)
    found = [
        e for e in facts.cron_warnings.get(cron.uid, ())
        if e.last_ns >= since_ns and e.row["reason"] not in _BESIDE
    ]  # fmt: skip
    if not found:
        return None
    found = [e for e in found if e.row["reason"] != _MANY_MISSED] or found
    event = max(found, key=lambda e: e.last_ns)
    return _of_event(event)


def _of_event(event: State) -> _Why:
    return of_warning(str(event.row["reason"]), str(event.row["message"] or ""))


def of_warning(reason: str, message: str) -> _Why:
    """Claim, detail, advice and cause by an Event of type Warning about a CronJob."""
    detail = f"{reason}: {shortened(message)}"
    if reason == "FailedCreate":
        refusal = refusal_of(message)
        claim = f"starts nothing: its Jobs are refused ({refusal.value})"
        return claim, detail, refusal_advice(message), None
    if "too many missed start time" in message.lower() and reason == "FailedNeedsStart":
        return (
            "never starts again: more than 100 starts were missed",
            detail,
            (
                "Set startingDeadlineSeconds (above the interval of the schedule): then only the "
                "times within it are counted."
            ),
            None,
        )
    if reason == "UnknownTimeZone":  # not TK316: by the data here there is such a zone
        return "starts nothing: its controller does not know its time zone", detail, _ZONE, None
    if reason == "MissSchedule":
        claim = "misses starts: they came later than startingDeadlineSeconds allows"
        return claim, detail, _LATE, None
    if reason == _MANY_MISSED:
        return (
            "has started nothing that was due, and more than 100 starts were missed",
            detail,
            (
                "Since 1.21 the newest missed start is made all the same, whatever their number: "
                f"{_LEASE[0].lower()}{_LEASE[1:]}"
            ),
            None,
        )
    return f"starts nothing: its controller says {reason}", detail, None, None


def _by_rules(facts: Facts, cron: CronJob) -> _Why | None:
    """What the rules of the release make of its own spec."""
    deadline_s = cron.last.spec.get("startingDeadlineSeconds")
    if facts.release.polls_cronjobs and isinstance(deadline_s, int) and deadline_s < _POLL_S:
        return (
            f"misses starts: startingDeadlineSeconds {deadline_s} is shorter than a poll",
            f"its controller looks every {_POLL_S} s, and drops what is older",
            f"Raise startingDeadlineSeconds well above {_POLL_S}.",
            None,
        )
    return None
