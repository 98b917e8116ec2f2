"""TK443 to TK446, TK455, TK458, TK908: what kubectl printed for people tells, without states."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tracekit.answers.endings import LOST_CONTAINER
from tracekit.answers.event_index import is_pod_of
from tracekit.answers.findings.cron_stalls import of_warning
from tracekit.answers.findings.events_alone import (
    BEGAN,
    BESIDE,
    FAILED,
    FAILS,
    WARNED,
    advice_for,
    as_state,
    by_events_alone,
    logs_of,
    lost_by,
    lost_in,
    of_nodes,
    of_nodes_at_work,
    reason_of,
    summary_of,
    was_ended,
)
from tracekit.answers.findings.evictors import ended_by
from tracekit.answers.findings.nodes import NodeSigns, signs_of_node, signs_of_unseen, with_node
from tracekit.answers.findings.pulls import PULLS
from tracekit.answers.findings.shown_crons import LONG_AGO, held_up, long_ago
from tracekit.answers.findings.shown_jobs import ENDING, ENDINGS
from tracekit.answers.findings.telling import is_harmless, is_over
from tracekit.answers.findings.unplaced import SET_UP_NS
from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.parts import RuleGroup
from tracekit.answers.remedies import (
    MORE_MEMORY,
    NOT_BEGUN,
    NOT_LOCATED,
    against_sidecar,
    of_eviction,
    of_kubelet,
    of_pull,
    of_scheduler,
)
from tracekit.answers.trace_model import Facts, Seen, State
from tracekit.answers.waits import CONFIGURATION, SIDECAR_NS
from tracekit.answers.words import clock, counted, named, shortened
from tracekit.base.escaping import for_shell
from tracekit.base.kube.printed.ages import age_of
from tracekit.base.kube.printed.model import Shown, ShownContainer, ShownEvent
from tracekit.base.kube.timestamps import NS_PER_S, parse_rfc3339

TROUBLED = Rule(
    "TK444", "a pod that was shown in trouble", Severity.WARNING,
    "Where it was shown last, its STATUS or the state of a container is one that the kubelet gives "
    "when an image does not come, a container cannot start or has failed, or a node took or "
    "refused the pod; or its condition PodScheduled is False; or its AGE is 10 minutes or more and "
    "it has not begun (Pending, ContainerCreating, PodInitializing); or a description has a pod of "
    "a Job whose containers have ended well, 5 minutes before or more, but for some. Or (info, as "
    "nothing tells since when) it is Terminating, SchedulingGated, NotReady (a container of it has "
    "ended and another runs on), or in its init containers.",
    "A pod that runs, or goes, a moment later.",
    "Read what its container said: kubectl logs POD, with --previous where it was restarted.",
    rank=19,
)  # fmt: skip
SUSPENDED = Rule(
    "TK446", "a CronJob or Job that was shown as suspended", Severity.INFO,
    "SUSPEND is True, or a Job's STATUS Suspended, where it was shown last.",
    "None: it is so by intent.",
    "kubectl patch cronjob NAME -p '{\"spec\":{\"suspend\":false}}' if that is not intended.",
    rank=63,
)  # fmt: skip
TEXT = Rule(
    "TK908", "text that was printed for people", Severity.INFO,
    "The trace was made of tables of kubectl get, of kubectl describe, or of a controller "
    "manager's log alone: it has no states.",
    "None known.",
    BESIDE, rank=64,
)  # fmt: skip
RULES = (FAILED, TROUBLED, WARNED, SUSPENDED, LONG_AGO, ENDING, TEXT)

_STARTS = frozenset({*CONFIGURATION, "ContainerCannotRun", "StartError"})
_ENDS = frozenset(
    {"Error", "CrashLoopBackOff", "OOMKilled", "DeadlineExceeded", "Failed", LOST_CONTAINER}
)
#: Of how a container ended, whatever is said of it.
_ENDED = {"OOMKilled": MORE_MEMORY, LOST_CONTAINER: NOT_LOCATED}
#: Of the pod as a whole: a node took it, lost it or did not admit it.
_NODES = frozenset(
    {
        "Evicted", "NodeLost", "NodeShutdown", "Terminated", "Preempting", "Unknown",
        "UnexpectedAdmissionError", "NodeAffinity",
    }
)  # fmt: skip
_CELLS = ("READY", "STATUS", "COMPLETIONS", "DURATION", "RESTARTS", "AGE")


class _Object(NamedTuple):
    """All that was shown of one object, in order, and the Events about it."""

    target: Target
    looks: list[Seen]
    events: list[ShownEvent]
    #: The same Events, as those of a list are.
    states: list[State]

    @property
    def last(self) -> Shown | None:
        """What it was where it was shown last."""
        found = self.looks[-1].shown if self.looks else None
        return found if isinstance(found, Shown) else None


class Texts(RuleGroup):
    """The rules of this family."""

    def of_part(self, facts: Facts) -> Iterator[Case]:
        """What Events and listed nodes tell beside Jobs; what is shown is not cut."""
        yield from by_events_alone(facts)
        yield from of_nodes_at_work(facts)

    def of_whole(self, whole: Facts) -> Iterator[Case]:
        """Every case of this family."""
        return _of_texts(whole)


def _of_texts(facts: Facts) -> Iterator[Case]:
    if not facts.shown:
        return
    objects = _objects(facts.shown)
    said: set[Target] = set()  # pods of which no more is there than a Job's failure says already
    nodes: set[str] = set()  # of which pods' cases tell
    for one in sorted(objects, key=lambda one: one.target.kind != "Job"):
        found = list(_cases(facts, one))
        if found and found[0].rule is FAILED:
            found[0] = _with_pods(found[0], objects, said)
        if one.target not in said and one.target.kind != "Node":
            signs = _of_its_node(facts, one)
            nodes.update({signs.node} if signs is not None else ())
            yield from (with_node(c, signs, advise=False) for c in found or _warnings(facts, one))
    yield from of_nodes(facts, nodes, "was shown")
    yield _of_the_record(facts, len(objects))


def _of_the_record(facts: Facts, objects: int) -> Case:
    """What was read, and what is unknown therefore."""
    looks = sum(isinstance(seen.shown, Shown) for seen in facts.shown)
    claim = "is text that kubectl prints for people: nothing is judged"
    detail = (
        f"{counted(objects, 'object')}, shown {counted(looks, 'time')} in all; revisions, times "
        "but as ages, and what was not printed are unknown"
    )
    evidence, todo = {"objects": objects, "looks": looks}, None
    if all(isinstance(s.shown, ShownEvent) and s.shown.how == "log" for s in facts.shown):
        claim = "is the log of a controller manager alone: nothing is judged"
        detail, evidence = f"Events of {counted(objects, 'object')}; how these stood is unknown", {}
        todo = (
            f"{BESIDE} Beside a record such a log tells more: tracekit import RECORD --with LOG "
            "-o TRACE."
        )
    return Case(
        TEXT, Target("Trace", "", "the record"), claim, facts.first_ns, facts.end_ns, detail,
        evidence=evidence, todo=todo,
    )  # fmt: skip


def _with_pods(failed: Case, objects: Sequence[_Object], said: set[Target]) -> Case:
    """A Job's failure with what Events tell of pods of it that were not shown themselves."""
    job = failed.target
    mine = [
        one for one in objects
        if one.target.kind == "Pod" and one.target.namespace == job.namespace and not one.looks
        and is_pod_of(job.name, one.target.name)
    ]  # fmt: skip
    cause = reason_of([state for one in mine for state in one.states])
    if cause is None:
        return failed
    said.update(one.target for one in mine)
    row = cause.row
    pod = Target("Pod", job.namespace, str(row["involved_name"]))
    return replace(
        failed,
        detail=f"{failed.detail}; {summary_of(cause)}, at about {clock(cause.last_ns)}",
        todo=advice_for(pod, str(row["reason"]), str(row["message"])) or failed.todo,
    )


