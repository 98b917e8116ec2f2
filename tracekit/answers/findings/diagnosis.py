"""All findings of a trace: cases of every family, filtered, grouped by cause, worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from tracekit.answers.findings import (
    controllers,
    cronjobs,
    divergences,
    jobs,
    record,
    refused_statuses,
    shown,
    waiting,
)
from tracekit.answers.findings.baseline import Baseline
from tracekit.answers.findings.harms import arranged, weighed
from tracekit.answers.harm import magnitude_of
from tracekit.answers.model import Case, Finding, Rule
from tracekit.answers.parts import Accepting, OnePart, Parts, Plain, RuleGroup
from tracekit.answers.pauses import Pause
from tracekit.answers.trace_model import Facts
from tracekit.answers.words import counted, named
from tracekit.base.errors import UsageError
from tracekit.base.kube.selectors import selector_from_text, selector_matches
from tracekit.base.time_input import ALWAYS, TimeRange

#: Each is asked anew about each trace.
_FAMILIES: tuple[Callable[[], RuleGroup], ...] = (
    lambda: Plain(divergences.find),
    controllers.Controllers,
    lambda: Plain(cronjobs.find),
    jobs.Jobs,
    waiting.Waiting,
    lambda: Plain(refused_statuses.find),
    shown.Texts,
    record.Record,
)
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            *divergences.RULES,
            *controllers.RULES,
            *cronjobs.RULES,
            *jobs.RULES,
            *waiting.RULES,
            *refused_statuses.RULES,
            *shown.RULES,
            *record.RULES,
        ),
        key=lambda rule: rule.id,
    )
)
#: Kinds that are about the whole, whatever namespace is asked for.
OF_THE_WHOLE = ("Trace", "Lease", "Controller")


class Wanted(Struct, frozen=True):
    """Which part of a trace the findings are asked about."""

    namespace: str | None = None
    selector: Mapping[str, Any] | None = None  # a metav1.LabelSelector
    times: TimeRange = ALWAYS

    def passes(self, case: Case, labels: Mapping[tuple[str, str, str], Mapping[str, str]]) -> bool:
        """Whether a case is in that part; what is about the whole passes unless by time."""
        if not self.times.meets(case.from_ns, case.until_ns):
            return False
        if case.target.kind in OF_THE_WHOLE:
            return True
        if self.namespace is not None and case.target.namespace != self.namespace:
            return False
        if self.selector is None:
            return True
        key = (case.target.kind, case.target.namespace, case.target.name)
        return selector_matches(self.selector, labels.get(key, {}))


EVERYTHING = Wanted()


def wanted_selector(text: str | None) -> Mapping[str, Any] | None:
    """The labels that a user asks for, as kubectl's `-l` takes them; a UsageError for no such."""
    if text is None:
        return None
    try:
        return selector_from_text(text)
    except ValueError as error:
        raise UsageError(
            f"{str(error)!r} is no requirement of labels; write it like app=shop,tier!=test"
        ) from error


class JobNote(NamedTuple):
    """A Job of a trace, as far as who lists them asks."""

    namespace: str
    name: str
    has_failed: bool
    created_ns: int


class Diagnosed(Struct, frozen=True):
    """Every case of a trace, of which any part can be asked for; its objects are not held."""

    cases: list[Case]
    jobs: list[JobNote]
    pauses: Sequence[Pause]  # when no controller worked
    not_judged: str | None  # why there are no verdicts

    def findings(self, wanted: Wanted = EVERYTHING) -> list[Finding]:
        """The findings about a part that no selector of labels chooses, worst first."""
        return grouped(case for case in self.cases if wanted.passes(case, {}))


def diagnosed(parts: Parts) -> Diagnosed:
    """All cases of a trace, with its Jobs by namespace and name."""
    jobs: list[JobNote] = []

    def note(facts: Facts) -> None:
        jobs.extend(
            JobNote(job.namespace, job.name, job.failure is not None, job.created_ns)
            for job in facts.jobs
        )

    cases = _cases(parts, note)
    return Diagnosed(cases, jobs, parts.whole.pauses, parts.whole.not_judged)


