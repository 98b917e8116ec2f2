"""The story of one Job or CronJob in plain words, step by step, out of a replay's syncs. Pure.

A step says when something happened, what, and as details what the controller had seen, by which
rules it decided and what it waited for. Steps come from the replay of the Job's key (each sync with
the cut that explains it), from the writes of others with their evidence, and from the revisions of
the Job that nobody's sync made.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from msgspec import Struct

from tracekit.base.coverage import Coverage
from tracekit.base.escaping import for_html, for_terminal
from tracekit.base.kube.job_status import COUNTS
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.base.kube.views import Condition, JobView, PodView
from tracekit.base.numbers import whole_number
from tracekit.base.time_input import TimeRange
from tracekit.check.diff.collected import is_collected
from tracekit.check.diff.job_verdicts import Place, place_of
from tracekit.check.diff.judge import KeyJudgement
from tracekit.check.diff.why import describe, describe_cut
from tracekit.check.replay.history import (
    Actor,
    EventRow,
    History,
    Revision,
    Write,
    WriteKind,
)
from tracekit.check.replay.search_state import Explanation, WithoutSync
from tracekit.check.verdict import DIVERGENT, Judgement, Verdict
from tracekit.ports.job.context import Note
from tracekit.report.narrative_closing import closing, named

_VERBS = {
    WriteKind.POD_CREATE: "created",
    WriteKind.POD_DELETE: "deleted",
    WriteKind.FINALIZER_REMOVAL: "took the tracking finalizer off",
    WriteKind.POD_ADOPT: "adopted",
    WriteKind.POD_RELEASE: "released",
}
#: The same by the names of actions, for what others did.
_DEEDS = {kind.value: verb for kind, verb in _VERBS.items()} | {
    "status-update": "wrote the",
    "event": "emitted an Event:",
}
_DIVERGENT = frozenset(verdict.value for verdict in DIVERGENT)
#: So many steps in a row that differ in their times alone are all told; of more, the first.
_ALIKE = 3
#: Names written out in a sentence; the rest is a number.


class Step(Struct, frozen=True):
    """One thing that happened, and why."""

    at_ns: int
    rv: int | None
    who: str
    what: str
    details: tuple[str, ...] = ()
    verdict: str | None = None
    #: Of a sync: whether nothing else that its caches may have held explains it; None: not known.
    forced: bool | None = None
    #: Whether only `-v` tells it.
    verbose_only: bool = False
    #: Its place among the revisions, where that is not `rv`: the first write of several.
    first_rv: int | None = None
    #: Whether it tells of nothing but that a deletion was asked for.
    asks_deletion: bool = False
    #: Those of its details that say what the caches held and by which rules it acted: `-v` has
    #: them, and so has what contradicts the rules.
    how: tuple[str, ...] = ()

    @property
    def place(self) -> int | None:
        """The revision by which it is put in order; None for what made none."""
        return self.first_rv or self.rv


class Concluded(NamedTuple):
    """What an account begins with: a sentence, and what `diagnose` says of the object."""

    opening: str
    #: Each with whether it begins a finding.
    lines: list[tuple[str, bool]]
    findings: list[dict[str, Any]]


@dataclass(slots=True)
class Narrative:
    """All steps of one Job or CronJob, and how it stood at the end."""

    kind: str
    namespace: str
    name: str
    steps: list[Step] = field(default_factory=list)
    closing: str = ""
    #: Every verdict about it, of all controllers: those that `replay --job` has.
    judgements: list[Judgement] = field(default_factory=list)
    #: What came of it, in one sentence.
    opening: str = ""
    #: What `diagnose` says of it, worst first; as documents, and as lines with their depth.
    findings: list[dict[str, Any]] = field(default_factory=list)
    finding_lines: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def divergences(self) -> list[Judgement]:
        """What the rules do not explain."""
        return [judgement for judgement in self.judgements if judgement.divergent]

    @property
    def key(self) -> str:
        """`namespace/name`; the name alone where no namespace is known."""
        return "/".join(part for part in (self.namespace, self.name) if part)

    def within(self, times: TimeRange) -> Narrative:
        """The steps of a time; how it all ended is told only where that is a part of it."""
        steps = [s for s in self.steps if times.holds(s.at_ns)]
        closing = self.closing if times.until_ns is None else ""
        if not steps:
            first = f"; its first step is at {clock(self.steps[0].at_ns)}" if self.steps else ""
            when = f"by {clock(times.until_ns)}" if times.until_ns is not None else f"{times}"
            closing = f"Nothing of this {self.kind} was recorded {when}{first}."
        judgements = [j for j in self.judgements if times.holds(j.time_ns)]
        return Narrative(self.kind, self.namespace, self.name, steps, closing, judgements)

    def text(self, *, verbose: bool = False) -> str:
        """The account as lines of text; `verbose` has caches and rules of each sync, too."""
        return "\n".join(narrative_lines(self, verbose=verbose)) + "\n"

    def __repr__(self) -> str:
        return f"<Account of {self.kind} {self.key}: {self.opening or f'{len(self.steps)} steps'}>"

    def _repr_html_(self) -> str:
        return f"<pre>{for_html(self.text())}</pre>"


def in_order(steps: Iterable[Step]) -> list[Step]:
    """Steps as they happened: by revision where they have one, the others by time in between.

    Streams are received side by side, so that a pod may arrive before the Job that it is of.
    """
    timed = sorted(steps, key=lambda step: (step.at_ns, step.place or 0))
    later_ns: dict[int, int] = {}
    earliest_ns = None
    for step in sorted((s for s in timed if s.rv is not None), key=lambda s: -(s.place or 0)):
        earliest_ns = step.at_ns if earliest_ns is None else min(earliest_ns, step.at_ns)
        later_ns[step.place or 0] = earliest_ns
    return sorted(timed, key=lambda s: (later_ns.get(s.place or 0, s.at_ns), s.place or 0))


class Line(NamedTuple):
    """One line of an account: its parts, each with a style, and where it begins and goes on."""

    parts: tuple[tuple[str, str], ...] = ()
    indent: int = 0
    goes_on: int = 4


def narrative_lines(narrative: Narrative, *, verbose: bool = False) -> Iterator[str]:
    """The account as lines of text."""
    for line in styled_lines(narrative, verbose=verbose):
        yield for_terminal(" " * line.indent + "".join(text for text, _ in line.parts))


def styled_lines(narrative: Narrative, *, verbose: bool = False) -> Iterator[Line]:
    """The account as a terminal shows it."""
    yield Line(((f"{narrative.kind} {narrative.key}", "bold"),))
    if narrative.opening:
        yield Line(((narrative.opening, "bold"),), goes_on=0)
    for text, begins in narrative.finding_lines:
        yield Line(((text, "yellow" if begins else "dim"),), 0 if begins else 4)
    shown = (step for step in narrative.steps if verbose or not step.verbose_only)
    for _, alike in groupby(shown, key=_likeness):
        run = list(alike)
        folded = len(run) > _ALIKE and not verbose
        for step in run[:1] if folded else run:
            yield Line()
            yield Line(tuple(_headline(step)))
            divergent = step.verdict in _DIVERGENT
            for detail in step.details:
                if verbose or divergent or detail not in step.how:
                    yield Line(((detail, "dim"),), 4, 6)
        if folded:
            more = f"the same {len(run) - 1:,} times more, the last at {clock(run[-1].at_ns)}"
            yield Line(((more, "dim"),), 4, 6)
    if narrative.closing:
        yield Line()
        yield Line(((narrative.closing, "bold"),), goes_on=0)


def _likeness(step: Step) -> tuple[object, ...]:
    """What steps have in common of which one is told for all: all but their times."""
    if step.rv is not None or step.verdict in _DIVERGENT:
        return (step.at_ns, step.rv, step.who, step.what)
    return (step.who, step.what, step.details, step.verdict)


def _headline(step: Step) -> Iterator[tuple[str, str]]:
    yield clock(step.at_ns), "cyan"
    if step.rv is not None:
        yield f"  rv {step.rv}", "dim"
    yield f"  {step.who} {step.what}", ""
    if step.verdict is not None:
        style = "bold red" if step.verdict in _DIVERGENT else "green"
        yield f"  [{step.verdict}]", style


def clock(at_ns: int) -> str:
    """A time in UTC to the millisecond, with its date."""
    whole, millis = at_ns - at_ns % NS_PER_S, at_ns % NS_PER_S // 1_000_000
    text = (format_rfc3339(whole) or "").replace("T", " ").removesuffix("Z")
    return f"{text}.{millis:03d}"


def narrative_of_job(
    judged: KeyJudgement, judgements: Sequence[Judgement], coverage: Coverage
) -> Narrative:
    """The account of one replayed key; `judgements` are those of all controllers about it.

    `coverage` says which streams the record has at all.
    """
    history = judged.replay.history
    narrative = Narrative("Job", history.namespace, history.name, judgements=list(judgements))
    verdicts = {(j.resource_version, j.action, j.subject): j for j in judged.judgements}
    by_syncs = {
        place_of(write)
        for sync in judged.replay.syncs
        for write in sync.writes
        if place_of(write) in verdicts
    }
    orphans = {place_of(found.write) for found in judged.replay.of(WithoutSync.ORPHAN_WORKER)}
    others = {place: j for place, j in verdicts.items() if place not in by_syncs}
    steps = [
        *_revisions(history),
        *_syncs(judged, verdicts),
        *_others(others, orphans, _actors(history)),
    ]
    if not history.jobs:
        steps += _events(history.events, {rv for rv, action, _ in verdicts if action == "event"})
    narrative.steps = in_order(steps)
    narrative.closing = closing(judged, narrative.divergences, coverage)
    return narrative


#### What the Job's own revisions tell ####


def _revisions(history: History) -> Iterator[Step]:
    for revision in history.jobs:
        before = revision.previous
        if before is None:
            seen = "was created" if revision.type == "ADDED" else "is there at the first list"
            seen += _by(revision.actor)
            yield Step(revision.recv_ns, revision.rv, "Job", seen, tuple(_spec(revision.view)))
        elif revision.type == "DELETED":
            gone = f"is gone{_by(revision.actor)}"
            yield Step(revision.recv_ns, revision.rv, "Job", gone)
        else:
            edits = list(_edits(before.view, revision.view))
            changes = [*edits, *_deletion(before.view, revision.view)]
            if changes:
                yield Step(
                    revision.recv_ns,
                    revision.rv,
                    _writers(revision),
                    "changed the Job",
                    tuple(changes),
                    asks_deletion=not edits,
                )


def _spec(job: JobView) -> Iterator[str]:
    spec = job.spec
    parts = [f"parallelism {spec.parallelism}"]
    parts.append(
        "no completions (work queue)"
        if spec.completions is None
        else f"completions {spec.completions}"
    )
    parts.append(f"backoffLimit {spec.backoff_limit}")
    if spec.active_deadline_s is not None:
        parts.append(f"activeDeadlineSeconds {spec.active_deadline_s}")
    if spec.suspend:
        parts.append("suspended")
    yield ", ".join(parts)
    if job.controller is not None:
        yield f"owned by {job.controller.kind} {job.controller.name}"


_EDITED = {
    "parallelism": "parallelism", "completions": "completions", "suspend": "suspend",
    "activeDeadlineSeconds": "active_deadline_s", "backoffLimit": "backoff_limit",
}  # fmt: skip


def field_edit(name: str, old: Any, new: Any) -> str:
    """A field of the spec that was changed, in the API's words; one without a value is not set."""
    return f"spec {name}: {api_value(old)} → {api_value(new)}"


