"""TK3xx: CronJobs: what was due and was not started, or was started for another time."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from msgspec.structs import replace

from tracekit.answers.evidence import Evidence
from tracekit.answers.findings import cron_overlaps, cron_runs, cron_stalls, refused_jobs
from tracekit.answers.findings.advice import advice_of
from tracekit.answers.findings.cron_clocks import CLOCK_RULES, clock_changes
from tracekit.answers.findings.cron_jumps import TOO_MANY_MISSED, missed_many, set_back
from tracekit.answers.findings.cron_overlaps import over_ns
from tracekit.answers.findings.cron_runs import STALE_ACTIVE, stale_active, starved
from tracekit.answers.findings.cron_stalls import (
    SUSPENDED,
    hang_advice,
    job_waits,
    read_schedule,
    stalled,
    unreadable,
)
from tracekit.answers.findings.cron_successes import UNSUCCESSFUL, unsuccessful
from tracekit.answers.findings.leaders import LEADER
from tracekit.answers.harm import Harm
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.refusals import ADVICE, Refusal, refusal_of
from tracekit.answers.trace_model import CronJob, Facts, Job, Row, State
from tracekit.answers.words import clock, counted, named, shortened
from tracekit.base.cron import CronSpecError, Generation, Schedule, activations
from tracekit.base.cron.schedule import EverySchedule, SpecSchedule
from tracekit.base.cron.zones import UnknownZoneError, Zone
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339
from tracekit.check.diff import cron_ticks

INSTANTIATED = "cronjob.kubernetes.io/instantiate"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
#: A start so long after it was due is late (the polling controller looks every 10 s).
LATE_NS = 15 * NS_PER_S
#: A failed Job that goes so soon after its end leaves nobody the time to read its logs.
EVIDENCE_NS = 300 * NS_PER_S
_COMPARED = 40  # activations by which two readings of a schedule are compared
_MINUTE_NS = 60 * NS_PER_S
#: A Job comes within so long after the timer that woke its controller.
_TIMER_NS = 5 * NS_PER_S
#: Minutes since 1970; seconds, as the polling controller had it.
_SLOT = re.compile(r"[0-9]{8}|[0-9]{10}", re.ASCII)
_SECONDS_FROM = 1_000_000_000

NO_LEADER = Rule(
    "TK301", "due while nobody led, and never started", Severity.ERROR,
    "A time of the schedule without a Job falls into a pause of the controller manager's Lease. "
    "The next leader drops what is older than startingDeadlineSeconds, and tells nobody.",
    "A Job that the record's scope leaves out (another namespace, a label selector).",
    "Raise startingDeadlineSeconds above the longest pause that you expect, or start by hand: "
    "kubectl create job --from=cronjob/NAME.",
    101148, rank=10,
)  # fmt: skip
DEADLINE = Rule(
    "TK303", "not started within startingDeadlineSeconds", Severity.ERROR,
    "A time of the schedule without a Job, of a CronJob with a startingDeadlineSeconds, while "
    "somebody led and nothing else held it. Not of schedules that can never be due (TK308).",
    "A Job that the record's scope leaves out.",
    "Raise startingDeadlineSeconds; see TK207 for a controller that is behind.",
    101148, rank=15,
)  # fmt: skip
FORBID = Rule(
    "TK304", "skipped, as the run before hung", Severity.WARNING,
    "concurrencyPolicy is Forbid and a Job of the CronJob was unfinished at two due times or more "
    "(one is only info).",
    "A run that is longer than the schedule's interval by intent.",
    "Give the Job an activeDeadlineSeconds; look why it hangs with `tracekit explain`.",
    rank=16,
)  # fmt: skip
NOT_STARTED = Rule(
    "TK306", "due and not started", Severity.ERROR,
    "A time of the schedule without a Job that nothing above explains, or that gave way to a later "
    "one: the controller starts only the most recent time that it has missed. Or an `@every` below "
    "a minute whose Job's name, which counts minutes, was taken by the run before.",
    "A Job that the record's scope leaves out; a Job of the same name that was there already.",
    "`tracekit explain TRACE {object}` tells each tick; see TK207 for a controller that is behind.",
    rank=17,
)  # fmt: skip
LATE = Rule(
    "TK307", "started late", Severity.WARNING,
    "The Job was created 15 s or more after its scheduled time, without an edit in between "
    "(TK310). Only info where concurrencyPolicy Forbid made it wait for the run before.",
    "A CronJob that was suspended, or whose schedule was edited, before the record began.",
    "If the controller was behind, see TK207.",
    rank=30,
)  # fmt: skip
NEVER_DUE = Rule(
    "TK308", "a schedule that can never start a Job", Severity.ERROR,
    "The schedule has no time in the next five years; or it is `@every D` with a "
    "startingDeadlineSeconds below D: such a schedule counts from the beginning of the deadline's "
    "window, so its next time always lies ahead; or startingDeadlineSeconds is 0, a window that "
    "no time lies in.",
    "None known.",
    "Write a date that comes, and a startingDeadlineSeconds above 0; for `@every D` write five "
    "fields, or raise startingDeadlineSeconds above D.",
    rank=14,
)  # fmt: skip
READ_DIFFERENTLY = Rule(
    "TK309", "a schedule that other readers of cron read differently", Severity.INFO,
    "Day of month and day of week are both restricted: Kubernetes runs when *either* fits, others "
    "when both do; or the cron library of the other Kubernetes generation (up to 1.21, from 1.22) "
    "gives other times. Decided by computing the next 40 times by each reading.",
    "A schedule that is meant as Kubernetes reads it.",
    "`tracekit cron next SCHEDULE` lists the times that count.",
    rank=61,
)  # fmt: skip
RETROACTIVE = Rule(
    "TK310", "a start for a time before the edit that allowed it", Severity.WARNING,
    "The Job's scheduled time lies before the change of schedule, timeZone or suspend that was "
    "made last before the Job was created.",
    "None known.",
    "Set startingDeadlineSeconds to a few seconds before an edit or a resume, to start nothing "
    "for the past.",
    rank=31,
)  # fmt: skip
EVIDENCE_GONE = Rule(
    "TK311", "the history limit deletes the evidence", Severity.WARNING,
    "A failed Job of a CronJob went within 5 minutes of its end, while failedJobsHistoryLimit was "
    "so low that it allows no other.",
    "Somebody who deletes failed Jobs by hand within minutes, with such a limit.",
    "Raise failedJobsHistoryLimit, or keep logs elsewhere: with the Job its pods and logs go.",
    rank=32,
)  # fmt: skip
RULES = (
    NO_LEADER, TOO_MANY_MISSED, DEADLINE, FORBID, NOT_STARTED, LATE, NEVER_DUE,
    READ_DIFFERENTLY, RETROACTIVE, EVIDENCE_GONE, *cron_runs.RULES, *CLOCK_RULES,
    *cron_stalls.RULES, *refused_jobs.RULES, *cron_overlaps.RULES, UNSUCCESSFUL,
)  # fmt: skip


def find(facts: Facts) -> Iterator[Case]:
    """Every case of this family."""
    ticks: defaultdict[str, list[Row]] = defaultdict(list)
    for tick in facts.ticks:
        ticks[tick["cronjob_uid"]].append(tick)
    jobs: defaultdict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in facts.jobs:
        owner = job.first.row["owner_uid"]
        if job.cronjob and owner:
            jobs[job.namespace, owner].append(job)
    for cron in facts.cronjobs:
        yield from _of_one(facts, cron, jobs[cron.namespace, cron.uid], ticks[cron.uid])
    yield from refused_jobs.of_parents(facts)


def _of_one(facts: Facts, cron: CronJob, mine: list[Job], ticks: list[Row]) -> Iterator[Case]:
    never = list(_never_due(facts, cron))
    yield from never
    refused = refused_jobs.refused_jobs(facts, cron, mine)
    if refused is not None:
        yield refused
    reading = reading_of(cron.last, facts.generation)
    # `@every` counts from the last start: its later times are not those that the view dates.
    dated = reading is not None and not isinstance(reading[0], EverySchedule) and not never
    held = stale_active(facts, cron, mine)
    if held is not None:
        yield _with_unseen(held, cron, ticks)
    stalls: list[Case] = []
    if held is None and reading is not None and dated:
        stalls = list(stalled(facts, cron, mine, ticks, reading, scheduled_ns))
        yield from (_of_refused(case, refused) for case in stalls)
        if not stalls:
            yield from unsuccessful(facts, cron, mine, reading)
    if reading is None:
        yield from unreadable(facts, cron)
    if not dated and not never:
        yield from _same_minute(cron, ticks, reading)
    for case in _ticks(facts, cron, ticks, dated=dated):
        if any(stall.rule is case.rule for stall in stalls):
            continue  # that one counts from the last start on
        behind = _behind_its_job(facts, case, mine, blocked=held is not None)
        yield _of_refused(set_back(facts, cron, behind), refused)
    yield from starved(cron, mine)
    crowd = cron_overlaps.piled_up(facts, cron, mine)
    if crowd is not None:
        yield crowd
    yield from clock_changes(facts, cron, ticks, reading)
    yield from (set_back(facts, cron, case) for case in _jumps(facts, cron, mine))
    yield from _starts(facts, cron, mine)
    yield from _differently(facts, cron)
    yield from _evidence(cron, mine)


def _of_refused(case: Case, refused: Case | None) -> Case:
    """A time that was not started as a consequence of Jobs that are refused."""
    if refused is None or case.rule not in (NOT_STARTED, DEADLINE, cron_stalls.STALLED):
        return case
    return replace(
        case, cause=refused.rule, todo=advice_of(refused), severity=Severity.WARNING, thread=None
    )


def _behind_its_job(facts: Facts, case: Case, jobs: Sequence[Job], *, blocked: bool) -> Case:
    """A skipped time with what holds the Job that it waits for, or advice by that Job's spec."""
    if blocked and case.rule in (DEADLINE, NOT_STARTED, FORBID):
        return replace(case, cause=STALE_ACTIVE, severity=Severity.WARNING)
    if case.rule is not FORBID:
        return case
    unfinished = [job for job in jobs if job.ended_ns is None and job.gone_ns is None]
    held = next((found for job in unfinished if (found := job_waits(facts, job))), None)
    if held is not None:
        return replace(case, cause=held.rule, todo=advice_of(held))
    return replace(case, todo=hang_advice(unfinished[0])) if unfinished else case


