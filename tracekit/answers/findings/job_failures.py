"""TK401 to TK410: why a Job failed: the first cause, by its pods and not its reason alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tracekit.answers.endings import (
    LOST_CONTAINER,
    UNDER_PRESSURE,
    Cause,
    Ending,
    coded,
    ending_of,
    had_succeeded,
    has_run,
    how_disrupted,
    init_failure,
    job_over_ns,
    left_message,
    let_go,
    lost_container,
    memory_limit,
    native_sidecars,
    pod_spec,
    refused_when,
)
from tracekit.answers.findings.cut_short import deleted_before, deleted_by
from tracekit.answers.findings.done_late import DONE_LATE, until_then, was_done
from tracekit.answers.findings.evictors import off_node, taken_by
from tracekit.answers.findings.index_ends import of_indexes
from tracekit.answers.findings.nodes import by_node
from tracekit.answers.findings.pulls import PULL, unpulled, unpulled_case
from tracekit.answers.findings.refused_pods import REFUSED, refused_case, refused_since
from tracekit.answers.findings.telling import most_telling, restarts
from tracekit.answers.findings.unplaced import of_unseen, quoted, unseen_pods
from tracekit.answers.harm import FAILS
from tracekit.answers.looks import looked_at
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.remedies import (
    BY_POD_GC,
    DONE_AGAIN,
    MORE_MEMORY,
    NODE_TAKEN,
    NOT_LOCATED,
    PROBE_ADVICE,
    READMITTED,
    of_eviction,
    of_exits,
    of_memory,
    of_refusal,
    of_scheduler,
    of_start,
)
from tracekit.answers.trace_model import Facts, Job, Pod, Row, State
from tracekit.answers.words import clock, counted, log_of, named, of_job_in_kubectl, shortened
from tracekit.base.kube.timestamps import parse_rfc3339

#: Of the last words so much is repeated: lines of a log, logs.
_WORDS_LINES = 5
_WORDS_SHOWN = 3
_SIGKILL, _SIGTERM = 137, 143
_LOGS = "Read the logs of the pods that are named, as long as they are there."
_GONE = "The pods are gone, and their logs with them: keep logs outside the pods."

_SPARE_RETRIES = (
    "The error does not go away by itself: a podFailurePolicy with FailJob on this exit code "
    "spares the retries."
)

EXITED = Rule(
    "TK401", "failed: its containers ended with an error", Severity.WARNING,
    "The Job has the condition Failed, and pods of it ended by themselves in phase Failed, with "
    "one exit code or several (TK407: by backoffLimit, two or more, all with the same); or its "
    "containers were restarted in place.",
    "A Job that fails by design.",
    _LOGS, rank=20, losses=FAILS,
)  # fmt: skip
OOM = Rule(
    "TK402", "failed: a container used more memory than it may", Severity.WARNING,
    "The Job has the condition Failed, and a terminated container of its pods has the reason "
    "OOMKilled.",
    "None known.",
    MORE_MEMORY, rank=17, losses=FAILS,
)  # fmt: skip
EVICTED = Rule(
    "TK403", "failed: its pods were evicted", Severity.WARNING,
    "The Job has the condition Failed, and a failed pod has the reason Evicted, NodeLost, "
    "Preempting or NodeShutdown, or the condition DisruptionTarget.",
    "None known.",
    "Let a podFailurePolicy ignore DisruptionTarget; give the pods requests and a priority.",
    rank=17, losses=FAILS,
)  # fmt: skip
PENDING_DEADLINE = Rule(
    "TK406", "failed: its deadline passed before a pod ran", Severity.WARNING,
    "The Job failed with DeadlineExceeded, and none of its pods was ever seen beyond Pending.",
    "None known.",
    "Find out why nothing took the pod (evidence: PodScheduled); activeDeadlineSeconds counts "
    "from the Job's start, not from its pods'.", rank=15, losses=FAILS,
)  # fmt: skip
SAME_EXIT = Rule(
    "TK407", "failed: every retry ended with the same exit code", Severity.WARNING,
    "The Job failed by its backoffLimit, and two pods or more ended in phase Failed one after the "
    "other (a later one was created after an earlier one had ended), all with one exit code.",
    "A Job that fails by design.",
    f"{_SPARE_RETRIES} {_LOGS}", rank=18, losses=FAILS,
)  # fmt: skip
TOO_LONG = Rule(
    "TK408", "failed: it ran longer than activeDeadlineSeconds", Severity.WARNING,
    "The Job failed with DeadlineExceeded, and at least one of its pods ran, or none was looked "
    "at.",
    "None known.",
    "Raise activeDeadlineSeconds, or find out why the pods took so long.", rank=20, losses=FAILS,
)  # fmt: skip
OTHERWISE = Rule(
    "TK409", "failed", Severity.WARNING,
    "The Job has the condition Failed and none of the causes above shows in its pods.",
    "None known.",
    "`tracekit explain TRACE {object}` tells the sync that failed it.", rank=21, losses=FAILS,
)  # fmt: skip
POLICY = Rule(
    "TK410", "failed: a rule of its own ended it", Severity.WARNING,
    "The Job failed with PodFailurePolicy, FailedIndexes or MaxFailedIndexesExceeded.",
    "A Job whose policy does what it is for.",
    "The message names the pod or the indexes; " + _LOGS[0].lower() + _LOGS[1:],
    rank=20, losses=FAILS,
)  # fmt: skip
RULES = (
    EXITED, OOM, EVICTED, PULL, REFUSED, PENDING_DEADLINE, SAME_EXIT, TOO_LONG, OTHERWISE, POLICY,
)  # fmt: skip


def find(facts: Facts) -> Iterator[Case]:
    """One case for each Job that failed, or cannot begin."""
    for job in facts.jobs:
        if job.failure is not None:
            yield _failed(facts, job)
        elif job.gone_ns is None and job.managed:
            if (found := unpulled(job)) is not None:
                yield unpulled_case(facts, job, found, facts.end_ns)
            elif refused_since(facts, job):
                yield refused_case(facts, job, facts.end_ns)


def _failed(facts: Facts, job: Job) -> Case:
    reason = str((job.failure or {}).get("reason") or "no reason")
    dead = [
        p for p in job.pods
        if p.end is not None and p.end.row["phase"] == "Failed"
        and not (let_go(p) and deleted_before(job, [p]))
    ]  # fmt: skip
    end_ns = job_over_ns(job) or facts.end_ns
    ran = any(map(has_run, job.pods))
    if not ran and (found := unpulled(job)) is not None:
        return unpulled_case(facts, job, found, end_ns)
    if not job.pods and not (job.seen_from_birth and facts.coverage.sees("pods", job.namespace)):
        ran = True  # pods that were deleted before anybody looked: nothing tells that none ran
    if not job.pods and refused_since(facts, job):
        return refused_case(facts, job, end_ns)
    rule, claim, pods = _cause(job, reason, dead, ran=ran)
    unseen = unseen_pods(facts, job, end_ns)
    warning = most_telling(unseen)
    if warning is not None and rule is OTHERWISE and restarts(warning):
        rule, claim = EXITED, _RESTARTED
    case = _reported_by_pod(job, _case(job, rule, claim, end_ns, pods, reason), pods)
    if warning is not None:
        todo = of_unseen(warning) if case.rule is TOO_LONG else None
        case = replace(case, detail=f"{case.detail}; {quoted(warning)}", todo=todo or case.todo)
    if case.todo is None:
        case = replace(case, todo=_todo(facts, job, case.rule, pods))
    if case.rule in (EXITED, SAME_EXIT) and (event := _killed(facts, pods)) is not None:
        case = _by_killer(case, event)
    case = _by_place(facts, job, case, pods, unseen)
    return _with_last_words(facts, job, case, pods)


def _by_place(facts: Facts, job: Job, case: Case, pods: list[Pod], unseen: Sequence[State]) -> Case:
    """The case with who took its pods off their nodes, else with what became of the nodes."""
    taken = taken_by(facts, job, pods)
    if taken is not None and case.rule in (EXITED, SAME_EXIT, EVICTED, OTHERWISE):
        return replace(case, detail=f"{case.detail}; {taken.said}", todo=taken.todo)
    if case.rule is EVICTED:
        case = replace(case, detail=f"{case.detail}{off_node(pods)}")
    return by_node(facts, case, pods, unseen)


def failure_rule(facts: Facts, job: Job) -> Rule:
    """What a Job that failed is put down to."""
    return _failed(facts, job).rule


def _unexplained(reason: object) -> str:
    return f"failed ({reason})"


def is_unexplained(case: Case) -> bool:
    """Whether nothing in the record tells why a Job failed."""
    return case.rule is OTHERWISE and case.claim == _unexplained(case.evidence.get("reason"))


#: Why no rule on exit codes can match, and what to do.
_DEADLINE_NOTE = "the pods ended by the template's activeDeadlineSeconds"
_EXIT_0_NOTE = (
    "; a container with exit code 0 is left out of onExitCodes (and In [0] is invalid), so no rule "
    "on exit codes matches"
)
_REFUSED_NOTE = (
    "it has no DisruptionTarget, so a podFailurePolicy cannot ignore it, and it counts toward "
    "backoffLimit"
)


def _reported_by_pod(job: Job, case: Case, pods: list[Pod]) -> Case:
    """The case with the reason and message of the pod that shows its cause, and fitting advice."""
    ending = next((e for pod in pods if (e := ending_of(pod)) is not None), None)
    if ending is None or ending.cause in (Cause.OWN_EXIT, Cause.NOT_WANTED):
        return case
    if ending.cause is Cause.UNKNOWN and not ending.reason:
        return case
    said = f"; {ending.message}" if ending.message else ""
    refused = f"{refused_when(pods)}; {_REFUSED_NOTE}"
    note = {Cause.POD_DEADLINE: _DEADLINE_NOTE, Cause.REFUSED_BY_KUBELET: refused}
    more = f"; {note[ending.cause]}" if ending.cause in note else ""
    codes = {pod.exit["exit_code"] for pod in pods if pod.exit is not None}
    if ending.cause is Cause.POD_DEADLINE and codes == {0}:
        more += _EXIT_0_NOTE
    policy = (job.spec.get("podFailurePolicy") or {}).get("rules") or ()
    ignored = any(rule.get("action") == "Ignore" and rule.get("onPodConditions") for rule in policy)
    todo = {
        Cause.POD_DEADLINE: "Raise activeDeadlineSeconds of the pod template, or set it on the "
        "Job (.spec.activeDeadlineSeconds), which fails the Job at once.",
        Cause.REFUSED_BY_KUBELET: f"{DONE_AGAIN} {READMITTED}"
        if had_succeeded(pods[0])
        else of_refusal(ending.reason, ending.message),
    }.get(ending.cause)
    if ignored and ending.cause in (Cause.NODE_SHUTDOWN, Cause.DISRUPTED):
        todo = "Its podFailurePolicy ignores pod conditions already: see whether this one fits."
    return replace(
        case,
        detail=f"{case.detail}{said}{more}",
        evidence={**case.evidence, "cause": ending.cause.value, "pod_reason": ending.reason,
                  "pod_message": ending.message, "from": ending.evidence.value},
        todo=todo,
    )  # fmt: skip


def _with_last_words(facts: Facts, job: Job, case: Case, pods: list[Pod]) -> Case:
    """The case with what the pods that show its cause had said, or why that is not known."""
    found = [
        log for pod in pods for log in facts.last_words.get((job.namespace, pod.name), ())
        if log["exit_code"] != 0
    ]  # fmt: skip
    if not found:
        return _with_left_message(facts, case, pods)
    said = next((log for log in reversed(found) if _last_line(log)), found[-1])
    who = f"container {said['container']} of {said['pod']}"
    line = _last_line(said)
    words = f"{who} said last: {line}" if line else f"the log of {who} could not be had"
    if not line and not said["gap"]:
        words = f"{who} said nothing"
    evidence = [
        {
            "pod": log["pod"],
            "container": log["container"],
            "exit_code": log["exit_code"],
            "text": "\n".join((log["text"] or "").splitlines()[-_WORDS_LINES:]) or None,
            "gap": log["gap"],
        }
        for log in found[-_WORDS_SHOWN:]
    ]
    return replace(
        case,
        detail=f"{case.detail}; {words}",
        evidence={**case.evidence, "last_words": evidence},
    )


def _with_left_message(facts: Facts, case: Case, pods: list[Pod]) -> Case:
    left = left_message(facts, pods)
    if left is None:
        return case
    todo = of_start(left.message) if case.rule in (EXITED, SAME_EXIT) else None
    return replace(
        case,
        detail=f"{case.detail}; container {left.container} of {left.pod}: "
               f"{shortened(left.message)}",
        evidence={**case.evidence, "left": left._asdict()},
        todo=todo or case.todo,
    )  # fmt: skip


def _last_line(log: Row) -> str:
    """The last line that says something, without the time that the kubelet put before it."""
    for line in reversed((log["text"] or "").splitlines()):
        at, _, words = line.partition(" ")
        text = words if parse_rfc3339(at) is not None else line
        if text.strip():
            return shortened(text.strip())
    return ""


def _cause(job: Job, reason: str, dead: list[Pod], *, ran: bool) -> tuple[Rule, str, list[Pod]]:
    """The first cause of a failure, with the pods that show it."""
    killed = [p for p in dead if any(True for _ in _oom(p))]
    endings = {p.uid: e for p in dead if (e := ending_of(p)) is not None}
    disrupted = (Cause.DISRUPTED, Cause.NODE_SHUTDOWN)
    evicted = [p for p in dead if p.uid in endings and endings[p.uid].cause in disrupted]
    found: tuple[Rule, str, list[Pod]]
    if killed:
        claim = "failed: a container used more memory than it may (OOMKilled)"
        found = OOM, claim, killed
    elif evicted:
        found = EVICTED, f"failed: {how_disrupted(endings[evicted[0].uid])}", evicted
    elif reason == "DeadlineExceeded" and not ran:
        found = PENDING_DEADLINE, "failed: its deadline passed before a pod ran", job.pods
    elif reason == "DeadlineExceeded":
        found = TOO_LONG, "failed: it ran longer than activeDeadlineSeconds", job.pods
    elif reason in ("PodFailurePolicy", "FailedIndexes", "MaxFailedIndexesExceeded"):
        found = POLICY, f"failed: a rule of its own ended it ({reason})", dead
    else:
        found = (*_by_pods(job, reason, dead, list(endings.values())), dead)
    return found


def _by_pods(job: Job, reason: str, dead: list[Pod], endings: list[Ending]) -> tuple[Rule, str]:
    """What the pods' own statuses say, where all say the same; else their exit codes."""
    causes = {ending.cause for ending in endings}
    if causes == {Cause.REFUSED_BY_KUBELET}:
        done = " after they had succeeded" if all(map(had_succeeded, dead)) else ""
        return OTHERWISE, f"failed: the kubelet refused its pods{done} ({endings[0].reason})"
    if causes == {Cause.POD_DEADLINE}:
        return OTHERWISE, "failed: its pods ran longer than the pod template allows"
    if causes == {Cause.UNKNOWN} and endings[0].reason == LOST_CONTAINER:
        return OTHERWISE, f"failed: the kubelet lost its containers ({LOST_CONTAINER})"
    if causes == {Cause.UNKNOWN} and endings[0].reason:
        return OTHERWISE, f"failed: its pods failed with {endings[0].reason}"
    return _by_exit_codes(job, reason, dead)


