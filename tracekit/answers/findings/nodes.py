"""What Events tell of the nodes that pods were lost with: why, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tracekit.answers.endings import is_end_known, lost_container
from tracekit.answers.model import Case
from tracekit.answers.node_events import TROUBLES, NodeEvent
from tracekit.answers.remedies import NODE_TAKEN
from tracekit.answers.trace_model import Facts, Pod, State
from tracekit.answers.words import clock, named, shortened
from tracekit.base.escaping import for_shell
from tracekit.base.kube.timestamps import NS_PER_S

#: So long before or after a pod was lost what happened to its node may be why: a spot instance is
#: warned of two minutes before, a node that does not report is found out after 40 s, and its pods
#: go five minutes later. A choice; they are told with their times, as what was, not as the cause.
_NEAR_NS: Final = 600 * NS_PER_S
#: A process is ended by its node within so much of the Event that tells of it.
_AT_ONCE_NS: Final = 120 * NS_PER_S
#: Exit codes of processes that others end: SIGKILL, SIGTERM, and the runtime's own for a container
#: that it found dead once its node had begun anew.
_ENDED_BY_OTHERS: Final = frozenset({137, 143, 255})
_SHOWN: Final = 3
IGNORE_LOST: Final = "Let a podFailurePolicy ignore DisruptionTarget."
#: By reason: words that name the node of the pod that an Event is about. Upstream: pkg/scheduler
#: (schedule_one.go, framework/preemption), pkg/controller/util/node/controller_utils.go.
_NAMES_NODE: Final = {
    "Scheduled": re.compile(r"^Successfully assigned \S+ to (\S+)$"),
    "NodeControllerEviction": re.compile(r"^Marking for deletion Pod \S+ from Node (\S+)$"),
    "Preempted": re.compile(r"^Preempted by .+ on node (\S+)$"),
}


class NodeSigns(Struct, frozen=True):
    """What is said of a node, and what to do."""

    node: str
    said: str
    todo: str


def also(signs: NodeSigns | None) -> str:
    """What is told of a node, after what is said of a pod."""
    return f"; {signs.said}" if signs is not None else ""


def signs_of_node(facts: Facts, node: str | None, from_ns: int, until_ns: int) -> NodeSigns | None:
    """What Events tell of a node about a time in which a pod of it was lost."""
    events = facts.node_events.get(node or "", ())
    return _signs(node or "", [e for e in events if _may_be_why(e, events, from_ns, until_ns)])


def signs_of_pods(facts: Facts, pods: Iterable[Pod]) -> NodeSigns | None:
    """The same of the first of some pods' nodes of which anything is told."""
    for pod in pods:
        from_ns, until_ns = _lost_between(pod)
        signs = signs_of_node(facts, pod.last.row["node_name"], from_ns, until_ns)
        if signs is not None:
            return signs
    return None


def signs_of_killed(facts: Facts, pods: Iterable[Pod]) -> NodeSigns | None:
    """The same of pods that ended with an exit code which others' signals leave."""
    for pod in pods:
        if pod.exit is None or pod.exit["exit_code"] not in _ENDED_BY_OTHERS:
            continue
        events = facts.node_events.get(pod.last.row["node_name"] or "", ())
        at_once = [e for e in events if _may_have_killed(e, int(pod.exit["finished_ns"] or 0))]
        if (signs := _signs(str(pod.last.row["node_name"]), at_once)) is not None:
            return signs
    return None


def signs_of_unseen(facts: Facts, events: Sequence[State], until_ns: int) -> NodeSigns | None:
    """The same of pods of which nothing but Events is left: these say which node they were on."""
    for event in events:
        if (node := _node_in(event)) is not None:
            signs = signs_of_node(facts, node, until_ns, until_ns)
            if signs is not None:
                return signs
    return None


def _node_in(event: State) -> str | None:
    """The node of a pod as an Event about it names it: who placed it there, or took it off."""
    pattern = _NAMES_NODE.get(str(event.row["reason"]))
    found = pattern.match(str(event.row["message"] or "")) if pattern is not None else None
    return found[1] if found is not None else None


def with_node(case: Case, signs: NodeSigns | None, *, advise: bool = True) -> Case:
    """The case with what is told of a node."""
    if signs is None:
        return case
    todo = signs.todo if advise else case.todo
    return replace(case, detail=f"{case.detail}{also(signs)}", todo=todo)