def _with_unseen(held: Case, cron: CronJob, ticks: Sequence[Row]) -> Case:
    """The case of a CronJob that starts nothing, with the times after the last look at its Jobs."""
    due = [t for t in ticks if t["policy"] == cron_ticks.UNSEEN and t["due_ns"] > held.from_ns]
    if not due or cron.last.spec.get("concurrencyPolicy") != "Forbid":
        return held
    since = f"; {counted(len(due), 'time')} due since, which it does not start while that stands"
    return replace(held, detail=held.detail + since)


#### Ticks that were not started ####


def _ticks(facts: Facts, cron: CronJob, ticks: Sequence[Row], *, dated: bool) -> Iterator[Case]:
    groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for tick in ticks:
        groups[tick["outcome"], tick["policy"] or ""].append(tick)
    for (outcome, policy), found in groups.items():
        case = None
        if outcome == "missed" and dated:
            case = _refused(facts, cron, policy, found) or _missed(cron, policy, found)
        elif outcome == "unknown":  # nobody saw the Jobs, but an audit log has the answers
            answered = [tick for tick in found if _calls(facts, cron, [tick])]
            case = _refused(facts, cron, "", answered) if answered else None
        elif outcome == "skipped":
            case = _skipped(cron, found)
        elif outcome == "suspended":
            case = _tick_case(SUSPENDED, cron, found, "was due while it was suspended")
            case = replace(case, detail=case.detail + facts.suspension(cron.uid))
        if case is not None:
            yield case


