"""Cron expressions as the two generations of robfig/cron read them, with their own error texts.

`parse` is `ParseStandard`: five fields or a descriptor, in the second generation also behind a
`TZ=` or `CRON_TZ=` prefix. What differs between the generations is data in `GENERATIONS`:

- GEN1 is what Kubernetes up to 1.21 was built with (robfig/cron v1.1.0, and before that a snapshot
  of 2017 with the same parser): no zone prefix, a star with a step keeps its star flag, texts begin
  in upper case.
- GEN3 is what 1.22 and later are built with (v3.0.1): zone prefix, `*/2` has no star flag, the
  search repairs days without midnight. v1.2.0, which no Kubernetes ever used, answers the same.

Upstream: github.com/robfig/cron parser.go, v1.1.0 and v3.0.1.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from msgspec import Struct

from tracekit.base.cron.gotext import GoSyntaxError, atoi, fields, parse_duration_ns, trim_space
from tracekit.base.cron.schedule import EverySchedule, Schedule, SpecSchedule
from tracekit.base.cron.zones import UnknownZoneError, Zone, load_zone
from tracekit.base.kube.timestamps import NS_PER_S

_FIELD_COUNT = 5
_EVERY = "@every "
_ZONE_PREFIXES = ("TZ=", "CRON_TZ=")


class CronSpecError(ValueError):
    """A spec that the library refuses; the message is the library's own."""


class CronPanicError(CronSpecError):
    """A spec on which the library panics; the message is the text of the panic."""


class Generation(Enum):
    """Which robfig/cron a Kubernetes release was built with."""

    GEN1 = "robfig/cron v1.1.0"
    GEN3 = "robfig/cron v3.0.1"


class _Rules(Struct, frozen=True):
    """What one generation does differently from the other."""

    zone_prefix: bool
    star_survives_step: bool
    repairs_midnight: bool
    capital_errors: bool


GENERATIONS: dict[Generation, _Rules] = {
    Generation.GEN1: _Rules(
        zone_prefix=False, star_survives_step=True, repairs_midnight=False, capital_errors=True
    ),
    Generation.GEN3: _Rules(
        zone_prefix=True, star_survives_step=False, repairs_midnight=True, capital_errors=False
    ),
}


class _Bounds(Struct, frozen=True):
    """The values that a field may hold, and their names."""

    low: int
    high: int
    names: tuple[str, ...] = ()  # the first name stands for `low`


