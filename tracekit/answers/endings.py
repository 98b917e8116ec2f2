"""Why a pod failed: by its status first, then by the exit codes of its containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from msgspec import Struct

from tracekit.answers.evidence import Evidence
from tracekit.answers.trace_model import TRACKING, Facts, Job, Pod
from tracekit.answers.words import clock


class Cause(Enum):
    """Why a pod failed."""

    NODE_SHUTDOWN = "node shutdown"
    DISRUPTED = "disrupted"
    REFUSED_BY_KUBELET = "refused by the kubelet"
    POD_DEADLINE = "the pod's own deadline"
    OWN_EXIT = "its own exit code"
    NOT_WANTED = "its Job wanted it no longer"
    UNKNOWN = "unknown"


class Ending(Struct, frozen=True):
    """A cause, the reason and message that tell it, and what they are."""

    cause: Cause
    reason: str
    message: str
    evidence: Evidence


_SHUTDOWNS = ("NodeShutdown", "Shutdown")
_SHUTDOWN_WORDS = "node shutdown"
_DISRUPTIONS = ("Evicted", "NodeLost", "Preempting")
#: Upstream: pkg/kubelet/lifecycle (predicate.go, handlers.go) and the kubelet's admit handlers.
_REFUSALS = (
    "NodeAffinity", "NodePorts", "NodeName", "NodeUnschedulable", "TaintToleration",
    "UnexpectedAdmissionError", "UnexpectedPredicateFailureType", "TopologyAffinityError",
    "AppArmor", "PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "SysctlForbidden",
    "InvalidNodeInfo", "PodFeatureUnsupported", "OutOfPods",
)  # fmt: skip


#: The kubelet no longer found the container; the exit code 137 beside it is of its own making, and
#: tells of no signal. Upstream: pkg/kubelet (kubelet_pods.go, status/status_manager.go).
LOST_CONTAINER = "ContainerStatusUnknown"


def ending_of(pod: Pod) -> Ending | None:
    """Why a pod failed; None while it has not."""
    end = pod.end
    if end is None or end.row["phase"] != "Failed":
        return None
    last = pod.last if pod.last.row["phase"] == "Failed" else end
    reason, message = str(last.row["reason"] or ""), str(last.row["message"] or "")
    condition = last.true("DisruptionTarget") or {}
    stated = str(condition.get("reason") or "DisruptionTarget") if condition else ""
    why = str(condition.get("message") or message)
    cause = Cause.UNKNOWN
    if reason in _SHUTDOWNS or _SHUTDOWN_WORDS in why:
        cause, reason, message = Cause.NODE_SHUTDOWN, stated or reason, why
    elif condition or reason in _DISRUPTIONS:
        cause, reason, message = Cause.DISRUPTED, stated or reason, why
    elif let_go(pod):
        cause, reason = Cause.NOT_WANTED, ""
    elif reason == "DeadlineExceeded":
        cause = Cause.POD_DEADLINE
    elif reason and (reason in _REFUSALS or reason.startswith("OutOf")):
        cause = Cause.REFUSED_BY_KUBELET
    elif lost_container(pod):
        reason = LOST_CONTAINER
    elif pod.exit is not None:
        cause, reason = Cause.OWN_EXIT, str(pod.exit["reason"] or "Error")
    return Ending(cause, reason, message, Evidence.STATUS)


def is_end_known(pod: Pod) -> bool:
    """Whether what is known of it tells when it ended, and not only by when.

    A list shows one that has ended, whenever that was; evicted ones have no containers to tell.
    """
    end = pod.end
    return end is not None and (end.row["type"] != "LIST" or pod.over_ns < end.at_ns)


def when_over(pod: Pod) -> str:
    """When it ended, in words, after "ended"."""
    if is_end_known(pod):
        return f"at {clock(pod.over_ns)}"
    return f"before {clock(pod.over_ns)}, when a list first showed it"


def lost_container(pod: Pod) -> bool:
    """Whether its exit code is none of the container's own: the kubelet lost it."""
    return pod.exit is not None and pod.exit["reason"] == LOST_CONTAINER


def had_succeeded(pod: Pod) -> bool:
    """Whether all of its containers had ended with exit code 0, whatever its phase says."""
    beside = [c for c in pod.last.row["containers"] or () if not c["init"]]
    return bool(beside) and all(c["state"] == "terminated" and c["exit_code"] == 0 for c in beside)


def has_run(pod: Pod) -> bool:
    """Whether it was seen Running, or a container of it ended that had begun."""
    shown = pod.last.row["containers"] or ()
    return pod.ran_at_all or any(c["started_ns"] for c in shown if not c["init"])


def refused_when(pods: list[Pod]) -> str:
    """What had become of a pod when its kubelet refused it: one that begins anew looks at all."""
    if had_succeeded(pods[0]):
        return (
            "its containers had ended with exit code 0 before the kubelet, begun anew, refused it"
        )
    ran = any(pod.exit is not None or pod.ran_at_all for pod in pods)
    return "the kubelet refused the pod: " + (
        "it does so with pods that run when it begins anew" if ran else "no container ran"
    )


#: The kubelet's words of a pod that it does not take. Upstream: pkg/kubelet/eviction (helpers.go).
UNDER_PRESSURE: Final = "The node had condition: "
#: Who disrupted the pods, by the reason of DisruptionTarget or of the pod.
_DISRUPTED_BY = {
    "PreemptionByScheduler": "its pods gave way to pods of higher priority",
    "DeletionByTaintManager": "its pods were deleted for a taint of their node",
    "DeletionByPodGC": "its pods were deleted by the pod garbage collector",
    "TerminationByKubelet": "its pods were ended by the kubelet",
    "Preempting": "its pods gave way to a critical pod of the node",
    "NodeLost": "its pods' node was lost",
}