#: A Job is asked for within so long after its time. A choice: the shortest schedule is a minute, so
#: that a refusal later than that may be of the next time; it only says why a Job did not come.
_ASKED_NS = 60 * NS_PER_S


def _refused(facts: Facts, cron: CronJob, policy: str, found: list[Row]) -> Case | None:
    """Due times for which the API server took no Job: by an audit log, or as the namespace goes."""
    if policy not in ("", "startingDeadlineSeconds"):
        return None
    calls = _calls(facts, cron, found)
    going_ns = facts.terminating.get(cron.namespace)
    if calls:
        message = str(calls[-1]["message"] or calls[-1]["reason"] or "")
        refusal, evidence = refusal_of(message), Evidence.AUDIT
    elif going_ns is not None and all(tick["due_ns"] >= going_ns for tick in found):
        message = f"its deletion was asked for at {clock(going_ns)}"
        refusal, evidence = Refusal.NAMESPACE_TERMINATING, Evidence.STATUS
    else:
        return None
    case = _tick_case(NOT_STARTED, cron, found, f"was due, and no Job can come: {refusal.value}")
    return replace(
        case,
        detail=f"{_when(found)}: {shortened(message)}",
        evidence={**case.evidence, "message": message, "from": evidence.value},
        severity=Severity.WARNING if refusal is Refusal.NAMESPACE_TERMINATING else None,
        todo=ADVICE.get(refusal),
    )