_RESTARTED = "failed: its containers were restarted more often than backoffLimit allows"


def _by_exit_codes(job: Job, reason: str, dead: list[Pod]) -> tuple[Rule, str]:
    alone = [pod for pod in dead if pod.ended_alone and not lost_container(pod)]
    codes = Counter(p.exit["exit_code"] for p in alone if p.exit is not None)
    by_limit = reason == "BackoffLimitExceeded"
    if by_limit and len(codes) == 1 and sum(codes.values()) > 1 and _one_after_the_other(alone):
        return SAME_EXIT, f"failed: every retry ended with exit code {coded(next(iter(codes)))}"
    if codes:
        shown = named([coded(code) for code in sorted(codes)], 4)
        why = {str(p.exit["reason"]) for p in alone if p.exit is not None and p.exit["reason"]}
        words = named(sorted(why - {"Error", "Completed"}))
        claim = f"failed with exit code{'' if len(codes) == 1 else 's'} {shown}"
        return EXITED, f"{claim} ({words})" if words else claim
    inits = [c for p in alone if (c := init_failure(p)) is not None]
    if inits:
        code = coded(int(inits[0]["exit_code"]))
        return EXITED, f"failed: init container {inits[0]['name']} ended with exit code {code}"
    if not alone and (taken := deleted_before(job, dead)):
        return OTHERWISE, f"failed: its pods were deleted while they ran{deleted_by(taken)}"
    if by_limit and any(s.number("restarts") for p in job.pods for s in p.states):
        return EXITED, _RESTARTED
    return OTHERWISE, _unexplained(reason)


