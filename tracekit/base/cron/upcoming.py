"""The next activations, by asking a schedule again at each answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from tracekit.base.cron.parser import Generation, parse
from tracekit.base.cron.zones import UTC

if TYPE_CHECKING:
    from tracekit.base.cron.schedule import Schedule
    from tracekit.base.cron.zones import Zone


def activations(schedule: Schedule, after_ns: int, *, zone: Zone = UTC) -> Iterator[int]:
    """Each activation strictly after a time, in Unix ns, as long as there are any."""
    at_ns = after_ns
    while (upcoming_ns := schedule.next_ns(at_ns, zone=zone)) is not None:
        yield upcoming_ns
        at_ns = upcoming_ns


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
    return list(islice(activations(parse(spec, generation), from_ns, zone=zone), count))
