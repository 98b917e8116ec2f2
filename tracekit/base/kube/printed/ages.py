"""Ages and times as kubectl prints them (apimachinery pkg/util/duration; RFC 1123)."""

from __future__ import annotations

import re
from datetime import datetime

from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339, parse_rfc3339

_PARTS = re.compile(r"(\d{1,6})([ydhms])")
_AGE = re.compile(r"(?:\d{1,6}[ydhms]){1,2}")
#: What a client prints is a time.Duration: 64 bits of nanoseconds.
_AGE_MAX_S = ((1 << 63) - 1) // NS_PER_S
_SECONDS = {"y": 365 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}
#: Below so many seconds HumanDuration prints seconds, below the next minutes, hours, days.
_PRECISE = ((600, 1), (8 * 3600, 60), (8 * 86400, 3600), (8 * 365 * 86400, 86400))


def age_of(text: str) -> tuple[int, int] | None:
    """An age and by how much less than the truth it may be, in seconds; None if it is none.

    Clients before 1.12 printed the largest unit alone: one that stands alone is exact to it.
    """
    if not _AGE.fullmatch(text):
        return None
    parts = _PARTS.findall(text)
    seconds = sum(int(number) * _SECONDS[unit] for number, unit in parts)
    if seconds > _AGE_MAX_S:
        return None
    if len(parts) == 1:
        return seconds, _SECONDS[parts[0][1]]
    precise = next((unit for below, unit in _PRECISE if seconds < below), _SECONDS["y"])
    return seconds, precise


def moment_of(text: str) -> str | None:
    """A time of a description as RFC 3339, in UTC; None if it is none."""
    try:
        at = datetime.strptime(text.strip(), "%a, %d %b %Y %H:%M:%S %z")
    except ValueError:
        return None
    return format_rfc3339(parse_rfc3339(at.isoformat()))
