"""When a parsed cron schedule fires next: bit sets, the day rule, daylight saving changes.

`SpecSchedule.next_ns` walks month, day, hour and minute exactly as robfig/cron does, including what
it does wrong around clock changes: a firing whose local time is skipped is dropped, one whose local
time is repeated fires twice, and days without a midnight lose firings. Times are integers of
nanoseconds (results are whole seconds); local times are derived with Go's rules (`zones`).

Upstream: github.com/robfig/cron spec.go and constantdelay.go, v1.1.0 and v3.0.1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from msgspec import Struct

from tracekit.base.cron.zones import UTC, Zone
from tracekit.base.kube.timestamps import NS_PER_S

DAY_S = 86_400
HOUR_S = 3_600
MINUTE_S = 60
_HOURS = 24
_NOON = 12
#: The library gives up beyond; so long without a date and a CronJob never fires again.
YEARS_SEARCHED = 5
#: More steps than any search that ends can take: 5 years of days, and a day of hours and minutes
#: for each day whose firing a clock change swallowed. See `SpecSchedule.next_ns`.
STEPS_MAX = 20_000


class Schedule(Protocol):
    """Anything that knows its next activation."""

    def next_ns(self, at_ns: int, *, zone: Zone = UTC) -> int | None:
        """The first activation after `at_ns`; None where the library gives Go's zero time."""


