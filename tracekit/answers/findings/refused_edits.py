"""TK433: changes of Jobs and CronJobs that the API server refused, and what may be changed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.refusals import objection, refusal_advice, refusal_of
from tracekit.answers.trace_model import NAME_TAKEN, Facts, Row
from tracekit.answers.words import clock, counted, shortened
from tracekit.base.kube.actors import controller_of
from tracekit.base.kube.rights import missing_right

_REFUSALS_OF: Final = {"jobs": "Job", "cronjobs": "CronJob"}

EDIT_REFUSED = Rule(
    "TK433", "an edit that the API server refused", Severity.WARNING,
    "The audit log has a request for the object that was answered 422 (Invalid), 403 (Forbidden) "
    "or 400 (by a webhook). Or (info) one of somebody but a controller to create it was answered "
    "409 (AlreadyExists).",
    "A program that creates an object to find out whether it is there.",
    "A Job's template cannot be changed: delete the Job and create it anew (Argo CD: sync option "
    "Replace=true,Force=true).", rank=24,
)  # fmt: skip


def refused_edits(facts: Facts, suspended: Mapping[tuple[str, str], bool]) -> Iterator[Case]:
    """Requests for an object that were answered 422, 403 or 400, one case for each kind of them.

    `suspended`: by namespace and name of suspended Jobs, whether they had the condition Suspended
    when they were first seen.
    """
    groups: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    yield from _names_taken(facts)
    for call in facts.refused_calls:
        if call["code"] == NAME_TAKEN or call["stream"] not in _REFUSALS_OF or _of_cronjob(call):
            continue  # what a controller's creation met is told of its owner
        if call["reason"] != "Invalid" and call["code"] not in _REFUSED:
            continue
        names = ("stream", "namespace", "name", "username", "verb", "message")
        groups[tuple(str(call[n] or "") for n in names)].append(call)
    for (stream, namespace, name, user, verb, message), calls in groups.items():
        first_ns, last_ns = calls[0]["recv_ns"] or 0, calls[-1]["recv_ns"] or 0
        if calls[0]["reason"] == "Invalid":
            held = suspended.get((namespace, name)) if stream == "jobs" else None
            code, (why, todo, thread) = 422, _invalid(facts, user, message, held=held)
        else:
            code, thread = int(calls[0]["code"]), None
            why, todo = _forbidden(message)
        yield Case(
            EDIT_REFUSED, Target(_REFUSALS_OF[stream], namespace, name),
            f"{verb} by {user or 'unknown'} was refused ({code}): {why}", first_ns, last_ns,
            f"{counted(len(calls), 'time')} from {clock(first_ns)} on: {shortened(message)}",
            evidence={"user": user, "verb": verb, "message": message, "times": len(calls)},
            todo=todo, thread=thread,
        )  # fmt: skip


def _of_cronjob(call: Row) -> bool:
    """Whether it is about a Job of a CronJob."""
    return call["stream"] == "jobs" and bool(call["cronjob"])


#: Codes of refusals that are about who asks, or what an admission plugin or webhook makes of it.
_REFUSED: Final = (400, 403)
#: Who applies manifests, by a part of the user's name, and what lets that replace a Job.
_APPLIERS: Final = {
    "argocd": "Argo CD: sync option Replace=true,Force=true",
    "kustomize-controller": "Flux: annotation kustomize.toolkit.fluxcd.io/force: enabled",
    "helm": "Helm: a hook with helm.sh/hook-delete-policy: before-hook-creation, or a name with "
    "the release's revision",
}


def _invalid(
    facts: Facts, user: str, message: str, *, held: bool | None
) -> tuple[str, str, int | None]:
    """What validation objects to, what to do, and the thread about it."""
    if "immutable" not in message:
        return objection(message), _of_objection(message), None
    if held is not None and "spec.template" in message:
        return _IMMUTABLE, _of_suspended(facts, conditioned=held), _thread(facts, held=held)
    how = next((f" ({text})" for part, text in _APPLIERS.items() if part in user), "")
    field = _FIELD.search(message)
    what = "template" if field is None or field[1] == "spec.template" else field[1]
    return (
        _IMMUTABLE,
        f"A Job's {what} cannot be changed: delete the Job and create it anew{how}.",
        _thread(facts, held=held),
    )


#: Upstream: pkg/apis/batch/validation (validateGeneratedSelector, and lengths of names).
_COPIED: Final = re.compile(r"not auto-generated|controller-uid\]: Invalid value")
_TOO_LONG: Final = re.compile(
    r'(?:metadata\.name|labels): Invalid value: "([^"]*)": must be no more'
)
_NAMED: Final = re.compile(r'^\w+\.batch "([^"]*)" is invalid')


def _of_objection(message: str) -> str:
    """What to change in a request to which validation objects."""
    if _COPIED.search(message):
        return (
            "It is a copy of another Job: leave spec.selector out, and of its labels and its "
            "template's controller-uid and job-name, with and without batch.kubernetes.io/. The "
            "API server gives a new Job its own."
        )
    name, long = _NAMED.search(message), _TOO_LONG.search(message)
    if name is None or long is None or name[1] != long[1]:
        return "Change the request as the message says."
    if message.startswith("CronJob"):
        return "Give it a shorter name: that of its Jobs is NAME-MINUTES, 63 characters at most."
    return "Give it a shorter name: its pods have that as a label, of 63 characters at most."


_IMMUTABLE: Final = "the field is immutable"
_FIELD: Final = re.compile(r" is invalid: \[?(spec\.\w+)")


def _forbidden(message: str) -> tuple[str, str]:
    """Why a request was forbidden, and what to do."""
    right = missing_right(message)
    if right is not None:
        return f"it has no right to {right.verb} {right.resource}", refusal_advice(message)
    return refusal_of(message).value, refusal_advice(message)


#: Who creates Jobs of fixed names, by a part of the user's name, and what lets that succeed: from
#: that program's own documentation.
_CREATORS: Final = {
    "helm": "Let Helm delete the earlier hook first: helm.sh/hook-delete-policy: "
    "before-hook-creation.",
    "tiller": "Let Helm delete the earlier hook first: helm.sh/hook-delete-policy: "
    "before-hook-creation.",
    "argocd": "Let Argo CD delete the earlier hook first (argocd.argoproj.io/hook-delete-policy: "
    "BeforeHookCreation), or use generateName.",
}
_DELETE_FIRST: Final = (
    "Delete the one that is there and wait until it is gone (its finalizers, its pods), or use "
    "generateName; ttlSecondsAfterFinished takes those that have ended."
)


def _names_taken(facts: Facts) -> Iterator[Case]:
    """Creations that were refused as an object of that name was there."""
    groups: defaultdict[tuple[str, str, str, str], list[Row]] = defaultdict(list)
    for call in facts.refused_calls:
        user = str(call["username"] or "")
        if call["code"] != NAME_TAKEN or _of_cronjob(call) or controller_of(user, None):
            continue
        key = (call["stream"], call["namespace"] or "", call["name"] or "", user)
        groups[key].append(call)
    for (stream, namespace, name, user), calls in groups.items():
        kind, first_ns = _REFUSALS_OF[stream], calls[0]["recv_ns"] or 0
        todo = next((text for part, text in _CREATORS.items() if part in user), _DELETE_FIRST)
        if stream == "cronjobs":
            todo = "Change the one that is there (kubectl apply or replace), or delete it first."
        yield Case(
            EDIT_REFUSED, Target(kind, namespace, name),
            f"create by {user or 'unknown'} was refused (409): a {kind} of that name is there",
            first_ns, calls[-1]["recv_ns"] or 0,
            f"{counted(len(calls), 'time')} from {clock(first_ns)} on: "
            f"{shortened(str(calls[-1]['message'] or ''))}",
            severity=Severity.INFO, evidence={"user": user, "times": len(calls)}, todo=todo,
        )  # fmt: skip


#: Of a Job that was suspended and never ran.
_MUTABLE: Final = (
    "In a suspended Job that never ran, only node affinity, node selector, tolerations, labels, "
    "annotations and scheduling gates of its template can be changed: see what else the request "
    "changes."
)


def _of_suspended(facts: Facts, *, conditioned: bool) -> str:
    """What to do where whoever holds a Job back may not change its template."""
    if not facts.release.changes_suspended:
        return (
            "This release lets nobody change the template of a suspended Job: upgrade to 1.23 or "
            "later, or let the queue set nothing in it."
        )
    if _waits_for_the_condition(facts, conditioned=conditioned):
        return (
            "This release refuses that until the Job has its condition Suspended, also where it "
            "never ran: upgrade to 1.36.2 or later, or turn "
            "MutableSchedulingDirectivesForSuspendedJobs off."
        )
    return _MUTABLE


def _waits_for_the_condition(facts: Facts, *, conditioned: bool) -> bool:
    return facts.release.changes_after_condition and not conditioned


def _thread(facts: Facts, *, held: bool | None) -> int | None:
    return (
        139281 if held is not None and _waits_for_the_condition(facts, conditioned=held) else None
    )
