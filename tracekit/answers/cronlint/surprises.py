"""What a schedule does to its owner in Kubernetes, whoever else reads it: sentences.

Clock changes that drop or double a run, a `startingDeadlineSeconds` that no run can keep, a
schedule without any date, and runs that take longer than the time between two of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, takewhile

from msgspec import Struct
from msgspec.structs import replace

from tracekit.answers.cronlint.comparison import kubernetes_reading
from tracekit.base.cron import UTC, EverySchedule, Schedule, SpecSchedule, Zone, activations
from tracekit.base.cron.gotime import rfc3339
from tracekit.base.cron.schedule import DAY_S
from tracekit.base.durations import span
from tracekit.base.kube.timestamps import NS_PER_S

_DAYS_WATCHED = 400
#: The polling controller looks this often, give or take its own work.
POLL_S = 10
_POLICIES = {
    "Forbid": "concurrencyPolicy Forbid skips the runs that come due meanwhile",
    "Replace": "concurrencyPolicy Replace deletes the Job that still runs",
}


class Surprise(Struct, frozen=True):
    """Something that will happen, by its class, and the sentence that tells it."""

    name: str
    text: str


#: The names of all that is told beside the classes of disagreement.
SURPRISES = (
    "never-due", "missed-at-random", "no-date", "dropped", "fires-twice", "overlap", "generation",
    "kubernetes",
)  # fmt: skip


def never_due(schedule: Schedule, at_ns: int) -> list[Surprise]:
    """Whether the schedule has no date that the library would ever find."""
    if schedule.next_ns(at_ns) is not None:
        return []
    return [Surprise("no-date", "no date fits within five years: the CronJob never starts a Job")]


def deadline(schedule: Schedule, deadline_s: int | None, *, polling: bool) -> list[Surprise]:
    """Whether `startingDeadlineSeconds` leaves any run; both controllers count back from now."""
    if deadline_s is None:
        return []
    if isinstance(schedule, EverySchedule) and deadline_s < schedule.delay_s:
        text = (
            f"@every counts from the last {deadline_s} s (startingDeadlineSeconds), so its next "
            f"run is always {schedule.delay_s - deadline_s} s or more ahead: no Job is ever started"
        )
        return [Surprise("never-due", text)]
    if deadline_s == 0:
        text = "startingDeadlineSeconds 0: every run is late when it is looked at, none is started"
        return [Surprise("never-due", text)]
    if polling and deadline_s < POLL_S:
        text = (
            f"startingDeadlineSeconds {deadline_s}: this release looks only every {POLL_S} s, "
            "so runs are missed at random"
        )
        return [Surprise("missed-at-random", text)]
    return []


def clock_changes(schedule: Schedule, zone: Zone, at_ns: int) -> list[Surprise]:
    """Runs that the clock changes of the next 400 days drop or double.

    A schedule that runs in every hour of the day only follows the clock: that is no surprise.
    """
    if not isinstance(schedule, SpecSchedule):
        return []
    zone = schedule.zone or zone
    every_hour = schedule.every_hour
    found = []
    for change_s in changes(zone, at_ns // NS_PER_S):
        before, after = zone.offset_s(change_s - 1), zone.offset_s(change_s)
        due, fired = _around(schedule, zone, change_s, before, after)
        day = rfc3339((change_s + after) * NS_PER_S)[:10]
        gap = range(change_s + before, change_s + after)
        lost = [wall for wall in due if wall not in fired and not (every_hour and wall in gap)]
        twice = [wall for wall, times in fired.items() if times > 1 and not every_hour]
        for name, walls, what in (
            ("dropped", lost, "is dropped"),
            ("fires-twice", twice, "fires twice"),
        ):
            if walls:
                first = rfc3339(walls[0] * NS_PER_S)[11:16]
                more = f" (and {len(walls) - 1} more)" if len(walls) > 1 else ""
                text = f"the clocks of {zone.name} change on {day}: the run of {first}{more} {what}"
                found.append(Surprise(name, text))
    return found


def overlaps(
    schedule: Schedule, zone: Zone, at_ns: int, run_s: float | None, policy: str | None
) -> list[Surprise]:
    """Whether the longest run that was seen takes longer than the least time between two runs."""
    if run_s is None:
        return []
    times = kubernetes_reading(schedule, zone, at_ns, 50).next_ns
    between_s = min(((b - a) // NS_PER_S for a, b in pairwise(times)), default=None)
    if between_s is None or run_s <= between_s:
        return []
    then = _POLICIES.get(policy or "Allow", "the Jobs run beside each other")
    text = f"a Job took {span(run_s * NS_PER_S)}, and runs come {between_s} s apart: {then}"
    return [Surprise("overlap", text)]


def changes(zone: Zone, from_s: int) -> Iterator[int]:
    """The instants of the next 400 days at which the zone's offset changes, in Unix seconds."""
    for day in range(_DAYS_WATCHED):
        low = from_s + day * DAY_S
        change_s = zone.change_within(low, low + DAY_S)
        if change_s is not None:
            yield change_s


def _around(
    schedule: SpecSchedule, zone: Zone, change_s: int, before: int, after: int
) -> tuple[list[int], Counter[int]]:
    """The local times due within a day of the change, and how often each of them fires."""
    first, last = change_s + before - DAY_S, change_s + after + DAY_S
    due = _walk(replace(schedule, zone=None), UTC, first, last)
    instants = _walk(schedule, zone, first - before, last - after)
    fired = Counter(instant + zone.offset_s(instant) for instant in instants)
    return due, fired


def _walk(schedule: SpecSchedule, zone: Zone, from_s: int, until_s: int) -> list[int]:
    times = activations(schedule, from_s * NS_PER_S, zone=zone)
    return [at // NS_PER_S for at in takewhile(lambda at: at < until_s * NS_PER_S, times)]