def _calls(facts: Facts, cron: CronJob, found: Sequence[Row]) -> list[Row]:
    """Creations of the CronJob's Jobs that were refused soon after some due times."""
    return [
        call
        for call in facts.refused_creations.get(("jobs", cron.namespace, cron.name), ())
        if any(0 <= call["recv_ns"] - tick["due_ns"] <= _ASKED_NS for tick in found)
    ]


def _missed(cron: CronJob, policy: str, found: list[Row]) -> Case:
    rule, claim = _BY_POLICY.get(policy, (NOT_STARTED, f"was due and not started ({policy})"))
    case = _tick_case(rule, cron, found, claim)
    if rule is NO_LEADER:
        return replace(case, cause=LEADER, todo=NO_LEADER.todo, thread=NO_LEADER.thread)
    if policy == "most-recent-only":
        return replace(case, severity=Severity.WARNING)
    return replace(case, todo=_OF_NAMESAKES) if policy == "name-taken" else case


#: What is told of times that were not started, by what decided.
_BY_POLICY = {
    "no-leader": (
        NO_LEADER, "was due while no controller manager led (TK208), and was never started"
    ),
    "too-many-missed": (
        TOO_MANY_MISSED, "never starts again: more than 100 starts were missed"
    ),
    "startingDeadlineSeconds": (DEADLINE, "was not started within startingDeadlineSeconds"),
    "most-recent-only": (NOT_STARTED, "was due and gave way to a later start"),
    cron_ticks.NEVER_DUE: (
        NEVER_DUE, "could start nothing with the schedule or deadline that it had then"
    ),
    "name-taken": (NOT_STARTED, "was due and not started: a Job of that name was there already"),
    "": (NOT_STARTED, "was due and not started, and the record does not tell why"),
}  # fmt: skip
_OF_NAMESAKES = (
    "See who made the Job that is named (`tracekit who TRACE -n {namespace}`), and let "
    "nobody else make Jobs called CRONJOB-NUMBER; what was missed is started by hand: kubectl "
    "create job --from=cronjob/NAME."
)


