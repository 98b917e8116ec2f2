"""TK443, TK445: what Events tell of Jobs, pods and nodes where nothing else was listed.

A Job that failed stands first, with what became of its pods: these have names that begin with its.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from tracekit.answers.event_index import ALREADY_ACTIVE, is_pod_of
from tracekit.answers.findings.cron_stalls import of_warning
from tracekit.answers.findings.evictors import Ender, ended_by, is_eviction
from tracekit.answers.findings.nodes import NodeSigns, also, signs_of_unseen, troubled
from tracekit.answers.findings.telling import is_harmless, most_telling
from tracekit.answers.findings.unplaced import quoted
from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.refusals import refusal_advice
from tracekit.answers.remedies import of_pod_event
from tracekit.answers.trace_model import REFUSED_CREATION, Facts, State
from tracekit.answers.words import clock, counted, in_kubectl, named, shortened
from tracekit.base.kube.events import MAKERS, PDB
from tracekit.base.kube.printed.model import ShownEvent

BESIDE = (
    "Print what has states: `kubectl get cronjobs,jobs,pods,events -A -o yaml`, and diagnose that."
)

FAILED = Rule(
    "TK443", "a Job that was shown as failed", Severity.WARNING,
    "A table of kubectl get has Failed or FailureTarget as its STATUS, or an Event that "
    "was printed, or listed without any Job, gives a reason for which the Job controller fails a "
    "Job. A description prints no "
    "conditions: with failed pods, none active and no such Event it is unknown (info), and so "
    "it is where a table has no STATUS and the Job is not complete 10 minutes after its creation.",
    "A Job of the same name that came before.",
    "Look at its pods' logs before they go; `kubectl get job NAME -o yaml` has the condition "
    "with its reason.", rank=18,
)  # fmt: skip
WARNED = Rule(
    "TK445", "Events of type Warning that were shown", Severity.WARNING,
    "A table or a description has them, about an object of which no other finding tells; or Events "
    "are all that the record has, and they are about Jobs, CronJobs, pods, or who makes those (of "
    "pods also that others ended them, whatever the type; of nodes, as an info, trouble). Or a "
    "node was listed in trouble, cordoned or with the taint of an autoscaler that takes it away, "
    "and runs pods of unfinished Jobs (info).",
    "What was over a moment later.",
    BESIDE, rank=36,
)  # fmt: skip
#: What is to be done about what hindered a pod from beginning that began after it.
BEGAN: Final = "Nothing, where it was late once: it was over when the pod began."
#: For these the Job controller fails a Job; the Event has the condition's reason (upstream:
#: pkg/controller/job/job_controller.go, batch/v1 types.go).
FAILS = frozenset(
    {
        "BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy", "FailedIndexes",
        "MaxFailedIndexesExceeded",
    }
)  # fmt: skip
_ABOUT: Final = ("Job", "CronJob", PDB, *MAKERS)
#: In the API server's words for what admission refuses.
_FORBIDDEN: Final = " is forbidden: "
_BEFORE: Final = f"did not start, as the run before had not ended (Forbid; Event {ALREADY_ACTIVE})"
_RUNS_ON: Final = (
    "See why that run has not ended: kubectl get jobs,pods; an activeDeadlineSeconds in the "
    "jobTemplate ends one that hangs."
)
#: Upstream: pkg/controller/disruption (getExpectedScale): what controls the pods has no scale.
_NO_SCALE: Final = "does not implement the scale subresource"
_UNCOUNTABLE: Final = (
    "Give the budget minAvailable as a number: maxUnavailable and percentages need to know how "
    "many pods there should be, which no Job tells, and until then it lets no pod be evicted."
)
_Events = dict[tuple[str, str, str], list[State]]


def by_events_alone(facts: Facts) -> Iterator[Case]:
    """What Events tell, where they are all that there is."""
    if facts.shown or any(facts.streams.get(stream) for stream in ("jobs", "pods", "cronjobs")):
        return
    found: _Events = defaultdict(list)
    for event in facts.events:
        row = event.row
        key = (row["involved_kind"] or "", row["namespace"] or "", row["involved_name"] or "")
        found[key].append(event)
    pods = {key: events for key, events in found.items() if key[0] == "Pod"}
    nodes: set[str] = set()
    for key, events in found.items():
        if key[0] in _ABOUT:
            yield from _of_one(facts, Target(*key, _uid(events)), events, pods, nodes)
    for key, events in pods.items():
        yield from _of_pod(facts, Target(*key, _uid(events)), events, nodes)
    yield from of_nodes(facts, nodes, "was told of")


def of_nodes_at_work(facts: Facts) -> Iterator[Case]:
    """Nodes that say of themselves that they are in trouble, while pods of Jobs run on them."""
    there: defaultdict[str, list[str]] = defaultdict(list)
    for job in facts.jobs if facts.node_events else ():
        for pod in job.pods if job.ended_ns is None and job.gone_ns is None else ():
            if pod.phase == "Running" and pod.last.row["deleted_ns"] is None and not pod.last.gone:
                there[str(pod.last.row["node_name"])].append(f"{pod.namespace}/{pod.name}")
    for node, trouble, signs in troubled(facts):
        lost = trouble.reason == "NodeNotReady"  # TK441 tells of its pods
        if trouble.condition and not lost and (pods := there.get(node)):
            yield _case(
                Target("Node", "", node), [trouble.first_ns, trouble.last_ns],
                f"was listed with {trouble.condition}, and runs pods of Jobs",
                f"{signs.said}; {named(pods)}", Severity.INFO, signs.todo,
            )  # fmt: skip


def of_nodes(facts: Facts, but: Collection[str], was: str) -> Iterator[Case]:
    """Nodes in trouble, but for those that are told of already."""
    for node, trouble, signs in troubled(facts):
        if node not in but:
            what = trouble.condition or trouble.reason
            yield _case(
                Target("Node", "", node), [trouble.first_ns, trouble.last_ns],
                f"{was} with {what}", signs.said, Severity.INFO, signs.todo,
            )  # fmt: skip


def _of_one(
    facts: Facts, target: Target, events: Sequence[State], pods: _Events, nodes: set[str]
) -> Iterator[Case]:
    """What is told of a Job, or of who makes Jobs or pods: by reason, a failure with its cause."""
    by_reason: defaultdict[str, list[State]] = defaultdict(list)
    for event in events:
        if event.row["event_type"] == "Warning" or event.row["reason"] == ALREADY_ACTIVE:
            by_reason[event.row["reason"] or ""].append(event)
    fatal = [r for r in by_reason if r in FAILS] if target.kind == "Job" else []
    if fatal:
        others = [e for reason in by_reason if reason not in FAILS for e in by_reason[reason]]
        yield _failed(facts, target, by_reason[fatal[-1]], others, pods, nodes)
        return
    for reason, said in by_reason.items():
        last = max(said, key=lambda event: event.last_ns)
        message = str(last.row["message"] or "")
        active = reason == ALREADY_ACTIVE
        yield _case(
            target, _times(said), _BEFORE if active else f"was told of with the warning {reason}",
            f"{shortened(message)}; {_often(said)}; the record has no {target.kind}s",
            Severity.INFO if active else None,
            todo=advice_for(target, reason, message),
            evidence={"reason": reason, "message": message},
        )  # fmt: skip


def _failed(
    facts: Facts, job: Target, fatal: Sequence[State], others: list[State], pods: _Events,
    nodes: set[str],
) -> Case:  # fmt: skip
    """A Job that failed, with what its pods' Events tell of why; these are told by that."""
    mine = [key for key in pods if key[1] == job.namespace and is_pod_of(job.name, key[2])]
    about = [event for key in mine for event in pods.pop(key)]
    last = max(fatal, key=lambda event: event.last_ns)
    reason, message = last.row["reason"], str(last.row["message"] or "")
    cause = reason_of(about) or most_telling(others)
    detail, todo = f"{clock(last.last_ns)}: {message}", None
    if cause is not None:
        kind, name = cause.row["involved_kind"], cause.row["involved_name"]
        said = (
            summary_of(cause) if kind == "Pod" else f"{cause.row['reason']}: {cause.row['message']}"
        )
        detail += f"; {said}"
        todo = advice_for(
            Target(kind, job.namespace, name), cause.row["reason"], str(cause.row["message"] or "")
        )
    signs = _of_nodes(facts, about, last.last_ns, nodes)
    if signs is not None and (cause is None or lost_in([cause]) is not None):
        todo = signs.todo
    return Case(
        FAILED, job, f"was told of as failed ({reason})", min(_times([*fatal, *about])),
        last.last_ns, f"{detail}{also(signs)}; the record has no Jobs",
        evidence={"reason": reason, "message": message, "pods": [key[2] for key in mine]},
        todo=todo,
    )  # fmt: skip


