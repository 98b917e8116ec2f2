"""What a smaller trace has to show: one divergence, or one finding about one object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tracekit.answers.findings.diagnosis import RULES
from tracekit.answers.findings.divergences import rule_of
from tracekit.answers.model import Case
from tracekit.base.errors import UsageError
from tracekit.base.suggest import hint
from tracekit.check.verdict import Judgement, Verdict
from tracekit.minimise.rows import Key
from tracekit.minimise.showing import Showing, Shown, divergence, finding
from tracekit.trace.reading.objects import Objects

_TIMELY = frozenset({Verdict.EARLY, Verdict.LATE, Verdict.MISSING})


class Target(Struct, frozen=True):
    """One divergence or finding, and where to look for what it rests on."""

    shown: Shown
    #: The Jobs and CronJobs that it is about; none where it is about the whole.
    keys: tuple[Key, ...]
    #: Others that its words name.
    mentioned: tuple[Key, ...] = ()
    #: The controller on whose having made no call it may rest; empty: on none's.
    quiet: str = ""


def choose(
    found: Showing, objects: Objects, *, key: tuple[str, str] | None, rule: str | None
) -> Target:
    """The first divergence, else the worst finding, of a Job or CronJob or of a rule if named.

    Raises:
        UsageError: There is none, or no such rule.
    """
    if rule is not None:
        known = [r.id for r in RULES]
        if rule not in known:
            meant = hint(rule, known, "`tracekit diagnose --list` names all")
            raise UsageError(f"{rule!r} is no kind of finding{meant}")
    divergences = [
        j
        for j in sorted(found.divergences, key=lambda j: j.time_ns)
        if rule in (None, rule_of(j).id) and _of(key, j.object.namespace, j.object.name)
    ]
    if divergences:
        return _of_divergence(divergences[0], objects)
    cases = [
        case
        for case in found.cases
        if rule in (None, case.rule.id) and _of(key, case.target.namespace, case.target.name)
    ]
    if cases:
        return _of_case(cases[0], objects)
    what = f"no {rule}" if rule is not None else "neither a divergence nor a finding"
    where = f" of {key[0]}/{key[1]}" if key is not None else ""
    raise UsageError(
        f"there is nothing to show: the trace has {what}{where}; `tracekit diagnose` lists what it "
        "has"
    )


def _of(key: tuple[str, str] | None, namespace: str, name: str) -> bool:
    return key in (None, (namespace, name))


def _of_divergence(judgement: Judgement, objects: Objects) -> Target:
    where = judgement.object
    own = (where.kind, where.namespace, where.name)
    return Target(
        divergence(judgement),
        _known([own], objects),
        _mentioned([judgement.why, *map(str, judgement.assumptions)], objects),
        judgement.controller if judgement.verdict in _TIMELY else "",
    )


def _of_case(case: Case, objects: Objects) -> Target:
    own = (case.target.kind, case.target.namespace, case.target.name)
    texts = [case.claim, case.detail, str(case.evidence)]
    return Target(finding(case), _known([own], objects), _mentioned(texts, objects))


def _known(keys: Sequence[Key], objects: Objects) -> tuple[Key, ...]:
    """The Job or CronJob of a key; of a pod its Job, of anything else none."""
    found: list[Key] = []
    for kind, namespace, name in keys:
        if kind in ("Job", "CronJob"):
            found.append((kind, namespace, name))
        elif kind == "Pod":
            found += [
                ("Job", space, job)
                for space, pod, job in objects.pods
                if (space, pod) == (namespace, name)
            ]
    return tuple(found)


def _mentioned(texts: Iterable[str], objects: Objects) -> tuple[Key, ...]:
    """The Jobs and CronJobs whose names stand in the texts, as namespace/name."""
    words = {word.strip(",;:.()'\"[]") for text in texts for word in text.split()}
    return tuple(
        (kind, namespace, name)
        for kind, keys in (("Job", objects.jobs), ("CronJob", objects.cronjobs))
        for namespace, name in keys
        if f"{namespace}/{name}" in words
    )