def _same_minute(
    cron: CronJob, ticks: Sequence[Row], reading: tuple[Schedule, Zone] | None
) -> Iterator[Case]:
    """Times of an `@every` below a minute for which the name of a Job was taken by its own."""
    schedule = None if reading is None else reading[0]
    if not isinstance(schedule, EverySchedule) or schedule.delay_s * NS_PER_S >= _MINUTE_NS:
        return
    found = [t for t in ticks if (t["outcome"], t["policy"]) == ("missed", "name-taken")]
    if not found:
        return
    claim = "is due more than once a minute, and its Jobs' names count minutes: a start is refused"
    case = _tick_case(NOT_STARTED, cron, found, claim)
    yield replace(
        case,
        detail=f"{case.detail}; the API server refuses a second one (409, AlreadyExists)",
        severity=Severity.WARNING,
        todo="Write a schedule of a minute or more, and let a Job that runs on do the work of "
        "shorter intervals.",
    )


def _skipped(cron: CronJob, found: list[Row]) -> Case:
    case = _tick_case(FORBID, cron, found, "was skipped as the run before had not ended (Forbid)")
    return case if len(found) > 1 else replace(case, severity=Severity.INFO)


def _when(found: Sequence[Row]) -> str:
    """The times that were due, and by which schedule."""
    first, last = found[0], found[-1]
    when = clock(first["due_ns"])
    if len(found) > 1:
        when = f"{len(found)} times from {when} to {clock(last['due_ns'])}"
    return f"{when} ({first['schedule']})"


def _tick_case(rule: Rule, cron: CronJob, found: list[Row], claim: str) -> Case:
    first, last = found[0], found[-1]
    return Case(
        rule,
        cron.target,
        claim,
        first["due_ns"],
        last["due_ns"],
        f"{_when(found)}: {first['why']}",
        evidence={"ticks": len(found), "due": [clock(t["due_ns"]) for t in found[:20]]},
        harm=Harm(missed_runs=len(found)),
    )


def _jumps(facts: Facts, cron: CronJob, jobs: Sequence[Job]) -> Iterator[Case]:
    """Starts before which more than 100 times were due since the run before."""
    for job in sorted(jobs, key=lambda j: j.first.rv):
        slot_ns = scheduled_ns(job)
        before = cron.before(job.first.rv)
        if slot_ns is None or before is None or not job.seen_from_birth:
            continue
        last_ns = before.row["last_schedule_ns"]
        reading = reading_of(before, facts.generation)
        if not last_ns or reading is None or isinstance(reading[0], EverySchedule):
            continue
        yield from missed_many(facts, cron, job, before, reading, slot_ns)


#### Starts at another time ####


def scheduled_ns(job: Job) -> int | None:
    """The time that a CronJob's Job was started for: its annotation, else the end of its name.

    None of one that `kubectl create job --from` made, or of a name that the controller gives none.
    """
    if job.first.annotations.get(INSTANTIATED) == "manual":
        return None
    text = job.first.annotations.get(SCHEDULED_AT)
    if isinstance(text, str):
        return parse_rfc3339(text)
    owner, _, suffix = job.name.rpartition("-")
    if owner != job.cronjob or not _SLOT.fullmatch(suffix):
        return None
    number = int(suffix)
    return number * (NS_PER_S if number >= _SECONDS_FROM else _MINUTE_NS)