def _of_pod(
    facts: Facts, target: Target, events: Sequence[State], nodes: set[str]
) -> Iterator[Case]:
    """What is told of a pod: that others ended it, else the warning that tells most."""
    lost, telling = lost_in(events), most_telling(events)
    warnings = [event for event in events if event.row["event_type"] == "Warning"]
    event = lost or telling or max(warnings, key=lambda e: e.last_ns, default=None)
    if event is None:
        return
    over = lost is None and telling is None
    reason, message = str(event.row["reason"] or ""), str(event.row["message"] or "")
    same = [e for e in events if e.row["reason"] == reason]
    others = dict.fromkeys(
        str(e.row["reason"]) for e in events
        if e.row["event_type"] == "Warning" and e.row["reason"] != reason and not is_harmless(e)
    )  # fmt: skip
    beside = f"; also {named([*others], 4)}" if others else ""
    todo = advice_for(target, reason, message)
    if over and not is_harmless(event):
        beside += "; it began after that"
        todo = BEGAN
    signs = _of_nodes(facts, events, event.last_ns, nodes) if lost is not None else None
    claim = f"was told of with the warning {reason}"
    if (by := lost_by(target, reason, message)) is not None:
        claim = was_ended(by, reason)
    yield _case(
        target, _times(same), claim,
        f"{shortened(message)}; {_often(same)}{beside}{also(signs)}; the record has no Pods",
        Severity.INFO if over else None,
        todo if signs is None else signs.todo,
        {"reason": reason, "message": message},
    )  # fmt: skip