class EverySchedule(Struct, frozen=True):
    """`@every D`: a fixed delay after whatever instant is asked about."""

    delay_s: int  # at least 1

    def next_ns(self, at_ns: int, *, zone: Zone = UTC) -> int | None:
        """Add the delay to the start of the second; no zone matters."""
        del zone
        return (at_ns // NS_PER_S + self.delay_s) * NS_PER_S


class SpecSchedule(Struct, frozen=True):
    """Five bit sets (bit n = value n is wanted) and whether a day field began with a star.

    `zone` is that of a `TZ=` prefix; None means the zone of the instant asked about.
    `repairs_midnight` is the second generation's step back or forward to midnight after a day whose
    midnight does not exist.
    """

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    any_day_star: bool
    zone: Zone | None
    repairs_midnight: bool

    @property
    def is_impossible(self) -> bool:
        """True where a set is empty, so that no instant can ever match."""
        if not (self.minutes and self.hours and self.months):
            return True
        if self.any_day_star:
            return not (self.days and self.weekdays)
        return not (self.days or self.weekdays)

    @property
    def every_hour(self) -> bool:
        """Whether it runs in every hour of a day."""
        return self.hours == (1 << 24) - 1

    def next_ns(self, at_ns: int, *, zone: Zone = UTC) -> int | None:
        """Find the first activation strictly after `at_ns`; None after five years without one.

        `zone` is the zone that the instant carries, in Kubernetes the controller process's own.
        Where a whole local day does not exist (Pacific/Apia, 30 December 2011) the Go library's day
        loop never ends; this search answers None there, and after `STEPS_MAX` steps in any case.
        """
        if self.is_impossible:
            return None
        found_s = _next_s(self, self.zone or zone, at_ns // NS_PER_S)
        return None if found_s is None else found_s * NS_PER_S


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar; month and day may overflow."""
    year, month0 = year + (month - 1) // 12, (month - 1) % 12
    # Count years from March, so that the leap day is the last of its year.
    shifted_year = year - (month0 < 2)  # noqa: PLR2004 - January and February
    era, year_of_era = divmod(shifted_year, 400)
    day_of_year = (153 * ((month0 + 10) % 12) + 2) // 5
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468 + day - 1


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a count of days since 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9  # noqa: PLR2004
    return year_of_era + era * 400 + (month <= 2), month, day  # noqa: PLR2004


@lru_cache(maxsize=65_536)
def _next_s(schedule: SpecSchedule, zone: Zone, at_s: int) -> int | None:
    """The first activation after a second; a controller asks the same again in every sync."""
    return _Search(schedule, zone).run(at_s + 1)


class _Search:
    """One walk towards the next activation, moving only as the Go library moves."""

    __slots__ = ("added", "now_s", "schedule", "steps_left", "wall_s", "zone")

    def __init__(self, schedule: SpecSchedule, zone: Zone) -> None:
        self.schedule = schedule
        self.zone = zone
        self.steps_left = STEPS_MAX
        self.added = False  # something moved: all smaller fields stand at their lowest
        self.now_s = 0
        self.wall_s = 0  # always the local reading of now_s

    def run(self, start_s: int) -> int | None:
        """Walk from the first candidate second; None when nothing was found."""
        self._move_to(start_s)
        year_limit = self._date()[0] + YEARS_SEARCHED
        while self._date()[0] <= year_limit:
            # Each stage is True when it wrapped around: then the coarser fields must be looked at
            # again from the top.
            if self._month() or self._day() or self._hour() or self._minute() or self._second():
                if self.steps_left <= 0:
                    return None
                continue
            return self.now_s
        return None

    def _move_to(self, now_s: int) -> None:
        self.now_s = now_s
        self.wall_s = now_s + self.zone.offset_s(now_s)

    def _move_to_wall(self, wall_s: int) -> None:
        self._move_to(self.zone.at_wall_s(wall_s))

    def _date(self) -> tuple[int, int, int]:
        return civil_from_days(self.wall_s // DAY_S)

    def _step(self) -> bool:
        self.steps_left -= 1
        return self.steps_left > 0

    def _start_counting(self, unit_s: int) -> None:
        """Before the first move, drop what is smaller than the unit that moves."""
        if not self.added:
            self.added = True
            self._move_to_wall(self.wall_s - self.wall_s % unit_s)

    def _month(self) -> bool:
        months = self.schedule.months
        while not months >> self._date()[1] & 1:
            if not self._step():
                return True
            if not self.added:
                self.added = True
                year, month, _ = self._date()
                self._move_to_wall(days_from_civil(year, month, 1) * DAY_S)
            year, month, day = self._date()
            days = days_from_civil(year, month + 1, day)
            self._move_to_wall(days * DAY_S + self.wall_s % DAY_S)
            if self._date()[1] == 1:
                return True
        return False

    def _day_matches(self) -> bool:
        schedule = self.schedule
        days = self.wall_s // DAY_S
        day_wanted = schedule.days >> civil_from_days(days)[2] & 1
        weekday_wanted = schedule.weekdays >> (days + 4) % 7 & 1  # 1970-01-01 was a Thursday
        if schedule.any_day_star:
            return bool(day_wanted and weekday_wanted)
        return bool(day_wanted or weekday_wanted)

    def _day(self) -> bool:
        while not self._day_matches():
            if not self._step():
                return True
            self._start_counting(DAY_S)
            before_s = self.now_s
            self._move_to_wall(self.wall_s + DAY_S)
            hour = self.wall_s % DAY_S // HOUR_S
            if hour and self.schedule.repairs_midnight:
                self._move_to(self.now_s + ((_HOURS - hour) if hour > _NOON else -hour) * HOUR_S)
            if self.now_s == before_s:
                self.steps_left = 0  # no such local day: the library would stay here for ever
                return True
            if self._date()[2] == 1:
                return True
        return False

    def _hour(self) -> bool:
        hours = self.schedule.hours
        while not hours >> (hour := self.wall_s % DAY_S // HOUR_S) & 1:
            if not self._step():
                return True
            self._start_counting(HOUR_S)
            ahead = _ahead(hours, hour, _HOURS) if self.zone.is_utc else 1
            self._move_to(self.now_s + ahead * HOUR_S)
            if self.wall_s % DAY_S < HOUR_S:
                return True
        return False

    def _minute(self) -> bool:
        minutes = self.schedule.minutes
        while not minutes >> (minute := self.wall_s % HOUR_S // MINUTE_S) & 1:
            if not self._step():
                return True
            if not self.added:
                self.added = True
                # The library cuts the instant here, not its local reading.
                self._move_to(self.now_s - self.now_s % MINUTE_S)
            ahead = _ahead(minutes, minute, MINUTE_S) if self.zone.is_utc else 1
            self._move_to(self.now_s + ahead * MINUTE_S)
            if self.wall_s % HOUR_S < MINUTE_S:
                return True
        return False

    def _second(self) -> bool:
        """Move to second 0 of the next local minute; only that second is ever wanted."""
        behind_s = self.wall_s % MINUTE_S
        if not behind_s:
            return False
        self.added = True
        self.steps_left -= 1
        self._move_to(self.now_s + MINUTE_S - behind_s)
        return True


def _ahead(wanted: int, value: int, size: int) -> int:
    """How many steps lead from a value to the next wanted one, or to the wrap to 0."""
    later = wanted >> (value + 1)
    return (later & -later).bit_length() if later else size - value