def _one_after_the_other(pods: list[Pod]) -> bool:
    """Whether one of them was a retry: created once another had ended; else they ran together."""
    first_end_ns = min((pod.over_ns for pod in pods), default=0)
    return any(pod.created_ns > first_end_ns for pod in pods)


def _first_oom(pods: list[Pod]) -> tuple[Pod, str] | None:
    """The first container that was killed for its memory, with its pod."""
    return next(((pod, str(c["name"])) for pod in pods for c in _oom(pod)), None)


def _oom(pod: Pod) -> Iterator[Row]:
    beside = native_sidecars(pod)  # how they end is nothing to the pod
    for state in pod.states:
        for container in state.row["containers"] or ():
            if container["reason"] == "OOMKilled" and container["name"] not in beside:
                yield container


def _case(job: Job, rule: Rule, claim: str, end_ns: int, pods: list[Pod], reason: str) -> Case:
    wanted = job.spec.get("backoffLimit")
    restarts = sum(max(s.number("restarts") for s in pod.states) for pod in job.pods)
    return Case(
        rule,
        job.target,
        claim,
        _began_ns(job, end_ns, pods),
        end_ns,
        f"{clock(end_ns)}: {reason}"
        + (f"; {counted(len(pods), 'pod')} ({named([p.name for p in pods])})" if pods else "")
        + (f", backoffLimit {wanted}" if reason == "BackoffLimitExceeded" else "")
        + _side_by_side(job, pods, reason)
        + (f", {counted(restarts, 'restart')}" if restarts and claim == _RESTARTED else "")
        + _said(job, rule, pods)
        + _which(rule, pods),
        job.cronjob,
        evidence={
            "reason": reason,
            "message": (job.failure or {}).get("message"),
            "pods": [p.name for p in pods][:20],
            "exit_codes": sorted({p.exit["exit_code"] for p in pods if p.exit is not None}),
        },
    )