def api_value(value: Any) -> str:
    """A value as YAML has it."""
    if value is None:
        return "not set"
    return value if isinstance(value, str) else _value(value)


def _edits(before: JobView, now: JobView) -> Iterator[str]:
    for name, attribute in _EDITED.items():
        old, new = getattr(before.spec, attribute), getattr(now.spec, attribute)
        if old != new:
            yield field_edit(name, old, new)
    for name, old_map, new_map in (
        ("labels", before.labels, now.labels),
        ("annotations", before.annotations, now.annotations),
    ):
        keys = sorted(k for k in {*old_map, *new_map} if old_map.get(k) != new_map.get(k))
        if keys:
            yield f"{name}: {', '.join(keys)}"


def _deletion(before: JobView, now: JobView) -> Iterator[str]:
    """What a request for a deletion changes."""
    if before.deleted_ns is None and now.deleted_ns is not None:
        yield f"asked for its deletion (finalizers: {', '.join(now.finalizers) or 'none'})"
    if before.finalizers != now.finalizers:
        yield f"finalizers: {', '.join(now.finalizers) or 'none'}"


def _by(actor: Actor | None) -> str:
    """Whose request it was, as an audit log has it."""
    return "" if actor is None else f", by {actor.controller or actor}"


def _writers(revision: Revision[JobView]) -> str:
    """Who made a revision: by the audit log, else by managedFields."""
    if revision.actor is not None:
        return str(revision.actor.controller or revision.actor)
    before = revision.previous.evidence.managers() if revision.previous is not None else ()
    changed = {m.manager for m in revision.evidence.managers() if m not in before}
    return ", ".join(sorted(changed)) or "somebody"


