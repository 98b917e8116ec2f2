"""Verdicts that rest on what the record does not have are unknowable; the rest stands.

A snapshot of etcd, or what kubectl printed, has the order of all writes and no receive times. Which
pods were made, deleted and counted does not depend on them; whether it was early or late does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tracekit.verdict import Judgement, Reason, Verdict

_TIMED = frozenset({Verdict.EARLY, Verdict.LATE, Verdict.MISSING})


def as_far_as_recorded(
    judgement: Judgement, times_unknown: str, not_recorded: Mapping[str, str]
) -> Judgement:
    """The judgement, unknowable where it rests on what the record does not have.

    `times_unknown` says why times are not known, `not_recorded` which streams are not there.
    """
    if not judgement.divergent:
        return judgement
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


def _unknowable(judgement: Judgement, why: str) -> Judgement:
    return replace(
        judgement,
        verdict=Verdict.UNKNOWABLE,
        reason=Reason.NOT_RECORDED,
        why=f"{why}; else it would be {judgement.verdict.value}: {judgement.why}",
    )
