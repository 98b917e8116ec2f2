"""How fast the clients of the controller manager may be, by its command line.

Each controller has a client of its own with a token bucket of this size; Events pass through it,
too. Upstream: cmd/kube-controller-manager/app/options, --kube-api-qps, --kube-api-burst.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.versions.constants import Constants

_DEFAULTS: Final = Constants()
_NUMBER = re.compile(r"[\w.+-]+", re.ASCII)
#: An octal number of C, as Go's base 0 takes it: Python wants the letter.
_OCTAL = re.compile(r"\A([+-]?)0(?=[0-9_])")


def _float_of(text: str) -> float | None:
    """A number as Go's strconv.ParseFloat takes one, but for infinities and NaN."""
    hexadecimal = "x" in text.lower()
    if not _NUMBER.fullmatch(text) or (hexadecimal and "p" not in text.lower()):
        return None
    try:
        number = float.fromhex(text) if hexadecimal else float(text)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _int_of(text: str) -> float | None:
    """A number as Go's strconv.ParseInt takes one in base 0: 150, 0x96, 0226."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return int(_OCTAL.sub(r"\g<1>0o", text), 0)
    except ValueError:
        return None


#: What sets the bucket, and how pflag reads it. `_` for `-` is taken, too (component-base/cli).
_FLAGS: Final = {"kube-api-qps": ("qps", _float_of), "kube-api-burst": ("burst", _int_of)}


class Throttle(Struct, frozen=True):
    """A client's token bucket; a `qps` of 0 or less means that nothing is throttled."""

    qps: float = _DEFAULTS.client_qps
    burst: float = _DEFAULTS.client_burst

    def tokens(self, time_ns: int) -> int:
        """How many tokens come in a time."""
        return int(self.qps * time_ns // NS_PER_S)

    def wait_ns(self, tokens: int, at_least_ns: int) -> int:
        """How long so many tokens take to come, if that is longer."""
        if self.qps <= 0:
            return at_least_ns
        return max(at_least_ns, math.ceil(tokens * NS_PER_S / self.qps))


DEFAULT_THROTTLE: Final = Throttle()


def throttle_values(flags: Sequence[str]) -> Iterator[tuple[str, str, float | None]]:
    """The words of a command line that set the bucket, each with what it sets, and to what.

    None: there stands no number that such a flag takes.
    """
    for word, following in pairwise([*flags, ""]):
        name, given, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if name in _FLAGS and word.startswith("-"):
            field, number_of = _FLAGS[name]
            yield word, field, number_of(value if given else following)


def throttle_of(flags: Sequence[str]) -> Throttle:
    """What a command line says; the defaults for what it leaves out, or what is no number."""
    found = throttle_values(flags)
    return Throttle(**{field: number for _, field, number in found if number is not None})