def _of_its_node(facts: Facts, one: _Object) -> NodeSigns | None:
    """What Events tell of the node of a pod that others ended."""
    lost = lost_in(one.states)
    if lost is None:
        return None
    node = one.last.node if one.last is not None else None
    return signs_of_node(facts, node, lost.last_ns, lost.last_ns) or signs_of_unseen(
        facts, one.states, lost.last_ns
    )


def _objects(shown: Sequence[Seen]) -> list[_Object]:
    found: dict[tuple[str, str, str], _Object] = {}
    for seen in shown:
        item = seen.shown
        key = (item.kind, item.namespace or "", item.name)
        one = found.setdefault(key, _Object(Target(*key), [], [], []))
        if isinstance(item, ShownEvent):
            one.events.append(item)
            one.states.append(as_state(item, seen.at_ns))
        else:
            if one.last is not None and _is_another(one.last, item):
                one.looks.clear()
            one.looks.append(seen)
    return list(found.values())


def _is_another(before: Shown, after: Shown) -> bool:
    """Whether two looks are at two objects of one name: the first was deleted, or is older."""
    if before.event == "DELETED":
        return True
    ages = age_of(before.printed.get("AGE", "")), age_of(after.printed.get("AGE", ""))
    if ages[0] is None or ages[1] is None or before.how != after.how:
        return False
    return ages[1][0] + ages[1][1] < ages[0][0]