def how_disrupted(ending: Ending) -> str:
    """Who disrupted the pods, and the reason that tells it."""
    if ending.cause is Cause.NODE_SHUTDOWN:
        return f"its node was shut down ({ending.reason})"
    if UNDER_PRESSURE in ending.message:
        return f"the kubelet refused its pods, as its node was under pressure ({ending.reason})"
    return f"{_DISRUPTED_BY.get(ending.reason, 'its pods were evicted')} ({ending.reason})"


def pod_spec(job: Job) -> Mapping[str, Any]:
    """The spec of the pods that its template makes."""
    found = (job.spec.get("template") or {}).get("spec")
    return found if isinstance(found, Mapping) else {}


def has_live_pod(job: Job) -> bool:
    """Whether a pod of it has not ended and is not being deleted."""
    return any(pod.end is None and pod.deletion_ns is None for pod in job.pods)


def went_on(job: Job) -> bool:
    """Whether it did not fail, and is Complete or has a pod that lives, whatever pods it lost."""
    return job.failure is None and (job.ended_ns is not None or has_live_pod(job))


def toward_limit(job: Job) -> str:
    """What is added about lost pods of a Job: an index has a limit of its own, a policy decides."""
    if job.spec.get("podFailurePolicy") or "backoffLimitPerIndex" in job.spec:
        return ""
    return f"; each counts toward backoffLimit {job.spec.get('backoffLimit', 6)}"


def let_go(pod: Pod) -> bool:
    """Whether the tracking finalizer was taken off while the pod ran: it counts for nothing then.

    The Job controller does so with pods that a suspended Job, or one whose parallelism was lowered,
    wants no longer, and deletes them (upstream: pkg/controller/job, deleteJobPods); and with those
    that still run as their Job fails.
    """
    held = let = False
    for state in pod.states:
        if state.row["phase"] in ("Succeeded", "Failed"):
            break
        now = TRACKING in state.finalizers
        held, let = held or now, held and not now
    return let


def job_over_ns(job: Job) -> int | None:
    """When a Job ended: as received, or by its condition where the first look came later."""
    end = job.end
    if end is None or end is not job.first or job.seen_from_birth:
        return job.ended_ns
    condition = end.true("Complete") or end.true("Failed") or {}
    return min(int(condition.get("last_transition_ns") or end.at_ns), end.at_ns)


#: By convention of shells and runtimes 128 + n is the end by signal n (POSIX, signal.h); below
#: that, what a shell ends with that could not begin its command (POSIX, XCU 2.8.2).
_CODES: Final = {126: "a shell's code for a command that is not executable",
                 127: "a shell's code for a command that is not found",
                 130: "SIGINT", 131: "SIGQUIT", 132: "SIGILL", 134: "SIGABRT", 135: "SIGBUS",
                 136: "SIGFPE", 137: "SIGKILL", 139: "SIGSEGV", 141: "SIGPIPE",
                 143: "SIGTERM"}  # fmt: skip


def coded(exit_code: int) -> str:
    """An exit code, with what it stands for by convention: `137 (SIGKILL)`."""
    meaning = _CODES.get(exit_code)
    return str(exit_code) if meaning is None else f"{exit_code} ({meaning})"


def containers_of(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What the spec of a pod, or of a template, has of containers and init containers."""
    return [c for kind in ("containers", "initContainers") for c in spec.get(kind) or ()]


def native_sidecars(pod: Pod) -> set[str]:
    """The init containers that run beside the others: the pod does not fail by how they end."""
    return {
        str(c.get("name"))
        for c in pod.last.spec.get("initContainers") or ()
        if isinstance(c, Mapping) and c.get("restartPolicy") == "Always"
    }


def memory_limit(pod: Pod, container: str) -> str | None:
    """How much memory a container of a pod may use, a LimitRange's default too.

    "" where it has no limit; None where the record does not show what it may.
    """
    found = next((c for c in containers_of(pod.last.spec) if c.get("name") == container), None)
    if found is None:
        return None
    return str(((found.get("resources") or {}).get("limits") or {}).get("memory") or "")


def init_failure(pod: Pod) -> Mapping[str, Any] | None:
    """The init container that ended with an error, of a pod none of whose containers ran."""
    if pod.end is None or pod.exit is not None:
        return None
    return next(
        (
            c for c in pod.last.row["containers"] or pod.end.row["containers"] or ()
            if c["init"] and c["state"] == "terminated" and c["exit_code"]
        ),
        None,
    )  # fmt: skip


class Left(NamedTuple):
    """The last line that a container left in its status: its own words, or the runtime's."""

    pod: str
    container: str
    message: str


def left_by(facts: Facts, pod: Pod, container: str) -> Left | None:
    """What a container left at its last end (terminationMessagePath, or why it never began)."""
    for note in facts.container_notes.get(pod.uid, ()):
        if note.get("name") == container:
            lines = [line.strip() for line in str(note.get("left") or "").splitlines()]
            said = next((line for line in reversed(lines) if line), "")
            return Left(pod.name, container, said) if said else None
    return None


def left_message(facts: Facts, pods: Iterable[Pod]) -> Left | None:
    """What the container that failed a pod left, of the first pod where one left something."""
    for pod in pods:
        failed = pod.exit if pod.exit is not None else init_failure(pod)
        if failed is not None and (left := left_by(facts, pod, str(failed["name"]))) is not None:
            return left
    return None
