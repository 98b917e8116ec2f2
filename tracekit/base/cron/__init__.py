"""Cron expressions exactly as the Go libraries inside Kubernetes read them. Pure."""

from tracekit.base.cron.parser import CronPanicError, CronSpecError, Generation, parse
from tracekit.base.cron.schedule import EverySchedule, Schedule, SpecSchedule
from tracekit.base.cron.upcoming import activations, next_activations_ns
from tracekit.base.cron.zones import UTC, UnknownZoneError, Zone, load_zone

__all__ = [
    "UTC",
    "CronPanicError",
    "CronSpecError",
    "EverySchedule",
    "Generation",
    "Schedule",
    "SpecSchedule",
    "UnknownZoneError",
    "Zone",
    "activations",
    "load_zone",
    "next_activations_ns",
    "parse",
]
