"""TK411 and up: Jobs that do not begin or do not end, cost much, or leave something behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from tracekit.answers.endings import Cause, coded, ending_of, is_end_known, let_go, when_over
from tracekit.answers.findings import job_failures, refused_statuses, waiting
from tracekit.answers.findings.by_hand import BY_HAND, started_by_hand
from tracekit.answers.findings.controllers import BACKLOG, Spells, backlog_spells
from tracekit.answers.findings.costliest import COSTLY, Costliest
from tracekit.answers.findings.cut_short import CUT_SHORT, cut_short
from tracekit.answers.findings.deletions import RULES as DELETION_RULES
from tracekit.answers.findings.deletions import held, invalid_owner
from tracekit.answers.findings.evicted_by_kueue import EVICTED, evicted
from tracekit.answers.findings.killed_beside import KILLED_BESIDE, killed_beside
from tracekit.answers.findings.leaders import LEADER, nobody_leads_since, to_lead
from tracekit.answers.findings.left_behind import RECREATED, outlived, recreated
from tracekit.answers.findings.left_running import LEFT_RUNNING, left_running
from tracekit.answers.findings.made_again import MADE_AGAIN, made_again
from tracekit.answers.findings.no_room import NO_ROOM, without_room
from tracekit.answers.findings.one_cause import by_index
from tracekit.answers.findings.overruns import OVERRUN, TTL_LATE, overrun, ttl_overrun
from tracekit.answers.findings.ownerless import OUTLIVED
from tracekit.answers.findings.preempted import PREEMPTED, preempted
from tracekit.answers.findings.suspended import SUSPENDED, suspended
from tracekit.answers.findings.taken_pods import TAKEN, taken_pods, taken_unseen
from tracekit.answers.findings.uncounted import (
    LOOK_AT_ALL,
    UNCOUNTED,
    behind,
    uncounted,
    uncounted_case,
    unfreed,
    unfreed_case,
    waits_for_its_turn,
)
from tracekit.answers.findings.unplaced import (
    BEGIN_NS,
    SET_UP_NS,
    autoscaler,
    claims,
    of_its_scheduler,
    with_autoscaler,
)
from tracekit.answers.findings.vanished import VANISHED, vanished
from tracekit.answers.harm import HOLDS
from tracekit.answers.looks import looked_at
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.parts import RuleGroup
from tracekit.answers.remedies import of_scheduler
from tracekit.answers.trace_model import TRACKING, Facts, Job, Pod
from tracekit.answers.words import (
    clock,
    counted,
    in_kubectl,
    log_of,
    named,
    of_job_in_kubectl,
    shortened,
)
from tracekit.base.durations import span
from tracekit.base.escaping import for_shell
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.versions.release_bugs import Bug, KnownBug

NOT_BEGUN = Rule(
    "TK411", "not begun", Severity.WARNING,
    "30 s or more after its creation, at the end of the record, the Job is not suspended, not "
    "finished, and no pod of it was ever seen beyond Pending. Not where its image (TK404) or "
    "refused pods (TK405) are the cause. Or, beside others that run, a pod of it has had no node "
    "for 5 minutes (PodScheduled is False, Unschedulable). Or its status counts active pods, of "
    "which none was seen; or nobody looked at pods, and it has a startTime and counts none, or "
    "(info) counts active ones and, 10 minutes after that time, none that is ready.",
    "A cluster whose autoscaler takes minutes.",
    "Unschedulable: look at requests, taints, selectors. No pod at all: see TK2xx.",
    rank=16, losses=HOLDS,
)  # fmt: skip
WAITING = Rule(
    "TK414", "in back-off at the end", Severity.INFO,
    "The Job is unfinished at the end of the record, a pod of it failed, and none lives.",
    "None known.",
    "It goes on by itself; each failure doubles the wait, up to the release's longest.",
    rank=63,
    losses=HOLDS,
)  # fmt: skip
INDEX_FAILS = Rule(
    "TK422", "one of its indexes always fails", Severity.WARNING,
    "Of an Indexed Job: two pods or more of one index ended in phase Failed, none in Succeeded, "
    "while another index succeeded.",
    "None known.",
    "Look at that index's input; backoffLimitPerIndex keeps one index from failing the Job.",
    rank=19,
)  # fmt: skip
RULES = (
    *job_failures.RULES, *DELETION_RULES, NOT_BEGUN, UNCOUNTED, SUSPENDED, WAITING, COSTLY,
    INDEX_FAILS, OUTLIVED, OVERRUN, TTL_LATE, RECREATED, MADE_AGAIN, VANISHED, CUT_SHORT,
    PREEMPTED, KILLED_BESIDE, LEFT_RUNNING, TAKEN, NO_ROOM, EVICTED, BY_HAND,
)  # fmt: skip
#: What asks for nothing but the Job.
_OF_EACH: tuple[Callable[[Facts, Job], Iterator[Case]], ...] = (
    cut_short, preempted, killed_beside, evicted, left_running, taken_pods, taken_unseen,
)  # fmt: skip


class Jobs(RuleGroup):
    """The rules of this family."""

    def __init__(self) -> None:
        self._costliest = Costliest()

    def of_part(self, facts: Facts) -> Iterator[Case]:
        """The cases about the objects of a part."""
        yield from _of_jobs(facts)
        yield from self._costliest.of_part(facts)

    def settled(self, cases: list[Case]) -> list[Case]:
        """The same, with the costliest Jobs of all of the trace."""
        return self._costliest.settled(cases)


def _of_jobs(facts: Facts) -> Iterator[Case]:
    """What is told of each Job."""
    explained = {case.target.uid: case for case in job_failures.find(facts)}
    by_name: defaultdict[tuple[str, str], list[Job]] = defaultdict(list)
    spells = backlog_spells(facts)
    for job in facts.jobs:
        by_name[job.namespace, job.name].append(job)
        if job.managed and job.uid not in explained:
            yield from _unfinished(facts, job, spells)
        yield from held(facts, job)
        yield from invalid_owner(facts, job)
        failed, index = explained.get(job.uid), next(_index(facts, job), None)
        if index is not None:
            yield index
        if failed is not None:
            yield by_index(job, failed, index)
        yield from outlived(facts, job)
        yield from overrun(facts, job, spells)
        yield from ttl_overrun(facts, job)
        yield from vanished(facts, job, None if failed is None else failed.rule)
        for cases_of in _OF_EACH:
            yield from cases_of(facts, job)
    for jobs in by_name.values():
        yield from recreated(jobs)
        yield from made_again(jobs)
    yield from started_by_hand(facts)


#### Not begun, not ended ####


def holds(facts: Facts, job: Job) -> Case | None:
    """What is told first of an unfinished Job: what its pods wait for, else what it does itself."""
    found = [*waiting.left_alone(facts, job)] or waiting.waits(facts, job)
    if not found and job.managed:
        found = [*_unfinished(facts, job, backlog_spells(facts))]
    return next(iter(found or held(facts, job)), None)


def _unfinished(facts: Facts, job: Job, spells: Spells) -> Iterator[Case]:
    if job.ended_ns is not None or job.deletion_ns is not None:
        return
    age_ns = facts.as_of(job.namespace, "jobs") - job.created_ns
    as_of_ns = facts.as_of(job.namespace, "jobs", "pods")
    # That nobody leads, or nobody led, is TK208's.
    led_ns = as_of_ns - facts.led_since(job.created_ns, as_of_ns)
    if (
        waiting.waits(facts, job)
        or waiting.uncountable(job)
        or refused_statuses.refused(facts, job)
    ):
        return  # that names what it waits for
    stale = uncounted(facts, job, as_of_ns)
    if stale and not behind(spells, job.created_ns, facts.end_ns):
        yield uncounted_case(facts, job, stale)
        return
    if stuck := unfreed(facts, job, as_of_ns):
        yield unfreed_case(facts, job, stuck)
        return
    live = [p for p in job.pods if p.end is None and p.deletion_ns is None]
    dead = [p for p in job.pods if p.end is not None and p.phase == "Failed" and not let_go(p)]
    if job.spec.get("suspend") is True:
        if age_ns >= BEGIN_NS:
            yield suspended(facts, job)
    elif case := waits_for_its_turn(facts, job, spells) or without_room(facts, job):
        yield case
    elif dead and not live and job.spec.get("parallelism") != 0:
        yield _in_back_off(facts, job, dead)
    elif job.spec.get("parallelism") != 0 and _is_unbegun(job, led_ns, 0 if as_of_ns else age_ns):
        yield _not_begun(facts, job, spells)
    else:
        yield from _unplaced(facts, job, live) if live else _none_ready(facts, job)


def _is_unbegun(job: Job, led_ns: int, age_ns: int) -> bool:
    """Whether it has not begun for too long: with a leader, or since nobody looked at pods."""
    if age_ns >= BEGIN_NS and (_is_new(job) or _has_none(job)):
        return True
    return led_ns >= BEGIN_NS and not any(pod.ran for pod in job.pods)


def _is_new(job: Job) -> bool:
    """Whether no sync has looked at it: it has no startTime.

    An audit log without a single pod may leave the controllers' own requests out.
    """
    return not job.last.row["start_ns"] and job.first.row["actor"] is None


def _has_none(job: Job) -> bool:
    """Whether its status, of a look, says that it began and has had no pod that counts."""
    row = job.last.row
    counts = ("active", "succeeded", "failed", "uncounted_succeeded", "uncounted_failed")
    began = row["start_ns"] and job.first.row["actor"] is None
    return bool(began) and not any(row[name] for name in counts)


def _none_ready(facts: Facts, job: Job) -> Iterator[Case]:
    """A Job that has pods, none of them ready, where nobody looked at pods."""
    row, as_of_ns = job.last.row, facts.as_of(job.namespace, "jobs")
    active, start_ns = job.last.number("active"), int(row["start_ns"] or 0)
    late_ns = as_of_ns - start_ns
    if not active or row["ready"] != 0 or not start_ns or late_ns < SET_UP_NS:
        return  # before 1.24 a status says nothing of that
    if looked_at(facts, "pods"):
        return
    yield replace(
        _plain(
            NOT_BEGUN, facts, job,
            f"has {counted(active, 'active pod')}, and none that is ready",
            f"status.active {active}, ready 0, {span(late_ns)} after its start at "
            f"{clock(start_ns)} (as of {clock(as_of_ns)}); nobody looked at its pods",
        ),
        severity=Severity.INFO,
        todo="See what its pods wait for, or fail by: kubectl get pods "
             f"{of_job_in_kubectl(job.namespace, job.name)}",
    )  # fmt: skip


def _in_back_off(facts: Facts, job: Job, dead: list[Pod]) -> Case:
    """A Job whose failed pods have no successor yet."""
    codes = sorted({p.exit["exit_code"] for p in dead if p.exit is not None and p.ended_alone})
    whys = [f"exit code {named([coded(code) for code in codes])}"] if codes else []
    whys += sorted({e.reason for p in dead if (e := ending_of(p)) and e.cause in _NOT_ITS_OWN})
    text = f" ({'; '.join(whys)})" if whys else ""
    last = max(dead, key=lambda pod: pod.over_ns)
    detail = (
        f"{counted(len(dead), 'failed pod')}{text}, the last {when_over(last)}; "
        f"backoffLimit {job.spec.get('backoffLimit', 6)}"
    )
    ignored = _ignored(job, dead)
    if ignored:
        detail += f"; {ignored} not counted (podFailurePolicy), but each lengthens the wait"
    longest = span(facts.release.longest_backoff_s * NS_PER_S)
    todo = f"It goes on by itself; each failure doubles the wait, up to {longest}."
    claim = "waited in back-off when the record ended"
    if not is_end_known(last):
        claim = "had no pod after failed ones when the record ended"
        todo = f"If it is in back-off, it goes on by itself within {longest}: look again then."
    case = _plain(WAITING, facts, job, claim, detail, last.over_ns)
    return replace(case, todo=todo, thread=130881 if ignored else None)


def _ignored(job: Job, dead: list[Pod]) -> int:
    """How many failed pods a rule Ignore kept from being counted: freed, and not in the status."""
    policy = job.spec.get("podFailurePolicy")
    freed = [pod for pod in dead if TRACKING not in pod.last.finalizers]
    return max(0, len(freed) - job.last.number("failed")) if policy else 0


#: Endings of pods that tell more than an exit code does.
_NOT_ITS_OWN = (
    Cause.DISRUPTED, Cause.NODE_SHUTDOWN, Cause.REFUSED_BY_KUBELET, Cause.POD_DEADLINE,
)  # fmt: skip


def _reported_ns(pod: Pod, shown: Mapping[str, Any]) -> int:
    return int(shown["last_transition_ns"] or pod.first.row["created_ns"] or pod.first.at_ns)


def _unplaced(facts: Facts, job: Job, live: list[Pod]) -> Iterator[Case]:
    """Pods that no node takes, beside others of the Job that run."""
    as_of_ns = facts.as_of(job.namespace, "pods")
    found = [
        (pod, since_ns, str(shown["message"] or ""))
        for pod in live
        if (shown := pod.last.condition("PodScheduled")) is not None
        and shown["status"] == "False"
        and shown["reason"] == "Unschedulable"
        and (since_ns := _reported_ns(pod, shown)) <= as_of_ns - _UNPLACED_NS
    ]
    if not found:
        return
    pod, since_ns, message = min(found, key=lambda entry: entry[1])
    yield Case(
        NOT_BEGUN,
        job.target,
        "has pods that no node takes (Unschedulable)"
        + (", beside others that run" if any(p.phase == "Running" for p in live) else ""),
        since_ns,
        as_of_ns,
        f"{named([p.name for p, _, _ in found])} since {clock(since_ns)} "
        f"(as of {clock(as_of_ns)}): {message}{autoscaler(facts, pod)}",
        job.cronjob,
        evidence={"pods": [p.name for p, _, _ in found], "message": message},
        todo=with_autoscaler(autoscaler(facts, pod), of_scheduler(message)),
    )


#: So long beside others that run, a pod without a node is told. A choice: with less a node that an
#: autoscaler is about to add is told as missing, with more the finding comes later.
_UNPLACED_NS = 300 * NS_PER_S


def _not_begun(facts: Facts, job: Job, spells: Spells) -> Case:
    if not job.pods:
        return _without_pods(facts, job, spells)
    pod = job.pods[0]
    scheduler = _unknown_scheduler(facts, pod)
    why, detail = _why_not(facts, pod)
    cause = None
    todo: str | None = (
        "The kubelet's Events tell more: kubectl describe pod "
        f"{in_kubectl(job.namespace, pod.name)}"
    )
    if "no node takes" in why and not _is_gated(pod):
        scaler = autoscaler(facts, pod)
        todo = with_autoscaler(scaler, of_scheduler(detail))
        detail += scaler + claims(facts, job, pod)
    elif scheduler is not None:
        why = f"no scheduler has looked at its pods (schedulerName {scheduler})"
        detail = f"{detail}: no condition PodScheduled, and no Event of a scheduler"
        todo = of_its_scheduler(scheduler, pod)
    elif _is_gated(pod):
        why, todo = "its pods wait for scheduling gates", _GATED
    as_of_ns = facts.as_of(job.namespace, "jobs", "pods") or facts.as_of(job.namespace, "jobs")
    came_ns = min(pod.created_ns for pod in job.pods)
    if as_of_ns - came_ns < BEGIN_NS:
        why, todo = "its controller came late to create its pods", LOOK_AT_ALL
        detail = f"its first pod came {span(as_of_ns - came_ns)} before the last look"
        if behind(spells, job.created_ns, came_ns):
            why, cause, todo = _BEHIND, BACKLOG, None
    return replace(_unbegun(facts, job, why, detail), cause=cause, todo=todo)


def _without_pods(facts: Facts, job: Job, spells: Spells) -> Case:
    """A Job that has not begun and has no pod: its controller has not come to it, or may not."""
    if active := job.last.number("active"):
        return _none_of_its_active(facts, job, active)
    why, detail = _why_no_pod(facts, job)
    bug = _of_earlier(facts, job)
    pause = nobody_leads_since(facts, job.created_ns + BEGIN_NS)
    if behind(spells, job.created_ns, facts.end_ns):
        return replace(_unbegun(facts, job, _BEHIND, detail), cause=BACKLOG)
    if pause is not None:
        case = _unbegun(facts, job, "nobody leads (TK208)", detail)
        return replace(case, cause=LEADER, todo=to_lead(pause))
    if bug is not None:
        detail = f"{detail}; hit is {bug.who}"
        case = _unbegun(facts, job, "an earlier Job of its name holds it up", detail)
        return replace(case, todo=bug.remedy, thread=bug.thread)
    todo = _LOOK_AT_MANAGER if not job.last.row["start_ns"] else _of_its_events(job)
    return replace(_unbegun(facts, job, why, detail), todo=todo)


def _unbegun(facts: Facts, job: Job, why: str, detail: str) -> Case:
    as_of_ns = facts.as_of(job.namespace, "jobs", "pods") or facts.as_of(job.namespace, "jobs")
    age = f"{span(as_of_ns - job.created_ns)} after its creation at {clock(job.created_ns)}"
    return _plain(NOT_BEGUN, facts, job, f"has not begun: {why}", f"{age}; {detail}")


def _none_of_its_active(facts: Facts, job: Job, active: int) -> Case:
    """A Job whose status counts pods that nobody sees."""
    as_of_ns = facts.as_of(job.namespace, "jobs", "pods")
    case = _plain(
        NOT_BEGUN, facts, job,
        f"its status counts {counted(active, 'active pod')}, and none of it is there",
        f"status.active {active}, no pod of it was seen (as of {clock(as_of_ns)})",
    )  # fmt: skip
    todo = (
        f"Look whether the list left them out: kubectl get pods -n {for_shell(job.namespace)} -l "
        f"batch.kubernetes.io/job-name={for_shell(job.name)}. If there is none, the controller "
        "manager's cache is old: see its log; a restart lists anew."
    )
    return replace(case, todo=todo)


def _is_gated(pod: Pod) -> bool:
    """Whether the scheduler leaves a pod alone, as it has gates."""
    shown = pod.last.condition("PodScheduled")
    return shown is not None and shown["reason"] == "SchedulingGated"


def _of_its_events(job: Job) -> str:
    """What to look at where a Job that began has no pod."""
    return (
        "Its Events say whether creations are refused: kubectl describe job "
        f"{in_kubectl(job.namespace, job.name)}"
    )


_BEHIND = "its controller was behind (TK207)"
_GATED = "Let the controller that set the scheduling gate take it off the pod."
_LOOK_AT_MANAGER = (
    "See whether the controller manager runs and leads (kubectl -n kube-system get lease "
    "kube-controller-manager -o yaml), and what its log says of the Job."
)


#: For so long at most what the controller remembers of a Job holds up one of its name: upstream's
#: ExpectationsTimeout (pkg/controller/controller_utils.go), and MaxJobPodFailureBackOff
#: (pkg/controller/job/job_controller.go), with 30 s for the retry that follows.
_EXPECTED_NS, _BACKOFF_NS = 330 * NS_PER_S, 630 * NS_PER_S
#: A pod that came so shortly before its Job went may have been seen after it only. A choice, below
#: `INFORMER_LAG_NS`: with less a known bug is not named as the cause, with more it is a guess.
_IN_FLIGHT_NS = 2 * NS_PER_S


def _of_earlier(facts: Facts, job: Job) -> KnownBug | None:
    """The bug by which an earlier Job of the name keeps this one from its pods."""
    waited_ns = facts.end_ns - job.created_ns
    for other in facts.jobs:
        gone_ns = other.gone_ns
        same = (other.namespace, other.name) == (job.namespace, job.name) and other is not job
        if not same or gone_ns is None or not 0 <= job.created_ns - gone_ns <= _BACKOFF_NS:
            continue
        late = any(pod.first.at_ns >= gone_ns - _IN_FLIGHT_NS for pod in other.pods)
        if late and Bug.EXPECTATIONS_OUTLIVE_THE_JOB in facts.bugs and waited_ns <= _EXPECTED_NS:
            return facts.bugs[Bug.EXPECTATIONS_OUTLIVE_THE_JOB]
        failed = any(pod.phase == "Failed" for pod in other.pods)
        if failed and Bug.BACKOFF_OUTLIVES_THE_JOB in facts.bugs and waited_ns <= _BACKOFF_NS:
            return facts.bugs[Bug.BACKOFF_OUTLIVES_THE_JOB]
    return None


def _unscheduled(facts: Facts, pod: Pod) -> str | None:
    """What a scheduler that writes no condition says of a pod, in its last Event."""
    said = [e.row for e in facts.events_of_pod(pod) if e.row["reason"] == "FailedScheduling"]
    return shortened(str(said[-1]["message"] or "")) if said else None


def _unknown_scheduler(facts: Facts, pod: Pod) -> str | None:
    """The scheduler of its own that a pod waits for, which has said nothing; None: another case."""
    name = pod.last.spec.get("schedulerName")
    if name in (None, "default-scheduler"):
        return None
    waits = pod.last.row["node_name"] is None and pod.last.condition("PodScheduled") is None
    if not waits or _unscheduled(facts, pod) is not None:
        return None
    return str(name)


def _why_not(facts: Facts, pod: Pod) -> tuple[str, str]:
    scheduled = pod.last.condition("PodScheduled")
    if scheduled is not None and scheduled["status"] == "False":
        reason = scheduled["reason"] or "Unschedulable"
        return f"no node takes its pods ({reason})", f"{pod.name}: {scheduled['message'] or reason}"
    if pod.last.row["node_name"] is None:
        if (message := _unscheduled(facts, pod)) is not None:
            return "no node takes its pods (FailedScheduling)", f"{pod.name}: {message}"
        return "its pods were never bound to a node", pod.name
    return f"its pods wait ({pod.waiting or 'no reason given'})", pod.name


def _why_no_pod(facts: Facts, job: Job) -> tuple[str, str]:
    if not job.last.row["start_ns"]:
        return "its controller has not looked at it", "it has no startTime"
    if not facts.as_of(job.namespace, "pods"):
        return "its status counts no pod", "nobody looked at pods"
    return "the controller has not created a pod", "no pod was seen"


def _plain(
    rule: Rule, facts: Facts, job: Job, claim: str, detail: str, since_ns: int | None = None
) -> Case:
    """A case from then on, else from the Job's creation on, to the end."""
    from_ns = since_ns or job.created_ns
    return Case(rule, job.target, claim, from_ns, facts.end_ns, detail, job.cronjob)


