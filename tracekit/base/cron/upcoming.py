"""A list of the next activations, by asking a schedule again at each answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracekit.base.cron.parser import Generation, parse
from tracekit.base.cron.zones import UTC

if TYPE_CHECKING:
    from tracekit.base.cron.zones import Zone


def next_activations_ns(
    spec: str,
    *,
    from_ns: int,
    count: int,
    generation: Generation = Generation.GEN3,
    zone: Zone = UTC,
) -> list[int]:
    """When `spec` fires, strictly after `from_ns`; shorter than `count` where it never fires again.

    Raises:
        CronSpecError: Where the library refuses the spec.
    """
    schedule = parse(spec, generation)
    found: list[int] = []
    at_ns = from_ns
    while len(found) < count:
        upcoming_ns = schedule.next_ns(at_ns, zone=zone)
        if upcoming_ns is None:
            break
        found.append(upcoming_ns)
        at_ns = upcoming_ns
    return found
