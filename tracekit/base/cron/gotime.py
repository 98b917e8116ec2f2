"""How Go prints an instant in a zone: the two layouts that the CronJob controller uses."""

from __future__ import annotations

from tracekit.base.cron.schedule import DAY_S, HOUR_S, MINUTE_S, civil_from_days
from tracekit.base.cron.zones import UTC, Zone
from tracekit.base.kube.timestamps import NS_PER_S

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")  # 1970-01-01 was a Thursday


def rfc3339(at_ns: int, zone: Zone = UTC) -> str:
    """`2006-01-02T15:04:05Z07:00`: whole seconds, `Z` where the offset is zero."""
    days, clock, offset_s = _parts(at_ns, zone)
    year, month, day = civil_from_days(days)
    suffix = _offset(offset_s, ":") if offset_s else "Z"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}{suffix}"


def rfc1123z(at_ns: int, zone: Zone = UTC) -> str:
    """`Mon, 02 Jan 2006 15:04:05 -0700`."""
    days, clock, offset_s = _parts(at_ns, zone)
    year, month, day = civil_from_days(days)
    weekday = _WEEKDAYS[days % 7]
    return f"{weekday}, {day:02d} {_MONTHS[month - 1]} {year:04d} {clock} {_offset(offset_s, '')}"


def _parts(at_ns: int, zone: Zone) -> tuple[int, str, int]:
    at_s = at_ns // NS_PER_S
    offset_s = zone.offset_s(at_s)
    days, second = divmod(at_s + offset_s, DAY_S)
    hour, rest = divmod(second, HOUR_S)
    return days, f"{hour:02d}:{rest // MINUTE_S:02d}:{rest % MINUTE_S:02d}", offset_s


def _offset(offset_s: int, colon: str) -> str:
    sign = "-" if offset_s < 0 else "+"
    minutes = abs(offset_s) // MINUTE_S
    return f"{sign}{minutes // 60:02d}{colon}{minutes % 60:02d}"
