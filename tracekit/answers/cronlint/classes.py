"""The classes of disagreement between Kubernetes and croniter: their names and what each means.

docs/cron.md has the same table; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct


class _Shown(Struct, frozen=True):
    """A class that a part of a schedule shows: `{0}` is that part, `{1}` a number in it."""

    pattern: re.Pattern[str]
    example: str
    kubernetes: str
    croniter: str

    def sentences(self, schedule: str) -> tuple[str, str]:
        """Both readings of that part of a schedule; of the example where none is found in it."""
        found = next(self._parts(schedule), None) or self.pattern.search(self.example)
        parts = ("", "") if found is None else (found[0].strip(), (found.groups() or ("",))[0])
        return self.kubernetes.format(*parts), self.croniter.format(*parts)

    def _parts(self, schedule: str) -> Iterator[re.Match[str]]:
        for found in self.pattern.finditer(schedule):
            last = found.groupdict().get("last")
            if last is None or int(found[1]) > int(last):
                yield found


def _shown(pattern: str, example: str, kubernetes: str, croniter: str) -> _Shown:
    return _Shown(re.compile(pattern), example, kubernetes, croniter)


#: Classes whose sentences name what in the schedule they are about.
_OF_PARTS: Final = {
    "one-value-range": _shown(
        r"(?<!\d)(\d+)-\1(?!\d)(?:/\d+)?",
        "5-5",
        "`{0}` is the value {1}, with a step or without",
        "`{0}` is a range of the whole field",
    ),
    "every": _shown(r"@every\s+\S+", "@every 45s", "`{0}` is an interval", "refuses it"),
    "empty-item": _shown(
        r"(?<!\S)(?:\S*,,\S*|,\S*|\S*,)(?!\S)",
        "1,,3",
        "skips what is missing in `{0}`; `,` never fires",
        "refuses it",
    ),
    "star-range": _shown(r"\*-[^,/\s]+", "*-5", "reads `{0}` as `*`", "refuses it"),
    "plus-sign": _shown(r"\+0*(\d+)", "+5", "reads `{0}` as {1}", "refuses it"),
    "nearest-weekday": _shown(
        r"(?i)(?<!\w)(\d+)W", "15W", "refuses `{0}`", "the working day nearest to day {1}"
    ),
    "nth-weekday": _shown(
        r"\w+#(\d)", "5#2", "refuses `{0}`", "number {1} of that weekday in the month"
    ),
    "wrapped-range": _shown(
        r"(?<!\d)(\d+)-(?P<last>\d+)|(?i:[a-z]{3}-[a-z]{3})",
        "22-2",
        "refuses `{0}`",
        "goes on from the field's start",
    ),
    "descriptor-case": _shown(r"@\w+", "@Daily", "refuses `{0}`: lower case only", "any case"),
}


def _example(name: str) -> tuple[str, str]:
    return _OF_PARTS[name].sentences("")


#: Class -> what Kubernetes does, and what croniter does; with an example, where it needs one.
CLASSES: Final[dict[str, tuple[str, str]]] = {
    # Both take it, and fire at different times.
    "one-value-range": _example("one-value-range"),
    "day-rule": (
        "one day field that fits is enough, unless one begins with a star: `*/2` does up to 1.21",
        "one day field that fits is enough, unless it takes one for `*`, as it does `0-6`",
    ),
    "clock-change": (
        "a local time that a clock change skips is dropped, one that it repeats fires twice",
        "a skipped local time fires when the gap ends",
    ),
    "five-years": (
        "gives up after five years without a date: the CronJob never fires again",
        "searches fifty years",
    ),
    # Kubernetes takes it.
    "every": _example("every"),
    "zone-prefix": ("takes `TZ=` and `CRON_TZ=` from 1.22", "refuses it"),
    "question-mark": (
        "`?` is `*`, in any field and with a step",
        "takes `?` alone, in the day fields",
    ),
    "empty-item": _example("empty-item"),
    "star-range": _example("star-range"),
    "plus-sign": _example("plus-sign"),
    "big-number": ("takes steps up to 2⁶³", "is not asked: it would build the whole range"),
    "odd-blanks": ("takes any Unicode blank between fields", "takes other blanks, or refuses it"),
    # croniter takes it.
    "seconds": ("refuses six and seven fields", "takes seconds and years, seconds *after* weekday"),
    "last-day": ("refuses `L`", "the last day of the month, or the last such weekday"),
    "nearest-weekday": _example("nearest-weekday"),
    "nth-weekday": _example("nth-weekday"),
    "random": ("refuses `H` and `R`", "a value that it draws"),
    "weekday-7": ("refuses 7 as a day of week: Sunday is 0", "Sunday is 0 or 7"),
    "wrapped-range": _example("wrapped-range"),
    "descriptor-case": _example("descriptor-case"),
    "time-zone": ("refuses this spec.timeZone, or has no such field yet", "reads in any zone"),
    "unexplained": ("differs", "in a way that has no class: please report the schedule"),
}


def readings_of(name: str, schedule: str) -> tuple[str, str]:
    """What Kubernetes and croniter make of a schedule that has a class, by its own parts."""
    shown = _OF_PARTS.get(name)
    return CLASSES[name] if shown is None else shown.sentences(schedule)
