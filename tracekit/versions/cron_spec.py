"""Which cron library a Kubernetes release was built with, and what it does about time zones.

The `spec.timeZone` of a CronJob exists from 1.24 (alpha, behind a gate; on by default from 1.25)
and is prepended to the schedule as a `TZ=` prefix. A prefix that the user wrote into the schedule
is an error up to 1.21, works from 1.22, may not meet `spec.timeZone` from 1.24 and is refused for
new CronJobs from 1.29.
"""

from __future__ import annotations

from msgspec import Struct

from tracekit.base.cron.parser import Generation
from tracekit.base.cron.zones import UnknownZoneError, load_zone
from tracekit.versions.era import Era
from tracekit.versions.version import KubeVersion

_TIME_ZONE_SINCE = (1, 24)
_TIME_ZONE_ON_SINCE = (1, 25)


class TimeZoneError(ValueError):
    """A time zone that the release would not take; the message says why."""


class KubernetesSpec(Struct, frozen=True):
    """A CronJob's schedule as its controller hands it to the cron library."""

    spec: str
    generation: Generation
    notes: tuple[str, ...]


def _accepted(time_zone: str) -> bool:
    """Whether validation takes the name: it loads, and is neither empty nor the process's zone."""
    try:
        load_zone(time_zone)
    except UnknownZoneError:
        return False
    return time_zone.lower() not in {"", "local"}


def kubernetes_spec(
    schedule: str, *, time_zone: str | None, version: KubeVersion
) -> KubernetesSpec:
    """Combine `spec.schedule` and `spec.timeZone` as a release does.

    Raises:
        TimeZoneError: Where the release has no such field or would refuse the combination.
    """
    branch = (version.major, version.minor)
    behaviors = Era.resolve(version).behaviors
    generation = Generation.GEN3 if behaviors.cron_grammar_with_zones else Generation.GEN1
    notes: list[str] = []
    has_prefix = "TZ" in schedule
    if has_prefix and behaviors.zone_in_schedule_refused:
        notes.append(
            "Kubernetes 1.29 and later refuse TZ or CRON_TZ in the schedule of a new CronJob; "
            "one that was created earlier keeps firing as shown."
        )
    if time_zone is None:
        return KubernetesSpec(schedule, generation, tuple(notes))
    if branch < _TIME_ZONE_SINCE:
        raise TimeZoneError(
            f"Kubernetes {version} has no spec.timeZone; schedules follow the zone of the "
            "kube-controller-manager process, which --process-zone names."
        )
    if has_prefix:
        raise TimeZoneError(
            f"Kubernetes {version} refuses a CronJob with both a timeZone and TZ in its schedule; "
            "give one of the two."
        )
    if not _accepted(time_zone):
        raise TimeZoneError(
            f"{time_zone!r} is no time zone that Kubernetes takes; "
            "give a name of the tz database such as Europe/Berlin."
        )
    if branch < _TIME_ZONE_ON_SINCE:
        notes.append("spec.timeZone is alpha in 1.24: without the gate CronJobTimeZone it is lost.")
    return KubernetesSpec(f"TZ={time_zone} {schedule}", generation, tuple(notes))
