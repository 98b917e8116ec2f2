"""What both CronJob controllers and the TTL controller do differently in each version.

`CronJobEra` holds plain attributes, resolved once per replay: controllers read them and never
compare versions. Most follow from the behaviors and gates of the version table (`shipped`,
`gates`); changes of nothing but a text are lines of `TEXTS` here. The default of a field is what
the oldest release did.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from tracekit.base.cron.parser import Generation
from tracekit.versions.api_server import ApiRules
from tracekit.versions.behaviors import BehaviorFlags
from tracekit.versions.era import Era
from tracekit.versions.version import Boundary, KubeVersion


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


class CronJobEra(Struct, frozen=True):
    """The CronJob and TTL controllers of one version with one set of gates."""

    version: KubeVersion
    controller: Controller
    generation: Generation
    owner_api: str
    # Polling controller.
    delete_path: DeletePath
    paging: Paging
    completed_event_names_status: bool
    too_many_text_lower: bool
    unparseable_text_lower: bool
    quiet_in_terminating_namespace: bool
    # Queue-based controller.
    shell: Shell
    arithmetic: Arithmetic
    children_need_labels: bool
    children_by_uid: bool
    exists: Exists
    namespace_terminating_is_error: bool
    success_time: SuccessTime
    time_zone_field: bool
    zone_warning: ZoneWarning
    scheduled_annotation: bool
    request_has_creation_time: bool
    completed_word: str
    stale_after_create: bool
    forgets_idle_key: bool
    guards_panic: bool
    quotes_unparseable: bool
    # What the API server of the version does not store in a Job.
    dropped_job_fields: tuple[str, ...]
    #: It takes no new CronJob with a time zone in its schedule.
    refuses_zone_in_schedule: bool
    # TTL-after-finished.
    ttl: bool
    # Texts of the oldest release; `TEXTS` has what they became.
    too_many_count: str = "count"  # "count", "zero" (a mistake of 1.21) or "none"
    invalid_text: str = "invalid schedule"
    spacing_text: str = "time difference between two schedules less than 1 second"
    missed_time_in_utc: bool = False

    @classmethod
    def of(cls, era: Era) -> CronJobEra:
        """The controllers of an era."""
        b, gates = era.behaviors, era.gates
        texts = {text.field: text.value for text in TEXTS if text.since.holds(era.basis)}
        return cls(
            version=era.version,
            controller=Controller.QUEUED if gates.CronJobControllerV2 else Controller.POLLING,
            generation=Generation.GEN3 if b.cron_grammar_with_zones else Generation.GEN1,
            owner_api="batch/v1" if b.cron_job_api_v1 else "batch/v1beta1",
            delete_path=_delete_path(b),
            paging=_paging(b),
            completed_event_names_status=b.completed_job_event_names_status,
            too_many_text_lower=b.too_many_missed_text_lower_case,
            unparseable_text_lower=b.unparseable_text_lower_case,
            quiet_in_terminating_namespace=b.polling_silent_in_terminating_namespace,
            shell=_shell(b),
            arithmetic=_arithmetic(b),
            children_need_labels=not b.children_by_owner_only,
            children_by_uid=b.children_by_owner_uid,
            exists=_exists(b),
            namespace_terminating_is_error=b.queued_error_in_terminating_namespace,
            success_time=_success_time(b),
            time_zone_field=gates.CronJobTimeZone,
            zone_warning=_zone_warning(b),
            scheduled_annotation=gates.CronJobsScheduledAnnotation,
            request_has_creation_time=b.job_request_carries_scheduled_time,
            completed_word="condition" if b.completed_job_event_says_condition else "status",
            forgets_idle_key=b.key_forgotten_without_requeue,
            stale_after_create=not b.cleanup_sees_own_status_write,
            guards_panic=b.schedule_parser_panic_caught,
            quotes_unparseable=b.unparseable_schedule_quoted,
            dropped_job_fields=ApiRules.of(era).dropped,
            refuses_zone_in_schedule=ApiRules.of(era).refuses_zone_in_schedule,
            ttl=gates.TTLAfterFinished,
            **texts,
        )


class Text(Struct, frozen=True):
    """From the releases of `since` on, a text is another; a later line of the table wins."""

    field: str
    value: Any
    since: Boundary


TEXTS: Final[tuple[Text, ...]] = (
    # What follows "too many missed start times": a count, 0 by mistake, nothing.
    Text("too_many_count", "zero", Boundary("1.21", gone="1.22")),
    Text("too_many_count", "none", Boundary("1.28", (("1.25", 12), ("1.26", 7), ("1.27", 4)))),
    # 1.26.0 has the old words and 1.26.13 the new ones; the fix of 1.26.11 rewrote the line.
    Text(
        "spacing_text",
        "time difference between two schedules is less than 1 second",
        Boundary("1.27", (("1.26", 11),)),
    ),
    # Nor in 1.22, whose first release doubles the word and whose last one does not.
    Text("invalid_text", "invalid schedule schedule", Boundary("1.21", gone="1.23")),
    Text("invalid_text", "invalid schedule", Boundary(None, (("1.22", 1),))),
    Text("missed_time_in_utc", value=True, since=Boundary("1.22")),
)


def _delete_path(b: BehaviorFlags) -> DeletePath:
    if b.polling_deletes_in_background:
        return DeletePath.BACKGROUND
    if b.polling_delete_scales_down_first:
        return DeletePath.SCALE_DOWN
    return DeletePath.ORPHAN


def _paging(b: BehaviorFlags) -> Paging:
    if not b.polling_lists_in_pages:
        return Paging.WHOLE
    return Paging.PAGES if b.polling_pages_work else Paging.BROKEN


def _shell(b: BehaviorFlags) -> Shell:
    if b.cleanup_precedes_scheduling:
        return Shell.CLEANS_FIRST
    return Shell.WRITES_CHANGES if b.status_written_only_when_changed else Shell.WRITES_ALWAYS


def _arithmetic(b: BehaviorFlags) -> Arithmetic:
    if b.missed_runs_requeue_from_now:
        return Arithmetic.WALK_NEAR_END_FROM_NOW
    if b.missed_runs_walked_near_end:
        return Arithmetic.WALK_NEAR_END
    if b.requeue_from_last_run:
        return Arithmetic.EQUAL_SPACING_ANCHORED
    return Arithmetic.EQUAL_SPACING if b.missed_runs_by_arithmetic else Arithmetic.LIST_ALL


def _exists(b: BehaviorFlags) -> Exists:
    if b.already_exists_recovers:
        return Exists.RECOVER
    return Exists.ERROR if b.already_exists_is_an_error else Exists.FALLS_THROUGH


def _success_time(b: BehaviorFlags) -> SuccessTime:
    if b.last_successful_time_in_same_sync:
        return SuccessTime.COMPLETE_SAME
    if b.last_successful_time_of_complete_jobs_only:
        return SuccessTime.COMPLETE_NEXT
    return SuccessTime.FINISHED if b.last_successful_time_written else SuccessTime.NEVER


def _zone_warning(b: BehaviorFlags) -> ZoneWarning:
    if not b.unsupported_zone_in_schedule_warned:
        return ZoneWarning.NEVER
    # The warning moved before the parse in the release that reordered the writes of a sync.
    if b.status_written_only_when_changed:
        return ZoneWarning.BEFORE_PARSE
    return ZoneWarning.AFTER_PARSE


def cron_job_era(version: KubeVersion | str, gates: Mapping[str, bool] | None = None) -> CronJobEra:
    """The controllers of a release with these gates."""
    return CronJobEra.of(Era.resolve(version, gates))
