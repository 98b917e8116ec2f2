"""Times, lengths of time and ranges as people write them: RFC 3339, 22:43, -10m, 1h30m. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from tracekit.base.errors import UsageError
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339, parse_rfc3339

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
#: A day, or a time of day, with what it leaves out.
_REST = {10: "T00:00:00Z", 16: ":00Z", 17: ":00Z"}
#: A time of day, with the day it is of: `22:43`, `yesterday 14:00`, `today 9:05:30.5+02:00`.
_SHORT = re.compile(
    r"(?:(?P<day>today|yesterday)[ T]+)?(?P<hour>\d{1,2}):(?P<rest>\d\d(?::\d\d(?:\.\d{1,9})?)?)"
    r"(?P<zone>Z|[+-]\d\d:\d\d)?",
    re.ASCII | re.IGNORECASE,
)
_DAY_NAMES = {"today": 0, "yesterday": 1}
_DAY_NS = 86_400 * NS_PER_S


#: No row of a trace is later (docs/trace-format.md, Order), and none is from before 1970.
_FURTHEST_NS = 1 << 62
#: No duration that a user may mean is longer.
LONGEST_S = _FURTHEST_NS // NS_PER_S
#: 0001-01-01T00:00:00Z, Go's zero time: nothing was before.
FIRST_NS = -62_135_596_800 * NS_PER_S


def duration_s(text: str) -> float | None:
    """The seconds of 90, 90s, 10m, 1h30m or 7d; None for another text."""
    text = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        return float(text)
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def moment_ns(text: str | int, end_ns: int, *, not_before_ns: int | None = None) -> int:
    """The instant that a user names, in ns since 1970.

    Args:
        text: RFC 3339, a day or a time without a zone (which is UTC then); a time of day like
            `22:43`, `yesterday 14:00`, by the day on which the record ends; `-10m`: so long before
            the end, at most from the year 1 on; or nanoseconds since 1970.
        end_ns: The end of the record.
        not_before_ns: A time of day without a day is the first one from then on; None: the last
            one that is not after the end.

    Raises:
        UsageError: It is none of these.
    """
    if isinstance(text, int):
        return text
    written = text.strip()
    if re.match(r"-[0-9]", written):
        before_s = duration_s(written[1:])
        if before_s is not None:
            return _before(end_ns, before_s)
    short = _of_that_day(written, end_ns, not_before_ns)
    if short is not None:
        return short
    written = written.replace(" ", "T")
    for shape in (written, f"{written}Z", written.removesuffix("Z") + _REST.get(len(written), "")):
        at_ns = parse_rfc3339(shape)
        if at_ns is not None:
            return at_ns
    raise UsageError(
        f"{text!r} is no time: write it like 2026-11-21T05:42:45Z, 05:42, yesterday 05:42, or -10m "
        "for ten minutes before the end"
    )


def looked_ns(text: str, now_ns: int) -> int:
    """The instant at which somebody looked, in ns since 1970: `now`, or as `moment_ns` reads it.

    Args:
        text: What a user writes.
        now_ns: Now, by which times of day and `-10m` are read.

    Raises:
        UsageError: It is none, or no row of a trace can have it.
    """
    at_ns = now_ns if text.strip().lower() == "now" else moment_ns(text, now_ns)
    if not 0 <= at_ns <= _FURTHEST_NS:
        raise UsageError(f"{text!r} is no time of a look: name one from 1970 to 2115")
    return at_ns


def is_relative(text: str | int | None) -> bool:
    """Whether what a user names depends on when the record ends: `-10m`, `22:43`, `yesterday`."""
    if not isinstance(text, str):
        return False
    written = text.strip()
    return (
        written.startswith("-") or written.lower() in _DAY_NAMES or bool(_SHORT.fullmatch(written))
    )


def _of_that_day(written: str, end_ns: int, not_before_ns: int | None) -> int | None:
    """A day or a time of day, by the day on which the record ends; None: it is neither."""
    today_ns = end_ns - end_ns % _DAY_NS
    if written.lower() in _DAY_NAMES:
        return today_ns - _DAY_NAMES[written.lower()] * _DAY_NS
    short = _SHORT.fullmatch(written)
    if short is None:
        return None
    rest = short["rest"] if ":" in short["rest"] else f"{short['rest']}:00"
    of_1970_ns = parse_rfc3339(f"1970-01-02T{short['hour']:0>2}:{rest}{short['zone'] or 'Z'}")
    if of_1970_ns is None:
        return None
    at_ns = today_ns + of_1970_ns - _DAY_NS
    if short["day"]:
        return at_ns - _DAY_NAMES[short["day"].lower()] * _DAY_NS
    if not_before_ns is not None:
        return at_ns + -((at_ns - not_before_ns) // _DAY_NS) * _DAY_NS
    return at_ns + (end_ns - at_ns) // _DAY_NS * _DAY_NS


class TimeRange(Struct, frozen=True):
    """From when to when something is asked for, both ends with it, in ns; None: no such end."""

    from_ns: int | None = None
    until_ns: int | None = None

    def holds(self, at_ns: int) -> bool:
        """Whether an instant is within it."""
        return self.meets(at_ns, at_ns)

    def meets(self, from_ns: int, until_ns: int | None) -> bool:
        """Whether any of a length of time is within it; None has not ended."""
        if self.from_ns is not None and until_ns is not None and until_ns < self.from_ns:
            return False
        return self.until_ns is None or from_ns <= self.until_ns

    def __bool__(self) -> bool:
        return self.from_ns is not None or self.until_ns is not None

    def __str__(self) -> str:
        parts = []
        if self.from_ns is not None:
            parts.append(f"from {format_rfc3339(self.from_ns)}")
        if self.until_ns is not None:
            parts.append(f"to {format_rfc3339(self.until_ns)}")
        return " ".join(parts)


ALWAYS = TimeRange()


def time_range(
    end: int | Callable[[], int],
    *,
    since: str | float | None = None,
    from_: str | int | None = None,
    to: str | int | None = None,
) -> TimeRange:
    """The range that `--since`, `--from` and `--to` name, in a record with that end, in ns.

    To know the end may take long: a function that tells it is asked only where a time is named.

    Raises:
        UsageError: One cannot be read, two say where to begin, or it ends before it begins.
    """
    if since is not None and from_ is not None:
        raise UsageError("--since and --from both say where to begin: leave one out")
    if since is None and from_ is None and to is None:
        return ALWAYS
    end_ns = end if isinstance(end, int) else end()
    from_ns = None if from_ is None else moment_ns(from_, end_ns)
    if since is not None:
        length_s = since if isinstance(since, (int, float)) else duration_s(since.lstrip("-"))
        if length_s is None:
            raise UsageError(f"{since!r} is no duration: write it like 90s, 10m, 1h30m or 7d")
        from_ns = _before(end_ns, length_s)
    # Until a time of day: the first one after the beginning, or that of the last day.
    floor_ns = end_ns - end_ns % _DAY_NS if from_ns is None else from_ns
    until_ns = None if to is None else moment_ns(to, end_ns, not_before_ns=floor_ns)
    if from_ns is not None and until_ns is not None and from_ns > until_ns:
        raise UsageError("--from is after --to: swap them")
    return TimeRange(_within(from_ns), _within(until_ns))


def _before(end_ns: int, length_s: float) -> int:
    """So long before an instant, at most from the year 1 on."""
    return end_ns - int(min(length_s * NS_PER_S, end_ns - FIRST_NS))


def _within(at_ns: int | None) -> int | None:
    """The instant, or the furthest that a record may have: what computes with it has 64 bits."""
    return None if at_ns is None else max(-_FURTHEST_NS, min(at_ns, _FURTHEST_NS))