def by_node(facts: Facts, case: Case, pods: Sequence[Pod], unseen: Sequence[State]) -> Case:
    """The case of a Job that failed, with what Events tell of its pods' nodes, if they may be why.

    Advice of its own (a limit that a pod passed, a probe) stays; an exit code alone gives none.
    """
    if not facts.node_events:
        return case
    if unseen:
        return with_node(
            case, signs_of_unseen(facts, unseen, case.until_ns), advise=case.rule.id == "TK409"
        )
    if case.rule.id in ("TK401", "TK407"):
        return with_node(case, signs_of_killed(facts, pods))
    if case.rule.id != "TK403":
        lost = any(map(lost_container, pods))
        return with_node(case, signs_of_pods(facts, pods)) if lost else case
    signs = signs_of_pods(facts, pods)
    if signs is not None and case.todo in (None, NODE_TAKEN):
        return with_node(case, replace(signs, todo=f"{signs.todo} {IGNORE_LOST}"))
    return with_node(case, signs, advise=False)


def troubled(facts: Facts) -> Iterator[tuple[str, NodeEvent, NodeSigns]]:
    """Each node of which Events tell trouble, with the one that tells most of it."""
    for node, events in facts.node_events.items():
        bad = [event for event in events if event.reason in TROUBLES]
        if (signs := _signs(node, bad)) is not None:
            yield node, min(bad, key=_rank), signs


def _lost_between(pod: Pod) -> tuple[int, int]:
    """Between which times a pod was lost."""
    marked = pod.last.true("DisruptionTarget") or {}
    at_ns = int(marked.get("last_transition_ns") or 0)
    if not at_ns and (pod.end is None or is_end_known(pod)):
        at_ns = pod.over_ns or pod.deletion_ns or 0
    return (at_ns, at_ns) if at_ns else (pod.created_ns, pod.over_ns or pod.last.at_ns)


def _may_be_why(event: NodeEvent, events: Sequence[NodeEvent], from_ns: int, until_ns: int) -> bool:
    """Whether it was told near a time; of what lasts also whether it was not over before."""
    trouble = TROUBLES.get(event.reason)
    if trouble is None or event.first_ns > until_ns + _NEAR_NS:
        return False
    if not trouble.over:
        return event.last_ns >= from_ns - _NEAR_NS
    ends = [e.last_ns for e in events if e.reason == trouble.over]
    return not any(event.last_ns <= end_ns < from_ns for end_ns in ends)


def _may_have_killed(event: NodeEvent, at_ns: int) -> bool:
    trouble = TROUBLES.get(event.reason)
    near = event.first_ns - _AT_ONCE_NS <= at_ns <= event.last_ns + _AT_ONCE_NS
    return trouble is not None and trouble.kills and near


def _rank(event: NodeEvent) -> int:
    return list(TROUBLES).index(event.reason)


def _signs(node: str, events: Sequence[NodeEvent]) -> NodeSigns | None:
    if not events:
        return None
    by_reason = {event.reason: event for event in events}
    shown = sorted(by_reason.values(), key=_rank)
    said = ", ".join(map(_said, shown[:_SHOWN]))
    whose = "Node" if any(event.condition for event in shown[:_SHOWN]) else "Events of node"
    todo = TROUBLES[shown[0].reason].todo.format(node=for_shell(node))
    return NodeSigns(node, f"{whose} {named([node])}: {said}", todo[0].upper() + todo[1:])


def _said(event: NodeEvent) -> str:
    if event.condition:
        why = f" ({shortened(event.message)})" if event.message else ""
        when = "since" if event.first_ns < event.last_ns else "as of"
        plain = event.condition.startswith("taint ") or " " not in event.condition
        what = "" if plain else "condition "
        return f"{what}{event.condition} {when} {clock(event.first_ns)}{why}"
    when = f"at {clock(event.last_ns)}"
    if event.times > 1 and event.first_ns < event.last_ns:
        when = f"{event.times} times from {clock(event.first_ns)} to {clock(event.last_ns)}"
    tells = TROUBLES[event.reason].tells and event.message
    return f"{event.reason} {when}" + (f" ({shortened(event.message)})" if tells else "")
