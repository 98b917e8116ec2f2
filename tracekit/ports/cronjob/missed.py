"""Missed starts: which slot is due now, and when to look again (both controllers).

Five generations of arithmetic exist in the queue-based controller (`Arithmetic`). The three that
divide the elapsed time by the distance of the first two slots are wrong for uneven schedules: the
older two name instants that are no slots, the newer ones may find nothing. Go's zero time, which
the cron library answers for impossible dates, is earlier than everything; here it is `ZERO_NS`.

Upstream: pkg/controller/cronjob/utils.go, from v1.11 on.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from tracekit.base.cron.parser import CronPanicError, CronSpecError, Generation, parse
from tracekit.base.cron.zones import UTC, Zone
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.versions.constants import CRON_MISSED_RUNS_MAX, CRON_TIMER_PAD_NS
from tracekit.versions.cronjob import Arithmetic, CronJobEra

if TYPE_CHECKING:
    from tracekit.base.cron.schedule import Schedule
    from tracekit.base.kube.cronjob_views import CronJobView

#: Midnight of 1 January of the year 1.
ZERO_NS = -62_135_596_800 * NS_PER_S
_HANG_TEXT = "the controller never returns from a schedule that has no next start"


class ScheduleError(ValueError):
    """A schedule that cannot be used; the message is the controller's."""


class Missed(Enum):
    """How many starts were missed."""

    NONE = auto()
    FEW = auto()
    MANY = auto()


class Due(Struct, frozen=True):
    """The slot that should be started now, if any."""

    slot_ns: int | None
    missed: Missed = Missed.NONE
    missed_count: int = 0
    in_utc: bool = False  # the slot carries UTC instead of the process's zone


def effective_spec(cron_job: CronJobView, era: CronJobEra) -> str:
    """The text that the cron library gets: the schedule, behind its timeZone where it has one."""
    spec = cron_job.spec
    if era.time_zone_field and "TZ" not in spec.schedule and spec.time_zone is not None:
        return f"TZ={spec.time_zone} {spec.schedule}"
    return spec.schedule


def parse_schedule(cron_job: CronJobView, era: CronJobEra) -> Schedule:
    """Parse with the release's library.

    Raises:
        ScheduleError: With the library's text, a panic's from 1.35 on as the guard words it.
    """
    return _parsed(effective_spec(cron_job, era), era.generation, era.guards_panic)


@lru_cache(1024)
def _parsed(text: str, generation: Generation, guards_panic: bool) -> Schedule:
    """Parse what the library gets; each text once.

    Raises:
        ScheduleError: As `parse_schedule`.
    """
    try:
        return parse(text, generation)
    except CronPanicError as error:
        text = f"invalid schedule format: {error}" if guards_panic else f"panic: {error}"
        raise ScheduleError(text) from None
    except CronSpecError as error:
        raise ScheduleError(str(error)) from None


def next_ns(schedule: Schedule, at_ns: int, zone: Zone) -> int:
    """Next as Go answers it: the zero time instead of nothing."""
    found = schedule.next_ns(at_ns, zone=zone)
    return ZERO_NS if found is None else found


def earliest_ns(cron_job: CronJobView, now_ns: int) -> int:
    """Where the search for missed starts begins: the last run, or the deadline's reach if later."""
    deadline_s = cron_job.spec.starting_deadline_s
    if deadline_s is None:
        return cron_job.base_ns
    return max(cron_job.base_ns, now_ns - deadline_s * NS_PER_S)


def unmet_starts(
    cron_job: CronJobView, schedule: Schedule, now_ns: int, zone: Zone, *, limit: int | None
) -> list[int] | None:
    """Every slot after the earliest time up to now; None with more than `limit`, or without end."""
    start_ns = earliest_ns(cron_job, now_ns)
    if start_ns > now_ns:
        return []
    starts: list[int] = []
    slot_ns = schedule.next_ns(start_ns, zone=zone)
    while slot_ns is not None and slot_ns <= now_ns:
        starts.append(slot_ns)
        if limit is not None and len(starts) > limit:
            return None
        slot_ns = schedule.next_ns(slot_ns, zone=zone)
    return None if slot_ns is None else starts


