"""TK314, TK320: times of a schedule that came twice or not at all, as a local clock was changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from msgspec.structs import replace

from tracekit.answers.harm import Harm
from tracekit.answers.model import Case, Rule, Severity
from tracekit.answers.trace_model import CronJob, Facts, Row
from tracekit.answers.words import clock
from tracekit.base.cron import UTC, Schedule, activations
from tracekit.base.cron.schedule import DAY_S, SpecSchedule
from tracekit.base.cron.zones import Zone
from tracekit.base.kube.timestamps import NS_PER_S

#: For so many days a time that was left out is told. A choice: who looks for a run that is missing
#: looks within some days, and nothing becomes of it later.
_DAYS: Final = 7
_OUTSIDE: Final = (
    "Schedule it outside the hour of the clock change, or set timeZone: Etc/UTC. `tracekit cron "
    "lint` tells the next changes."
)

TWICE = Rule(
    "TK314", "a local time that came twice", Severity.WARNING,
    "Two due times in the record are the same time of the same day in the CronJob's zone, as its "
    "clock went back in between; not of schedules for every hour.",
    "A run that is meant to follow the local clock.",
    _OUTSIDE, rank=31,
)  # fmt: skip
LEFT_OUT = Rule(
    "TK320", "a local time that the clock left out", Severity.WARNING,
    "In the seven days before the last look at a CronJob that is not suspended, the clock of its "
    "zone went forward past a local time of its schedule, which is then not due that day; not of "
    "schedules for every hour.",
    "A schedule or zone that was edited since.",
    f"Make up for it: kubectl create job --from=cronjob/NAME. {_OUTSIDE}", rank=31,
)  # fmt: skip
CLOCK_RULES = (TWICE, LEFT_OUT)


def clock_changes(
    facts: Facts, cron: CronJob, ticks: Sequence[Row], reading: tuple[Schedule, Zone] | None
) -> Iterator[Case]:
    """What changes of its zone's clock did to the times of a CronJob."""
    if reading is None or not isinstance(reading[0], SpecSchedule):
        return
    schedule, zone = reading[0], reading[0].zone or reading[1]
    if not schedule.every_hour:
        yield from _twice(cron, ticks, zone)
        yield from _left_out(facts, cron, schedule, zone)


def _left_out(facts: Facts, cron: CronJob, schedule: SpecSchedule, zone: Zone) -> Iterator[Case]:
    """Local times of the schedule that the clock went past."""
    as_of_ns = facts.as_of(cron.namespace, "cronjobs")
    if zone.is_utc or cron.last.gone or cron.last.spec.get("suspend") is True or not as_of_ns:
        return
    change_s = _forward(zone, as_of_ns // NS_PER_S)
    if change_s is None or change_s * NS_PER_S < cron.created_ns:
        return
    first, until = (change_s + zone.offset_s(change_s + after) for after in (-1, 0))
    lost = _due(replace(schedule, zone=None), UTC, first, until)
    around = _due(schedule, zone, change_s - DAY_S, change_s + DAY_S)
    fired = {instant_s + zone.offset_s(instant_s) for instant_s in around}
    lost = [wall_s for wall_s in lost if wall_s not in fired]
    if not lost:
        return
    local = clock(lost[0] * NS_PER_S).removesuffix("Z")
    more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    after_ns = schedule.next_ns(change_s * NS_PER_S, zone=zone)
    then = f"; the next is {clock(after_ns)}" if after_ns is not None else ""
    yield Case(
        LEFT_OUT, cron.target,
        f"was not due at {local}{more} ({zone.name}), which the clock left out",
        change_s * NS_PER_S, as_of_ns,
        f"at {clock(change_s * NS_PER_S)} it went from {clock(first * NS_PER_S)[11:16]} to "
        f"{clock(until * NS_PER_S)[11:16]} ({cron.last.spec.get('schedule')}){then}",
        evidence={"local": local, "zone": zone.name}, harm=Harm(missed_runs=len(lost)),
    )  # fmt: skip


def _forward(zone: Zone, until_s: int) -> int | None:
    """The last instant of some days at which the clock went forward, in Unix seconds."""
    for day in range(_DAYS):
        high = until_s - day * DAY_S
        change_s = zone.change_within(high - DAY_S, high)
        if change_s is not None and zone.offset_s(high - DAY_S) < zone.offset_s(high):
            return change_s
    return None


def _due(schedule: SpecSchedule, zone: Zone, from_s: int, until_s: int) -> list[int]:
    """The times of a schedule from one on until before another, in Unix seconds."""
    times = activations(schedule, from_s * NS_PER_S - 1, zone=zone)
    return [at // NS_PER_S for at in takewhile(lambda at: at < until_s * NS_PER_S, times)]


def _twice(cron: CronJob, ticks: Sequence[Row], zone: Zone) -> Iterator[Case]:
    """Due times that one local time stands for."""
    seen: dict[int, int] = {}
    for tick in ticks:
        due_s = tick["due_ns"] // NS_PER_S
        wall_s = due_s + zone.offset_s(due_s)
        first_s = seen.setdefault(wall_s, due_s)
        if first_s == due_s:
            continue
        local = clock(wall_s * NS_PER_S).removesuffix("Z")
        yield Case(
            TWICE, cron.target,
            f"was due twice at {local} ({zone.name}): the clock went back in between",
            first_s * NS_PER_S, tick["due_ns"],
            f"due at {clock(first_s * NS_PER_S)} and {clock(tick['due_ns'])}",
            evidence={"local": local, "zone": zone.name},
        )  # fmt: skip
        return
