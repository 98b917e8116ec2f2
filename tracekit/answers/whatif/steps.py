"""Two courses of one sync compared: what moves pods, what ends the Job, what only clients see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from msgspec import Struct

from tracekit.base.kube.views import Condition, JobStatus
from tracekit.check.compare.status import PLAIN, SETS, TIMES
from tracekit.check.replay.rerun import Call, Course
from tracekit.ports.actions import CreatePod


class Severity(IntEnum):
    """How far a difference reaches; the worst of a Job's makes its verdict."""

    SAME = 0
    FIELDS = 1  # only who reads the API sees it
    TIMING = 2  # the same pods and ending at other times
    PODS = 3  # other pods
    OUTCOME = 4  # another ending


class Difference(Struct, frozen=True):
    """One difference between what the record's rules did and what the others do."""

    severity: Severity
    kind: str  # pod-create, pod-delete, finalizer-removal, status, ending, event, queue, …
    text: str
    at_ns: int
    resource_version: str = ""
    #: Whether the pods' world after it is no longer the recorded one.
    fork: bool = False


@dataclass(slots=True)
class Proof:
    """What the steps of one object show."""

    uid: str
    steps: int = 0
    differences: list[Difference] = field(default_factory=list)
    #: Why not every step could be followed; empty if it could.
    lost: str = ""
    #: The same in a word: the record is to blame, or the bound of what is compared (undecided).
    reason: str = "record"

    @property
    def fork(self) -> Difference | None:
        """The first step after which the world is another."""
        return next((d for d in self.differences if d.fork), None)

    @property
    def severity(self) -> Severity:
        """The worst difference."""
        return max((d.severity for d in self.differences), default=Severity.SAME)

    @property
    def measure(self) -> tuple[bool, int]:
        """How bad it looks: a fork, then the class of its worst difference."""
        return self.fork is not None, int(self.severity)


def call_differences(ours: Course, theirs: Course, at_ns: int, rv: str) -> Iterator[Difference]:
    """Every way in which two courses of one sync differ, but for the statuses they lead to."""
    yield from _creates(ours, theirs, at_ns, rv)
    for verb, kind, text in _POD_VERBS:
        left, right = _uids(ours.of(verb)), _uids(theirs.of(verb))
        if left != right:
            counts = f"{left.total()} by the record's rules, {right.total()} by the others"
            what = f"{text}: {counts}"
            yield Difference(Severity.PODS, kind, what, at_ns, rv, fork=True)
    yield from _events(ours, theirs, at_ns, rv)
    yield from _results(ours, theirs, at_ns, rv)


_POD_VERBS = (
    ("delete", "pod-delete", "pods deleted"),
    ("remove-finalizer", "finalizer-removal", "pods that lose their finalizer"),
    ("adopt", "pod-adopt", "pods adopted"),
    ("release", "pod-release", "pods released"),
)


def _uids(calls: list[Call]) -> Counter[str]:
    return Counter({call.subject: 1 for call in calls})


def _creates(ours: Course, theirs: Course, at_ns: int, rv: str) -> Iterator[Difference]:
    left: list[CreatePod] = [call.subject for call in ours.of("create")]
    right: list[CreatePod] = [call.subject for call in theirs.of("create")]
    indexes = [[intent.completion_index for intent in side] for side in (left, right)]
    if indexes[0] != indexes[1]:
        text = f"pods created: {len(left)} by the record's rules, {len(right)} by the others"
        yield Difference(Severity.PODS, "pod-create", text, at_ns, rv, fork=True)
        return
    for one, other in zip(left, right, strict=True):
        parts = [
            name
            for name in ("generate_name", "labels", "annotations", "finalizers", "spec")
            if getattr(one, name) != getattr(other, name)
        ]
        if parts:
            yield Difference(
                Severity.FIELDS,
                "pod-body",
                f"pods have other {', '.join(part.replace('_', ' ') for part in parts)}",
                at_ns,
                rv,
                fork="finalizers" in parts,
            )
            return


def _events(ours: Course, theirs: Course, at_ns: int, rv: str) -> Iterator[Difference]:
    left = Counter(call.subject for call in ours.of("event"))
    right = Counter(call.subject for call in theirs.of("event"))
    for missing, verb in ((left - right, "no longer"), (right - left, "now")):
        for _, reason, _message in sorted(missing):
            text = f"the Event {reason} is {verb} recorded so"
            yield Difference(Severity.FIELDS, "event", text, at_ns, rv)


def _results(ours: Course, theirs: Course, at_ns: int, rv: str) -> Iterator[Difference]:
    left, right = ours.result, theirs.result
    if left is None or right is None:
        return
    if (left.error, left.retried, left.requeued) != (right.error, right.retried, right.requeued):
        said = [
            "is retried" if side.error and side.retried else "is not retried"
            for side in (left, right)
        ]
        text = f"the sync {said[0]} by the record's rules and {said[1]} by the others"
        yield Difference(Severity.TIMING, "retry", text, at_ns, rv, fork=True)


def status_differences(ours: JobStatus, theirs: JobStatus) -> list[str]:
    """The fields in which two statuses differ, once for each difference; not when times are."""
    found = [path for name, path in PLAIN if getattr(ours, name) != getattr(theirs, name)]
    found += [
        path for name, path in SETS if sorted(getattr(ours, name)) != sorted(getattr(theirs, name))
    ]
    found += [
        path
        for name, path in TIMES
        if (getattr(ours, name) is None) != (getattr(theirs, name) is None)
    ]
    if _briefs(ours.conditions) != _briefs(theirs.conditions):
        found.append("status.conditions")
    return [path.split(".")[1] for path in found]


def _briefs(conditions: tuple[Condition, ...]) -> list[tuple[Any, ...]]:
    return [(c.type, c.status, c.reason, c.message) for c in conditions]


def acts(course: Course) -> bool:
    """Whether a sync did anything that others can see."""
    return any(call.verb != "event" for call in course.calls) or course.result is None
