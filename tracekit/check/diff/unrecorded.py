"""Verdicts that rest on what the record does not have are unknowable; the rest stands.

A snapshot of etcd, or what kubectl printed, has the order of all writes and no receive times. Which
pods were made, deleted and counted does not depend on them; whether it was early or late does.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from tracekit.check.replay.run_context import Outage, RunContext
from tracekit.check.verdict import Judgement, Reason, Verdict

_TIMED = frozenset({Verdict.EARLY, Verdict.LATE, Verdict.MISSING})


def as_far_as_recorded(
    judgement: Judgement, context: RunContext, there_before: Collection[str]
) -> Judgement:
    """The judgement, unknowable where it rests on what the record does not have.

    `there_before` has the uids of the Jobs and CronJobs that the record does not see begin, where
    it does not list what there was either: their pods and the controller's memory are not known.
    """
    if not judgement.divergent:
        return judgement
    lacking = _lacking(judgement, context, there_before)
    return judgement if lacking is None else unknowable(judgement, *lacking)


def _lacking(
    judgement: Judgement, context: RunContext, there_before: Collection[str]
) -> tuple[str, Reason] | None:
    """What the record lacks that could make the divergence none; None if it stands."""
    not_recorded, kind = context.not_recorded, judgement.object.kind
    gap = _open_gap(judgement, context)
    found: tuple[str, Reason] | None = None
    if "pods" in not_recorded and judgement.controller == "job":
        found = f"pods are not recorded ({not_recorded['pods']})", Reason.NOT_RECORDED
    elif gap is not None:
        found = gap.why, Reason.GAP
    elif judgement.object.uid in there_before:
        why = f"the {kind} was there before the record began, and {context.unlisted}"
        found = why, Reason.BEFORE_RECORD
    elif context.times_unknown and _rests_on_times(judgement):
        found = context.times_unknown, Reason.NOT_RECORDED
    elif judgement.verdict is Verdict.EARLY and "leases" in not_recorded:
        why = "a restarted controller forgets its timers, and no Lease tells of restarts"
        found = why, Reason.NOT_RECORDED
    return found


def _rests_on_times(judgement: Judgement) -> bool:
    return judgement.verdict in _TIMED or (
        judgement.verdict is Verdict.DIFFERENT
        and bool(judgement.fields)
        and all("time" in difference.path.lower() for difference in judgement.fields)
    )


def _open_gap(judgement: Judgement, context: RunContext) -> Outage | None:
    """A gap before it that nothing ended: the source lists nothing again after one."""
    if not context.unlisted:
        return None
    return next((gap for gap in context.gaps if gap.from_ns <= judgement.time_ns), None)


def unknowable(judgement: Judgement, why: str, reason: Reason = Reason.NOT_RECORDED) -> Judgement:
    """The judgement as one that the record cannot make, with what it would be."""
    return replace(
        judgement,
        verdict=Verdict.UNKNOWABLE,
        reason=reason,
        why=f"{why}; else it would be {judgement.verdict.value}: {judgement.why}",
    )