def diagnose(
    facts: Facts | Parts,
    wanted: Wanted = EVERYTHING,
    baseline: Baseline | None = None,
) -> list[Finding]:
    """The findings that no baseline accepts, worst first."""
    parts = OnePart(facts) if isinstance(facts, Facts) else facts
    if baseline is not None:
        # An accepted divergence must not hide the next one of its object.
        parts = Accepting(parts, baseline.accepts_judgement)
    labels: dict[tuple[str, str, str], Mapping[str, str]] = {}

    def note(facts: Facts) -> None:
        if wanted.selector is not None:
            labels.update(_labels(facts))

    cases = (case for case in _cases(parts, note) if wanted.passes(case, labels))
    if baseline is not None:
        cases = (case for case in cases if not baseline.accepts(case.rule.id, case.target))
    return grouped(cases)


def _cases(parts: Parts, note: Callable[[Facts], None]) -> list[Case]:
    """Every case, by family; somebody notes what is in each part."""
    families = [(make(), list[Case]()) for make in _FAMILIES]
    for part in parts:
        note(part)
        for family, cases in families:
            cases.extend(weighed(part, family.of_part(part)))
        del part  # before the next one is made
    whole = parts.whole
    for family, cases in families:
        cases.extend(weighed(whole, family.of_whole(whole)))
    return [case for family, cases in families for case in family.settled(cases)]


def _labels(facts: Facts) -> Mapping[tuple[str, str, str], Mapping[str, str]]:
    return {
        (kind, life.namespace, life.name): {k: str(v) for k, v in life.labels.items()}
        for kind, objects in (("Job", facts.jobs), ("CronJob", facts.cronjobs))
        for life in objects
    }


def grouped(cases: Iterable[Case]) -> list[Finding]:
    """One finding for the cases of one rule, cause and CronJob; the worst ones first."""
    groups: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        space = case.target.namespace if case.cronjob else ""
        cause = "" if case.cause is None else case.cause.id
        key = (case.rule.id, case.claim, case.cronjob or "", space, cause)
        groups.setdefault(key, []).append(case)
    return arranged([_finding(group) for group in groups.values()], _key)


def _key(finding: Finding) -> tuple[Any, ...]:
    """The worst first: by severity, magnitude of the harm, kind, the harm itself.

    Among causes that hit about as many, the kind that tells most stands first. A consequence
    speaks for its cause where it is about as many objects as the whole hit.
    """
    harm = finding.harm_in_all
    large = [f for f in finding.victims if magnitude_of(len(f.objects)) >= harm.magnitude]
    rank = min(f.rule.rank for f in (finding, *large))
    return (
        finding.severity.rank, -harm.magnitude, rank, *(-p for p in harm.weight),
        finding.rule.id, finding.from_ns, finding.subject,
    )  # fmt: skip


def _finding(cases: list[Case]) -> Finding:
    cases.sort(key=lambda c: (c.from_ns, c.target))
    rule = cases[0].rule
    severity = min((case.badness for case in cases), key=lambda s: s.rank)
    own = None if cases[0].cause is not None else rule.thread
    thread = next((c.thread for c in cases if c.thread is not None), own)
    return Finding(rule, severity, thread, _subject(cases), cases[0].claim, tuple(cases))


def _subject(cases: list[Case]) -> str:
    """What a group is about: one object, the Jobs of a CronJob, or a number of objects."""
    targets = list(dict.fromkeys(case.target for case in cases))
    first, cronjob = targets[0], cases[0].cronjob
    if len(targets) == 1:
        return str(first)
    what = counted(len(targets), first.kind)
    if cronjob:
        return f"{what} of CronJob {first.namespace}/{cronjob}"
    spaces = sorted({target.namespace for target in targets})
    owners = {case.evidence.get("owner") for case in cases}
    if len(spaces) == 1:
        if len(owners) == 1 and (owner := owners.pop()) is not None:
            kind, _, name = str(owner).partition(" ")
            return f"{what} of {kind} {spaces[0]}/{name}"
        return f"{what} in {spaces[0]}" if spaces[0] else what
    return f"{what} in {len(spaces)} namespaces ({named(spaces)})"