#### Indexes ####


def _index(facts: Facts, job: Job) -> Iterator[Case]:
    failed: defaultdict[int, list[Pod]] = defaultdict(list)
    fine: set[int] = set()
    for pod in job.pods:
        if pod.index is None or pod.end is None:
            continue
        if pod.phase == "Succeeded":
            fine.add(pod.index)
        elif pod.ended_alone:
            failed[pod.index].append(pod)
    bad = sorted(index for index, pods in failed.items() if len(pods) > 1 and index not in fine)
    if not bad or not fine:
        return
    pods = [p for index in bad for p in failed[index]]
    codes = sorted({p.exit["exit_code"] for p in pods if p.exit is not None})
    yield Case(
        INDEX_FAILS,
        job.target,
        "some indexes always fail while others succeed",
        min(p.ended_ns or 0 for p in pods),
        max(p.ended_ns or 0 for p in pods),
        f"index {named([str(i) for i in bad])}: {counted(len(pods), 'failed pod')}, exit code "
        f"{named([str(c) for c in codes]) or 'not text'}",
        job.cronjob,
        evidence={"indexes": bad, "exit_codes": codes},
        todo=_of_index(facts, job, failed[bad[0]][-1]),
    )


def _of_index(facts: Facts, job: Job, pod: Pod) -> str | None:
    """What to do about an index that fails where a limit for each is there, or cannot be."""
    limit, shown = job.spec.get("backoffLimitPerIndex"), pod.exit
    if limit is None and facts.release.limits_indexes:
        return None
    log = "" if shown is None else f" ({log_of(job.namespace, pod.name, str(shown['name']))})"
    todo = f"Read its log{log}, and look at its input."
    if limit is None:
        return todo
    return (
        f"{todo} backoffLimitPerIndex {limit} lets the other indexes go on; a Job of its own can "
        "run this one again."
    )


__all__ = ["RULES", "Jobs"]
