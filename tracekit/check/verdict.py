"""Verdicts: what the record says of each action, and why."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import msgspec

from tracekit.check.compare.fields import FieldDifference


class Verdict(Enum):
    """How an action and the controller's rules go together; see docs/replay.md."""

    __hash__ = object.__hash__  # Enum's own hashes the name anew, at every question

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
#: The actions of each controller that is judged, in the order of the report; `diff.registry` adds
#: those of other packages.
ACTIONS: dict[str, tuple[str, ...]] = {
    "job": JOB_ACTIONS,
    "cronjob": CRON_JOB_ACTIONS,
    "ttl": TTL_ACTIONS,
}


class Reason(Enum):
    """Why the record cannot tell; the field `reason` of what is unknowable."""

    BEFORE_RECORD = "before-record"  # it began before the watch, or was only listed
    GAP = "gap"  # the watch was interrupted
    CENSORED = "censored"  # the record ends, or the process died, before it could show
    NOT_RECORDED = "not-recorded"  # a stream that would tell is not in the record
    UNDECIDED = "undecided"  # the search gave up at its budget of attempts
    VERSION_UNSAID = "version-unsaid"  # another version that the record fits explains it
    MISFIT = "misfit"  # the record as a whole contradicts the rules: it was not searched


class Assumption(NamedTuple):
    """Something that a verdict takes for granted, for a time, because of some evidence."""

    kind: str  # refused-creations, process-death, silent-sync, unknown-memory, …
    from_ns: int
    until_ns: int
    evidence: str


class ObjectRef(NamedTuple):
    """The object whose controller is judged."""

    kind: str
    namespace: str
    name: str
    uid: str


class Judgement(msgspec.Struct, frozen=True, gc=False):
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
    #: Why the record cannot tell; None unless unknowable.
    reason: Reason | None = None
    #: Whether this is the only explanation; None where nobody counted the others.
    forced: bool | None = None
    #: Whether somebody else, or a mistake, may have led to it just as well.
    ambiguous: bool = False
    #: Syncs without a visible write that the explanation needs.
    silent_syncs: int = 0
    assumptions: tuple[Assumption, ...] = ()

    def __repr__(self) -> str:
        where = self.object
        return (
            f"<Judgement {self.verdict.value} {self.action} of {where.kind} "
            f"{where.namespace}/{where.name}: {self.subject}>"
        )

    @property
    def divergent(self) -> bool:
        """Whether this is a divergence."""
        return self.verdict in DIVERGENT


def in_order(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Judgements by time."""
    return sorted(judgements, key=time_order)


def time_order(judgement: Judgement) -> tuple[int, str, str, str, str, str]:
    """What judgements are sorted by."""
    where = judgement.object
    return (
        judgement.time_ns,
        where.namespace,
        where.name,
        judgement.resource_version,
        judgement.action,
        judgement.subject,
    )