#### Syncs ####


def _syncs(judged: KeyJudgement, verdicts: Mapping[Place, Judgement]) -> Iterator[Step]:
    seen = 0
    diverges = any(judgement.divergent for judgement in verdicts.values())
    counted: set[str] = set()  # pods that an earlier sync counted: it took their finalizer off
    for sync in judged.replay.syncs:
        news = judged.replay.history.pods[seen : sync.pod_cut]
        seen = max(seen, sync.pod_cut)
        mine = [verdicts[place_of(w)] for w in sync.writes if place_of(w) in verdicts]
        forced = mine[0].forced if mine else None
        other = "; not the only state that explains this" if forced is False else ""
        how = [f"cache: {describe_cut(sync)}{other}"]
        how += [f"rule: {text}" for text in describe(sync.notes)]
        details = [*_news(news), *how]
        details += list(_counted_again(sync, counted))
        details += [f"event: {e.reason}: {e.message}" for e in _distinct(sync)]
        if sync.refused:
            details.append(f"requests that the API server refused: {sync.refused}")
        details += [f"expected {p.what}" for p in sync.problems]
        details += [line for j in mine if j.divergent for line in _contradiction(j)]
        details += list(_waiting(sync))
        unknown = [j for j in mine if j.verdict is Verdict.UNKNOWABLE]
        if unknown and not diverges:
            # What it did by the rules on caches that nobody knows tells nothing.
            details = [*_news(news), *dict.fromkeys(j.why for j in unknown)]
        at_ns = sync.writes[0].recv_ns
        verdict = unknown[0].verdict.value if unknown and not diverges else _worst(sync, mine)
        yield Step(
            at_ns,
            sync.writes[-1].rv,
            "job-controller",
            _did(sync.writes),
            tuple(details),
            verdict,
            forced,
            first_rv=sync.writes[0].rv,
            how=tuple(how),
        )


