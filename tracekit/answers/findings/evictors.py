"""Who took a Job's pods off their node, by the Events of autoscalers and the descheduler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tracekit.answers.trace_model import Facts, Job, Pod, Row, State
from tracekit.answers.words import clock, named
from tracekit.base.kube.actors import name_of


class _Evictor(Struct, frozen=True):
    name: str
    #: Annotation and value by which a pod is left alone while it runs; empty, if there is none.
    annotation: str = ""
    value: str = ""
    #: What keeps it off a pod, where no annotation does.
    todo: str = ""


#: Upstream: cluster-autoscaler/utils/drain, karpenter's pkg/apis/v1 (labels.go).
_CLUSTER: Final = _Evictor(
    "the cluster autoscaler", "cluster-autoscaler.kubernetes.io/safe-to-evict", "false"
)
_KARPENTER: Final = _Evictor("Karpenter", "karpenter.sh/do-not-disrupt", "true")
#: Its annotation prefer-no-eviction is a wish, unless its policy makes it more.
_DESCHEDULER: Final = _Evictor(
    "the descheduler",
    todo="Leave pods of Jobs out of the descheduler's policy: by their namespace "
    "(namespaces.exclude of the plugin that the Event is named after), or by labels or priority "
    "(labelSelector, priorityThreshold of the DefaultEvictor).",
)
_VPA: Final = _Evictor(
    "the VerticalPodAutoscaler",
    todo='Set updatePolicy.updateMode of the VerticalPodAutoscaler to "Initial" or "Off": it then '
    "evicts no pod.",
)
#: Reason of an Event about a pod (empty: any), and a pattern of its message.
#: Upstream: cluster-autoscaler/core/scaledown/actuation, karpenter's terminator/events; of the
#: descheduler (any: a plugin's name), pkg/descheduler/evictions; vertical-pod-autoscaler's updater.
_EVENTS: Final = (
    ("ScaleDown", re.compile(""), _CLUSTER),
    ("Evicted", re.compile("Evicted pod: "), _KARPENTER),
    ("Disrupted", re.compile(""), _KARPENTER),
    ("EvictedByVPA", re.compile(""), _VPA),
    ("", re.compile(r" node by sigs\.k8s\.io/descheduler$"), _DESCHEDULER),
)


#: Others that end pods, by their Events about them: the scheduler, the taint manager (up to 1.28),
#: the node controller, a kubelet.
_ENDED: Final = (
    "Preempted", "Preempting", "TaintManagerEviction", "NodeControllerEviction", "Evicted",
)  # fmt: skip
#: The taint manager's words once a node is well again.
_CANCELLED: Final = "Cancelling deletion"


def is_eviction(event: Row) -> bool:
    """Whether an Event about a pod says that others end it."""
    reason, message = str(event["reason"] or ""), str(event["message"] or "")
    if reason in _ENDED:
        return not message.startswith(_CANCELLED)
    return any(r in ("", reason) and text.search(message) for r, text, _ in _EVENTS)


def evictions_unseen(facts: Facts, job: Job) -> list[State]:
    """Events which say that others ended pods of a Job that nobody saw, oldest first."""
    seen = {pod.name for pod in job.pods}
    found = [
        event for event in facts.events_of_named(job)
        if event.row["involved_name"] not in seen and is_eviction(event.row)
        and event.last_ns >= job.created_ns
    ]  # fmt: skip
    return sorted(found, key=lambda event: event.first_ns)


class Taken(Struct, frozen=True):
    """That somebody took a pod off its node: what is said of it, and what to do."""

    said: str
    todo: str


def taken_by(facts: Facts, job: Job, pods: Sequence[Pod]) -> Taken | None:
    """What those say of some pods of a Job; of no pods: of all that are its by their name."""
    for event in _events(facts, job, pods):
        reason, message = str(event["reason"]), str(event["message"] or "")
        found = next(
            (e for r, text, e in _EVENTS if r in ("", reason) and text.search(message)), None
        )
        if found is not None:
            at_ns = int(event["last_ns"] or event["recv_ns"] or 0)
            pod = event["involved_name"]
            said = (
                f"{found.name} took {pod} off its node (Event {reason}, {clock(at_ns)}: {message})"
            )
            return Taken(said, _todo(job, found))
    return None


def off_node(pods: Sequence[Pod]) -> str:
    """From which nodes some pods were taken, and who asked for it, as far as anything tells."""
    nodes = dict.fromkeys(str(pod.last.row["node_name"] or "") for pod in pods)
    known = [node for node in nodes if node]
    return (f"; on node {named(known)}" if known else "") + _asked_by(pods)


def _asked_by(pods: Sequence[Pod]) -> str:
    """Who asked for the deletion or eviction of the first of some pods, as an audit log tells."""
    for pod in pods:
        going = pod.first_at(lambda state: state.row["deleted_ns"] is not None)
        if going is not None and going.row["actor"] is not None:
            who = name_of(going.row["actor"], going.row["actor_agent"])
            return f"; {who} asked for it at {clock(going.at_ns)} (audit log)"
    return ""


def _events(facts: Facts, job: Job, pods: Sequence[Pod]) -> Iterator[Row]:
    if pods:
        yield from (event.row for pod in pods for event in facts.events_of_pod(pod))
        return
    # Pods that went before anybody looked have a name still: NAME-, five characters.
    yield from (event.row for event in facts.events_of_named(job))


def _todo(job: Job, by: _Evictor) -> str:
    if not by.annotation:
        return by.todo
    template = _mapping(job.spec.get("template"))
    of_pods = _mapping(_mapping(template.get("metadata")).get("annotations"))
    wanted = f'{by.annotation}: "{by.value}"'
    if str(of_pods.get(by.annotation)) == by.value:
        return (
            f"Its pods have {wanted} already, which {by.name} heeds where it consolidates, not "
            "where a node expires, is interrupted or drained by hand: see its log for this node. "
            "Let the work bear a second start (backoffLimit, a podFailurePolicy that ignores "
            "DisruptionTarget)."
        )
    where = "in the pod template (spec.template.metadata.annotations)"
    if by.annotation in job.last.annotations:
        return (
            f"{by.annotation} stands on the Job, where {by.name} does not look: set {wanted} "
            f"{where}."
        )
    return f"Set {wanted} {where}: then {by.name} lets them end first."


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
