"""What others say of pods that no node takes, or that nobody saw: autoscalers, claims, Events."""

from __future__ import annotations

from typing import Final

from tracekit.answers.endings import pod_spec
from tracekit.answers.remedies import NOT_BEGUN, of_pod_event
from tracekit.answers.trace_model import Facts, Job, Pod, State
from tracekit.answers.words import counted, in_kubectl, shortened
from tracekit.base.kube.timestamps import NS_PER_S

#: A Job that has nothing to show, or a pod without a node, for so long at the end of the record has
#: not begun.
BEGIN_NS = 30 * NS_PER_S
#: So long a pod without an Event of trouble may take to be set up. A choice: a large image takes
#: minutes, of which its kubelet tells nothing that is kept; only when a finding comes hangs on it.
SET_UP_NS = 600 * NS_PER_S


def claims(facts: Facts, job: Job, pod: Pod) -> str:
    """What Events say of the claims that a pod which no node takes waits for."""
    spec = pod.last.spec if pod.last.spec.get("volumes") else pod_spec(job)
    for volume in spec.get("volumes") or ():
        named = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        said = facts.claim_events.get((job.namespace, str(named)), ())
        if said:
            row = said[-1].row
            return f"; claim {named}: {row['reason']}: {shortened(str(row['message'] or ''))}"
    return ""


def of_unseen(event: State) -> str | None:
    """What lets a pod begin of which an Event alone is left, if that tells it."""
    reason = str(event.row["reason"])
    return of_pod_event(reason, str(event.row["message"] or "")) if reason in NOT_BEGUN else None


#: Karpenter's words of a FailedScheduling of its own (its pkg/controllers/provisioning/scheduling).
_KARPENTER = "Failed to schedule pod"


def autoscaler(facts: Facts, pod: Pod) -> str:
    """What an autoscaler says of the pod that no node takes."""
    text = [
        str(event.row["message"])
        for event in facts.events_of_pod(pod)
        if event.row["reason"] in ("NotTriggerScaleUp", "FailedScaleUp")
        or str(event.row["message"] or "").startswith(_KARPENTER)
    ]
    return f"; autoscaler: {shortened(text[-1])}" if text else ""


def unseen_pods(facts: Facts, job: Job, end_ns: int) -> list[State]:
    """What Events tell of pods of a Job none of which was seen: by the name that they have."""
    if job.pods:
        return []
    return [
        event for event in facts.events_of_named(job)
        if job.created_ns <= event.first_ns <= end_ns
    ]  # fmt: skip


def quoted(event: State) -> str:
    """An Event about a pod, in a sentence."""
    row = event.row
    times = int(row["count"] or 1)
    often = f" ({counted(times, 'time')})" if times > 1 else ""
    message = shortened(str(row["message"] or ""))
    return f"Event {row['reason']} of pod {row['involved_name']}{often}: {message}"


#: By words of autoscalers. Upstream: cluster-autoscaler/core/scaleup (skipped reasons), and its
#: cloud providers' errors.
_AUTOSCALERS: Final = (
    (("max node group size reached",), "Raise the node group's maximum size."),
    (("max cluster cpu", "max cluster memory", "max limit reached", "exceeds limit"),
     "Raise what the autoscaler may use in all (its limits, a NodePool's)."),
    (("out of resources", "InsufficientInstanceCapacity", "AllocationFailed", "OutOfCapacity",
      "no capacity", "QUOTA_EXCEEDED", "QuotaExceeded"),
     ("The provider gives no such machine now: wait, let other zones or machine types be used, or "
      "raise the account's quota.")),
)  # fmt: skip


def with_autoscaler(said: str, todo: str) -> str:
    """What to do about a pod that no node takes, of which an autoscaler says that."""
    found = (first for words, first in _AUTOSCALERS if any(word in said for word in words))
    first = next(found, None)
    return todo if first is None else f"{first} Or: {todo[0].lower()}{todo[1:]}"


#: EKS gives pods that a profile selects this scheduler, and a label with the profile's name.
_FARGATE, _PROFILE = "fargate-scheduler", "eks.amazonaws.com/fargate-profile"


def of_its_scheduler(name: str, pod: Pod) -> str:
    """What to do where a scheduler of its own has not looked at a pod."""
    if name != _FARGATE:
        return "See whether that scheduler runs and serves this namespace; its log says more."
    profile = pod.labels.get(_PROFILE)
    which = f"Fargate profile {profile}" if profile else "the Fargate profile that selects it"
    return (
        f"See whether {which} is there and ACTIVE (aws eks describe-fargate-profile): no other "
        "takes the pod. Its scheduler looks at a pod once: kubectl delete pod "
        f"{in_kubectl(pod.namespace, pod.name)} lets its maker create another "
        "(a Job counts it toward backoffLimit)."
    )