def _which(rule: Rule, pods: list[Pod]) -> str:
    """The container that failed the first pod, of several; why no node took one."""
    if rule is PENDING_DEADLINE:
        message = _unplaced(pods)
        return f"; no node took it: {shortened(message)}" if message else ""
    if rule not in (EXITED, SAME_EXIT):
        return ""
    for pod in pods:
        beside = [c for c in pod.last.row["containers"] or () if not c["init"]]
        if len(beside) > 1 and pod.exit is not None and pod.exit["exit_code"]:
            return f"; container {pod.exit['name']}"
    return ""


def _unplaced(pods: list[Pod]) -> str | None:
    """What the scheduler said last of a pod that no node took."""
    shown = [pod.last.condition("PodScheduled") for pod in pods]
    said = (str(c["message"]) for c in shown if c and c["status"] == "False" and c["message"])
    return next(said, None)


def _side_by_side(job: Job, pods: list[Pod], reason: str) -> str:
    """Why more pods failed than backoffLimit allows retries."""
    limit, beside = job.spec.get("backoffLimit"), job.spec.get("parallelism")
    if reason != "BackoffLimitExceeded" or not isinstance(limit, int) or len(pods) <= limit + 1:
        return ""
    if not isinstance(beside, int) or beside <= 1:
        return ""
    return f" (parallelism {beside}: pods that run side by side fail before the limit is counted)"


