"""The classes of disagreement between Kubernetes and croniter: their names and what each means.

docs/cron.md has the same table; a test compares them.
"""

from __future__ import annotations

from typing import Final

#: Class -> what Kubernetes does, and what croniter does.
CLASSES: Final[dict[str, tuple[str, str]]] = {
    # Both take it, and fire at different times.
    "one-value-range": (
        "`5-5` is the value 5, and so is `5-5/2`",
        "`5-5` is every value of the field",
    ),
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
    "every": ("`@every 45s` is an interval", "refuses it"),
    "zone-prefix": ("takes `TZ=` and `CRON_TZ=` from 1.22", "refuses it"),
    "question-mark": (
        "`?` is `*`, in any field and with a step",
        "takes `?` alone, in the day fields",
    ),
    "empty-item": ("skips what is missing in `1,,3`; `,` never fires", "refuses it"),
    "star-range": ("reads `*-5` as `*`", "refuses it"),
    "plus-sign": ("reads `+5` as 5", "refuses it"),
    "big-number": ("takes steps up to 2⁶³", "is not asked: it would build the whole range"),
    "odd-blanks": ("takes any Unicode blank between fields", "takes other blanks, or refuses it"),
    # croniter takes it.
    "seconds": ("refuses six and seven fields", "takes seconds and years, seconds *after* weekday"),
    "last-day": ("refuses `L`", "the last day of the month, or the last such weekday"),
    "nearest-weekday": ("refuses `15W`", "the working day nearest to the 15th"),
    "nth-weekday": ("refuses `5#2`", "the second Friday of the month"),
    "random": ("refuses `H` and `R`", "a value that it draws"),
    "weekday-7": ("refuses 7 as a day of week: Sunday is 0", "Sunday is 0 or 7"),
    "wrapped-range": ("refuses `22-2`", "wraps around: 22, 23, 0, 1, 2"),
    "descriptor-case": ("refuses `@Daily`: lower case only", "any case"),
    "time-zone": ("refuses this spec.timeZone, or has no such field yet", "reads in any zone"),
    "unexplained": ("differs", "in a way that has no class: please report the schedule"),
}