def _starts(facts: Facts, cron: CronJob, jobs: Sequence[Job]) -> Iterator[Case]:
    edits = [
        now
        for before, now in pairwise(cron.states)
        if not now.gone
        and any(before.spec.get(n) != now.spec.get(n) for n in ("schedule", "timeZone", "suspend"))
    ]
    late: list[tuple[Job, int]] = []
    early: list[tuple[Job, int, State]] = []
    for job in jobs:
        slot_ns = scheduled_ns(job)
        if slot_ns is None:
            continue
        place = bisect_right(edits, job.first.rv - 1, key=lambda s: s.rv)
        edit = edits[place - 1] if place else None
        if edit is not None and job.seen_from_birth and slot_ns < edit.at_ns - NS_PER_S:
            early.append((job, slot_ns, edit))
        elif job.created_ns - slot_ns >= LATE_NS:
            late.append((job, slot_ns))
    if early:
        job, slot_ns, edit = early[0]
        yield Case(
            RETROACTIVE,
            cron.target,
            "was started for a time before the edit that allowed it",
            edit.at_ns,
            early[-1][0].first.at_ns,
            f"{job.name} for {clock(slot_ns)}, edited at {clock(edit.at_ns)}"
            + _woken_by(facts, cron, edit, job),
            evidence={"jobs": [j.name for j, _, _ in early]},
        )
    if late:
        yield _late(facts, cron, late, jobs)


def _woken_by(facts: Facts, cron: CronJob, edit: State, job: Job) -> str:
    """What woke the controller when it started that Job: the timer of the schedule before."""
    before = cron.before(edit.rv)
    reading = None if before is None else reading_of(before, facts.generation)
    if reading is None or isinstance(reading[0], EverySchedule):
        return ""
    schedule, zone = reading
    at_ns = job.first.at_ns
    old_ns = schedule.next_ns(at_ns - _TIMER_NS, zone=zone)
    if old_ns is None or old_ns > at_ns:
        return ""
    return f"; the old schedule's timer woke the controller at {clock(old_ns)}"


def _late(facts: Facts, cron: CronJob, late: list[tuple[Job, int]], jobs: Sequence[Job]) -> Case:
    job, slot_ns = max(late, key=lambda found: found[0].created_ns - found[1])
    delay_ns = job.created_ns - slot_ns
    before = cron.before(job.first.rv) or cron.first
    hung = before.spec.get("concurrencyPolicy") == "Forbid" and any(
        other.first.rv < job.first.rv and slot_ns < over_ns(other, facts.end_ns) for other in jobs
    )
    why, cause = "", None
    if facts.pause_between(slot_ns, job.created_ns) is not None:
        why, cause = ", as nobody led then (TK208)", LEADER
    elif hung:
        why = ", as the run before had not ended (Forbid)"
    return Case(
        LATE,
        cron.target,
        f"was started late{why}",
        late[0][1],
        late[-1][0].created_ns,
        f"{counted(len(late), 'time')}, the worst {job.name}, {span(delay_ns)} after "
        f"{clock(slot_ns)}",
        severity=Severity.INFO if hung else None,
        evidence={"jobs": [j.name for j, _ in late], "delay_s": round(delay_ns / NS_PER_S, 3)},
        harm=Harm(late=len(late)),
        cause=cause,
    )


#### Schedules ####


def reading_of(state: State, generation: Generation) -> tuple[Schedule, Zone] | None:
    """A CronJob's schedule and zone, None where the library refuses them."""
    text, zone = str(state.spec.get("schedule", "")), state.spec.get("timeZone")
    try:
        return read_schedule(text, zone, generation)
    except (CronSpecError, UnknownZoneError, ValueError):
        return None


def _never_due(facts: Facts, cron: CronJob) -> Iterator[Case]:
    state = cron.last
    reading = reading_of(state, facts.generation)
    if reading is None or state.spec.get("suspend") is True:
        return
    schedule, zone = reading
    text = state.spec.get("schedule")
    deadline_s = state.spec.get("startingDeadlineSeconds")
    claim = None
    if schedule.next_ns(cron.first.at_ns, zone=zone) is None:
        claim = f"its schedule {text!r} has no time in the next five years"
    elif deadline_s == 0:
        claim = "can never start anything: startingDeadlineSeconds is 0"
    elif (
        isinstance(schedule, EverySchedule)
        and isinstance(deadline_s, int)
        and deadline_s < schedule.delay_s
    ):
        claim = (
            f"its schedule {text!r} can never become due with startingDeadlineSeconds {deadline_s}"
        )
    if claim is not None:
        yield Case(
            NEVER_DUE,
            cron.target,
            claim,
            cron.first.at_ns,
            cron.last.at_ns,
            f"last revision seen at {clock(cron.last.at_ns)}, rv {cron.last.rv}",
            evidence={"schedule": text, "startingDeadlineSeconds": deadline_s},
        )