def due(
    cron_job: CronJobView, schedule: Schedule, now_ns: int, era: CronJobEra, zone: Zone = UTC
) -> Due:
    """The newest missed slot, as the release's arithmetic finds it.

    Raises:
        ScheduleError: Where two slots are less than a second apart (impossible dates).
    """
    if era.arithmetic is Arithmetic.LIST_ALL:
        starts = unmet_starts(cron_job, schedule, now_ns, zone, limit=None)
        if starts is None:
            raise ScheduleError(_HANG_TEXT)
        return Due(starts[-1] if starts else None, _grade(len(starts)), len(starts))
    found = _most_recent(schedule, earliest_ns(cron_job, now_ns), now_ns, era, zone)
    if found.slot_ns is not None and found.slot_ns > now_ns:
        return Due(None, found.missed, found.missed_count)
    return found


def requeues_from_now(era: CronJobEra) -> bool:
    """Whether the slot after the sync is waited for, not the one after the last run."""
    return era.arithmetic in {Arithmetic.LIST_ALL, Arithmetic.EQUAL_SPACING}


def requeue_after_ns(
    cron_job: CronJobView, schedule: Schedule, now_ns: int, era: CronJobEra, zone: Zone = UTC
) -> int:
    """How long until the key should be looked at again; may be negative (= at once)."""
    anchor_ns, anchor_zone = now_ns, zone
    if not requeues_from_now(era):
        anchor_ns, anchor_zone = _anchor(cron_job, schedule, now_ns, era, zone)
    return next_ns(schedule, anchor_ns, anchor_zone) + CRON_TIMER_PAD_NS - now_ns


def _anchor(
    cron_job: CronJobView, schedule: Schedule, now_ns: int, era: CronJobEra, zone: Zone
) -> tuple[int, Zone]:
    """The instant whose next slot is waited for: the newest missed slot, the last run, or now."""
    try:
        found = _most_recent(schedule, cron_job.base_ns, now_ns, era, zone)
    except ScheduleError:
        return now_ns, zone
    if found.slot_ns is not None:
        return found.slot_ns, UTC if found.in_utc else zone
    if found.missed is not Missed.NONE and era.arithmetic is Arithmetic.WALK_NEAR_END_FROM_NOW:
        return now_ns, zone
    return cron_job.base_ns, zone


def _most_recent(
    schedule: Schedule, start_ns: int, now_ns: int, era: CronJobEra, zone: Zone
) -> Due:
    """The newest slot up to now by dividing the elapsed time by the first distance of two slots."""
    if start_ns > now_ns:
        return Due(None)
    first_ns = next_ns(schedule, start_ns, zone)
    second_ns = next_ns(schedule, first_ns, zone)
    if now_ns < first_ns:
        return Due(None)
    if now_ns < second_ns:
        return Due(first_ns, Missed.NONE, 1)
    distance_s = (second_ns - first_ns) // NS_PER_S
    if distance_s < 1:
        raise ScheduleError(era.spacing_text)
    count = (now_ns - first_ns) // NS_PER_S // distance_s + 1
    if era.arithmetic in {Arithmetic.EQUAL_SPACING, Arithmetic.EQUAL_SPACING_ANCHORED}:
        slot_ns = first_ns + (count - 1) * distance_s * NS_PER_S
        return Due(slot_ns, _grade(count), count, in_utc=True)
    # The walk starts two distances before the end, so that even `@every` keeps its beat.
    slot_ns = next_ns(schedule, first_ns + (count - 2) * distance_s * NS_PER_S, zone)
    newest_ns = None
    while ZERO_NS < slot_ns <= now_ns:
        newest_ns = slot_ns
        slot_ns = next_ns(schedule, slot_ns, zone)
    return Due(newest_ns, _grade(count), count)


def _grade(count: int) -> Missed:
    if count > CRON_MISSED_RUNS_MAX:
        return Missed.MANY
    return Missed.FEW if count > 0 else Missed.NONE
