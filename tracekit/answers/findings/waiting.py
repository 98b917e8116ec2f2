"""TK428 and up: what Jobs wait for, what was refused, and whose status can never be written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from msgspec.structs import replace

from tracekit.answers.endings import coded, left_by, memory_limit
from tracekit.answers.findings.bare_deletions import BARE_DELETION, bare_deletions
from tracekit.answers.findings.batch_pods import BATCH_POD, batch_pods
from tracekit.answers.findings.gone_at_end import (
    TTL_TOOK,
    UNSEEN_END,
    taken_at_its_end,
    ttl_took,
)
from tracekit.answers.findings.gone_unseen import pods_gone_unseen
from tracekit.answers.findings.nodes import also, signs_of_node
from tracekit.answers.findings.ownerless import ORPHANED, ownerless
from tracekit.answers.findings.refused_again import RULES as REFUSED_AGAIN
from tracekit.answers.findings.refused_again import refused_again
from tracekit.answers.findings.refused_edits import EDIT_REFUSED, refused_edits
from tracekit.answers.findings.suspended import kueue_holds
from tracekit.answers.findings.unended import UNENDED, unended
from tracekit.answers.harm import HOLDS
from tracekit.answers.holders import goes_when
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.parts import RuleGroup
from tracekit.answers.remedies import (
    GATED,
    PROBE_ADVICE,
    against_sidecar,
    of_kubelet,
    of_memory,
    of_start,
)
from tracekit.answers.trace_model import TRACKING, Facts, Job, Pod
from tracekit.answers.waits import PodWait, Wait, held_by
from tracekit.answers.words import (
    NAMED_MAX,
    agreed,
    agreeing,
    clock,
    counted,
    in_kubectl,
    log_of,
    named,
    several_in_kubectl,
    shortened,
)
from tracekit.base.durations import span
from tracekit.base.escaping import for_shell
from tracekit.base.kube.timestamps import NS_PER_S

#: A pod that goes so shortly before its Job goes with it.
WITH_JOB_NS = 60 * NS_PER_S

CANNOT_START = Rule(
    "TK428", "a container that cannot start", Severity.WARNING,
    "At the end of the record a pod of an unfinished Job has scheduling gates; or a container that "
    "waits for a reason like CreateContainerConfigError; or none that runs, and the kubelet's "
    "Events tell of a volume that cannot be mounted.",
    "An object that comes a moment later.",
    "Create what the message names, or correct the reference to it.",
    rank=14, losses=HOLDS,
)  # fmt: skip
FAILS_AGAIN = Rule(
    "TK429", "a container that fails again and again", Severity.WARNING,
    "At the end of the record a container (or init container) of an unfinished Job's pod was "
    "restarted and waits in CrashLoopBackOff, or ended with an error.",
    "None known.",
    "Read that container's log: kubectl logs POD -c CONTAINER --previous.",
    rank=14, losses=HOLDS,
)  # fmt: skip
TERMINATING = Rule(
    "TK430", "a Job that waits for a pod that does not go", Severity.WARNING,
    "A pod of the Job is there 30 s or more after its deletionTimestamp (the grace period is "
    "counted in it), and the Job is unfinished, or is being deleted itself.",
    "A kubelet that was away for a moment.",
    "If the node is gone for good: kubectl delete pod NAME --force --grace-period=0, or taint the "
    "node with node.kubernetes.io/out-of-service=nodeshutdown:NoExecute.",
    rank=8, losses=HOLDS,
)  # fmt: skip
UNCOUNTABLE = Rule(
    "TK209", "a status that the API server must refuse", Severity.WARNING,
    "The uid of a pod stands in `.status.uncountedTerminatedPods.succeeded` while the pod's phase "
    "is Failed (or the other way round): the next status would name it in both lists, which "
    "validation refuses.",
    "None known.",
    "Take the uid out of the Job's status (kubectl edit job NAME --subresource=status), or the "
    "finalizer batch.kubernetes.io/job-tracking off the pod; the kubelet's mend is PR 126343.",
    125410, rank=7, losses=HOLDS,
)  # fmt: skip
SPARE_PARALLELISM = Rule(
    "TK434", "parallelism above what is left to do", Severity.INFO,
    "parallelism is greater than completions: the Job never has more pods than completions.",
    "None: it is right so.",
    "Nothing: the controller wants min(parallelism, completions - succeeded) pods.", rank=65,
)  # fmt: skip
PODS_GONE = Rule(
    "TK435", "pods of a finished Job that somebody deleted", Severity.INFO,
    "A pod that had ended was deleted after its Job was Complete, while the Job stayed.",
    "The pod garbage collector (--terminated-pod-gc-threshold), a node that went away.",
    "Nothing: a finished Job does not run again. Read a pod's log before somebody deletes it.",
    rank=66,
)  # fmt: skip
RUNS_ON = Rule(
    "TK436", "a container that runs on after the work is done", Severity.WARNING,
    "At the end of the record a regular container of an unfinished Job's pod has run for 5 minutes "
    "or more since each other one ended for good (with exit code 0; with an error, too, where "
    "restartPolicy is Never): neither the pod nor the Job is done, or counted as failed, until all "
    "of them have ended. Or a native sidecar runs so long, and its grace period, after "
    "all regular ones have ended: the kubelet should have ended it.",
    "A container that does work of its own.",
    against_sidecar("Jobs"), 25908, rank=9,
    losses=HOLDS,
)  # fmt: skip
OTHERS = Rule(
    "TK437", "a Job that another controller manages", Severity.INFO,
    "spec.managedBy of an unfinished Job names another controller than the Job controller, which "
    "leaves it alone.",
    "None: it is so by intent.",
    "Ask that controller: nothing of the Job controller's rules holds for it.",
    rank=61, losses=HOLDS,
)  # fmt: skip
IDLE = Rule(
    "TK438", "a Job that wants no pods", Severity.INFO,
    "parallelism of an unfinished Job is 0, for 30 s or more.",
    "A Job that somebody holds back so.",
    "kubectl patch job NAME -p '{\"spec\":{\"parallelism\":1}}' if that is not intended.",
    rank=62, losses=HOLDS,
)  # fmt: skip
NODE_LOST = Rule(
    "TK441", "a pod on a node that does not answer", Severity.WARNING,
    "A pod of an unfinished Job is not ready, not being deleted, and an Event NodeNotReady "
    "tells of it, or the node's own condition where Nodes were listed, 30 s or more before the end "
    "of the record; or its phase is Unknown.",
    "A node that was back a moment later.",
    "Look at the node (kubectl describe node); its pods are deleted when their toleration of "
    "not-ready and unreachable is over (300 s by default), and the Job makes others then.",
    rank=8, losses=HOLDS,
)  # fmt: skip
INIT_RUNS = Rule(
    "TK442", "an init container that does not end", Severity.WARNING,
    "At the end of the record an init container of an unfinished Job's pod (not a native sidecar) "
    "has run for 5 minutes or more.",
    "An init container that has much to do.",
    "Read its log: what it waits for is not there.",
    rank=14, losses=HOLDS,
)  # fmt: skip
RULES = (
    NODE_LOST, INIT_RUNS, RUNS_ON, OTHERS, IDLE, PODS_GONE, UNCOUNTABLE, CANNOT_START, FAILS_AGAIN,
    TERMINATING, TTL_TOOK, UNSEEN_END, EDIT_REFUSED, SPARE_PARALLELISM, BATCH_POD, ORPHANED,
    UNENDED, BARE_DELETION, *REFUSED_AGAIN,
)  # fmt: skip
#: A Job without anything to do for so long is idle. A choice: a tool that creates a Job with no
#: parallelism and raises it at once is not told; only when the finding comes hangs on it.
IDLE_NS = 30 * NS_PER_S


class Waiting(RuleGroup):
    """The rules of this family."""

    def __init__(self) -> None:
        #: parallelism and completions of Jobs of which the first is greater.
        self._spare: set[tuple[int, int]] = set()
        #: By namespace and name of suspended Jobs: whether they had the condition from the first.
        self._suspended: dict[tuple[str, str], bool] = {}

    def of_part(self, facts: Facts) -> Iterator[Case]:
        """The cases about the objects of a part."""
        for job in facts.jobs:
            yield from waits(facts, job)
            yield from _holds_deletion(facts, job)
            yield from _uncountable(facts, job)
            yield from ttl_took(facts, job)
            yield from taken_at_its_end(job)
            yield from _pods_gone(facts, job)
            yield from left_alone(facts, job)
            if job.last.spec.get("suspend") is True:
                conditioned = job.first.true("Suspended") is not None
                self._suspended[job.namespace, job.name] = conditioned
        yield from _spare(facts, self._spare)
        yield from ownerless(facts)
        yield from batch_pods(facts)

    def of_whole(self, whole: Facts) -> Iterator[Case]:
        """The edits and evictions that were refused, and deletions that requests alone tell."""
        yield from refused_edits(whole, self._suspended)
        yield from refused_again(whole)
        yield from bare_deletions(whole)

    def settled(self, cases: list[Case]) -> list[Case]:
        """The same; what several Jobs have is told with its numbers where these are the same."""
        if len(self._spare) <= 1:
            return cases
        claim = "has at most as many pods as completions, not parallelism, which is greater"
        return [replace(c, claim=claim) if c.rule is SPARE_PARALLELISM else c for c in cases]


def waits(facts: Facts, job: Job) -> list[Case]:
    """What the pods of an unfinished Job wait for, in one case a kind."""
    if job.ended_ns is not None or job.gone_ns is not None or not job.managed:
        return []
    by_kind: defaultdict[Wait, list[PodWait]] = defaultdict(list)
    for wait in held_by(facts, job):
        by_kind[wait.wait].append(wait)
    return [_case(facts, job, found) for found in by_kind.values()]


def _holds_deletion(facts: Facts, job: Job) -> Iterator[Case]:
    """The pods that keep a Job which has ended, and is being deleted, from going."""
    if job.ended_ns is None or job.gone_ns is not None or job.last.row["deleted_ns"] is None:
        return
    found = [wait for wait in held_by(facts, job) if wait.wait is Wait.TERMINATING]
    if found:
        yield _terminating(facts, job, found)


def _case(facts: Facts, job: Job, found: list[PodWait]) -> Case:
    wait = found[0].wait
    if wait in _WORDED:
        return _WORDED[wait](facts, job, found)
    return _not_started(facts, job, found)


def _runs_on(facts: Facts, job: Job, found: list[PodWait]) -> Case:
    first = found[0]
    code = first.exit_code or 0
    coded_as = f"{code} (OOMKilled)" if first.ended == "OOMKilled" else coded(code)
    claim = f"is done but for container {first.container}, which runs on"
    why = "a pod succeeds when all its containers have"
    if code:
        claim = f"has failed but for container {first.container}, which runs on"
        why = "a pod fails once all its containers have ended: until then nothing is counted"
    return Case(
        RUNS_ON, job.target, claim, first.since_ns, _as_of_ns(facts, job),
        f"{_as_of(facts, job)}, {first.pod.name}: {first.message} ended with exit code "
        f"{coded_as} at {clock(first.since_ns)}; {why}",
        job.cronjob,
        evidence={"pod": first.pod.name, "runs": first.container, "ended": first.message,
                  "exit_code": code},
        todo=_against_sidecar(facts, first),
    )  # fmt: skip


def _against_sidecar(facts: Facts, wait: PodWait) -> str | None:
    """What lets the pod end; of work that failed, also where its log is."""
    todo = None if facts.release.native_sidecars else _NO_NATIVE_SIDECAR
    if not wait.exit_code:
        return todo
    name = wait.message.partition(",")[0]
    log = log_of(wait.pod.namespace, wait.pod.name, name)
    return f"Read why it failed ({log}). {todo or RUNS_ON.todo}"


def _not_ended(facts: Facts, job: Job, found: list[PodWait]) -> Case:
    first = found[0]
    node = first.pod.last.row["node_name"]
    return Case(
        RUNS_ON, job.target,
        f"has ended but for native sidecar {first.container}, which the kubelet has not ended",
        first.since_ns, _as_of_ns(facts, job),
        f"{_as_of(facts, job)}, {first.pod.name} on {node}: {first.message} ended at "
        f"{clock(first.since_ns)}; the kubelet ends native sidecars then, by SIGTERM and, after "
        "the grace period, by SIGKILL",
        job.cronjob,
        evidence={"pod": first.pod.name, "runs": first.container, "ended": first.message},
        todo=f"Read the kubelet's log on {node} of that pod, and see whether that node is up. "
             f"kubectl delete pod {in_kubectl(job.namespace, first.pod.name)} ends it; the Job may "
             "run that work again.",
    )  # fmt: skip


_NO_NATIVE_SIDECAR = (
    "Let the main container end it, or keep what injects it away from Jobs (native sidecars came "
    "with 1.29)."
)


def left_alone(facts: Facts, job: Job) -> Iterator[Case]:
    """An unfinished Job for which the Job controller has nothing to do."""
    if job.ended_ns is not None or job.gone_ns is not None:
        return
    if not job.managed:
        who = str(job.spec.get("managedBy"))
        yield Case(
            OTHERS, job.target, f"is managed by {who}, not by the Job controller", job.created_ns,
            facts.end_ns, f"spec.managedBy is {who}", job.cronjob, evidence={"managed_by": who},
        )  # fmt: skip
    elif job.spec.get("parallelism") == 0 and facts.end_ns - job.created_ns >= IDLE_NS:
        yield Case(
            IDLE, job.target, "wants no pods: parallelism is 0", job.created_ns, facts.end_ns,
            f"as of {clock(facts.as_of(job.namespace, 'jobs'))}", job.cronjob,
        )  # fmt: skip


def _as_of(facts: Facts, job: Job) -> str:
    return f"as of {clock(_as_of_ns(facts, job))}"


def _as_of_ns(facts: Facts, job: Job) -> int:
    """The last look at the pods of a Job."""
    return facts.as_of(job.namespace, "pods")


def _not_started(facts: Facts, job: Job, found: list[PodWait]) -> Case:
    first = found[0]
    who = f"container {first.container}: " if first.container else ""
    what = f"{who}{first.reason}" + (f": {first.message}" if first.message else "")
    claim = f"cannot start: {what}"
    todo, says = of_kubelet(f"{first.reason} {first.message}"), ""
    if first.wait is Wait.GATES:
        claim, todo = f"waits for scheduling gates: {first.reason}", GATED
        if (held := kueue_holds(facts, job, first.reason)) is not None:
            claim, says, todo = f"{claim}{held[0]}", f"; {held[1]}", held[2]
    return Case(
        CANNOT_START, job.target, claim, first.since_ns, _as_of_ns(facts, job),
        f"{_as_of(facts, job)}, {agreeing('waits', [w.pod.name for w in found])} since "
        f"{clock(first.since_ns)}; {_what_ends(job, first)}{says}",
        job.cronjob,
        evidence={"pods": [w.pod.name for w in found], "reason": first.reason,
                  "message": first.message, "from": first.evidence.value},
        todo=todo,
    )  # fmt: skip


def _what_ends(job: Job, wait: PodWait) -> str:
    """What ends a Job whose container does not start: its restarts, as far as it has any."""
    if wait.restarts and wait.pod.last.spec.get("restartPolicy") == "OnFailure":
        return (
            f"each try is a restart ({wait.restarts} so far), and these count toward "
            f"backoffLimit {job.spec.get('backoffLimit', 6)}"
        )
    deadline_s = job.spec.get("activeDeadlineSeconds")
    ends = "only an activeDeadlineSeconds would end it (it has none)"
    if isinstance(deadline_s, int):
        ends = f"activeDeadlineSeconds {deadline_s} ends it"
    return f"a waiting container never counts toward backoffLimit: {ends}"


def _failing(facts: Facts, job: Job, found: list[PodWait]) -> Case:
    first = found[0]
    what = "init container" if first.wait is Wait.INIT_FAILS else "container"
    code = "with an error" if first.exit_code is None else f"with exit code {first.exit_code}"
    if first.ended not in ("", "Error"):
        code += f" ({first.ended})"
    limit = job.spec.get("backoffLimit", 6)
    counts = "with restartPolicy Never only the pod's end counts toward backoffLimit"
    killed = [
        str(e.row["message"])
        for e in facts.events_of_pod(first.pod)
        if e.row["reason"] in ("Killing", "Unhealthy") and "probe" in str(e.row["message"])
    ]
    by = f"; Event: {shortened(killed[-1])}" if killed else ""
    left = left_by(facts, first.pod, first.container)
    said = f"; it left: {shortened(left.message)}" if left is not None else ""
    if first.pod.last.spec.get("restartPolicy") == "OnFailure":
        counts = f"restarts count toward backoffLimit {limit}"
    return Case(
        FAILS_AGAIN, job.target, f"{what} {first.container} ends {code} again and again",
        first.since_ns, _as_of_ns(facts, job),
        f"{_as_of(facts, job)}, {first.pod.name}: {counted(first.restarts, 'restart')} since "
        f"{clock(first.since_ns)}; {counts}{by}{said}",
        job.cronjob,
        evidence={"pod": first.pod.name, "container": first.container,
                  "restarts": first.restarts, "exit_code": first.exit_code},
        todo=of_memory(memory_limit(first.pod, first.container))
        if first.ended == "OOMKilled"
        else PROBE_ADVICE
        if killed
        else of_start(left.message) if left is not None and of_start(left.message)
        else "Read its log: "
             f"{log_of(job.namespace, first.pod.name, first.container, before=True)}",
    )  # fmt: skip


def _in_grace(facts: Facts, job: Job, found: list[PodWait]) -> Case:
    first = found[0]
    deadline_ns, as_of_ns = int(first.pod.last.row["deleted_ns"] or 0), _as_of_ns(facts, job)
    return Case(
        TERMINATING, job.target,
        "waits for a pod that is being deleted and may take its time",
        first.since_ns, as_of_ns,
        f"{named([w.pod.name for w in found])}: deletion asked for at {clock(first.since_ns)}, "
        f"the grace period lets {'it' if len(found) == 1 else 'the first'} run until "
        f"{clock(deadline_ns)} ({_as_of(facts, job)})",
        job.cronjob, severity=Severity.INFO,
        evidence={"pods": [w.pod.name for w in found], "by": first.reason},
        todo="It goes on by itself. Shorten terminationGracePeriodSeconds of the template, or let "
             "the program end on SIGTERM, if that is too long.",
    )  # fmt: skip


def _init_runs(facts: Facts, job: Job, found: list[PodWait]) -> Case:
    first = found[0]
    as_of_ns = _as_of_ns(facts, job)
    seconds = job.spec.get("activeDeadlineSeconds")
    ends = "nothing ends it (no activeDeadlineSeconds)"
    if isinstance(seconds, int):
        ends = f"activeDeadlineSeconds {seconds} ends it"
    return Case(
        INIT_RUNS, job.target, f"has not begun: init container {first.container} does not end",
        first.since_ns, as_of_ns,
        f"{first.pod.name}: it runs since {clock(first.since_ns)}, "
        f"{span(as_of_ns - first.since_ns)} ({_as_of(facts, job)}); {ends}",
        job.cronjob, evidence={"pod": first.pod.name, "container": first.container},
        todo=f"Read its log: {log_of(job.namespace, first.pod.name, first.container)}; "
             "what it waits for is not there.",
    )  # fmt: skip


def _node_lost(facts: Facts, job: Job, found: list[PodWait]) -> Case:
    first = found[0]
    node = first.pod.last.row["node_name"]
    said = f": {first.message}" if first.message else ""
    signs = signs_of_node(facts, node, first.since_ns, first.since_ns)
    return Case(
        NODE_LOST, job.target, f"its pod is on node {node}, which does not answer",
        first.since_ns, _as_of_ns(facts, job),
        f"{named([w.pod.name for w in found])}, {first.reason} since {clock(first.since_ns)}{said} "
        f"({_as_of(facts, job)}){also(signs)}",
        job.cronjob, evidence={"pods": [w.pod.name for w in found], "node": node},
        todo=f"Look at the node: kubectl describe node {for_shell(node)}. Its pods are deleted "
             "when their toleration of unreachable is over (300 s by default); if it is gone for "
             "good, kubectl delete node frees them.",
    )  # fmt: skip


def _terminating(facts: Facts, job: Job, found: list[PodWait]) -> Case:
    first = found[0]
    target = job.last.true("FailureTarget") or job.last.true("SuccessCriteriaMet")
    if job.ended_ns is not None:
        target = None  # that is over
    claim = "waits for a pod that is being deleted and does not go"
    before = ""
    if target is not None:
        ended = f"was ended ({target['reason']})"
        if target["type"] == "SuccessCriteriaMet":
            ended = f"has succeeded ({target['reason']})"
        claim = f"{ended}, and waits for a pod that does not go"
        at_ns = target["last_transition_ns"]
        before = f"{target['type']} since {clock(at_ns)}; " if at_ns else ""
    elif job.last.row["deleted_ns"] is not None:
        claim = "is being deleted, and waits for a pod that does not go"
    elif job.spec.get("podReplacementPolicy") == "Failed":
        claim = "makes no new pod (podReplacementPolicy Failed) until the old one is gone"
    node = first.pod.last.row["node_name"]
    nodes = list(dict.fromkeys(str(w.pod.last.row["node_name"] or "no node") for w in found))
    by = f" by {first.reason}" if first.reason else ""
    state = f" ({first.message})" if first.message else ""
    others = list(dict.fromkeys(f for w in found for f in w.pod.last.finalizers if f != TRACKING))
    held = f"; {agreeing('is', others)} there, too (finalizers)" if others else ""
    names = [w.pod.name for w in found]
    signs = signs_of_node(facts, node, first.since_ns, first.since_ns)
    return Case(
        TERMINATING, job.target, claim, first.since_ns, _as_of_ns(facts, job),
        f"{before}{named(names)} on {named(nodes)}{state} {agreed('was', names)} deleted at "
        f"{clock(first.since_ns)}{by}, {span(_as_of_ns(facts, job) - first.since_ns)} ago "
        f"({_as_of(facts, job)}){held}{also(signs)}",
        job.cronjob,
        evidence={"pods": [w.pod.name for w in found], "node": node, "by": first.reason},
        todo=_of_overdue(job, names, nodes)
             + (f" {goes_when(others, only=True)}" if others else ""),
    )  # fmt: skip


def _of_overdue(job: Job, names: list[str], nodes: list[str]) -> str:
    """What frees a Job from pods that do not go: all of them, on whichever node."""
    rest = len(names) - NAMED_MAX
    more = f" (and so {counted(rest, 'pod')} more)" if rest > 0 else ""
    which = "the node" if len(nodes) == 1 else "those nodes"
    return (
        f"If {agreeing('is', nodes)} gone for good: kubectl delete pod "
        f"{several_in_kubectl(job.namespace, names)} --force "
        f"--grace-period=0{more}, or give {which} the taint "
        "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute."
    )


_WORDED = {
    Wait.TERMINATING: _terminating,
    Wait.GRACE: _in_grace,
    Wait.INIT_RUNS: _init_runs,
    Wait.NODE_LOST: _node_lost,
    Wait.INIT_FAILS: _failing,
    Wait.CRASHES: _failing,
    Wait.SIDECAR: _runs_on,
    Wait.NATIVE_SIDECAR: _not_ended,
    Wait.UNENDED: unended,
}


def uncountable(job: Job) -> list[tuple[Pod, str]]:
    """Pods whose uid is in the list of one phase while they are in the other, with that list."""
    if job.ended_ns is not None or job.last.gone:
        return []
    lists = {
        "succeeded": ("Failed", frozenset(job.last.row["uncounted_succeeded"] or ())),
        "failed": ("Succeeded", frozenset(job.last.row["uncounted_failed"] or ())),
    }
    return [
        (pod, name)
        for pod in job.pods
        for name, (phase, uids) in lists.items()
        if pod.uid in uids and not pod.last.gone and pod.phase == phase
        and TRACKING in pod.last.finalizers
    ]  # fmt: skip


def _uncountable(facts: Facts, job: Job) -> Iterator[Case]:
    found = uncountable(job)
    if not found:
        return
    pod, name = found[0]
    yield Case(
        UNCOUNTABLE, job.target,
        "cannot go on: each status is refused (Duplicate value in uncountedTerminatedPods)",
        job.last.at_ns, _as_of_ns(facts, job),
        f"{pod.name} is {pod.phase} while its uid stands in uncountedTerminatedPods.{name}, "
        f"{_as_of(facts, job)}",
        job.cronjob, evidence={"pods": [p.name for p, _ in found], "uid": pod.uid},
    )  # fmt: skip


def _spare(facts: Facts, pairs: set[tuple[int, int]]) -> Iterator[Case]:
    """Jobs whose completions bound their pods, with these and the parallelism, which are noted."""
    found: defaultdict[tuple[int, int], list[Job]] = defaultdict(list)
    for job in facts.jobs:
        wanted, completions = job.spec.get("parallelism"), job.spec.get("completions")
        if isinstance(wanted, int) and isinstance(completions, int) and wanted > completions > 0:
            found[wanted, completions].append(job)
    pairs.update(found)
    for (wanted, completions), jobs in found.items():
        claim = (
            f"has {counted(completions, 'pod')} at most, not parallelism {wanted}: completions "
            f"is {completions}"
        )
        for job in jobs:
            yield Case(
                SPARE_PARALLELISM, job.target, claim,
                job.created_ns, job.ended_ns or facts.end_ns,
                f"parallelism {wanted}, completions {completions}: it wants "
                "min(parallelism, completions - succeeded) pods",
                evidence={"parallelism": wanted, "completions": completions},
            )  # fmt: skip


_GONE = (
    "was Complete before its pods were deleted, not by the Job controller: it does not run again"
)


def _pods_gone(facts: Facts, job: Job) -> Iterator[Case]:
    ended_ns = job.ended_ns
    if ended_ns is None or job.failure is not None:
        return
    # The pods of a Job that is deleted go with it, whoever asked.
    until_ns = facts.end_ns + 1 if job.deletion_ns is None else job.deletion_ns - WITH_JOB_NS
    gone = [
        p
        for p in job.pods
        if p.phase == "Succeeded"
        and p.deletion_ns is not None
        and ended_ns < p.deletion_ns < until_ns
    ]
    if not gone:
        yield from pods_gone_unseen(facts, job, PODS_GONE, _GONE)
        return
    first_ns = min(p.deletion_ns or 0 for p in gone)
    yield Case(
        PODS_GONE, job.target, _GONE,
        ended_ns, first_ns,
        f"Complete at {clock(ended_ns)}; {named([p.name for p in gone])} deleted from "
        f"{clock(first_ns)} on",
        job.cronjob, evidence={"pods": [p.name for p in gone]},
    )  # fmt: skip