def _counted_again(sync: Explanation, counted: set[str]) -> Iterator[str]:
    """Pods that this sync counts although one before it did; `counted` grows by its own."""
    for note in sync.notes:
        again = [
            name
            for key in ("new_succeeded", "new_failed")
            for name in _names(note, key)
            if name in counted
        ]
        if again:
            yield (
                f"counted again: {named(again)}, whose finalizer had been taken off before; the "
                "cache did not show that"
            )
    counted.update(
        write.pod.view.name
        for write in sync.writes
        if write.kind is WriteKind.FINALIZER_REMOVAL and write.pod is not None
    )


def _names(note: Note, key: str) -> Sequence[str]:
    found = note.numbers.get(key)
    return found if isinstance(found, list) else ()


def _distinct(sync: Explanation) -> list[Any]:
    """The Events of a sync without those that only repeat its creations and deletions."""
    return [e for e in sync.events if e.reason not in ("SuccessfulCreate", "SuccessfulDelete")]


def _news(revisions: Sequence[Revision[PodView]]) -> Iterator[str]:
    """What the pod cache had learnt since the sync before."""
    last: dict[str, str] = {}
    for revision in revisions:
        pod = revision.view
        if revision.type == "DELETED":
            last[pod.name] = "gone"
        elif pod.deleted_ns is not None and not pod.terminal:
            last[pod.name] = "terminating"
        elif pod.phase == "Running" and pod.ready:
            last[pod.name] = "ready"
        else:
            last[pod.name] = (pod.phase or "Pending").lower() + _exit(pod)
    groups: dict[str, list[str]] = {}
    for name, state in last.items():
        groups.setdefault(state, []).append(name)
    if groups:
        states = "; ".join(f"{named(names)} {state}" for state, names in groups.items())
        yield f"saw: {states}"


def _exit(pod: PodView) -> str:
    codes = [c.exit_code for c in pod.containers if c.exit_code]
    return f" (exit code {max(codes)})" if pod.phase == "Failed" and codes else ""


def _did(writes: Iterable[Write]) -> str:
    parts: dict[WriteKind, list[str]] = {}
    statuses: list[Revision[JobView]] = []
    for write in writes:
        if write.job is not None:
            statuses.append(write.job)
        elif write.pod is not None:
            parts.setdefault(write.kind, []).append(write.pod.view.name)
    done = [f"{_VERBS[kind]} {named(names)}" for kind, names in parts.items()]
    if statuses:
        done.append(_status(statuses[0], statuses[-1]))
    return "; ".join(done)


def _status(first: Revision[JobView], last: Revision[JobView]) -> str:
    now = last.view.status
    before = first.previous.view.status if first.previous is not None else now
    changes = []
    for name in COUNTS:
        old, new = getattr(before, name), getattr(now, name)
        if (old or 0) != (new or 0):
            changes.append(f"{name} {old or 0} → {new or 0}")
    changes += turned(before.conditions, now.conditions)
    uncounted = len(now.uncounted_succeeded) + len(now.uncounted_failed)
    if uncounted != len(before.uncounted_succeeded) + len(before.uncounted_failed):
        changes.append(f"uncounted pods {uncounted}")
    return f"wrote the status ({', '.join(changes) or 'times and bookkeeping'})"