def _began_ns(job: Job, end_ns: int, pods: list[Pod]) -> int:
    """When its trouble began: with the first pod that failed, else as the Job failed."""
    ended = (p.over_ns for p in pods if p.ended_ns is not None and p.phase == "Failed")
    return max(job.created_ns, min((*ended, end_ns)))


def _said(job: Job, rule: Rule, pods: list[Pod]) -> str:
    """What the Job itself says of its end, beyond the reason."""
    message = str((job.failure or {}).get("message") or "")
    if rule is POLICY:
        row = (job.end or job.last).row
        failed = row["failed_indexes"]
        of = f" of {job.spec.get('completions')}" if failed else ""
        most = job.spec.get("maxFailedIndexes")
        limit = f", maxFailedIndexes {most}" if most is not None else ""
        indexes = f"; failed indexes: {failed}{of}{limit}" if failed else ""
        return f"; {shortened(message)}{indexes}{of_indexes(job, pods)}"
    if rule is TOO_LONG:
        seconds = job.spec.get("activeDeadlineSeconds")
        limit = f", activeDeadlineSeconds {seconds}" if seconds is not None else ""
        return limit + until_then(job, pods)
    if rule is OTHERWISE and not pods:
        which = "that failed was seen" if job.pods else "of it was seen"
        return f"; no pod {which}: how they ended is not known"
    if rule is OOM:
        found = _first_oom(pods)
        if found is None:
            return ""
        memory = memory_limit(*found)
        limit = f" (limits.memory {memory})" if memory else " (no limit of its own)"
        return f"; container {found[1]}{'' if memory is None else limit}"
    return ""


