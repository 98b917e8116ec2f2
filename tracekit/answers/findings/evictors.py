"""Who took a Job's pods off their node, by the Events of autoscalers and the descheduler."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tracekit.answers.remedies import of_eviction
from tracekit.answers.trace_model import Facts, Job, Pod, Row, State
from tracekit.answers.words import clock, named
from tracekit.base.kube.actors import DISRUPTERS, name_of
from tracekit.base.kube.stored import as_mapping


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
    ("Evicted", re.compile("^Evicted pod(?::|$)"), _KARPENTER),
    ("Disrupted", re.compile(""), _KARPENTER),
    ("EvictedByVPA", re.compile(""), _VPA),
    ("", re.compile(r" node by sigs\.k8s\.io/descheduler$"), _DESCHEDULER),
)


#: The same by a part of the user that asked for an eviction: names that their manifests give them.
_USERS: Final = (
    ("karpenter", _KARPENTER), ("cluster-autoscaler", _CLUSTER), ("descheduler", _DESCHEDULER),
    ("vpa-updater", _VPA),
)  # fmt: skip


#: Others that end pods, by their Events about them: the scheduler, the taint manager (up to 1.28),
#: the node controller, a kubelet.
_ENDED: Final = (
    "Preempted", "Preempting", "TaintManagerEviction", "NodeControllerEviction", "Evicted",
)  # fmt: skip
#: The taint manager's words once a node is well again.
_CANCELLED: Final = "Cancelling deletion"
_LOST: Final = (
    "See why: kubectl describe node. A Job makes another pod, as far as its backoffLimit goes; who "
    "makes pods without a Job has to try again."
)
_PREEMPTED: Final = (
    "Pods of a higher priority took its place: a priorityClassName of a higher value keeps it "
    "there. A Job makes another pod, as far as its backoffLimit goes; who makes pods without a Job "
    "has to try again."
)
_NODE_LOST: Final = (
    "Its node did not answer for longer than it tolerates that, or was given a taint NoExecute: "
    "kubectl describe node. A Job makes another pod, as far as its backoffLimit goes; who makes "
    "pods without a Job has to try again."
)
_OF_NODES: Final = ("TaintManagerEviction", "NodeControllerEviction")


class Ender(Struct, frozen=True):
    """Who ended a pod, and what keeps it from that."""

    name: str
    todo: str


def ended_by(event: Row) -> Ender | None:
    """Who ended a pod, as an Event about it says; None of any other Event."""
    if (found := _evictor(event)) is not None:
        return Ender(found.name, _todo(found, {}, {}))
    reason, message = str(event["reason"] or ""), str(event["message"] or "")
    if reason not in _ENDED or message.startswith(_CANCELLED):
        return None
    todo = _PREEMPTED if reason.startswith("Preempt") else of_eviction(message) or _LOST
    return Ender(f"the {DISRUPTERS[reason]}", _NODE_LOST if reason in _OF_NODES else todo)


def is_eviction(event: Row) -> bool:
    """Whether an Event about a pod says that others end it."""
    return ended_by(event) is not None


def _evictor(event: Row) -> _Evictor | None:
    reason, message = str(event["reason"] or ""), str(event["message"] or "")
    found = (e for r, text, e in _EVENTS if r in ("", reason) and text.search(message))
    return next(found, None)


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
    """Who took some pods of a Job, by an audit log, else by what those say of it.

    Of no pods: of all that are its by their name.
    """
    template = as_mapping(job.spec.get("template"))
    of_pods = as_mapping(as_mapping(template.get("metadata")).get("annotations"))
    events = [event for pod in pods for event in facts.events_of_pod(pod)]
    if not pods:  # those that went before anybody looked have a name still: NAME-, five characters
        events = [*facts.events_of_named(job)]
    return _taken(pods, events, of_pods, job.last.annotations)


def taken_alone(facts: Facts, pod: Pod) -> Taken | None:
    """The same of a pod that was made without a Job."""
    return _taken([pod], facts.events_of_pod(pod), pod.last.annotations, None)


def _taken(
    pods: Sequence[Pod], events: Sequence[State], of_pods: Mapping[str, Any],
    of_job: Mapping[str, Any] | None,
) -> Taken | None:  # fmt: skip
    for pod in pods:
        going = pod.deletion
        user = "" if going is None else str(going.row["actor"] or "")
        by = next((e for part, e in _USERS if part in user), None)
        if going is not None and by is not None:
            return Taken(
                f"{by.name} took {pod.name} off its node (asked for by {user} at "
                f"{clock(going.at_ns)}, audit log)", _todo(by, of_pods, of_job),
            )  # fmt: skip
    for event in (state.row for state in events):
        if (by := _evictor(event)) is not None:
            at_ns = int(event["last_ns"] or event["recv_ns"] or 0)
            said = (
                f"{by.name} took {event['involved_name']} off its node (Event {event['reason']}, "
                f"{clock(at_ns)}: {event['message'] or ''})"
            )
            return Taken(said, _todo(by, of_pods, of_job))
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


def _todo(by: _Evictor, of_pods: Mapping[str, Any], of_job: Mapping[str, Any] | None) -> str:
    """What keeps it off pods of such annotations, whose Job has those; None where none has one."""
    if not by.annotation:
        return by.todo
    wanted = f'{by.annotation}: "{by.value}"'
    if str(of_pods.get(by.annotation)) == by.value:
        return (
            f"Its pods have {wanted} already, which {by.name} heeds where it consolidates, not "
            "where a node expires, is interrupted or drained by hand: see its log for this node. "
            "Let the work bear a second start (backoffLimit, a podFailurePolicy that ignores "
            "DisruptionTarget)."
        )
    where = "in the pod template (spec.template.metadata.annotations)"
    if of_job is None:
        return f"Set {wanted} in the pod's annotations: then {by.name} lets it end first."
    if by.annotation in of_job:
        return (
            f"{by.annotation} stands on the Job, where {by.name} does not look: set {wanted} "
            f"{where}."
        )
    return f"Set {wanted} {where}: then {by.name} lets them end first."
