"""What a pod or a Job that has not ended waits for, as of the end of the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

from tracekit.answers.endings import native_sidecars
from tracekit.answers.evidence import Evidence
from tracekit.answers.node_events import lost_since
from tracekit.answers.trace_model import Facts, Job, Pod, State
from tracekit.base.kube.job_defaults import TERMINATION_GRACE_S
from tracekit.base.kube.timestamps import NS_PER_S

#: So long after its deletionTimestamp, in which the grace period is counted, a pod is overdue.
OVERDUE_NS = 30 * NS_PER_S


class Wait(Enum):
    """What holds a pod."""

    GATES = "scheduling gates"
    CONFIGURATION = "a container cannot be created"
    MOUNT = "a volume cannot be mounted"
    INIT_FAILS = "an init container fails"
    CRASHES = "a container fails again and again"
    TERMINATING = "is being deleted and does not go"
    SIDECAR = "a container runs on after another one has ended"
    NATIVE_SIDECAR = "its native sidecar is not ended after its work has"
    UNENDED = "its containers have all ended, and its phase has not"
    GRACE = "is being deleted, with a long grace period"
    INIT_RUNS = "an init container does not end"
    NODE_LOST = "its node does not answer"


class PodWait(Struct, frozen=True):
    """A pod, what holds it, in which container, since when (Unix ns), and in whose words."""

    pod: Pod
    wait: Wait
    container: str
    reason: str
    message: str
    since_ns: int
    evidence: Evidence
    restarts: int = 0
    exit_code: int | None = None
    #: How that container ended last, in the kubelet's word.
    ended: str = ""


#: So long beside one that ended well a container does work of its own. A choice: Kubernetes has no
#: such limit. With less a container that finishes up is called a sidecar, with more only later.
SIDECAR_NS = 300 * NS_PER_S
CONFIGURATION = (
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
    "PreCreateHookError", "PreStartHookError", "PostStartHookError", "CreatePodSandboxError",
)  # fmt: skip
_MOUNTS = ("FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox")
_TIMED_OUT = ("timed out waiting for the condition", "context deadline exceeded")
_ATTACHED = "SuccessfulAttachVolume"
_NOT_YET = ("ContainerCreating", "PodInitializing")
#: A grace period with less than this left is over before anybody asks. A choice: with less a
#: deletion on its way is told (an INFO), with more a long grace period is told of less often.
_LONG_GRACE_NS = 60 * NS_PER_S
#: An init container that runs for so long waits for something. A choice, as TK442 says it: one that
#: has much to do is told as well; Kubernetes has no such limit.
INIT_NS = 300 * NS_PER_S
#: A container that runs again after so many ends in error fails again and again. A choice: with
#: less TK429 tells of one that recovered, with more of those in CrashLoopBackOff alone.
_RESTARTS = 3


def wait_of(facts: Facts, pod: Pod) -> PodWait | None:
    """What holds a pod, None where nothing is seen that does."""
    if pod.last.gone or pod.phase in ("Succeeded", "Failed"):
        return None
    deleted_ns = pod.last.row["deleted_ns"]
    if deleted_ns is not None:
        if facts.as_of(pod.namespace, "pods") - deleted_ns >= OVERDUE_NS:
            return _terminating(facts, pod, deleted_ns)
        return _in_grace(facts, pod, deleted_ns)
    lost = _node_lost(facts, pod)
    if lost is not None:
        return lost
    gates = _specified(pod, "schedulingGates")
    if gates:
        names = ", ".join(str(g.get("name")) for g in gates if isinstance(g, Mapping))
        return PodWait(pod, Wait.GATES, "", names, "", _born_ns(pod), Evidence.STATUS)
    return (
        _by_containers(facts, pod)
        or _by_mounts(facts, pod)
        or _by_init(facts, pod)
        or _by_sidecar(facts, pod)
        or _by_native_sidecar(facts, pod)
        or _by_phase(facts, pod)
    )


def held_by(facts: Facts, job: Job) -> list[PodWait]:
    """What holds the pods of a Job that have not ended, oldest pod first."""
    return [wait for pod in job.pods if (wait := wait_of(facts, pod)) is not None]


def _born_ns(pod: Pod) -> int:
    return int(pod.first.row["created_ns"] or pod.first.at_ns)


def _specified(pod: Pod, name: str) -> list[Any]:
    found = pod.last.spec.get(name)
    return found if isinstance(found, list) else []


def _terminating(facts: Facts, pod: Pod, deleted_ns: int) -> PodWait:
    grace_s = _grace_s(pod)
    asked_ns = deleted_ns - grace_s * NS_PER_S
    condition = pod.last.true("DisruptionTarget")
    reason = str(condition["reason"] or "") if condition is not None else ""
    lost = next((e for e in facts.events_of_pod(pod) if e.row["reason"] == "NodeNotReady"), None)
    message = str(lost.row["message"] or "Node is not ready") if lost is not None else ""
    return PodWait(pod, Wait.TERMINATING, "", reason, message, asked_ns, Evidence.STATUS)


def _in_grace(facts: Facts, pod: Pod, deleted_ns: int) -> PodWait | None:
    """A pod that may still take a while to end, as its grace period is long."""
    asked_ns = deleted_ns - _grace_s(pod) * NS_PER_S
    as_of_ns = facts.as_of(pod.namespace, "pods")
    if deleted_ns - as_of_ns < _LONG_GRACE_NS or as_of_ns - asked_ns < OVERDUE_NS:
        return None
    condition = pod.last.true("DisruptionTarget")
    reason = str(condition["reason"] or "") if condition is not None else ""
    return PodWait(pod, Wait.GRACE, "", reason, "", asked_ns, Evidence.STATUS)


def _node_lost(facts: Facts, pod: Pod) -> PodWait | None:
    """A pod that runs, as far as was heard, on a node that the control plane hears no more of."""
    if pod.last.row["node_name"] is None:
        return None
    if pod.phase == "Unknown" or pod.last.row["reason"] == "NodeLost":
        message = str(pod.last.row["message"] or "")
        return PodWait(
            pod, Wait.NODE_LOST, "", "NodeLost", message, pod.last.at_ns, Evidence.STATUS
        )
    if pod.last.row["pod_ready"] is True:
        return None
    events = [e for e in facts.events_of_pod(pod) if e.row["reason"] == "NodeNotReady"]
    if not events:
        return _on_a_lost_node(facts, pod)
    first_ns = events[0].first_ns
    if facts.as_of(pod.namespace, "pods") - first_ns < OVERDUE_NS:
        return None
    since_ns = int(events[-1].row["last_ns"] or first_ns)
    message = str(events[-1].row["message"] or "")
    return PodWait(pod, Wait.NODE_LOST, "", "NodeNotReady", message, since_ns, Evidence.EVENT)


def _on_a_lost_node(facts: Facts, pod: Pod) -> PodWait | None:
    """The same, where what is said of the node itself tells it."""
    lost = lost_since(facts.node_events.get(pod.last.row["node_name"] or "", ()))
    if lost is None or facts.as_of(pod.namespace, "pods") - lost.first_ns < OVERDUE_NS:
        return None
    by = Evidence.STATUS if lost.condition else Evidence.EVENT
    return PodWait(pod, Wait.NODE_LOST, "", lost.reason, lost.message, lost.first_ns, by)


def _grace_s(pod: Pod) -> int:
    found = pod.last.row["deletion_grace_s"]
    return int(found) if found is not None else 0


def _by_containers(facts: Facts, pod: Pod) -> PodWait | None:
    notes = {note.get("name"): note for note in facts.container_notes.get(pod.uid, ())}
    for container in sorted(pod.last.row["containers"] or (), key=lambda c: not c["init"]):
        reason = str(container["reason"] or "")
        restarts = int(container["restart_count"] or 0)
        note = notes.get(container["name"], {})
        waiting = container["state"] == "waiting"
        code = note.get("exit_code") if waiting else container["exit_code"]
        fails = reason == "CrashLoopBackOff" or (container["init"] and restarts and code)
        if not waiting and restarts >= _RESTARTS and note.get("exit_code"):
            fails, code = True, note["exit_code"]
        if waiting and reason in CONFIGURATION:
            wait = Wait.CONFIGURATION
        elif fails:
            wait = Wait.INIT_FAILS if container["init"] else Wait.CRASHES
        else:
            continue
        return PodWait(
            pod, wait, str(container["name"]), reason, str(note.get("message") or ""),
            _born_ns(pod), Evidence.STATUS, restarts, code if isinstance(code, int) else None,
            str(note.get("ended") or ""),
        )  # fmt: skip
    return None


def _by_mounts(facts: Facts, pod: Pod) -> PodWait | None:
    """An Event of the kubelet about a pod all of whose containers are still to be created."""
    waits = [c for c in pod.last.row["containers"] or () if c["state"] == "waiting"]
    if not waits or pod.ran or any(c["reason"] not in _NOT_YET for c in waits):
        return None
    events = list(_mount_events(facts, pod))
    if not events:
        return None
    # That the kubelet's wait timed out is what follows from another Event, where one tells why.
    why = [e for e in events if not any(w in str(e.row["message"]) for w in _TIMED_OUT)]
    latest = (why or events)[-1].row
    since_ns = min(e.first_ns for e in events)
    return PodWait(
        pod, Wait.MOUNT, "", str(latest["reason"]), str(latest["message"] or ""), since_ns,
        Evidence.EVENT,
    )  # fmt: skip


def _by_init(facts: Facts, pod: Pod) -> PodWait | None:
    """An init container that has run for long, while all others wait for its end."""
    native = native_sidecars(pod)
    for container in pod.last.row["containers"] or ():
        since_ns = int(container["started_ns"] or 0)
        if not container["init"] or container["state"] != "running" or not since_ns:
            continue
        if container["name"] in native or facts.as_of(pod.namespace, "pods") - since_ns < INIT_NS:
            continue
        name = str(container["name"])
        return PodWait(pod, Wait.INIT_RUNS, name, "", "", since_ns, Evidence.STATUS)
    return None


def _by_native_sidecar(facts: Facts, pod: Pod) -> PodWait | None:
    """A native sidecar that the kubelet has not ended long after each regular container had."""
    shown, native = pod.last.row["containers"] or (), native_sidecars(pod)
    regular = [c for c in shown if not c["init"]]
    running = [c for c in shown if c["init"] and c["name"] in native and c["state"] == "running"]
    ends = [int(c["finished_ns"] or 0) for c in regular if c["state"] == "terminated"]
    if not running or not regular or len(ends) < len(regular) or not all(ends):
        return None
    if pod.last.spec.get("restartPolicy") == "OnFailure" and any(c["exit_code"] for c in regular):
        return None  # that one is begun again
    if facts.as_of(pod.namespace, "pods") - max(ends) < SIDECAR_NS + _grace_ns(pod):
        return None
    names, ended = (", ".join(str(c["name"]) for c in found) for found in (running, regular))
    return PodWait(pod, Wait.NATIVE_SIDECAR, names, "", ended, max(ends), Evidence.STATUS)


def _by_phase(facts: Facts, pod: Pod) -> PodWait | None:
    """A pod none of whose containers runs or will run again, and the kubelet has not said so."""
    shown = pod.last.row["containers"] or ()
    regular = [c for c in shown if not c["init"]]
    if not regular or any(c["state"] != "terminated" for c in shown):
        return None
    policy = pod.last.spec.get("restartPolicy")
    failed = [c for c in regular if c["exit_code"]]
    ends = [int(c["finished_ns"] or 0) for c in regular]
    if not all(ends) or policy not in ("Never", "OnFailure") or (failed and policy != "Never"):
        return None
    if facts.as_of(pod.namespace, "pods") - max(ends) < SIDECAR_NS + _grace_ns(pod):
        return None
    names = ", ".join(str(c["name"]) for c in failed or regular)
    code = int((failed or regular)[0]["exit_code"] or 0)
    return PodWait(
        pod, Wait.UNENDED, "", "", names, max(ends), Evidence.STATUS, exit_code=code
    )  # fmt: skip


def _grace_ns(pod: Pod) -> int:
    """For how long its containers may take to end once they are asked to."""
    grace_s = pod.last.spec.get("terminationGracePeriodSeconds")
    return (grace_s if isinstance(grace_s, int) else TERMINATION_GRACE_S) * NS_PER_S


def _by_sidecar(facts: Facts, pod: Pod) -> PodWait | None:
    """A regular container that runs on long after each other one has ended for good.

    One that ended with an error is begun again, but with restartPolicy Never.
    """
    regular = [c for c in pod.last.row["containers"] or () if not c["init"]]
    running = [c for c in regular if c["state"] == "running"]
    never = pod.last.spec.get("restartPolicy") == "Never"
    done = [c for c in regular if c["state"] == "terminated" and (never or c["exit_code"] == 0)]
    if not running or not done or len(running) + len(done) < len(regular):
        return None
    since_ns = max(int(c["finished_ns"] or 0) for c in done)
    if not since_ns or facts.end_ns - since_ns < SIDECAR_NS:
        return None
    names = ", ".join(str(c["name"]) for c in running)
    failed = [c for c in done if c["exit_code"]]
    shown = failed or done
    ended = ", ".join(str(c["name"]) for c in shown)
    return PodWait(
        pod, Wait.SIDECAR, names, "", ended, since_ns, Evidence.STATUS,
        exit_code=int(shown[0]["exit_code"] or 0), ended=str(shown[0]["reason"] or ""),
    )  # fmt: skip


def _mount_events(facts: Facts, pod: Pod) -> Iterator[State]:
    """What hinders a pod's volumes and sandbox; of attaching, since a volume was attached last."""
    events = facts.events_of_pod(pod)
    attached = max((n for n, e in enumerate(events) if e.row["reason"] == _ATTACHED), default=-1)
    for number, event in enumerate(events):
        if event.row["reason"] == "FailedAttachVolume" and number < attached:
            continue
        if event.row["reason"] in _MOUNTS:
            yield event