def turned(before: Iterable[Condition], now: Sequence[Condition]) -> Iterator[str]:
    """The conditions that became True, or ceased to be."""
    old_true = {c.type for c in before if c.status == "True"}
    for condition in now:
        why = f" ({condition.reason})" if condition.reason else ""
        if condition.status == "True" and condition.type not in old_true:
            yield f"condition {condition.type}{why}"
        elif condition.status != "True" and condition.type in old_true:
            yield f"condition {condition.type} {condition.status}{why}"
    for gone in sorted(old_true - {c.type for c in now}):
        yield f"condition {gone} taken off"


def _waiting(sync: Explanation) -> Iterator[str]:
    """What the key waited for after this sync."""
    if any(note.rule == "ended" for note in sync.notes):
        return
    for note in sync.notes:
        numbers = note.numbers
        if note.rule == "backoff":
            yield f"waits: back-off until {_when(numbers['until_ns'])}"
        elif note.rule == "deadline" and numbers["armed"]:
            yield f"waits: deadline at {_when(numbers['deadline_ns'])}"
        elif note.rule == "unmanaged" and not numbers.get("deleting"):
            yield "waits: expectations, its own creations and deletions are not all seen yet"


def _when(at_ns: object) -> str:
    return clock(at_ns) if isinstance(at_ns, int) else "an unknown time"


def _contradiction(judgement: Judgement) -> Iterator[str]:
    """What the rules do not explain about one write of a sync."""
    what = f"{judgement.verdict.value}: {judgement.action} of {judgement.subject}"
    if not judgement.fields:
        yield f"{what}, {judgement.why}"
    for f in judgement.fields:
        yield f"{what}, {f.path}: expected {_value(f.expected)}, observed {_value(f.observed)}"


def _value(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)


def _worst(sync: Explanation, found: Sequence[Judgement]) -> str | None:
    bad = next((j.verdict.value for j in found if j.divergent), None)
    if bad is not None or sync.problems:
        return bad or sync.problems[0].verdict
    return found[0].verdict.value if found else None


#### What others did ####


def _actors(history: History) -> dict[str, Actor]:
    """Who wrote the pods' revisions, as far as an audit log tells."""
    return {str(r.rv): r.actor for r in history.pods if r.actor is not None}


def who_else(judgement: Judgement) -> str:
    """Who did what no rule of a controller explains: the garbage collector, where no other does."""
    if judgement.verdict is Verdict.UNKNOWABLE and judgement.action == "event":
        return f"{judgement.controller}-controller"  # an Event names its source
    if judgement.verdict is Verdict.UNKNOWABLE:
        return "nobody knows who"
    return "garbage-collector" if is_collected(judgement) else "somebody else"


def not_seen(judgement: Judgement) -> str:
    """What a controller had to do by its rules, and the record does not show."""
    what = f"had to do {judgement.action}, which is not seen"
    return f"{what}: {judgement.subject}" if judgement.subject else what


def _others(
    judgements: Mapping[Place, Judgement], orphans: Collection[Place], actors: Mapping[str, Actor]
) -> Iterator[Step]:
    for place, judgement in judgements.items():
        rv = whole_number(judgement.resource_version)
        if judgement.verdict in (Verdict.FOREIGN, Verdict.UNKNOWABLE):
            who = who_else(judgement)
            actor = actors.get(judgement.resource_version)
            if actor is not None:
                who = str(actor.controller or actor)
            what = _DEEDS.get(judgement.action, f"did {judgement.action} of")
            what = f"{what} {judgement.subject}"
        elif judgement.verdict is Verdict.MISSING:
            who, what = "job-controller", not_seen(judgement)
        elif place in orphans:
            who = "job-controller"
            what = f"took the tracking finalizer off {judgement.subject}"
        elif judgement.divergent:
            who = f"{judgement.controller}-controller"
            what = _DEEDS.get(judgement.action, f"did {judgement.action} of")
            what = f"{what} {judgement.subject}"
        else:
            continue
        yield Step(judgement.time_ns, rv, who, what, (judgement.why,), judgement.verdict.value)


def _events(events: Iterable[EventRow], judged: Container[str]) -> Iterator[Step]:
    """Events that nothing judged, of a Job of which there is little else, by their own times."""
    for event in events:
        if str(event.rv) not in judged:
            times = f" ({event.count:,} times)" if event.count > 1 else ""
            what = f"emitted an Event{times}: {event.reason}: {event.message}"
            at_ns = event.recv_ns if event.first_ns is None else event.first_ns
            yield Step(at_ns, event.rv, event.component or "somebody", what)