def _case(
    target: Target, times: Sequence[int], claim: str, detail: str,
    severity: Severity | None = None, todo: str | None = None,
    evidence: dict[str, str] | None = None,
) -> Case:  # fmt: skip
    return Case(
        WARNED, target, claim, min(times), max(times), detail, None, severity,
        evidence=evidence or {}, todo=todo,
    )  # fmt: skip


def _uid(events: Sequence[State]) -> str:
    return str(events[-1].row["involved_uid"] or "")


def _times(events: Iterable[State]) -> list[int]:
    return [at_ns for event in events for at_ns in (event.first_ns, event.last_ns)]


def _often(events: Sequence[State]) -> str:
    times = sum(int(event.row["count"] or 1) for event in events)
    return f"{counted(times, 'time')}, last at {clock(max(_times(events)))}"


def reason_of(events: Sequence[State]) -> State | None:
    """What became of the pods of a Job that failed: that others ended one, else what tells most."""
    return lost_in(events) or most_telling(events)


def summary_of(event: State) -> str:
    """An Event about a pod in its own words, behind who ended the pod, if it says so."""
    by, row = ended_by(event.row), event.row
    if by is None:
        return quoted(event)
    said = shortened(str(row["message"] or ""))
    return f"{by.name} ended {row['involved_name']} (Event {row['reason']}: {said})"


def was_ended(by: Ender, reason: str) -> str:
    """What is claimed of a pod that somebody ended, as such an Event says."""
    return f"was ended by {by.name}, as an Event tells ({reason})"


def lost_by(target: Target, reason: str, message: str) -> Ender | None:
    """Who ended a pod, as an Event says; None of any other."""
    return ended_by({"reason": reason, "message": message}) if target.kind == "Pod" else None


def as_state(event: ShownEvent, at_ns: int) -> State:
    """An Event that was printed, as one of a list is; its time is as old as it was shown to be."""
    row = {
        "involved_kind": event.kind, "involved_name": event.name, "namespace": event.namespace,
        "event_type": event.type, "reason": event.reason, "message": event.message,
        "count": event.count, "first_ns": None, "last_ns": None,
    }  # fmt: skip
    return State(row, at_ns)


def lost_in(events: Sequence[State]) -> State | None:
    """The last Event which says that others ended a pod."""
    found = [e for e in events if e.row["involved_kind"] == "Pod" and is_eviction(e.row)]
    return max(found, key=lambda event: event.last_ns, default=None)


def _of_nodes(
    facts: Facts, events: Sequence[State], at_ns: int, nodes: set[str]
) -> NodeSigns | None:
    """What is told of the nodes that pods were given, which then need not be told once more."""
    signs = signs_of_unseen(facts, events, at_ns)
    if signs is not None:
        nodes.add(signs.node)
    return signs


def advice_for(target: Target, reason: str, message: str) -> str | None:
    """What to do about an Event, by its words."""
    if reason == REFUSED_CREATION or _FORBIDDEN in message:
        return refusal_advice(message)
    if reason == ALREADY_ACTIVE or _NO_SCALE in message:
        return _RUNS_ON if reason == ALREADY_ACTIVE else _UNCOUNTABLE
    if target.kind == "CronJob":
        return of_warning(reason, message)[2]
    if target.kind != "Pod":
        return None
    if (by := lost_by(target, reason, message)) is not None:
        return by.todo
    logs = logs_of(target.namespace, target.name, " --previous")
    return of_pod_event(reason, message) or logs


def logs_of(namespace: str | None, name: str, previous: str) -> str:
    """How the log of a pod's container is read."""
    return f"Read what its container said: kubectl logs {in_kubectl(namespace, name)}{previous}"
