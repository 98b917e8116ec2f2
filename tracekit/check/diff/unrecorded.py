"""Verdicts that rest on what the record does not have are unknowable; the rest stands.

A snapshot of etcd, or what kubectl printed, has the order of all writes and no receive times. Which
pods were made, deleted and counted does not depend on them; whether it was early or late does.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.check.compare.fields import FieldDifference
from tracekit.check.replay.clock_readings import CLOCK_SLACK_NS
from tracekit.check.replay.instants import JudgedNs
from tracekit.check.replay.run_context import INFORMER_LAG_NS, Outage, RunContext
from tracekit.check.verdict import Assumption, Judgement, Reason, Verdict

#: What each controller's caches hold: absence from it decides what the controller has to do.
_READ = {"job": ("jobs", "pods"), "cronjob": ("cronjobs", "jobs"), "ttl": ("jobs",)}
#: Why what hangs on times is not known where streams were late.
LATE_ROWS = "streams were seconds late then, and it hangs on when they showed what was written"
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
    return _by_clock(judgement, context) if lacking is None else unknowable(judgement, *lacking)


def _by_clock(judgement: Judgement, context: RunContext) -> Judgement:
    """The divergence, with what the recorder's clock was put right by if it hangs on times.

    By how much is not said with it: that is the same for all of the record.
    """
    epoch = context.clock.epoch(JudgedNs(judgement.time_ns)) if rests_on_times(judgement) else None
    if epoch is None or not epoch.evidence:
        return judgement
    assumed = Assumption(
        "clock-offset",
        epoch.from_ns - epoch.ahead_ns,
        epoch.until_ns - epoch.ahead_ns,
        f"the recorder's clock is put right by {epoch.evidence}",
    )
    return replace(judgement, assumptions=(*judgement.assumptions, assumed))


def _lacking(
    judgement: Judgement, context: RunContext, there_before: Collection[str]
) -> tuple[str, Reason] | None:
    """What the record lacks that could make the divergence none; None if it stands."""
    not_recorded, kind = context.not_recorded, judgement.object.kind
    gap = _open_gap(judgement, context)
    found = _never_watched(judgement, context)
    if found is not None:
        return found
    if gap is not None:
        found = gap.why, Reason.GAP
    elif judgement.object.uid in there_before:
        why = f"the {kind} was there before the record began, and {context.unlisted}"
        found = why, Reason.BEFORE_RECORD
    elif context.times_unknown and rests_on_times(judgement):
        found = context.times_unknown, Reason.NOT_RECORDED
    elif context.late_or_set:
        found = context.late_or_set, Reason.NOT_RECORDED
    elif _rests_on_late_rows(judgement, context):
        found = LATE_ROWS, Reason.NOT_RECORDED
    elif judgement.verdict is Verdict.EARLY and "leases" in not_recorded:
        why = "a restarted controller forgets its timers, and no Lease tells of restarts"
        found = why, Reason.NOT_RECORDED
    return found


def _never_watched(judgement: Judgement, context: RunContext) -> tuple[str, Reason] | None:
    """A stream that its controller reads and the record did not watch there and then."""
    coverage, namespace = context.coverage, judgement.object.namespace
    for stream in _READ.get(judgement.controller, ()):  # none is known of a plugin's
        if stream in context.not_recorded:
            why = f"{stream} are not recorded ({context.not_recorded[stream]})"
            return why, Reason.NOT_RECORDED
        if not coverage.spans:
            continue
        if not coverage.sees(stream, namespace):
            return coverage.why(stream, namespace, judgement.time_ns), Reason.NOT_RECORDED
        if not coverage.watches(stream, namespace):
            why = coverage.why(stream, namespace, judgement.time_ns)
            return f"{why}, and nobody watched", Reason.GAP
        first_ns = coverage.first_look(stream, namespace)
        if first_ns is not None and judgement.time_ns < first_ns - INFORMER_LAG_NS:
            return coverage.why(stream, namespace, judgement.time_ns), Reason.GAP
    return None


def rests_on_times(judgement: Judgement) -> bool:
    """Whether a divergence is of nothing but times."""
    return judgement.verdict in _TIMED or (
        judgement.verdict is Verdict.DIFFERENT
        and bool(judgement.fields)
        and all("time" in difference.path.lower() for difference in judgement.fields)
    )


def _rests_on_late_rows(judgement: Judgement, context: RunContext) -> bool:
    """Whether it hangs on a time that late streams do not show closely enough."""
    width_ns = context.width_ns(judgement.time_ns)
    if not width_ns or not rests_on_times(judgement):
        return False
    if judgement.verdict is Verdict.DIFFERENT:
        return all(_are_near(difference, width_ns) for difference in judgement.fields)
    return judgement.verdict is not Verdict.MISSING or judgement.time_ns >= context.end_ns


def _are_near(difference: FieldDifference, width_ns: int) -> bool:
    """Whether both are times that are no farther apart than a late row's may be known to."""
    times = [parse_rfc3339(str(value)) for value in (difference.expected, difference.observed)]
    expected_ns, observed_ns = times
    if expected_ns is None or observed_ns is None:
        return False
    return abs(expected_ns - observed_ns) <= width_ns + CLOCK_SLACK_NS


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
