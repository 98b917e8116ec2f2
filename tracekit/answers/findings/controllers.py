"""TK2xx: controllers that kept to their rules and did harm: old caches, backlog, lost leaders."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec.structs import replace

from tracekit.answers.endings import job_over_ns
from tracekit.answers.findings.backoff_statuses import REFUSED_IN_BACKOFF, STALE, without_news
from tracekit.answers.findings.duplicates import DUPLICATE, duplicates
from tracekit.answers.findings.leaders import LEADER, Leaders
from tracekit.answers.findings.living import Living
from tracekit.answers.findings.refused_pods import refused_to_the_end
from tracekit.answers.harm import Harm
from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.parts import RuleGroup
from tracekit.answers.refusals import refusal_advice
from tracekit.answers.trace_model import TRACKING, CronJob, Facts, Job, Pod, State
from tracekit.answers.words import (
    NAMED_MAX,
    clock,
    counted,
    named,
    off,
    several_in_kubectl,
    shortened,
)
from tracekit.base.durations import span
from tracekit.base.kube import job_status
from tracekit.base.kube.job_status import Shape
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.verdict import Verdict
from tracekit.versions.release_bugs import Bug, KnownBug
from tracekit.versions.throttle import DEFAULT_THROTTLE

#: A cache that old is stale; the write that needed it is told.
STALE_NS = 5 * NS_PER_S
#: A tracking finalizer that stays so long after pod and Job have ended is left.
LEFT_NS = 10 * NS_PER_S
#: So many Jobs that wait at a time, each longer than the first bound, for so long, are a backlog.
WAIT_NS = 2 * NS_PER_S
BACKLOG_JOBS = 5
BACKLOG_NS = 5 * NS_PER_S
#: Refused creations, or writes that change nothing, from which on it is a loop.
LOOPS = 5
LOOP_NS = 60 * NS_PER_S
_FINGERPRINT = (
    *(field.name for field in job_status.FIELDS if field.shape is not Shape.UIDS),
    "spec", "conditions", "labels", "annotations", "finalizers", "last_schedule_ns", "deleted_ns",
)  # fmt: skip

COUNTED_TWICE = Rule(
    "TK203", "a status that counts more pods than ended", Severity.WARNING,
    "A status of the controller says more `succeeded` than pods of the Job were seen in phase "
    "Succeeded by that revision. Only of Jobs whose creation was recorded, without a gap in "
    "between.",
    "A pod whose last revision before its deletion the API server never sent.",
    "Check whether the work was done as often as the status says; run the Job again if not.",
    105200, rank=12,
)  # fmt: skip
FINALIZER_LEFT = Rule(
    "TK204", "a tracking finalizer that was left on a pod", Severity.WARNING,
    "A pod that had ended kept the finalizer batch.kubernetes.io/job-tracking for 10 s or more "
    "after its Job had ended or was gone; or, where nobody looked at Jobs, for 5 minutes or more "
    "after its deletionTimestamp.",
    "A controller manager that does not lead: then the finalizer goes when the next one does.",
    f"Take the finalizer off by hand: kubectl patch pod NAME {off(TRACKING)}, once the Job is "
    "gone.",
    109485, rank=13,
)  # fmt: skip
HOT_LOOP = Rule(
    "TK205", "the same write again and again", Severity.WARNING,
    "The API server refused five creations or more (Events FailedCreate) of a Job that had fewer "
    "pods than it wants, and gained none meanwhile but did later (else it is TK405); or five "
    "revisions of an object within a minute differ in nothing but managedFields.",
    "A quota that is meant to hold Jobs back.",
    "See what the Event's message names, or who writes the object.",
    rank=25,
)  # fmt: skip
BACKWARDS = Rule(
    "TK206", "a status that went backwards", Severity.WARNING,
    "`succeeded` or `failed` fell, or Complete or Failed was taken back, between two revisions of "
    "a Job whose completions stayed; or a CronJob's lastScheduleTime fell.",
    "Up to 1.21 `failed` falls by the rules when failed pods are deleted (said with it).",
    "The writer is named: if it is not the controller manager, stop it from writing the status.",
    rank=20,
)  # fmt: skip
BACKLOG = Rule(
    "TK207", "a controller with a backlog", Severity.WARNING,
    "Five Jobs or more waited at a time, for 5 s or more: created and without a first status, or "
    "with an ended pod that was not counted, each for longer than 2 s, while a controller manager "
    "led. The writes per second meanwhile are told.",
    "A burst of Jobs that is meant to be worked off slowly.",
    "Raise --kube-api-qps and --kube-api-burst of the controller manager (20 and 30 by default), "
    'then --concurrent-job-syncs. `tracekit sql TRACE "FROM backlog"` has the curve.',
    rank=35,
)  # fmt: skip
#: From, until, and how many waited at most.
Spells = list[tuple[int, int, int]]
RULES = (
    STALE,
    REFUSED_IN_BACKOFF,
    DUPLICATE,
    COUNTED_TWICE,
    FINALIZER_LEFT,
    HOT_LOOP,
    BACKWARDS,
    BACKLOG,
    LEADER,
)


class Controllers(RuleGroup):
    """The rules of this family."""

    def __init__(self) -> None:
        self._leaders = Leaders()

    def of_part(self, facts: Facts) -> Iterator[Case]:
        """The cases about the objects of a part."""
        yield from _of_objects(facts)
        self._leaders.add(facts)

    def of_whole(self, whole: Facts) -> Iterator[Case]:
        """The backlogs, and the times without a leader."""
        yield from _backlogs(whole)
        yield from self._leaders.cases(whole)


def _of_objects(facts: Facts) -> Iterator[Case]:
    spells = backlog_spells(facts)
    for job in facts.jobs:
        stale = [*_stale_writes(facts, job, spells), *without_news(facts, job)]
        yield from stale
        for case in (*duplicates(facts, job), *_counted_twice(facts, job)):
            yield _of_old_news(case, stale)
        yield from _finalizers(facts, job)
        yield from _refused(facts, job)
    objects: list[Job | CronJob] = [*facts.jobs, *facts.cronjobs]
    for life in objects:
        yield from _repeated(life)
        yield from backwards(facts, life)


#### Old news ####


def _stale_writes(facts: Facts, job: Job, spells: Spells) -> Iterator[Case]:
    if not facts.is_whole:
        return  # whether it was only throttled is not known
    old = [
        j
        for j in facts.judgements.lagged(job.namespace, job.name)
        if j.lag_ns >= STALE_NS
        and j.object.uid in ("", job.uid)
        and not (spells and spells[0][0] - STALE_NS <= j.time_ns <= spells[-1][1] + STALE_NS)
    ]
    if not old:
        return
    worst = max(old, key=lambda j: j.lag_ns)
    yield Case(
        STALE,
        job.target,
        "the controller acted on news that was seconds old",
        min(j.time_ns for j in old),
        max(j.time_ns for j in old),
        f"{counted(len(old), 'write')}, the worst {worst.action} {worst.subject} at "
        f"{clock(worst.time_ns)}: its caches were {span(worst.lag_ns)} old",
        job.cronjob,
        evidence={"writes": len(old), "lag_s": round(worst.lag_ns / NS_PER_S, 3)},
    )


def _of_old_news(case: Case, stale: list[Case]) -> Case:
    """What a controller did wrong by caches that were seconds old, as a consequence of that."""
    known = any(found.rule is STALE for found in stale)
    if not known or case.evidence.get("lag_s", 0) < 1:
        return case
    return replace(case, cause=STALE, todo=case.todo or case.rule.todo, thread=case.rule.thread)


def _counted_twice(facts: Facts, job: Job) -> Iterator[Case]:
    if not job.seen_from_birth or not job.managed or not facts.streams.get("pods"):
        return
    if facts.blind(job.namespace, job.first.at_ns, job.last.at_ns):
        return
    ends = [s.rv for p in job.pods if (s := p.first_at(_succeeded)) is not None]
    ends.sort()
    for state in job.states:
        ended = bisect_left(ends, state.rv)
        if state.gone or state.number("succeeded") <= ended:
            continue
        verdict = facts.verdict(job, "status-update", "status", state.rv)
        if verdict is not None and verdict.verdict not in (Verdict.MATCH, Verdict.MATCH_LAGGED):
            return
        lag_ns = 0 if verdict is None else verdict.lag_ns
        old = f"; the controller's caches were {span(lag_ns)} old" if lag_ns >= NS_PER_S else ""
        yield Case(
            COUNTED_TWICE,
            job.target,
            "a pod was counted twice: the status says more successes than pods had succeeded",
            state.at_ns,
            state.at_ns,
            f"succeeded {state.number('succeeded')} at {clock(state.at_ns)}, but "
            f"{counted(ended, 'pod')} had{old}",
            job.cronjob,
            evidence={
                "succeeded": state.number("succeeded"),
                "pods_succeeded": ended,
                "lag_s": round(lag_ns / NS_PER_S, 3),
            },
        )
        return


def _succeeded(state: State) -> bool:
    return bool(state.row["phase"] == "Succeeded")


def _finalizers(facts: Facts, job: Job) -> Iterator[Case]:
    over_ns = min((ns for ns in (job_over_ns(job), job.gone_ns) if ns is not None), default=None)
    if over_ns is None:
        return
    left: list[tuple[Pod, int, int]] = []
    for pod in job.pods:
        ended_ns = pod.ended_ns
        if ended_ns is None:
            continue
        freed = pod.first_at(
            lambda s, ended_ns=ended_ns: (
                s.at_ns >= ended_ns and (s.gone or TRACKING not in s.finalizers)
            )
        )
        first_look = pod.end is pod.first and not pod.seen_from_birth
        if first_look and freed is pod.first:
            continue  # when it was freed nobody saw
        from_ns = max(over_ns, pod.over_ns if first_look else ended_ns)
        until_ns = facts.as_of(job.namespace, "pods") if freed is None else freed.at_ns
        if until_ns - facts.led_since(from_ns, until_ns) >= LEFT_NS:
            left.append((pod, from_ns, until_ns))
    if left:
        longest = max(until - since for _, since, until in left)
        bug = _not_tried_again(facts, job)
        known = "; this release does not try again where the API server failed" if bug else ""
        held = [pod for pod, _, _ in left if not pod.last.gone and TRACKING in pod.last.finalizers]
        last_ns = max(until for _, _, until in left)
        free = "" if held else f"; all are free since {clock(last_ns)}"
        yield Case(
            FINALIZER_LEFT,
            job.target,
            "pods were left with the tracking finalizer after the Job was over",
            min(since for _, since, _ in left),
            last_ns,
            f"{counted(len(left), 'pod')} ({named([p.name for p, _, _ in left])}), up to "
            f"{span(longest)}{free}{known}",
            job.cronjob,
            thread=bug.thread if bug else None,
            evidence={"pods": [p.name for p, _, _ in left], "longest_s": round(longest / NS_PER_S)},
            todo=f"{_to_free(job, held)}{f' {bug.remedy}' if bug else ''}",
        )


def _to_free(job: Job, held: list[Pod]) -> str:
    """What to do about the pods that still have the finalizer.

    Where the Job stays it may be held by just these (foreground deletion).
    """
    if not held:
        return "The finalizers are off: nothing of these pods is left to do."
    pods = several_in_kubectl(job.namespace, [pod.name for pod in held])
    rest = len(held) - NAMED_MAX
    more = f" (and {counted(rest, 'more pod')})" if rest > 0 else ""
    command = f"kubectl patch pod {pods} {off(TRACKING, held[0].last.finalizers)}{more}"
    if job.gone_ns is not None:
        return f"Take the finalizer off by hand: {command}."
    return (
        f"The Job has ended and counts no more, so the finalizer can go: {command}. See whether "
        "the controller manager leads, and whether an admission webhook refuses its changes of "
        "pods."
    )


def _not_tried_again(facts: Facts, job: Job) -> KnownBug | None:
    """The bug of a release that leaves an orphan alone after one failure."""
    return None if job.gone_ns is None else facts.bugs.get(Bug.ORPHAN_NOT_TRIED_AGAIN)


#### Loops, and statuses that fall ####


def _refused(facts: Facts, job: Job) -> Iterator[Case]:
    if refused_to_the_end(facts, job):
        return  # TK405 tells it
    events = facts.refusals_of.get(job.uid, [])
    times = sum(max(e.row["count"] or 1, 1) for e in _newest(events))
    if times < LOOPS:
        return
    first = min(e.first_ns for e in events)
    last = max(e.last_ns for e in events)
    gained = [p for p in job.pods if first < p.first.at_ns < last]
    if gained or len(job.pods) >= Living(job).most_wanted(1 << 62):
        return
    yield Case(
        HOT_LOOP,
        job.target,
        "the API server refused its pods again and again",
        first,
        last,
        f"{times} times in {span(last - first)}: {_message(events[-1])}",
        job.cronjob,
        evidence={"refusals": times, "message": events[-1].row["message"]},
        todo=refusal_advice(_message(events[-1])),
    )


def _newest(events: list[State]) -> list[State]:
    """The last state of each Event: repetitions count up in one."""
    return list({e.row["uid"]: e for e in events}.values())


def _message(event: State) -> str:
    return shortened(str(event.row["message"] or ""))


def _repeated(life: Job | CronJob) -> Iterator[Case]:
    if len(life.states) <= LOOPS:
        return
    run: list[State] = []
    for before, now in pairwise(life.states):
        same = not now.gone and now.rv != before.rv and all(
            before.row[name] == now.row[name] for name in _FINGERPRINT
        )  # fmt: skip
        if not same:
            run = []
            continue
        run.append(now)
        if len(run) >= LOOPS and now.at_ns - run[-LOOPS].at_ns <= LOOP_NS:
            yield Case(
                HOT_LOOP,
                life.target,
                "was written again and again without a change",
                run[0].at_ns,
                now.at_ns,
                f"{len(run)} revisions from {clock(run[0].at_ns)} on, the last rv {now.rv}",
                evidence={"revisions": len(run)},
            )
            return


def backwards(facts: Facts, life: Job | CronJob) -> Iterator[Case]:
    """Statuses of one object that fell, with who wrote them."""
    end = life.end if isinstance(life, Job) else None
    for before, now in pairwise(life.states):
        if now.gone:
            continue
        fallen = _fallen(before, now)
        if not fallen and end is not None and before.rv >= end.rv:
            fallen = _taken_back(before, now)
        if not fallen:
            continue
        verdict = facts.verdict(life, "status-update", "status", now.rv)
        writer = _writer(before, now)
        ours = verdict is not None and verdict.verdict in (Verdict.MATCH, Verdict.MATCH_LAGGED)
        by = "by the controller's rules" if ours else f"written by {writer}"
        yield Case(
            BACKWARDS,
            life.target,
            f"its status went backwards, {by}",
            now.at_ns,
            now.at_ns,
            f"{fallen} at {clock(now.at_ns)}, rv {now.rv}",
            life.cronjob if isinstance(life, Job) else None,
            severity=Severity.INFO if ours else None,
            evidence={"change": fallen, "writer": writer, "resource_version": now.rv},
        )


def _fallen(before: State, now: State) -> str:
    if before.row["last_schedule_ns"] and now.row["last_schedule_ns"]:
        old, new = before.row["last_schedule_ns"], now.row["last_schedule_ns"]
        return f"lastScheduleTime {clock(old)} → {clock(new)}" if new < old else ""
    if before.row["stream"] != "jobs":
        return ""
    for name in ("succeeded", "failed"):
        if now.number(name) < before.number(name) and _wants_as_many(before, now):
            return f"{name} {before.number(name)} → {now.number(name)}"
    return ""


def _wants_as_many(before: State, now: State) -> bool:
    return bool(before.spec.get("completions") == now.spec.get("completions"))


def _taken_back(before: State, now: State) -> str:
    if not _wants_as_many(before, now):
        return ""
    for kind in ("Complete", "Failed"):
        if before.true(kind) and not now.true(kind):
            return f"condition {kind} taken back"
    return ""


def _writer(before: State, now: State) -> str:
    known = [tuple(sorted(m.items(), key=str)) for m in before.row["managers"] or ()]
    new = [
        m["manager"]
        for m in now.row["managers"] or ()
        if tuple(sorted(m.items(), key=str)) not in known
    ]
    return ", ".join(dict.fromkeys(str(n) for n in new)) or "nobody whom the record names"


#### Backlog ####


def waits(facts: Facts) -> Iterator[tuple[int, int]]:
    """When a Job had waited for its controller for long, while somebody led, and until when."""
    for from_ns, until_ns in _waits(facts):
        if until_ns - from_ns <= WAIT_NS:
            continue
        since = facts.led_since(from_ns, until_ns)
        if until_ns - since > WAIT_NS:
            yield since + WAIT_NS, until_ns


def _waits(facts: Facts) -> Iterator[tuple[int, int]]:
    """Times in which a Job waited for the controller."""
    for job in facts.jobs:
        if not job.managed:
            continue
        if job.seen_from_birth and not job.first.spec.get("suspend"):
            served = job.first_at(lambda s: s.row["start_ns"] is not None or s.gone)
            as_of_ns = facts.as_of(job.namespace, "jobs")
            yield job.first.at_ns, as_of_ns if served is None else served.at_ns
        over_ns = min((ns for ns in (job.ended_ns, job.deletion_ns) if ns is not None), default=0)
        for pod in job.pods:
            end = pod.end
            if end is None or TRACKING not in end.finalizers or end.row["type"] == "LIST":
                continue
            if over_ns and end.at_ns >= over_ns:
                continue
            freed = pod.first_at(
                lambda s, end=end: s.rv > end.rv and (s.gone or TRACKING not in s.finalizers)
            )
            as_of_ns = facts.as_of(job.namespace, "pods")
            yield end.at_ns, as_of_ns if freed is None else freed.at_ns


def backlog_spells(facts: Facts) -> Spells:
    """Times in which many waited for the Job controller at once, and how many at most."""
    if facts.backlogs is None:
        facts.backlogs = spells_of(waits(facts))
    return facts.backlogs


def spells_of(waited: Iterable[tuple[int, int]]) -> Spells:
    """Times in which many waited at once, out of when each of them did."""
    edges: list[tuple[int, int]] = []
    for from_ns, until_ns in waited:
        edges += [(from_ns, 1), (until_ns, -1)]
    edges.sort()
    waiting = most = 0
    since_ns: int | None = None
    spells: Spells = []
    for at_ns, step in edges:
        waiting += step
        most = max(most, waiting)
        if waiting >= BACKLOG_JOBS and since_ns is None:
            since_ns, most = at_ns, waiting
        elif waiting < BACKLOG_JOBS and since_ns is not None:
            spells.append((since_ns, at_ns, most))
            since_ns = None
    return [s for s in spells if s[1] - s[0] >= BACKLOG_NS]


def _backlogs(facts: Facts) -> Iterator[Case]:
    spells = backlog_spells(facts)
    if not spells:
        return
    from_ns, until_ns = spells[0][0], spells[-1][1]
    took_ns = sum(until - since for since, until, _ in spells)
    ours = facts.judgements.times_of("job")
    writes = sum(bisect_right(ours, u) - bisect_left(ours, s) for s, u, _ in spells)
    rate = writes / (took_ns / NS_PER_S)
    worst = max(most for _, _, most in spells)
    text = f"{clock(from_ns)} to {clock(until_ns)}, {rate:.0f} writes a second meanwhile"
    if (qps := DEFAULT_THROTTLE.qps) / 2 < rate < qps * 1.5:
        allowed = DEFAULT_THROTTLE.tokens(took_ns) + DEFAULT_THROTTLE.burst * len(spells)
        what = "about what" if writes <= allowed else "more than"
        text += f": {what} --kube-api-qps {qps:g}, the default, allows"
    yield Case(
        BACKLOG,
        Target("Controller", "", "the Job controller"),
        f"could not keep up for {span(took_ns)}: up to {worst:,} Jobs and pods waited at a time",
        from_ns,
        until_ns,
        text,
        evidence={"seconds": round(took_ns / NS_PER_S), "most": worst, "writes_per_s": round(rate)},
        harm=Harm(late=worst),
    )


__all__ = ["RULES", "Controllers"]
