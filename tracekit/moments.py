"""Times, lengths of time and ranges as people write them: RFC 3339, -10m, 1h30m. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from tracekit.errors import UsageError
from tracekit.kube.timestamps import NS_PER_S, format_rfc3339, parse_rfc3339

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
#: A day, or a time of day, with what it leaves out.
_REST = {10: "T00:00:00Z", 16: ":00Z", 17: ":00Z"}


def duration_s(text: str) -> float | None:
    """The seconds of 90, 90s, 10m, 1h30m or 7d; None for another text."""
    text = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        return float(text)
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def moment_ns(text: str | int, end_ns: int) -> int:
    """The instant that a user names, in ns since 1970.

    Args:
        text: RFC 3339, a day or a time without a zone (which is UTC then), `-10m`: so long before
            the end; or nanoseconds since 1970.
        end_ns: What times that begin with a minus are before.

    Raises:
        UsageError: It is neither.
    """
    if isinstance(text, int):
        return text
    written = text.strip()
    if re.match(r"-[0-9]", written):
        before_s = duration_s(written[1:])
        if before_s is not None:
            return end_ns - int(before_s * NS_PER_S)
    written = written.replace(" ", "T")
    for shape in (written, f"{written}Z", written.removesuffix("Z") + _REST.get(len(written), "")):
        at_ns = parse_rfc3339(shape)
        if at_ns is not None:
            return at_ns
    raise UsageError(
        f"{text!r} is no time: write it like 2026-11-21T05:42:45Z, or -10m for ten "
        "minutes before the end"
    )


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
        from_ns = end_ns - int(length_s * NS_PER_S)
    until_ns = None if to is None else moment_ns(to, end_ns)
    if from_ns is not None and until_ns is not None and from_ns > until_ns:
        raise UsageError("--from is after --to: swap them")
    return TimeRange(from_ns, until_ns)
