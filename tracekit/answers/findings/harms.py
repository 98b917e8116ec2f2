"""What each case of a finding cost, and who did it: by the kind of finding and the object at hand.

Harm of CronJobs and controllers is known to the rule that finds it, which says so in the case; that
of a Job follows from how it ended and what became of its pods.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from tracekit.answers.harm import Harm, Loss
from tracekit.answers.model import Case, Family, Finding, Target
from tracekit.answers.trace_model import Facts, Job, Pod
from tracekit.base.kube.actors import DISRUPTERS
from tracekit.base.kube.timestamps import NS_PER_S

#: What findings are ordered by.
Key = tuple[Any, ...]


def weighed(facts: Facts, cases: Iterable[Case]) -> Iterator[Case]:
    """The cases with what each cost and who did it."""
    jobs = {job.uid: job for job in facts.jobs}
    named = {(job.namespace, job.name): job for job in facts.jobs}
    for case in cases:
        target = case.target
        job = None
        if target.kind == "Job":
            job = jobs.get(target.uid) or named.get((target.namespace, target.name))
        harm = case.harm or _of_job(facts, case, job)
        yield replace(
            case,
            harm=harm,
            actor=case.actor or _actor(facts, case),
            evidence={**case.evidence, **_owner(job)},
        )


def _owner(job: Job | None) -> dict[str, str]:
    """Who else than a CronJob made a Job, to be told with others of the same owner."""
    row = None if job is None else job.last.row
    if row is None or not row["owner_kind"] or row["owner_kind"] == "CronJob":
        return {}
    return {"owner": f"{row['owner_kind']} {row['owner_name']}"}


def _of_job(facts: Facts, case: Case, job: Job | None) -> Harm:
    losses = case.rule.losses
    if job is not None:
        if Loss.FAILED in losses and job.failure is not None:
            return Harm(failed_jobs=1, lost_pod_s=_lost_s(facts, job))
        if Loss.HELD in losses and job.ended_ns is None and job.gone_ns is None:
            return Harm(unfinished_jobs=1, lost_pod_s=_lost_s(facts, job))
        if Loss.LATE in losses:
            return Harm(late=1)
    return Harm(objects=1)


def _lost_s(facts: Facts, job: Job) -> float:
    """Seconds on a node of pods that came to nothing, as the view `wasted_pods` counts them."""
    total_ns = 0
    for pod in job.pods:
        ended = None if pod.end is None else pod.end.row["phase"]
        in_vain = ended == "Succeeded" and job.failure is not None
        if ended == "Failed" or in_vain or (ended is None and pod.deletion_ns is not None):
            total_ns += _held_ns(facts, pod)
    return round(total_ns / NS_PER_S, 3)


def _held_ns(facts: Facts, pod: Pod) -> int:
    bound = pod.first_at(lambda state: state.row["node_name"] is not None)
    if bound is None:
        return 0
    until_ns = pod.ended_ns or pod.gone_ns or facts.end_ns
    return max(0, until_ns - bound.at_ns)


def _actor(facts: Facts, case: Case) -> str | None:
    """Who did it; None where nothing tells, or nobody did."""
    evidence = case.evidence
    if case.rule.family is Family.DIVERGENCE:
        return f"the {evidence['controller']} controller"
    for key in ("user", "writer"):
        if evidence.get(key):
            return str(evidence[key])
    suspension = facts.suspended_by.get(case.target.uid)
    if case.rule.id in ("TK305", "TK413") and suspension is not None:
        return suspension.who
    return DISRUPTERS.get(str(evidence.get("pod_reason") or ""))


#### Causes and what follows from them ####


def arranged(findings: list[Finding], key: Callable[[Finding], Key]) -> list[Finding]:
    """Causes by a key, each with what follows from it beneath, and as severe as the worst of it."""
    roots = _roots(findings)
    beneath: dict[int, list[int]] = {}
    for place, root in enumerate(roots):
        if root is not None:
            beneath.setdefault(root, []).append(place)
    found: list[tuple[Key, Finding, list[Finding]]] = []
    for place, finding in enumerate(findings):
        if roots[place] is not None:
            continue
        victims = [findings[at] for at in _below(place, beneath)]
        worst = min((f.severity for f in (finding, *victims)), key=lambda s: s.rank)
        whole = replace(finding, severity=worst, victims=tuple(victims))
        found.append((key(whole), whole, sorted(victims, key=key)))
    found.sort(key=lambda entry: entry[0])
    return [finding for _, cause, victims in found for finding in (cause, *victims)]


def _below(place: int, beneath: dict[int, list[int]]) -> Iterator[int]:
    for at in beneath.get(place, ()):
        yield at
        yield from _below(at, beneath)


def _roots(findings: Sequence[Finding]) -> list[int | None]:
    """For each finding the place of the one that it is a consequence of, if that is among them."""
    places: dict[tuple[Hashable, ...], dict[int, None]] = {}
    for place, finding in enumerate(findings):
        for case in finding.cases:
            for key in _known_by(case.target, case.cronjob):
                places.setdefault((finding.id, *key), {})[place] = None
    found: list[int | None] = []
    for place, finding in enumerate(findings):
        root = None
        if finding.cause is not None and finding.cause.id != finding.id:
            first = finding.cases[0]
            keys = (*_known_by(first.target, first.cronjob), (_WHOLE,))
            near = (places.get((finding.cause.id, *key)) for key in keys)
            root = _nearest(first, next((found for found in near if found), {}), findings)
        # Of two that name each other the first is the cause.
        found.append(None if root is not None and root < place and found[root] == place else root)
    return found


def _nearest(case: Case, places: Iterable[int], findings: Sequence[Finding]) -> int | None:
    """Of several causes the one at whose time a consequence began, else the first."""
    places = list(places)
    then = (at for at in places if any(_meet(case, other) for other in findings[at].cases))
    return next(then, places[0] if places else None)


def _meet(case: Case, other: Case) -> bool:
    return other.from_ns <= case.until_ns and case.from_ns <= other.until_ns


#: Kinds that are about more than one namespace.
_WHOLE: Final = "*"


def _known_by(target: Target, cronjob: str | None) -> Iterator[tuple[Hashable, ...]]:
    """What a cause and its consequence may have in common, the nearest first."""
    if target.kind in ("Lease", "Controller", "Trace"):
        yield (_WHOLE,)
        return
    yield ("object", target)
    owner = target.name if target.kind == "CronJob" else cronjob
    if owner is not None:
        yield ("owner", target.namespace, owner)
    yield ("namespace", target.namespace)
