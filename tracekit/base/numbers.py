"""Whole numbers in texts from elsewhere.

`int` takes digits of any script, and raises for more than 4,300 of them (CPython's bound against
quadratic time); `str.isdigit` says yes to `²`, which `int` refuses. Kubernetes writes int64.
"""

from __future__ import annotations

from typing import Final

#: Of the largest int64; leading zeros count.
_DIGITS_MAX: Final = 19
_INT64_MAX: Final = (1 << 63) - 1


def whole_number(text: str | None) -> int | None:
    """The number that the text is: ASCII digits alone, of at most 64 bits; else None."""
    if text is None or len(text) > _DIGITS_MAX or not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return number if number <= _INT64_MAX else None