def _cases(facts: Facts, one: _Object) -> Iterator[Case]:
    last = one.last
    if one.target.kind == "Job":
        yield from _job(facts, one, last)
    elif last is not None and last.kind == "Pod":
        yield from _pod(facts, one, last)
    elif last is not None and last.kind == "CronJob":
        yield from _cronjob(facts, one, last)


def _cronjob(facts: Facts, one: _Object, last: Shown) -> Iterator[Case]:
    if last.suspended:
        yield _case(facts, one, SUSPENDED, "was shown as suspended", f"SUSPEND True{_when(one)}")
        yield from _warnings(facts, one)
    for found in long_ago(facts, one.looks):
        due = found
        claim, todo = held_up(last) or ("was shown without a start that was due", None)
        warned = next((e for e in reversed(one.events) if e.type == "Warning"), None)
        if warned is not None:
            claim, said, todo, _ = of_warning(warned.reason, warned.message)
            due = f"{due}; {said}"
        yield _case(facts, one, LONG_AGO, claim, f"{due}{_when(one)}", todo)


def _case(
    facts: Facts,
    one: _Object,
    rule: Rule,
    claim: str,
    detail: str,
    todo: str | None = None,
    severity: Severity | None = None,
) -> Case:
    until_ns = one.looks[-1].at_ns if one.looks else facts.end_ns
    from_ns = one.looks[0].at_ns if one.looks else facts.first_ns
    last = one.last
    owner = last.owner_name if last is not None and last.owner_kind == "CronJob" else None
    return Case(
        rule, one.target, claim, from_ns, until_ns, detail, owner, severity,
        evidence={"printed": dict(last.printed)} if last is not None else {}, todo=todo,
    )  # fmt: skip