#: Words of the kubelet and others about a pod that did not end by itself.
_KILLERS = (
    "Killing", "Preempted", "Preempting", "Evicted", "TaintManagerEviction",
    "ExceededGracePeriod", "Unhealthy", "NodeShutdown", "SystemOOM", "OOMKilling",
)  # fmt: skip


def _killed(facts: Facts, pods: list[Pod]) -> Row | None:
    """The Event that says who ended a container, where its exit code says that somebody did."""
    for pod in pods:
        if pod.exit is None or pod.exit["exit_code"] not in (_SIGKILL, _SIGTERM):
            continue
        for event in reversed(facts.events_of_pod(pod)):
            unready = str(event.row["message"] or "").startswith("Readiness probe")
            if event.row["reason"] in _KILLERS and not unready:
                return event.row
    return None


def _by_killer(case: Case, event: Row) -> Case:
    """The case with the Event that says who ended a container, and advice about that."""
    message = str(event["message"] or "")
    probe = "probe failed" in message or "failed liveness" in message or "failed startup" in message
    return replace(
        case,
        detail=f"{case.detail}; Event {event['reason']}: {shortened(message)}",
        todo=PROBE_ADVICE if probe else case.todo,
    )


_TEMPLATE = (
    "A Job's template cannot be changed: create it anew with what it needs (a CronJob's "
    "jobTemplate can)."
)


