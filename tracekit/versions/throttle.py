"""How fast the clients of the controller manager may be, by its command line.

Each controller has a client of its own with a token bucket of this size; Events pass through it,
too. Upstream: cmd/kube-controller-manager/app/options, --kube-api-qps, --kube-api-burst.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.versions.constants import Constants

_DEFAULTS: Final = Constants()
_FLAGS: Final = {"kube-api-qps": "qps", "kube-api-burst": "burst"}


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


def throttle_values(flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The words of a command line that set the bucket, each with its value as it stands there."""
    for word, following in pairwise([*flags, ""]):
        name, given, value = word.lstrip("-").partition("=")
        if name in _FLAGS and word.startswith("-"):
            yield word, value if given else following


def is_number(value: str) -> bool:
    """Whether it is a number as Go's flags take one: no infinity, and something."""
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def throttle_of(flags: Sequence[str]) -> Throttle:
    """What a command line says; the defaults for what it leaves out, or what is no number."""
    return Throttle(
        **{
            _FLAGS[word.lstrip("-").partition("=")[0]]: float(value)
            for word, value in throttle_values(flags)
            if is_number(value)
        }
    )