def _job(facts: Facts, one: _Object, last: Shown | None) -> Iterator[Case]:
    event = next((e for e in reversed(one.events) if _fails(e)), None)
    status = last.status if last is not None else None
    if status in ("Complete", "Running", "Suspended", "SuccessCriteriaMet") and event is not None:
        event = None  # of another Job of that name
    if status in ("Failed", "FailureTarget") or event is not None:
        why = f" ({event.reason})" if event is not None else ""
        said = f": {shortened(event.message)}" if event is not None else ""
        claim = "was shown as failing" if status == "FailureTarget" else "was shown as failed"
        yield _case(facts, one, FAILED, claim + why, f"{_cells(last)}{_when(one)}{said}")
    elif last is not None and last.failed and last.active == 0 and last.completed is None:
        yield _case(
            facts, one, FAILED, "has failed pods and none active: whether it failed is unknown",
            f"{counted(last.failed, 'pod')} failed{_when(one)}; a description prints no "
            "conditions, and Events are gone after an hour",
            "kubectl get job NAME -o yaml has its conditions.", Severity.INFO,
        )  # fmt: skip
    elif last is not None and status is None and _is_overdue(last):
        yield _case(
            facts, one, FAILED, "was not complete; whether it failed was not shown",
            f"{_cells(last)}{_when(one)}; kubectl prints no STATUS of Jobs before 1.31",
            "`kubectl get job NAME -o yaml` has its conditions, `kubectl get pods` its pods.",
            Severity.INFO,
        )  # fmt: skip
    elif status == "Suspended":
        yield _case(
            facts, one, SUSPENDED, "was shown with STATUS Suspended", f"{_cells(last)}{_when(one)}",
            "kubectl get job NAME -o yaml names who holds it: where the label of a queue (Kueue) "
            "or an owner is there, that resumes it; else kubectl patch job NAME -p "
            "'{\"spec\":{\"suspend\":false}}'.",
        )  # fmt: skip
    elif (ending := ENDINGS.get(status or "")) is not None:
        yield _case(facts, one, ENDING, ending.claim, f"{_cells(last)}{_when(one)}; {ending.waits}")


def _is_overdue(last: Shown) -> bool:
    """Whether a table has a Job that was not complete when it was 10 minutes old or more."""
    age = age_of(last.printed.get("AGE", ""))
    if last.how != "get" or last.succeeded is None or age is None:
        return False
    return last.succeeded < (last.completions or 1) and age[0] * NS_PER_S >= SET_UP_NS


def _fails(event: ShownEvent) -> bool:
    return event.reason in FAILS and event.type == "Warning"


def _pod(facts: Facts, one: _Object, last: Shown) -> Iterator[Case]:
    found = next(filter(None, map(_container_trouble, last.containers or ())), None)
    if last.reason in _NODES:
        found = None  # its containers ended by that
    if found is None and (outlived := _outlived(facts, one, last)) is not None:
        yield outlived
        return
    reason, where = found or (_pod_trouble(last), "")
    said = [e for e in one.events if e.type == "Warning"]
    message = last.message or (said[-1].message if said else "")
    waits = last.status == "Pending" and any(e.reason == "FailedScheduling" for e in said)
    if reason is None and (waits or (last.conditions or {}).get("PodScheduled") == "False"):
        reason = "Unschedulable"
    if reason is None:
        yield from _lasting(facts, one, last)
        return
    detail = f"{where or _cells(last)}{_path(one)}{_when(one)}"
    if message:
        detail += f": {shortened(message)}"
    todo = _todo(reason, message) or _read(last, reason)
    if reason not in _NODES and (by := _ender(one)) is not None:
        detail, todo = f"{detail}; {by[0]}", by[1]
    yield _case(facts, one, TROUBLED, f"was shown as {reason}", detail, todo)


def _outlived(facts: Facts, one: _Object, last: Shown) -> Case | None:
    """A pod whose work has ended well, as described, while a container beside it has not."""
    regular = [c for c in last.containers or () if not c.init]
    done = [c for c in regular if c.state == "Terminated" and c.exit_code == 0]
    others = [c.name for c in regular if c.state in ("Running", "Waiting")]
    if last.owner_kind != "Job" or not done or len(done) + len(others) < len(regular) or not others:
        return None
    ends = [parse_rfc3339(c.finished or "") for c in done]
    said = next((e for e in reversed(one.events) if e.reason in ("Killing", "Unhealthy")), None)
    words = f"; Event {said.reason}: {shortened(said.message)}" if said is not None else ""
    since_ns = max((at_ns for at_ns in ends if at_ns is not None), default=None)
    lasts = since_ns is not None and one.looks[-1].at_ns - since_ns >= SIDECAR_NS
    ended = f"{named([c.name for c in done])} ended with exit code 0"
    ended += f" at {clock(since_ns)}" if since_ns is not None else ""
    return _case(
        facts, one, TROUBLED, f"is done but for container {named(others)}",
        f"{ended}{_when(one)}; a pod succeeds when all its containers have{words}",
        against_sidecar("Jobs"), None if lasts else Severity.INFO,
    )  # fmt: skip