def _todo(facts: Facts, job: Job, rule: Rule, pods: list[Pod]) -> str | None:
    """Advice by the spec and the pods at hand; None: the rule's own."""
    spec = pod_spec(job)
    never = spec.get("restartPolicy") == "Never"
    if rule in (EXITED, SAME_EXIT):
        return _after_exits(job, rule, pods, never=never)
    if rule is EVICTED:
        return against_disruption(pods, never=never)
    if rule is PENDING_DEADLINE and (message := _unplaced(pods)) is not None:
        return of_scheduler(message)
    if rule is OOM and (killed := _first_oom(pods)) is not None:
        return of_memory(memory_limit(*killed))
    if rule is POLICY and "Index" in str((job.failure or {}).get("reason")):
        place = of_job_in_kubectl(job.namespace, job.name)
        read = f"Read the logs of their pods: kubectl logs {place} --prefix --tail=20"
        return _GONE if _are_gone(job, pods) else read
    late = DONE_LATE if rule is TOO_LONG and was_done(job) else None
    return _otherwise(facts, job, pods, never=never) if rule is OTHERWISE else late


def _otherwise(facts: Facts, job: Job, pods: list[Pod], *, never: bool) -> str | None:
    if pods and deleted_before(job, pods):
        return (
            "See who deletes its pods: an audit log tells (`tracekit import audit`). They have no "
            "DisruptionTarget, which drains and taints leave; raise backoffLimit if it must go on."
        )
    if any(map(lost_container, pods)):
        return NOT_LOCATED
    if not looked_at(facts, "pods"):
        place = of_job_in_kubectl(job.namespace, job.name)
        return (
            f"Nobody looked at its pods: kubectl get pods {place} lists those that are left, "
            f"kubectl logs {place} --prefix --tail=20 what they said."
        )
    if not pods and job.pods:
        return "Keep logs outside the pods: those that failed went before anybody looked."
    if not pods:
        keep = "" if never else " restartPolicy Never keeps failed pods; OnFailure's are deleted."
        return f"Keep logs outside the pods, which went before anybody looked.{keep}"
    return None


def _are_gone(job: Job, pods: list[Pod]) -> bool:
    """Whether none of the pods that show a failure is left, and so no log."""
    # With OnFailure the pod that restarts is deleted before it is Failed.
    shown = pods or [pod for pod in job.pods if pod.phase != "Succeeded"]
    return bool(shown) and all(pod.gone_ns is not None for pod in shown)


def _after_exits(job: Job, rule: Rule, pods: list[Pod], *, never: bool) -> str:
    logs = _GONE if _are_gone(job, pods) else _LOGS
    codes = {p.exit["exit_code"] for p in pods if p.exit is not None and p.ended_alone}
    inits = [(p, c) for p in pods if (c := init_failure(p)) is not None]
    if inits and not codes:
        pod, container = inits[0]
        return (
            "Read the log of its init container, as long as it is there: "
            f"{log_of(job.namespace, pod.name, container['name'])}"
        )
    if (meant := of_exits(codes)) is not None:
        return f"{meant} {logs}"
    if rule is EXITED or not never or job.spec.get("podFailurePolicy") or not codes - {0}:
        return logs  # it has a policy already, or validation would refuse it
    return f"{_SPARE_RETRIES} {logs}"


def against_disruption(pods: list[Pod], *, never: bool) -> str | None:
    """What spares a Job that; a podFailurePolicy is valid with restartPolicy Never alone."""
    ending = next((e for pod in pods if (e := ending_of(pod)) is not None), None)
    if ending is not None and (todo := of_eviction(ending.message)) is not None:
        return todo if UNDER_PRESSURE in ending.message else f"{todo} {_TEMPLATE}"
    marked = any(pod.last.true("DisruptionTarget") for pod in pods)
    if marked and never:
        return NODE_TAKEN if all(pod.disruption == BY_POD_GC for pod in pods) else None
    if marked:
        return (
            "Set restartPolicy Never with a podFailurePolicy that ignores DisruptionTarget (it "
            "is not valid with OnFailure), or raise backoffLimit."
        )
    return "Raise backoffLimit: these pods have no DisruptionTarget that a policy could ignore."