def _differently(facts: Facts, cron: CronJob) -> Iterator[Case]:
    state = cron.last
    reading = reading_of(state, facts.generation)
    if reading is None:
        return
    schedule, zone = reading
    other = Generation.GEN1 if facts.generation is Generation.GEN3 else Generation.GEN3
    theirs = reading_of(state, other)
    start_ns = cron.first.at_ns
    ours = _next(schedule, zone, start_ns)
    claim = None
    if theirs is not None and _next(*theirs, start_ns) != ours:
        claim = f"its schedule {state.spec.get('schedule')!r} fires at other times in " + (
            "Kubernetes up to 1.21" if other is Generation.GEN1 else "Kubernetes from 1.22 on"
        )
        against = _next(*theirs, start_ns)
    elif isinstance(schedule, SpecSchedule) and not schedule.any_day_star:
        against = _next(replace(schedule, any_day_star=True), zone, start_ns)
        if against != ours:
            claim = (
                f"its schedule {state.spec.get('schedule')!r} fires when day of month or day of "
                "week fits; other readers of cron want both"
            )
    if claim is None:
        return
    only = _only_one_has(ours, against)
    yield Case(
        READ_DIFFERENTLY,
        cron.target,
        claim,
        cron.first.at_ns,
        cron.last.at_ns,
        f"times that only one of them has: {named([clock(at) for at in only[:3]])}",
        evidence={"schedule": state.spec.get("schedule"), "only_one": [clock(a) for a in only[:3]]},
    )


def _only_one_has(ours: Sequence[int], theirs: Sequence[int]) -> list[int]:
    """Times of one reading and not of the other, as far as both were looked at."""
    whole = [times[-1] for times in (ours, theirs) if len(times) == _COMPARED]
    until_ns = min(whole, default=max((*ours, *theirs)))
    near = [[at for at in times if at <= until_ns] for times in (ours, theirs)]
    mine, other = near
    return [at for at in mine if at not in other] or [at for at in other if at not in mine]


def _next(schedule: Schedule, zone: Zone, from_ns: int) -> list[int]:
    return list(islice(activations(schedule, from_ns, zone=zone), _COMPARED))


#### What is left of failures ####


def _evidence(cron: CronJob, jobs: Sequence[Job]) -> Iterator[Case]:
    lost = []
    for job in jobs:
        failed_ns, gone_ns = job.ended_ns, job.deletion_ns
        if job.failure is None or failed_ns is None or gone_ns is None:
            continue
        state = cron.before(job.last.rv)
        limit = 1 if state is None else state.spec.get("failedJobsHistoryLimit", 1)
        if "ttlSecondsAfterFinished" in job.spec or not isinstance(limit, int) or limit > 0:
            continue
        if gone_ns - failed_ns <= EVIDENCE_NS:
            lost.append((job, failed_ns, gone_ns))
    if lost:
        job, failed_ns, gone_ns = lost[0]
        yield Case(
            EVIDENCE_GONE,
            cron.target,
            "failed Jobs are deleted at once, with their pods and logs (failedJobsHistoryLimit 0)",
            lost[0][1],
            lost[-1][2],
            f"{counted(len(lost), 'Job')}; {job.name} went {span(gone_ns - failed_ns)} after it "
            f"failed at {clock(failed_ns)}",
            evidence={"jobs": [j.name for j, _, _ in lost]},
        )