#: Statuses that are trouble only where they last, which one look does not tell. Upstream: kubectl,
#: pkg/printers/internalversion (printPod).
_LASTING = {
    "NotReady": "A container of it has ended and another runs on, as a sidecar does: `kubectl get "
    "pod NAME -o yaml` names both. A native sidecar (an init container with restartPolicy Always) "
    "lets the pod end.",
    "Terminating": "`kubectl get pod NAME -o yaml` has its deletionTimestamp, its finalizers and "
    "its node: past that time it is held by a finalizer, or its node does not answer.",
    "SchedulingGated": "It waits for whoever set its scheduling gates (a queue like Kueue): "
    "`kubectl get pod NAME -o yaml` names them.",
}
#: Statuses of a pod that has not begun, with what tells why.
_NOT_BEGUN = {
    "Pending": "kubectl describe pod NAME: its condition PodScheduled and the Event "
    "FailedScheduling say why no node takes it.",
    "ContainerCreating": "kubectl describe pod NAME: its Events say what its node waits for (a "
    "volume, a Secret or ConfigMap, the network, an image).",
    "PodInitializing": "kubectl describe pod NAME: its Events say what its node waits for, mostly "
    "an image.",
}
_INIT_OF = re.compile(r"Init:\d+/\d+")
_INIT_RUNS = "kubectl describe pod NAME names the init container that runs, or waits: read its log."


def _lasting(facts: Facts, one: _Object, last: Shown) -> Iterator[Case]:
    """A pod whose status is trouble only where it lasts."""
    status = (last.status or "").partition(" ")[0]
    todo, severity, claim = _LASTING.get(status), Severity.INFO, f"was shown as {status}"
    age = age_of(last.printed.get("AGE", ""))
    if age is not None and age[0] * NS_PER_S >= SET_UP_NS:
        if _INIT_OF.fullmatch(status):
            todo, claim = _INIT_RUNS, f"has not begun, and was shown as {status}"
        elif status in _NOT_BEGUN:
            todo, claim = _NOT_BEGUN[status], f"has not begun, and was shown as {status}"
            severity = Severity.WARNING
    if todo is not None:
        detail = f"{_cells(last)}{_path(one)}{_when(one)}"
        by = _ender(one)
        if by is not None and status == "Terminating":
            detail, todo = f"{detail}; {by[0]}", f"{by[1]} {todo}"
        yield _case(facts, one, TROUBLED, claim, detail, todo, severity)


def _ender(one: _Object) -> tuple[str, str] | None:
    """Who ended the pod, as the last Event that tells it says, and what keeps it from that."""
    event = lost_in(one.states)
    by = ended_by(event.row) if event is not None else None
    return None if event is None or by is None else (summary_of(event), by.todo)


def _read(last: Shown, reason: str) -> str:
    """Where it is told what became of a pod, as a command for this one."""
    if reason in _NODES:
        space = f" -n {for_shell(last.namespace)}" if last.namespace else ""
        return (
            "See what was said of it while it is there: kubectl get events"
            f"{space} --field-selector involvedObject.name={for_shell(last.name)}"
        )
    restarted = bool(last.restarts) or any(c.restarts for c in last.containers or ())
    previous = " --previous" if restarted else ""
    if reason.startswith("Init:"):
        init = f"{logs_of(last.namespace, last.name, ' -c INIT')}{previous}"
        return f"{init}; kubectl describe pod NAME names the init container that failed."
    named = next((c for c in last.containers or () if _container_trouble(c) is not None), None)
    container = "" if named is None else f" -c {for_shell(named.name)}"
    return logs_of(last.namespace, last.name, container + previous)


