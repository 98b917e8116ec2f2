"""Verdicts that rest on what the record does not have are unknowable; the rest stands.

A snapshot of etcd, or what kubectl printed, has the order of all writes and no receive times. Which
pods were made, deleted and counted does not depend on them; whether it was early or late does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tracekit.replay.run_context import RunContext
from tracekit.verdict import Judgement, Reason, Verdict

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
    times_unknown, not_recorded = context.times_unknown, context.not_recorded
    if judgement.object.uid in there_before:
        return _unknowable(
            judgement,
            f"the {judgement.object.kind} was there before the record began, and "
            f"{context.unlisted}",
            Reason.BEFORE_RECORD,
        )
    timed = judgement.verdict in _TIMED or (
        judgement.verdict is Verdict.DIFFERENT
        and bool(judgement.fields)
        and all("time" in difference.path.lower() for difference in judgement.fields)
    )
    if times_unknown and timed:
        return _unknowable(judgement, times_unknown)
    if judgement.verdict is Verdict.EARLY and "leases" in not_recorded:
        return _unknowable(
            judgement, "a restarted controller forgets its timers, and no Lease tells of restarts"
        )
    return judgement


def _unknowable(judgement: Judgement, why: str, reason: Reason = Reason.NOT_RECORDED) -> Judgement:
    return replace(
        judgement,
        verdict=Verdict.UNKNOWABLE,
        reason=reason,
        why=f"{why}; else it would be {judgement.verdict.value}: {judgement.why}",
    )
