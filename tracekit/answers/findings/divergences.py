"""TK1xx: what a controller did against its rules, by the verdicts of the replay.

An id stands for one action and one verdict. The divergences of one object come one from another
more often than not (a pod that is missing makes each later status different), so a finding is made
of the first one of each object, and tells how many followed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracekit.answers.model import Case, Rule, Severity, Target
from tracekit.answers.trace_model import Facts
from tracekit.answers.words import clock, counted
from tracekit.check.verdict import Judgement, Verdict

#: Controller and action, in the order of the ids: append, never insert.
ACTIONS = (
    ("job", "pod-create"), ("job", "pod-delete"), ("job", "finalizer-removal"),
    ("job", "pod-adopt"), ("job", "pod-release"), ("job", "status-update"), ("job", "event"),
    ("cronjob", "job-create"), ("cronjob", "job-delete"), ("cronjob", "status-update"),
    ("cronjob", "event"), ("ttl", "job-delete"),
)  # fmt: skip
_VERDICTS = (
    Verdict.DIFFERENT,
    Verdict.MISSING,
    Verdict.EXTRA,
    Verdict.EARLY,
    Verdict.LATE,
)
_NOUNS = {
    "pod-create": "a pod creation",
    "pod-delete": "a pod deletion",
    "finalizer-removal": "a removal of a pod's tracking finalizer",
    "pod-adopt": "an adoption of a pod",
    "pod-release": "a release of a pod",
    "status-update": "a status",
    "event": "an Event",
    "job-create": "a Job creation",
    "job-delete": "a Job deletion",
}
_CLAIMS = {
    Verdict.DIFFERENT: "{noun} that differs from what the rules demand",
    Verdict.MISSING: "{noun} that the rules demand and that never came",
    Verdict.EXTRA: "{noun} that no rule leads to",
    Verdict.EARLY: "{noun} before its time",
    Verdict.LATE: "{noun} after its time",
}
_DECIDED = (
    "The replay's verdict on this action is `{verdict}`: see docs/replay.md. The first divergence "
    "of an object makes the case, those after it are counted."
)
_FALSE_ALARMS = (
    "A version or feature gate that is not the control plane's own; a user who writes under the "
    "controller manager's name; docs/replay.md names what a watch cannot tell."
)


#: What a controller of another package does against its rules (docs/extending.md).
_OF_ANOTHER = "TK199"


def _claim(action: str, verdict: Verdict) -> str:
    return _CLAIMS[verdict].format(noun=_NOUNS.get(action, f"a {action}"))


def claim_of(judgement: Judgement) -> str:
    """What is wrong, without the controller's name."""
    return _claim(judgement.action, judgement.verdict)


def _rule(identity: str, controller: str, action: str, verdict: Verdict) -> Rule:
    return Rule(
        identity,
        f"{controller} controller: {_claim(action, verdict)}",
        Severity.ERROR,
        _DECIDED.format(verdict=verdict.value),
        _FALSE_ALARMS,
        "`tracekit explain TRACE {object}` shows the syncs around it; report it to "
        "kubernetes/kubernetes with this trace, after `tracekit redact`.",
        rank=10,
    )


def _rules() -> Iterator[Rule]:
    for block, (controller, action) in enumerate(ACTIONS):
        for place, verdict in enumerate(_VERDICTS):
            number = 101 + block * len(_VERDICTS) + place
            yield _rule(f"TK{number}", controller, action, verdict)


RULES = tuple(_rules())
_BY_VERDICT = {
    (*action, verdict): RULES[block * len(_VERDICTS) + place]
    for block, action in enumerate(ACTIONS)
    for place, verdict in enumerate(_VERDICTS)
}


def rule_of(judgement: Judgement) -> Rule:
    """The rule that a divergence falls under."""
    what = judgement.controller, judgement.action, judgement.verdict
    return _BY_VERDICT.get(what) or _rule(_OF_ANOTHER, *what)


def find(facts: Facts) -> Iterator[Case]:
    """The first divergence of each object, with what followed."""
    by_object: dict[tuple[str, str, str], list[Judgement]] = {}
    for judgement in facts.judgements.divergent:
        where = judgement.object
        by_object.setdefault((where.kind, where.namespace, where.name), []).append(judgement)
    if not by_object:
        return
    owners = {(job.namespace, job.name): job.cronjob for job in facts.jobs}
    for (kind, namespace, name), found in by_object.items():
        owner = owners.get((namespace, name)) if kind == "Job" else None
        yield _case(sorted(found, key=lambda j: j.time_ns), owner)


def _case(found: list[Judgement], owner: str | None) -> Case:
    first = found[0]
    rule = rule_of(first)
    where = first.object
    paths = ", ".join(_paths(first))
    claim = _CLAIMS[first.verdict].format(noun=_NOUNS.get(first.action, first.action))
    if paths:
        claim += f" ({paths})"
    detail = f"{clock(first.time_ns)}, rv {first.resource_version}: {first.why}"
    if first.subject and first.subject != "status":
        detail = f"{first.subject}, {detail}"
    if len(found) > 1:
        detail += f" ({counted(len(found) - 1, 'more divergence')} of the same object after it)"
    return Case(
        rule,
        Target(where.kind, where.namespace, where.name, where.uid),
        claim,
        first.time_ns,
        found[-1].time_ns,
        detail,
        owner,
        evidence={
            "controller": first.controller,
            "action": first.action,
            "verdict": first.verdict.value,
            "resource_version": first.resource_version,
            "subject": first.subject,
            "why": first.why,
            "fields": [
                {"path": f.path, "expected": f.expected, "observed": f.observed}
                for f in first.fields
            ],
            "divergences": len(found),
        },
    )


def _paths(judgement: Judgement) -> Iterable[str]:
    return dict.fromkeys(field.path for field in judgement.fields)
