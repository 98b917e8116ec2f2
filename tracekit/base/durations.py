"""Durations as sentences say them."""

from __future__ import annotations

from typing import Final

from tracekit.base.kube.timestamps import NS_PER_S

_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_DAY_S: Final = 86400
#: From here on hours are days: nobody reads "4998 h". A choice; kubectl's ages have days from 8 on.
_DAYS_FROM_S: Final = 10 * _DAY_S
_NS_PER_MS: Final = 1_000_000
#: Below so much a duration that is not whole has a decimal. A choice: with less `1 s` means 1.4 s,
#: too, beside sentences that are exact, with more a sentence has digits that nobody asks for.
_DECIMAL_NS: Final = 10 * NS_PER_S


def span(ns: float) -> str:
    """A duration: `0.674 s`, `1.7 s`, `42 s`, `5 min 6 s`, `2 h 3 min`, `12 d 7 h`.

    0 is only what is none.
    """
    if 0 < ns < _NS_PER_MS:
        return "less than 1 ms"
    if 0 < ns < NS_PER_S:
        return f"{ns // _NS_PER_MS / 1000:g} s"
    if NS_PER_S <= ns < _DECIMAL_NS:
        return f"{ns / NS_PER_S:.1f}".removesuffix(".0") + " s"
    seconds = round(ns / NS_PER_S)
    if seconds < _MINUTE_S:
        return f"{seconds} s"
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S} min {seconds % _MINUTE_S} s"
    return _long(seconds)


def _long(seconds: int) -> str:
    """An hour or more."""
    if seconds < _DAYS_FROM_S:
        return f"{seconds // _HOUR_S} h {seconds % _HOUR_S // _MINUTE_S} min"
    return f"{seconds // _DAY_S} d {seconds % _DAY_S // _HOUR_S} h"
