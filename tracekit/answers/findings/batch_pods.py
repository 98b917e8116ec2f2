"""TK451: pods that are to end by themselves, of no Job that was looked at, in trouble.

Workflow engines, task operators and people create such pods without a Job, and who prints pods
alone shows no Jobs: what holds or ended one is decided as it is of a Job's pods, and nothing is
said of a backoffLimit that nobody counts, or looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tracekit.answers.endings import (
    Cause,
    Ending,
    coded,
    ending_of,
    init_failure,
    left_by,
    lost_container,
    memory_limit,
    when_over,
)
from tracekit.answers.findings.evictors import is_eviction, taken_alone
from tracekit.answers.findings.nodes import also, signs_of_killed, signs_of_pods
from tracekit.answers.findings.ownerless import held_since, is_of_job, labelled_job
from tracekit.answers.findings.pulls import pull_of, unpulled_pod
from tracekit.answers.findings.unplaced import BEGIN_NS, SET_UP_NS, autoscaler
from tracekit.answers.holders import goes_when
from tracekit.answers.looks import looked_at
from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.remedies import (
    GATED,
    NOT_LOCATED,
    against_sidecar,
    of_eviction,
    of_exits,
    of_kubelet,
    of_memory,
    of_scheduler,
    of_start,
)
from tracekit.answers.trace_model import TRACKING, Facts, Pod
from tracekit.answers.waits import PodWait, Wait, wait_of
from tracekit.answers.words import clock, counted, in_kubectl, log_of, shortened
from tracekit.base.escaping import for_shell
from tracekit.base.kube.actors import DISRUPTERS, name_of

BATCH_POD = Rule(
    "TK451", "a pod in trouble, of no Job that was looked at", Severity.WARNING,
    "A pod that is to end by itself (restartPolicy Never or OnFailure; not one of a ReplicaSet, "
    "DaemonSet, StatefulSet or node), that no Job owns or of whose Job the record cannot tell as "
    "it has no Jobs, is Failed; or at the end of the record it waits for what TK404, TK411, TK428 "
    "to TK430, TK436, TK441, TK442 and TK456 tell of Jobs, or has had a node for 10 minutes and "
    "its containers wait. Or one that no Job owns was deleted while it ran (only info where "
    "nothing tells of a disruption).",
    "A pod whose owner tries again, or expects it to fail.",
    "kubectl describe pod NAME tells more.", rank=23,
)  # fmt: skip
_ENDS_ITSELF = ("Never", "OnFailure")


class _Reported(NamedTuple):
    claim: str
    since_ns: int
    detail: str
    todo: str | None = None
    severity: Severity | None = None


def batch_pods(facts: Facts) -> Iterator[Case]:
    """A case for each pod of no Job that was looked at that failed, or that something holds."""
    for pod in facts.strays:
        if is_of_job(pod) and (looked_at(facts, "jobs") or pod.last.gone or held_since(facts, pod)):
            continue  # its Job is not in the record: TK423, TK204; or deletes it as it should
        if pod.last.spec.get("restartPolicy") not in _ENDS_ITSELF:
            continue
        reported = _of_one(facts, pod)
        if reported is None:
            continue
        as_of_ns = facts.as_of(pod.namespace, "pods")
        as_of = "" if pod.last.gone else f" (as of {clock(as_of_ns)})"
        yield Case(
            BATCH_POD, Target("Pod", pod.namespace, pod.name, pod.uid), reported.claim,
            reported.since_ns, pod.gone_ns or as_of_ns,
            f"{reported.detail}; {_whose(pod)}{as_of}", severity=reported.severity,
            evidence=_shown_by(pod), todo=reported.todo,
        )  # fmt: skip


def _of_one(facts: Facts, pod: Pod) -> _Reported | None:
    if pod.last.gone:
        return _deleted(facts, pod)
    return _failed(facts, pod) if pod.phase == "Failed" else _held(facts, pod)


def _owner(pod: Pod) -> str | None:
    row = pod.last.row
    return f"{row['owner_kind']} {row['owner_name']}" if row["owner_kind"] else None


def _shown_by(pod: Pod) -> dict[str, object]:
    """It, and whose it is: the owner that makes its like, or the Job that has one template."""
    if is_of_job(pod):
        return {"pods": [pod.name], "job": pod.last.row["owner_name"]}
    return {"pods": [pod.name], "owner": _owner(pod)}


def _whose(pod: Pod) -> str:
    """Whose pod it is, as its owner or its labels tell."""
    owner, labels = _owner(pod), pod.labels
    if is_of_job(pod):
        return f"a pod of {owner or 'a Job'}, which was not looked at"
    if owner is not None:
        return f"a pod of {owner}"
    job = labelled_job(pod)
    if job is not None:
        return f"it has no owner, and the labels of Job {job}"
    if labels.get("dag_id"):
        return f"Airflow's: DAG {labels['dag_id']}, task {labels.get('task_id')}"
    return "it has no owner"


#### Deleted ####


def _deleted(facts: Facts, pod: Pod) -> _Reported | None:
    """A pod that was deleted while it ran: by a disruption, else perhaps as who made it wanted."""
    going = pod.deletion
    if going is None or pod.end is not None or not pod.ran_at_all or pod.last.row["synthesized"]:
        return None
    reason = pod.disruption or next(
        (str(e.row["reason"]) for e in facts.events_of_pod(pod) if is_eviction(e.row)), None
    )
    by, severity = ", and the record does not tell by whom", Severity.INFO
    if going.row["actor"] is not None:
        by = f", by {name_of(going.row['actor'], going.row['actor_agent'])} (audit log)"
    if reason is not None:
        by, severity = f": {DISRUPTERS.get(reason, 'a disruption')} ({reason})", Severity.WARNING
    node = pod.last.row["node_name"]
    reported = _Reported(
        f"was deleted while it ran{by}", going.at_ns,
        f"at {clock(going.at_ns)}" + (f" on node {node}" if node else ""),
        _AGAIN if severity is Severity.WARNING else _ASK, severity,
    )  # fmt: skip
    return _by_taker(facts, pod, reported)


_AGAIN = "Nothing creates it anew but who made it: let that try again after disruptions."
_OTHERS = (
    "Its Job makes others, as far as its backoffLimit goes; a podFailurePolicy can leave such ends "
    "out of that."
)
_ASK = (
    "Who made it may have wanted that. `tracekit who TRACE -n {namespace}` tells who wrote there; "
    "without an audit log nothing names who asks for a deletion."
)


#### Failed ####


def _failed(facts: Facts, pod: Pod) -> _Reported | None:
    ending = ending_of(pod)
    if ending is None:
        return None
    said = f": {shortened(ending.message)}" if ending.message else ""
    ended = f"ended {when_over(pod)}{said}"
    killed = next((c for c in _ended(pod) if c["reason"] == "OOMKilled"), None)
    if killed is not None:
        limit = memory_limit(pod, str(killed["name"]))
        has = f" (limits.memory {limit})" if limit else ""
        claim = f"failed: container {killed['name']} used more memory than it may (OOMKilled)"
        return _Reported(claim, pod.over_ns, f"{ended}{has}", of_memory(limit))
    claim, todo = _by_ending(pod, ending)
    signs = signs_of_killed(facts, [pod])
    if ending.cause is not Cause.OWN_EXIT:
        signs = signs_of_pods(facts, [pod])
    elif signs is not None:
        todo = signs.todo
    ended += also(signs)
    failed = pod.exit if pod.exit is not None else init_failure(pod)
    left = left_by(facts, pod, str(failed["name"])) if failed is not None else None
    if left is not None:
        ended += f"; container {left.container}: {shortened(left.message)}"
        todo = of_start(left.message) or todo
    reported = _Reported(claim, pod.over_ns, ended, todo)
    return _by_taker(facts, pod, reported) if ending.cause is Cause.DISRUPTED else reported


def _ended(pod: Pod) -> Iterator[dict[str, object]]:
    return (c for c in pod.last.row["containers"] or () if c["state"] == "terminated")


def _by_ending(pod: Pod, ending: Ending) -> tuple[str, str | None]:
    """What is said of its end, and what to do."""
    init = init_failure(pod)
    if lost_container(pod) and ending.cause is Cause.UNKNOWN:
        return f"failed: the kubelet lost its container ({ending.reason})", NOT_LOCATED
    if ending.cause is Cause.OWN_EXIT and pod.exit is not None:
        code, name = int(pod.exit["exit_code"] or 0), str(pod.exit["name"])
        meant = of_exits([code])
        return f"failed with exit code {coded(code)}", f"{meant or ''} {_log(pod, name)}".strip()
    if init is not None:
        code, name = int(init["exit_code"]), str(init["name"])
        return f"failed: init container {name} ended with exit code {coded(code)}", _log(pod, name)
    claim = {
        Cause.NODE_SHUTDOWN: f"failed: its node was shut down ({ending.reason})",
        Cause.DISRUPTED: f"failed: a disruption ended it ({ending.reason})",
        Cause.REFUSED_BY_KUBELET: f"failed: the kubelet refused it ({ending.reason})",
        Cause.POD_DEADLINE: "failed: it ran longer than its activeDeadlineSeconds",
    }.get(ending.cause)
    if claim is None:
        return f"failed ({ending.reason or 'no reason given'})", None
    again = _OTHERS if is_of_job(pod) else _AGAIN
    return claim, f"{of_eviction(ending.message) or ''} {again}".strip()


def _by_taker(facts: Facts, pod: Pod, reported: _Reported) -> _Reported:
    """The same with who took it off its node, where anything tells."""
    taken = taken_alone(facts, pod)
    if taken is None:
        return reported
    return reported._replace(detail=f"{reported.detail}; {taken.said}", todo=taken.todo)


def _log(pod: Pod, container: str, *, before: bool = False) -> str:
    return f"Read its log: {log_of(pod.namespace, pod.name, container, before=before)}"


#### Held ####


def _held(facts: Facts, pod: Pod) -> _Reported | None:
    if pod.phase == "Succeeded":
        return None
    wait = wait_of(facts, pod)
    if wait is not None and wait.wait is Wait.TERMINATING:
        return _terminating(pod, wait)
    if (found := unpulled_pod(pod)) is not None:
        pull = pull_of(facts, found, {})
        said = f": {shortened(pull.message)}" if pull.message else ""
        lacked = f"; no imagePullSecret {pull.lacked}" if pull.lacked else ""
        what = f"container {found.container} waits since {clock(pod.created_ns)}, {found.reason}"
        return _Reported(pull.claim, pod.created_ns, f"{what}{said}{lacked}", pull.todo)
    return _unplaced(facts, pod) or _created(facts, pod) if wait is None else _waits(pod, wait)


def _created(facts: Facts, pod: Pod) -> _Reported | None:
    """A pod that has a node and whose containers wait, without a word of the kubelet why."""
    node, reason = pod.last.row["node_name"], pod.waiting
    late_ns = facts.as_of(pod.namespace, "pods") - pod.created_ns
    if node is None or pod.phase != "Pending" or reason is None or late_ns < SET_UP_NS:
        return None
    return _Reported(
        f"has not begun: its containers wait ({reason})", pod.created_ns,
        f"on {node} since {clock(pod.created_ns)}; no Event of its kubelet that is there tells why",
        f"Its kubelet tells more: kubectl describe pod {in_kubectl(pod.namespace, pod.name)}, its "
        f"log on {node}; see whether that node is well: kubectl describe node {for_shell(node)}.",
    )  # fmt: skip


def _unplaced(facts: Facts, pod: Pod) -> _Reported | None:
    shown = pod.last.condition("PodScheduled")
    if shown is None or shown["status"] != "False" or shown["reason"] != "Unschedulable":
        return None
    since_ns = int(shown["last_transition_ns"] or pod.created_ns)
    if facts.as_of(pod.namespace, "pods") - since_ns < BEGIN_NS:
        return None
    message = str(shown["message"] or "")
    detail = f"since {clock(since_ns)}: {message}{autoscaler(facts, pod)}"
    todo = of_scheduler(message, of_job=is_of_job(pod))
    return _Reported("has not begun: no node takes it (Unschedulable)", since_ns, detail, todo)


def _terminating(pod: Pod, wait: PodWait) -> _Reported:
    node = pod.last.row["node_name"] or "no node"
    others = [name for name in pod.last.finalizers if name != TRACKING]
    why = f"; finalizers {', '.join(others)}" if others else ""
    todo = goes_when(others) if others else (
        f"If {node} is gone for good: kubectl delete pod {in_kubectl(pod.namespace, pod.name)} "
        "--force --grace-period=0."
    )  # fmt: skip
    by = f" by {wait.reason}" if wait.reason else ""
    return _Reported(
        "is being deleted and does not go", wait.since_ns,
        f"on {node}, deleted at {clock(wait.since_ns)}{by}{why}", todo,
    )  # fmt: skip


def _waits(pod: Pod, wait: PodWait) -> _Reported | None:
    worded = _WORDED.get(wait.wait)
    if worded is None:
        return None
    claim, detail, todo = worded(pod, wait)
    since = f"since {clock(wait.since_ns)}"
    return _Reported(claim, wait.since_ns, f"{detail} {since}".strip(), todo)


def _cannot_start(pod: Pod, wait: PodWait) -> tuple[str, str, str]:
    del pod
    who = f"container {wait.container}: " if wait.container else ""
    what = f"{wait.reason}: {shortened(wait.message)}" if wait.message else wait.reason
    return f"cannot start: {who}{what}", "", of_kubelet(f"{wait.reason} {wait.message}")


def _fails_again(pod: Pod, wait: PodWait) -> tuple[str, str, str]:
    kind = "init container" if wait.wait is Wait.INIT_FAILS else "container"
    code = "an error" if wait.exit_code is None else f"exit code {coded(wait.exit_code)}"
    todo = _log(pod, wait.container, before=True)
    if wait.ended == "OOMKilled":
        code, todo = "OOMKilled", of_memory(memory_limit(pod, wait.container))
    claim = f"{kind} {wait.container} ends with {code} again and again"
    return claim, counted(wait.restarts, "restart"), todo


def _runs_on(pod: Pod, wait: PodWait) -> tuple[str, str, str]:
    del pod
    what = "has failed" if wait.exit_code else "has done its work"
    return (
        f"{what} but for container {wait.container}, which runs on",
        f"{wait.message} has ended with exit code {coded(wait.exit_code or 0)}",
        against_sidecar("such pods"),
    )


def _unended(pod: Pod, wait: PodWait) -> tuple[str, str, str]:
    node = str(pod.last.row["node_name"] or "its node")
    return (
        f"has ended, and its phase is still {pod.phase}",
        f"{wait.message} has ended with exit code {coded(wait.exit_code or 0)}",
        f"Read the kubelet's log on {node} of that pod, and see whether that node is up.",
    )


def _init_runs(pod: Pod, wait: PodWait) -> tuple[str, str, str]:
    claim = f"has not begun: init container {wait.container} does not end"
    return claim, "it runs", _log(pod, wait.container)


def _node_lost(pod: Pod, wait: PodWait) -> tuple[str, str, str]:
    node = str(pod.last.row["node_name"])
    todo = f"Look at the node: kubectl describe node {for_shell(node)}."
    return f"is on node {node}, which does not answer", wait.reason, todo


def _gated(pod: Pod, wait: PodWait) -> tuple[str, str, str]:
    del pod
    return f"waits for scheduling gates: {wait.reason}", "", GATED


_WORDED = {
    Wait.CONFIGURATION: _cannot_start,
    Wait.MOUNT: _cannot_start,
    Wait.CRASHES: _fails_again,
    Wait.INIT_FAILS: _fails_again,
    Wait.SIDECAR: _runs_on,
    Wait.UNENDED: _unended,
    Wait.INIT_RUNS: _init_runs,
    Wait.NODE_LOST: _node_lost,
    Wait.GATES: _gated,
}
