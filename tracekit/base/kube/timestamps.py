"""RFC 3339 on the outside, integer nanoseconds since the Unix epoch on the inside."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime
from functools import lru_cache

NS_PER_S = 1_000_000_000
_CYCLE_YEARS = 400
_CYCLE_S = 146_097 * 86_400


@lru_cache(maxsize=65536)
def parse_rfc3339(text: str) -> int | None:
    """Nanoseconds of an RFC 3339 timestamp, or None where the text is not one.

    Kubernetes writes `2026-11-21T05:42:42Z` (seconds) and, for MicroTime, up to six decimals;
    offsets other than Z are accepted because other writers use them.
    """
    try:
        if len(text) == 20 and text[19] == "Z":  # noqa: PLR2004 - the one shape that is common
            year, month, day = int(text[0:4]), int(text[5:7]), int(text[8:10])
            hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
            if text[4] != "-" or text[10] not in "Tt" or text[13] != ":":
                return None
            datetime(year, month, day, hour, minute, second, tzinfo=UTC)  # range check
            return calendar.timegm((year, month, day, hour, minute, second)) * NS_PER_S
        whole, _, rest = text.partition(".")
        digits = ""
        if rest:
            digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
            text = whole + rest[len(digits) :]
        parsed = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        return None
    if parsed.tzinfo is None:
        return None
    return _seconds_of(parsed) * NS_PER_S + int((digits + "000000000")[:9])


def _seconds_of(at: datetime) -> int:
    """Seconds since 1970 of a time with an offset; its year may be 0 or 10000 in UTC."""
    offset = at.utcoffset()
    return calendar.timegm(at.timetuple()) - (int(offset.total_seconds()) if offset else 0)


def format_rfc3339(at_ns: int | None) -> str | None:
    """The timestamp as RFC 3339 in UTC, with decimals only where there are any."""
    if at_ns is None:
        return None
    seconds, rest = divmod(at_ns, NS_PER_S)
    text = _whole_seconds(seconds)
    if rest:
        return text + f".{rest:09d}".rstrip("0") + "Z"
    return text + "Z"


@lru_cache(maxsize=4096)
def _whole_seconds(seconds: int) -> str:
    # The calendar repeats itself: so years have a name that Python's own type does not reach.
    cycles, rest = divmod(seconds, _CYCLE_S)
    at = datetime.fromtimestamp(rest, tz=UTC)
    year = at.year + cycles * _CYCLE_YEARS
    return f"{year:04d}{at.strftime('-%m-%dT%H:%M:%S')}"


def floor_second(at_ns: int) -> int:
    """The timestamp as `metav1.Time` keeps it: whole seconds, cut not rounded."""
    return at_ns - at_ns % NS_PER_S