def _todo(reason: str, message: str) -> str | None:
    plain = reason.removeprefix("Init:")
    if plain in PULLS:
        return of_pull(f"{plain} {message}")
    if plain in _STARTS:
        return of_kubelet(message)
    if plain == "Evicted":
        return of_eviction(message)
    if plain == "Unschedulable":
        return of_scheduler(message)
    return _ENDED.get(plain)


def _container_trouble(container: ShownContainer) -> tuple[str, str] | None:
    """Why a container is in trouble, and what was shown of it."""
    reason = container.reason or ""
    if container.state == "Terminated" and container.exit_code:
        reason = reason or f"ExitCode:{container.exit_code}"
    elif not _is_trouble(reason):
        return None
    what = f"{'init container' if container.init else 'container'} {container.name}"
    code = f", exit code {container.exit_code}" if container.exit_code else ""
    if container.before_reason is not None:
        code += f", before that {container.before_reason} ({container.before_exit_code})"
    count = f", {counted(container.restarts, 'restart')}" if container.restarts else ""
    return reason, f"{what}: {reason}{code}{count}"


def _pod_trouble(last: Shown) -> str | None:
    return next((s for s in (last.reason, last.status) if s is not None and _is_trouble(s)), None)


def _is_trouble(status: str) -> bool:
    plain = status.removeprefix("Init:")
    return (
        plain in PULLS
        or plain in _STARTS
        or plain in _ENDS
        or plain in _NODES
        or plain.startswith(("ExitCode:", "Signal:", "OutOf"))
    )


def _warnings(facts: Facts, one: _Object) -> Iterator[Case]:
    by_reason: defaultdict[str, list[tuple[ShownEvent, State]]] = defaultdict(list)
    for event, state in zip(one.events, one.states, strict=True):
        if event.type == "Warning" or lost_by(one.target, event.reason, event.message):
            by_reason[event.reason].append((event, state))
    for reason, events in by_reason.items():
        last, state = events[-1]
        times = f", {last.count} times" if last.count > 1 else ""
        age = f", {last.age} before" if last.age else ""
        if last.how == "log":
            age = f", last at {clock(state.last_ns)}"
        detail = f"{shortened(last.message)}{times}{_when(one)}{age}"
        todo = advice_for(one.target, reason, last.message)
        by = lost_by(one.target, reason, last.message)
        claim = f"was shown with the warning {reason}" if by is None else was_ended(by, reason)
        severity = None
        if by is None and (is_harmless(state) or _began_after(one, state)):
            severity = Severity.INFO
        if severity is not None and not is_harmless(state):
            detail, todo = f"{detail}; it began after that", BEGAN
        yield _case(facts, one, WARNED, claim, detail, todo, severity)


def _began_after(one: _Object, event: State) -> bool:
    """Whether a pod began after what hindered it: by an Event, or as its containers were shown."""
    if one.target.kind != "Pod" or is_over(event, one.states):
        return one.target.kind == "Pod"
    begun = one.last is not None and any(
        c.state in ("Running", "Terminated") and not c.init for c in one.last.containers or ()
    )
    return begun and event.row["reason"] in NOT_BEGUN


def _cells(last: Shown | None) -> str:
    """What a table or a description had of it, in its own words."""
    if last is None:
        return "an Event says so"
    if last.how == "describe":
        statuses = last.printed.get("Pods Statuses") or last.printed.get("Status", "")
        return f"described with {statuses}" if statuses else "described"
    return ", ".join(f"{name} {last.printed[name]}" for name in _CELLS if name in last.printed)


def _path(one: _Object) -> str:
    """The statuses that it had before, of -w."""
    statuses = [seen.shown.status for seen in one.looks if isinstance(seen.shown, Shown)]
    path = [s for s, before in zip(statuses, [None, *statuses], strict=False) if s and s != before]
    return f", after {', '.join(path[:-1])}" if len(path) > 1 else ""


def _when(one: _Object) -> str:
    return f", as of {clock(one.looks[-1].at_ns)}" if one.looks and one.looks[-1].at_ns else ""
