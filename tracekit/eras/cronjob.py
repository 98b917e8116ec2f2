"""What both CronJob controllers and the TTL controller do differently in each version.

`CHANGES` is the whole table: one line per change, the releases that have it, and the value that it
gives to a field of `CronJobEra`. The field's default is what the oldest release did. An era is
resolved once per replay; controllers read its fields and never compare versions.

Patch boundaries marked "by" are the oldest patch known to have a change whose first patch is not
known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from tracekit.cron.kubernetes import generation_of
from tracekit.cron.parser import Generation
from tracekit.eras.version import Boundary, KubeVersion


class Controller(Enum):
    """Which CronJob controller runs."""

    POLLING = "polling"  # v1: every 10 s, no cache
    QUEUED = "queued"  # v2: informers and a delaying queue


class Shell(Enum):
    """The outer shape of a queue-based sync."""

    WRITES_ALWAYS = "A"  # status PUT in every sync, history clean-up last
    WRITES_CHANGES = "B"  # one PUT where something changed, clean-up last
    CLEANS_FIRST = "C"  # clean-up before scheduling, one PUT where something changed


class Arithmetic(Enum):
    """How missed starts are counted and the newest found (specification D.4)."""

    LIST_ALL = "A0"
    EQUAL_SPACING = "A1"
    EQUAL_SPACING_ANCHORED = "A2"  # the next wake-up counts from the last run
    WALK_NEAR_END = "A3"
    WALK_NEAR_END_FROM_NOW = "A4"  # as A3, but a walk that finds nothing wakes up from now


class Exists(Enum):
    """What happens when the Job to create is there already."""

    FALLS_THROUGH = "falls through with an empty Job"
    ERROR = "error"
    RECOVER = "recover"


class SuccessTime(Enum):
    """Which finished Jobs move status.lastSuccessfulTime."""

    NEVER = "never"
    FINISHED = "any finished Job, one sync after it left the active list"
    COMPLETE_NEXT = "complete Jobs, one sync after they left the active list"
    COMPLETE_SAME = "complete Jobs, in the sync that drops them from the active list"


class ZoneWarning(Enum):
    """When TZ in a schedule raises UnsupportedSchedule."""

    NEVER = "never"
    AFTER_PARSE = "after a successful parse"
    BEFORE_PARSE = "before the parse"


class DeletePath(Enum):
    """How the polling controller deletes a Job."""

    SCALE_DOWN = "parallelism 0, pods one by one, Job without policy"
    ORPHAN = "Job without policy"
    BACKGROUND = "Job with background propagation"


class Paging(Enum):
    """How the polling controller lists."""

    WHOLE = "one list"
    BROKEN = "pages; more than 500 objects abort the pass"
    PAGES = "pages"


@dataclass(frozen=True, slots=True)
class CronJobEra:
    """The CronJob and TTL controllers of one version with one set of gates."""

    version: KubeVersion
    controller: Controller = Controller.POLLING
    generation: Generation = Generation.GEN1
    owner_api: str = "batch/v1beta1"
    # Polling controller.
    delete_path: DeletePath = DeletePath.SCALE_DOWN
    paging: Paging = Paging.WHOLE
    completed_event_names_status: bool = False
    too_many_text_lower: bool = False
    unparseable_text_lower: bool = False
    quiet_in_terminating_namespace: bool = False
    # Queue-based controller.
    shell: Shell = Shell.WRITES_ALWAYS
    arithmetic: Arithmetic = Arithmetic.LIST_ALL
    children_need_labels: bool = True
    exists: Exists = Exists.FALLS_THROUGH
    namespace_terminating_is_error: bool = False
    success_time: SuccessTime = SuccessTime.NEVER
    time_zone_field: bool = False
    zone_warning: ZoneWarning = ZoneWarning.NEVER
    scheduled_annotation: bool = False
    request_has_creation_time: bool = False
    completed_word: str = "status"
    too_many_count: str = "count"  # "count", "zero" (a mistake of 1.21) or "none"
    stale_after_create: bool = False
    guards_panic: bool = False
    quotes_unparseable: bool = False
    invalid_text: str = "invalid schedule"
    spacing_text: str = "time difference between two schedules less than 1 second"
    missed_time_in_utc: bool = False
    # TTL-after-finished.
    ttl: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """From the releases of `since` on, `field` has `value`; a later line of the table wins."""

    field: str
    value: Any
    since: Boundary


_C = Change
_B = Boundary

CHANGES: Final[tuple[Change, ...]] = (
    # Both controllers.
    _C("owner_api", "batch/v1", _B("1.21")),
    # Polling controller.
    _C("delete_path", DeletePath.ORPHAN, _B("1.13")),
    _C("delete_path", DeletePath.BACKGROUND, _B("1.14", (("1.13", 1),))),
    _C("paging", Paging.BROKEN, _B("1.14")),
    _C("paging", Paging.PAGES, _B("1.15")),
    _C("completed_event_names_status", value=True, since=_B("1.15")),
    _C("too_many_text_lower", value=True, since=_B("1.15")),
    _C("unparseable_text_lower", value=True, since=_B("1.16")),
    _C("quiet_in_terminating_namespace", value=True, since=_B("1.17")),
    # Queue-based controller: shape of a sync.
    _C("shell", Shell.WRITES_CHANGES, _B("1.24")),
    _C(
        "shell",
        Shell.CLEANS_FIRST,
        _B("1.29", (("1.25", 14), ("1.26", 9), ("1.27", 6), ("1.28", 2))),
    ),
    _C("stale_after_create", value=True, since=_B("1.21", gone="1.24")),
    _C("stale_after_create", value=False, since=_B(None, (("1.22", 6), ("1.23", 2)))),
    _C(
        "children_need_labels",
        value=False,
        since=_B("1.24", (("1.21", 11), ("1.22", 8), ("1.23", 5))),
    ),
    # Arithmetic of missed starts.
    _C("arithmetic", Arithmetic.EQUAL_SPACING, _B("1.21")),
    _C("arithmetic", Arithmetic.EQUAL_SPACING_ANCHORED, _B("1.25")),
    _C(
        "arithmetic",
        Arithmetic.WALK_NEAR_END,
        _B("1.28", (("1.25", 12), ("1.26", 7), ("1.27", 4))),
    ),
    _C(
        "arithmetic",
        Arithmetic.WALK_NEAR_END_FROM_NOW,
        _B("1.29", (("1.26", 11), ("1.27", 8), ("1.28", 4))),
    ),
    _C("too_many_count", "zero", _B("1.21", gone="1.22")),
    _C("too_many_count", "none", _B("1.28", (("1.25", 12), ("1.26", 7), ("1.27", 4)))),
    _C(
        "spacing_text",
        "time difference between two schedules is less than 1 second",
        _B("1.27", (("1.26", 15),)),  # by 1.26.15
    ),
    # Creation of Jobs.
    _C("exists", Exists.ERROR, _B("1.21")),
    _C(
        "exists",
        Exists.RECOVER,
        _B("1.29", (("1.25", 15), ("1.26", 10), ("1.27", 7), ("1.28", 3))),
    ),
    _C(
        "namespace_terminating_is_error",
        value=True,
        since=_B("1.28", (("1.25", 16), ("1.26", 15), ("1.27", 16))),  # by these patches
    ),
    _C("request_has_creation_time", value=True, since=_B("1.22")),
    # Status and events.
    _C("success_time", SuccessTime.FINISHED, _B("1.22")),
    _C("success_time", SuccessTime.COMPLETE_NEXT, _B("1.30")),
    _C("success_time", SuccessTime.COMPLETE_SAME, _B("1.31")),
    _C("completed_word", "condition", _B("1.31")),
    _C("missed_time_in_utc", value=True, since=_B("1.22")),
    _C("zone_warning", ZoneWarning.AFTER_PARSE, _B("1.23", (("1.22", 1),))),  # by 1.22.17
    _C("zone_warning", ZoneWarning.BEFORE_PARSE, _B("1.24")),
    _C("quotes_unparseable", value=True, since=_B("1.23", (("1.22", 1),))),  # by 1.22.17
    _C("invalid_text", "invalid schedule schedule", _B("1.21")),
    _C("invalid_text", "invalid schedule", _B("1.23", (("1.22", 1),))),
    _C("guards_panic", value=True, since=_B("1.35")),
)


@dataclass(frozen=True, slots=True)
class GatedField:
    """A field that a feature gate sets."""

    field: str
    on_by_default: Boundary
    switchable: Boundary  # the releases where the gate exists and is not locked


GATES: Final[dict[str, GatedField]] = {
    "CronJobControllerV2": GatedField("controller", _B("1.21"), _B("1.20", gone="1.22")),
    "CronJobTimeZone": GatedField("time_zone_field", _B("1.25"), _B("1.24", gone="1.27")),
    "CronJobsScheduledAnnotation": GatedField(
        "scheduled_annotation", _B("1.28"), _B("1.28", gone="1.32")
    ),
    "TTLAfterFinished": GatedField("ttl", _B("1.21"), _B("1.12", gone="1.23")),
}


def cron_job_era(version: KubeVersion, gates: Mapping[str, bool] | None = None) -> CronJobEra:
    """Resolve the table for one release; a gate that cannot be switched there is ignored."""
    era = CronJobEra(version, generation=generation_of(version))
    values: dict[str, Any] = {
        change.field: change.value for change in CHANGES if change.since.holds(version)
    }
    for name, gate in GATES.items():
        enabled = gate.on_by_default.holds(version)
        if gates is not None and name in gates and gate.switchable.holds(version):
            enabled = gates[name]
        if gate.field == "controller":
            values[gate.field] = Controller.QUEUED if enabled else Controller.POLLING
        else:
            values[gate.field] = enabled
    return replace(era, **values)
