"""Verdicts: what the record says of each action, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tracekit.compare.fields import FieldDifference


class Verdict(Enum):
    """How an action and the controller's rules go together; see docs/replay.md."""

    MATCH = "match"
    MATCH_LAGGED = "match-lagged"
    DIFFERENT = "different"
    MISSING = "missing"
    EXTRA = "extra"
    EARLY = "early"
    LATE = "late"
    FOREIGN = "foreign"
    UNKNOWABLE = "unknowable"


#: The verdicts that say that the controller did not do what its rules demand.
DIVERGENT = frozenset(
    {Verdict.DIFFERENT, Verdict.MISSING, Verdict.EXTRA, Verdict.EARLY, Verdict.LATE}
)

JOB_ACTIONS = (
    "pod-create",
    "pod-delete",
    "finalizer-removal",
    "pod-adopt",
    "pod-release",
    "status-update",
    "event",
)
CRON_JOB_ACTIONS = ("job-create", "job-delete", "status-update", "event")
TTL_ACTIONS = ("job-delete",)


class ObjectRef(NamedTuple):
    """The object whose controller is judged."""

    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """One action with its verdict."""

    controller: str
    object: ObjectRef
    action: str
    verdict: Verdict
    time_ns: int
    resource_version: str
    subject: str  # what was acted upon: a pod's name, a status, an Event's reason
    why: str
    fields: tuple[FieldDifference, ...] = ()
    lag_observations: int = 0
    lag_ns: int = 0

    @property
    def divergent(self) -> bool:
        """Whether this is a divergence."""
        return self.verdict in DIVERGENT
