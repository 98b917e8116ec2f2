"""Time zones by name, as Go's `time.LoadLocation` names them and the tz database defines them.

Data comes from the `tzdata` distribution only, never from the machine's own files, so that the same
question has the same answer everywhere. A `Zone` answers one question, the UTC offset at an
instant; Go's rule that turns a wall clock reading into an instant is built on it in `at_wall_s`
(Python's `fold` and gap rules differ).
"""

from __future__ import annotations

import io
import pkgutil
from datetime import UTC as DATETIME_UTC
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=DATETIME_UTC)
#: The instants whose local time Python can express in every zone; beyond, the nearest one counts.
_INSTANT_MIN_S = -62_135_510_400
_INSTANT_MAX_S = 253_402_127_999


class UnknownZoneError(ValueError):
    """A zone name that Go cannot load; the message is Go's own."""


class Zone:
    """The UTC offset of one named zone at every instant."""

    __slots__ = ("_info", "name")

    def __init__(self, name: str, info: ZoneInfo | None) -> None:
        self.name = name
        self._info = info

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    @property
    def is_utc(self) -> bool:
        """True where the offset is 0 at every instant."""
        return self._info is None

    @property
    def tzinfo(self) -> tzinfo:
        """The zone as Python's own libraries take it; they have other rules for repeated times."""
        return self._info or DATETIME_UTC

    def offset_s(self, instant_s: int) -> int:
        """Seconds east of UTC at an instant."""
        if self._info is None:
            return 0
        inside = min(max(instant_s, _INSTANT_MIN_S), _INSTANT_MAX_S)
        local = (_EPOCH + timedelta(seconds=inside)).astimezone(self._info)
        offset = local.utcoffset()
        return 0 if offset is None else offset.days * 86_400 + offset.seconds

    def change_within(self, low_s: int, high_s: int) -> int | None:
        """The first instant of another offset between two of different ones, else None.

        Of two changes within that time one is found.
        """
        old = self.offset_s(low_s)
        if old == self.offset_s(high_s):
            return None
        while high_s - low_s > 1:
            middle = (low_s + high_s) // 2
            if self.offset_s(middle) == old:
                low_s = middle
            else:
                high_s = middle
        return high_s

    def at_wall_s(self, wall_s: int) -> int:
        """Turn a wall clock reading (its seconds read as if UTC) into an instant, as Go does.

        A repeated reading gives its first occurrence west of UTC and its second east of it; a
        skipped one moves back west of UTC and forward east of it.
        """
        if self._info is None:
            return wall_s
        return wall_s - self.offset_s(wall_s - self.offset_s(wall_s))


UTC = Zone("UTC", None)


@lru_cache(maxsize=1024)
def load_zone(name: str) -> Zone:
    """Load a zone by its tz database name; "" and "UTC" are UTC.

    The name "Local" stands for the zone of a process and is the caller's to resolve.

    Raises:
        UnknownZoneError: With Go's text.
    """
    if name in {"", "UTC"}:
        return UTC
    if name[0] in "/\\" or ".." in name:
        raise UnknownZoneError("time: invalid location name")
    data = _zone_data(name)
    if data is None:
        raise UnknownZoneError(f"unknown time zone {name}")
    return Zone(name, ZoneInfo.from_file(io.BytesIO(data), key=name))


def _zone_data(name: str) -> bytes | None:
    """Read a zone's compiled rules out of the tzdata distribution."""
    parts = name.split("/")
    if not all(
        part.isascii() and part.replace("_", "").replace("-", "").replace("+", "").isalnum()
        for part in parts
    ):
        return None
    try:
        data = pkgutil.get_data("tzdata", "zoneinfo/" + name)
    except OSError:
        return None
    return data if data is not None and data.startswith(b"TZif") else None
