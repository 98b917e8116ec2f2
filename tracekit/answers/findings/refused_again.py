"""TK461, TK462: evictions refused again and again, writes that meet nothing but conflicts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.refusals import refusal_advice
from tracekit.answers.trace_model import Facts, Row
from tracekit.answers.words import clock, counted, shortened
from tracekit.base.durations import span
from tracekit.base.escaping import for_shell
from tracekit.base.kube.actors import name_of
from tracekit.base.kube.timestamps import NS_PER_S

EVICTION_REFUSED = Rule(
    "TK461", "a pod whose eviction is refused again and again", Severity.WARNING,
    "The audit log has two or more requests of one user to evict a pod that were refused (by a "
    "PodDisruptionBudget: 429; by two of them: 500; by a webhook), and the pod was not evicted or "
    "deleted since, or a minute or more after the first of them. 404, 409 and a 429 of the API "
    "server's own queues do not count.",
    "A drain that the log's end cuts off before the budget had room.",
    "kubectl get pdb: one with ALLOWED DISRUPTIONS 0 lets no pod go. Let the work end, or correct "
    "the budget; to pass over budgets: kubectl drain --disable-eviction.", rank=25,
)  # fmt: skip
CONFLICTS = Rule(
    "TK462", "writes that meet nothing but conflicts", Severity.WARNING,
    "The audit log has three or more writes of one user to a Job or CronJob in a row that were "
    "answered 409 (Conflict), and none of that user and kind that came through since.",
    "A client that gave up by intent.",
    "See who else writes the object (tracekit who TRACE --object NAME), and let one of them leave "
    "it; a client has to read the object anew before it tries again.", rank=26,
)  # fmt: skip
RULES = (EVICTION_REFUSED, CONFLICTS)

#: An eviction that came through sooner is not told. A choice: kubectl drain asks every 5 s, and a
#: budget has room as soon as the next pod is ready.
_SOON_NS: Final = 60 * NS_PER_S
#: So many refusals make "again and again": kubectl drain asks anew each 5 s; a client that meets
#: conflicts (client-go's RetryOnConflict) tries five times within a moment. A choice.
_EVICTIONS, _CONFLICTS = 2, 3
_KINDS: Final = {"pods": "Pod", "jobs": "Job", "cronjobs": "CronJob"}
#: Upstream: pkg/registry/core/pod/storage/eviction.go.
_BUDGET: Final = re.compile(r"[Tt]he disruption budget (\S+) (?:needs|is|does)")
_SEVERAL: Final = "more than one PodDisruptionBudget"
_BY_BUDGET: Final = re.compile("disruption ?budget", re.IGNORECASE)


def refused_again(facts: Facts) -> Iterator[Case]:
    """One case for each object and user whose requests were refused again and again."""
    groups: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for call in facts.refused_again:
        names = ("stream", "namespace", "name", "username", "verb")
        groups[tuple(str(call[n] or "") for n in names)].append(call)
    for calls in groups.values():
        if calls[0]["stream"] == "pods":
            if len(calls) >= _EVICTIONS and _lasted(calls):
                yield _eviction(facts, calls)
        else:
            since = [call for call in calls if call["done_ns"] is None]
            if len(since) >= _CONFLICTS:
                yield _conflicts(since)


def _lasted(calls: list[Row]) -> bool:
    """Whether the pod stayed for long, or is there still, as far as is known."""
    done_ns = calls[-1]["done_ns"]
    return done_ns is None or done_ns - calls[0]["recv_ns"] >= _SOON_NS


def _target(call: Row) -> Target:
    return Target(_KINDS[call["stream"]], call["namespace"] or "", call["name"] or "")


def _who(call: Row) -> str:
    return name_of(call["username"], call["agent"]) or "an unknown user"


def _times(calls: list[Row]) -> str:
    first_ns, last_ns = calls[0]["recv_ns"], calls[-1]["recv_ns"]
    return f"{counted(len(calls), 'time')} from {clock(first_ns)} to {clock(last_ns)}"


def _eviction(facts: Facts, calls: list[Row]) -> Case:
    first_ns, last = calls[0]["recv_ns"], calls[-1]
    message, done_ns = str(last["message"] or ""), last["done_ns"]
    named = _BUDGET.search(message)
    budget = named[1] if named else ""
    if _SEVERAL in message:
        by = "it has more than one PodDisruptionBudget"
    elif budget:
        by = f"PodDisruptionBudget {budget}"
    else:
        by = "a PodDisruptionBudget" if _BY_BUDGET.search(message) else "not by a budget"
    after = f"; it went {span(done_ns - first_ns)} after the first" if done_ns else ""
    return Case(
        EVICTION_REFUSED, _target(last),
        f"its eviction was refused again and again ({by}), asked for by {_who(last)}",
        first_ns, done_ns or facts.end_ns,
        f"{_times(calls)} ({last['code']}): {shortened(message)}{after}",
        severity=Severity.INFO if done_ns else None,
        evidence={"user": last["username"], "budget": budget or None, "times": len(calls),
                  "message": message},
        todo=_todo(last, message, budget),
    )  # fmt: skip


def _todo(call: Row, message: str, budget: str) -> str:
    """What lets the pod go."""
    space = for_shell(call["namespace"] or "")
    if _SEVERAL in message:
        return (
            f"Leave one budget whose selector fits the pod: kubectl get pdb -n {space} -o wide. An "
            "eviction heeds one only, and is refused where there are more."
        )
    if not _BY_BUDGET.search(message):
        return refusal_advice(message)
    look = f"kubectl describe pdb -n {space}" + (f" {for_shell(budget)}" if budget else "")
    if call["job"]:
        return (
            f"Let the Job end before the drain, or let the budget's selector leave its pods out "
            f"({look}): Jobs have no scale subresource, so a budget over their pods with "
            "maxUnavailable or per cent allows no disruption at all. To pass over budgets: kubectl "
            "drain --disable-eviction."
        )
    return (
        f"See why it allows none ({look}): too few pods ready, or minAvailable as great as their "
        "number. Pods that are not ready may go with unhealthyPodEvictionPolicy: AlwaysAllow; to "
        "pass over budgets: kubectl drain --disable-eviction."
    )


def _conflicts(calls: list[Row]) -> Case:
    first_ns, last = calls[0]["recv_ns"], calls[-1]
    return Case(
        CONFLICTS, _target(last),
        f"{last['verb']} by {_who(last)} met nothing but conflicts (409)",
        first_ns, last["recv_ns"], f"{_times(calls)}: {shortened(str(last['message'] or ''))}",
        evidence={"user": last["username"], "verb": last["verb"], "times": len(calls)},
    )  # fmt: skip
