"""Versions, feature gates and the process's zone as people write them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from tracekit.base.cron.zones import UnknownZoneError, Zone, load_zone
from tracekit.base.errors import UsageError
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.trace.format.model import CLOCK_OFFSET_MAX_NS
from tracekit.versions.throttle import throttle_values

#: How a flag begins, in pflag's grammar: -v, --name, --name=value.
_FLAG = re.compile(r"--?[A-Za-z]")
_VERSION = re.compile(r"v?([0-9]+\.[0-9]+(?:\.[0-9]+)?(?:[-+][0-9A-Za-z.+-]*)?)")


def parse_version(text: str | None) -> str | None:
    """A Kubernetes version with its `v`, or None if none was given."""
    if text is None:
        return None
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a Kubernetes version: write it like v1.36.3")
    return f"v{match[1]}"


def parse_process_zone(name: str) -> Zone:
    """The zone that the controller manager runs in."""
    try:
        return load_zone(name)
    except UnknownZoneError as error:
        raise UsageError(f"--process-zone: {error}; give a name of the tz database") from None


def parse_feature_gates(text: str | None) -> dict[str, bool]:
    """`A=true,B=false` as kube-controller-manager takes it."""
    gates: dict[str, bool] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, _, value = part.strip().partition("=")
        if not name.strip() or value.strip() not in _BOOLEANS:
            raise UsageError(
                f"{part.strip()!r} is not a feature gate setting: write it like Gate=true"
            )
        gates[name.strip()] = _BOOLEANS[value.strip()]
    return gates


#: What Go's strconv.ParseBool accepts.
_BOOLEANS: Final[dict[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def parse_controller_flags(given: str | Sequence[str]) -> tuple[str, ...]:
    """The controller manager's command line, one word each; a text is split as a shell would.

    Raises:
        UsageError: A word is neither a flag nor the value of the one before it, or a flag that
            decides a verdict has no number.
    """
    try:
        words = tuple(shlex.split(given) if isinstance(given, str) else given)
    except ValueError as error:
        raise UsageError(
            f"the controller flags cannot be split into words ({error}): check the quotes"
        ) from error
    named = words[:1] and words[0].rpartition("/")[2] == "kube-controller-manager"
    flag: str | None = None
    for word in words[1:] if named else words:
        is_flag = _FLAG.match(word) is not None
        if is_flag:
            flag = None if "=" in word else word
        elif flag is not None:
            flag = None  # its value
        elif word:  # what a variable left empty is no argument
            raise UsageError(f"{word!r} is no controller flag: write them like --kube-api-qps=100")
    for word, _, number in throttle_values(words):
        if number is None:
            raise UsageError(
                f"{word!r} has no number that it takes: write it like --kube-api-qps=100 or "
                "--kube-api-burst=150"
            )
    return words


def parse_clock_offset(seconds: float) -> int:
    """How far a recorder's clock was ahead, in ns.

    Raises:
        UsageError: No clock is so far off, or it is no number.
    """
    most_s = CLOCK_OFFSET_MAX_NS // NS_PER_S
    if not -most_s <= seconds <= most_s:  # nor is a number that is none
        raise UsageError(
            f"a clock offset of {seconds} s is no clock's: give seconds from -{most_s} to {most_s}"
        )
    return round(seconds * NS_PER_S)