_MINUTES = _Bounds(0, 59)
_HOURS = _Bounds(0, 23)
_DAYS = _Bounds(1, 31)
_MONTHS = _Bounds(
    1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
)
_WEEKDAYS = _Bounds(0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"))
_FIELDS = (_MINUTES, _HOURS, _DAYS, _MONTHS, _WEEKDAYS)

#: Descriptors, and the fields that each stands for.
DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@lru_cache(maxsize=4096)
def parse(spec: str, generation: Generation = Generation.GEN3) -> Schedule:
    """Read a standard cron spec.

    Raises:
        CronSpecError: With the library's own text; `CronPanicError` where the library would panic.
    """
    rules = GENERATIONS[generation]
    try:
        return _parse(spec, rules)
    except CronPanicError:
        raise
    except CronSpecError as error:
        text = str(error)
        raise CronSpecError(text[0].upper() + text[1:] if rules.capital_errors else text) from None


def _parse(spec: str, rules: _Rules) -> Schedule:
    if not spec:
        raise CronSpecError("empty spec string")
    zone: Zone | None = None
    rest = spec
    if rules.zone_prefix and spec.startswith(_ZONE_PREFIXES):
        zone, rest = _zone_prefix(spec)
    if rest.startswith("@"):
        return _descriptor(rest, zone, rules)
    parts = fields(rest)
    if len(parts) != _FIELD_COUNT:
        # The old parser printed the spec as it came, the new one the list of its fields.
        shown = f"[{' '.join(parts)}]" if rules.zone_prefix else rest
        raise CronSpecError(f"expected exactly 5 fields, found {len(parts)}: {shown}")
    return _spec_schedule(parts, zone, rules)


def _zone_prefix(spec: str) -> tuple[Zone | None, str]:
    """Cut the zone off the front; "Local" means the zone of the instant asked about."""
    name_at = spec.index("=") + 1
    blank_at = spec.find(" ")
    if blank_at < 0:
        raise CronPanicError("runtime error: slice bounds out of range [:-1]")
    name = spec[name_at:blank_at]
    rest = trim_space(spec[blank_at:])
    if name == "Local":
        return None, rest
    try:
        return load_zone(name), rest
    except UnknownZoneError as error:
        raise CronSpecError(f"provided bad location {name}: {error}") from None


def _descriptor(text: str, zone: Zone | None, rules: _Rules) -> Schedule:
    if text in DESCRIPTORS:
        return _spec_schedule(DESCRIPTORS[text].split(), zone, rules)
    if not text.startswith(_EVERY):
        raise CronSpecError(f"unrecognized descriptor: {text}")
    try:
        delay_ns = parse_duration_ns(text.removeprefix(_EVERY))
    except GoSyntaxError as error:
        raise CronSpecError(f"failed to parse duration {text}: {error}") from None
    return EverySchedule(max(1, delay_ns // NS_PER_S))


def _spec_schedule(parts: list[str], zone: Zone | None, rules: _Rules) -> SpecSchedule:
    sets = [_field(text, bounds, rules) for text, bounds in zip(parts, _FIELDS, strict=True)]
    return SpecSchedule(
        minutes=sets[0][0],
        hours=sets[1][0],
        days=sets[2][0],
        months=sets[3][0],
        weekdays=sets[4][0],
        any_day_star=sets[2][1] or sets[4][1],
        zone=zone,
        repairs_midnight=rules.repairs_midnight,
    )


def _field(text: str, bounds: _Bounds, rules: _Rules) -> tuple[int, bool]:
    """Bits and star flag of a list of ranges; empty items are skipped, so "," is an empty set."""
    bits, star = 0, False
    for item in text.split(","):
        if item:
            item_bits, item_star = _range(item, bounds, rules)
            bits, star = bits | item_bits, star or item_star
    return bits, star


def _range(text: str, bounds: _Bounds, rules: _Rules) -> tuple[int, bool]:
    base, *steps = text.split("/")
    ends = base.split("-")
    star = ends[0] in {"*", "?"}
    if star:
        low, high = bounds.low, bounds.high  # whatever follows a star and a hyphen is not read
    else:
        low = high = _value(ends[0], bounds)
        if len(ends) > 2:  # noqa: PLR2004
            raise CronSpecError(f"too many hyphens: {text}")
        if len(ends) > 1:
            high = _value(ends[1], bounds)
    step = 1
    if len(steps) > 1:
        raise CronSpecError(f"too many slashes: {text}")
    if steps:
        step = _number(steps[0])
        if len(ends) == 1:
            high = bounds.high  # "5/10" means "5-max/10"
        if step > 1 and not rules.star_survives_step:
            star = False
    _check_range(text, low, high, step, bounds)
    return sum(1 << value for value in range(low, high + 1, step)), star


def _check_range(text: str, low: int, high: int, step: int, bounds: _Bounds) -> None:
    if low < bounds.low:
        raise CronSpecError(f"beginning of range ({low}) below minimum ({bounds.low}): {text}")
    if high > bounds.high:
        raise CronSpecError(f"end of range ({high}) above maximum ({bounds.high}): {text}")
    if low > high:
        raise CronSpecError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise CronSpecError(f"step of range should be a positive number: {text}")


def _value(text: str, bounds: _Bounds) -> int:
    name = text.lower()
    if name in bounds.names:
        return bounds.low + bounds.names.index(name)
    return _number(text)


def _number(text: str) -> int:
    try:
        value = atoi(text)
    except GoSyntaxError as error:
        raise CronSpecError(f"failed to parse int from {text}: {error}") from None
    if value < 0:
        raise CronSpecError(f"negative number ({value}) not allowed: {text}")
    return value
