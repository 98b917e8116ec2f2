"""Which releases have which ungated behavior of the CronJob controllers."""

from __future__ import annotations

from typing import Final

from tracekit.versions.behavior_boundary import Shipped, shipped
from tracekit.versions.behaviors import Behavior

_POLL: Final = "pkg/controller/cronjob/cronjob_controller.go"
_CRON: Final = "pkg/controller/cronjob/cronjob_controllerv2.go"
_CRON_UTILS: Final = "pkg/controller/cronjob/utils.go"

CRON_SHIPPED: Final[dict[Behavior, Shipped]] = {
    Behavior.CRON_JOB_API_V1: shipped(
        "1.21", "CronJobs are read as batch/v1 and owner references say so", f"{_CRON_UTILS}"
    ),
    Behavior.CRON_GRAMMAR_WITH_ZONES: shipped(
        "1.22",
        "cron library of the second generation: zone prefixes, other star rule, other DST repair",
        "go.mod: github.com/robfig/cron/v3",
    ),
    Behavior.ZONE_IN_SCHEDULE_REFUSED: shipped(
        "1.29",
        "the API server refuses TZ and CRON_TZ in the schedule of a new CronJob; one that has it "
        "already keeps it",
        "pkg/apis/batch/validation/validation.go:validateScheduleFormat",
    ),
    Behavior.POLLING_DELETES_IN_BACKGROUND: shipped(
        "1.14",
        "a Job is deleted with propagation Background",
        f"{_POLL}:deleteJob",
        first_patch={"1.13": 1},
    ),
    Behavior.POLLING_DELETE_SCALES_DOWN_FIRST: shipped(
        "1.11",
        "a Job is scaled to 0 and its pods are deleted before the Job itself is, as an orphaner",
        f"{_POLL}:deleteJob",
        gone="1.13",
    ),
    Behavior.POLLING_LISTS_IN_PAGES: shipped(
        "1.14", "Jobs and CronJobs are listed 500 at a time", f"{_POLL}:syncAll"
    ),
    Behavior.POLLING_PAGES_WORK: shipped(
        "1.15", "more than one page of Jobs or CronJobs does not abort the pass", f"{_POLL}:syncAll"
    ),
    Behavior.COMPLETED_JOB_EVENT_NAMES_STATUS: shipped(
        "1.15", "event SawCompletedJob names how the Job ended", f"{_POLL}:syncOne"
    ),
    Behavior.TOO_MANY_MISSED_TEXT_LOWER_CASE: shipped(
        "1.15",
        "the text of too many missed runs begins in lower case and has no full stop",
        f"{_CRON_UTILS}:getRecentUnmetScheduleTimes",
    ),
    Behavior.UNPARSEABLE_TEXT_LOWER_CASE: shipped(
        "1.16",
        "the text of an unparseable schedule begins in lower case",
        f"{_CRON_UTILS}:getRecentUnmetScheduleTimes",
    ),
    Behavior.POLLING_SILENT_IN_TERMINATING_NAMESPACE: shipped(
        "1.17", "no FailedCreate event in a namespace that terminates", f"{_POLL}:syncOne"
    ),
    Behavior.MISSED_RUNS_BY_ARITHMETIC: shipped(
        "1.21",
        "the last missed run is computed from equal spacing (before: all runs are listed)",
        f"{_CRON_UTILS}:getMostRecentScheduleTime",
    ),
    Behavior.ALREADY_EXISTS_IS_AN_ERROR: shipped(
        "1.21",
        "a Job name that is taken is an error (before: an empty Job enters status.active)",
        f"{_CRON}:syncCronJob",
    ),
    Behavior.REQUEUE_FROM_LAST_RUN: shipped(
        "1.25",
        "the next timer counts from the last run, not from now",
        f"{_CRON_UTILS}:nextScheduleTimeDuration",
    ),
    Behavior.MISSED_RUNS_WALKED_NEAR_END: shipped(
        "1.28",
        "the last missed run is a real slot, found by walking the last two periods",
        f"{_CRON_UTILS}:mostRecentScheduleTime",
        first_patch={"1.25": 12, "1.26": 7, "1.27": 4},
    ),
    Behavior.MISSED_RUNS_REQUEUE_FROM_NOW: shipped(
        "1.29",
        "missed runs without a found slot set the timer from now (before: a hot loop)",
        f"{_CRON_UTILS}:nextScheduleTimeDuration",
        first_patch={"1.26": 11, "1.27": 8, "1.28": 4},
    ),
    Behavior.CHILDREN_BY_OWNER_ONLY: shipped(
        "1.24",
        "children are found by owner name alone (before: they also had to carry the labels)",
        f"{_CRON}:getJobsToBeReconciled",
        first_patch={"1.21": 11, "1.22": 8, "1.23": 5},
        certain=False,
    ),
    Behavior.CHILDREN_BY_OWNER_UID: shipped(
        "1.37",
        "children are found by the owner's uid (before: by its name, so that the Jobs of a deleted "
        "CronJob count as those of its namesake)",
        f"{_CRON}:getCronJobJobsByIndexer",
    ),
    Behavior.LAST_SUCCESSFUL_TIME_WRITTEN: shipped(
        "1.22", "status.lastSuccessfulTime is written", f"{_CRON}:syncCronJob"
    ),
    Behavior.JOB_REQUEST_CARRIES_SCHEDULED_TIME: shipped(
        "1.22",
        "the request that creates a Job carries the slot as creationTimestamp",
        f"{_CRON_UTILS}:getJobFromTemplate2",
    ),
    Behavior.UNSUPPORTED_ZONE_IN_SCHEDULE_WARNED: shipped(
        "1.23",
        "event UnsupportedSchedule for TZ or CRON_TZ inside the schedule",
        f"{_CRON}:syncCronJob",
        first_patch={"1.22": 5},
    ),
    Behavior.UNPARSEABLE_SCHEDULE_QUOTED: shipped(
        "1.23",
        "event UnparseableSchedule quotes the schedule",
        f"{_CRON}:syncCronJob",
        first_patch={"1.22": 5},
    ),
    Behavior.STATUS_WRITTEN_ONLY_WHEN_CHANGED: shipped(
        "1.24", "at most one status PUT a sync, and only when something changed", f"{_CRON}:sync"
    ),
    Behavior.CLEANUP_SEES_OWN_STATUS_WRITE: shipped(
        "1.24",
        "history clean-up uses the revision that the sync wrote (before: a 409 after each start)",
        f"{_CRON}:syncCronJob",
        first_patch={"1.21": 9, "1.22": 6, "1.23": 2},
    ),
    Behavior.CLEANUP_PRECEDES_SCHEDULING: shipped(
        "1.29",
        "history clean-up runs before the schedule is looked at",
        f"{_CRON}:sync",
        first_patch={"1.25": 14, "1.26": 9, "1.27": 6, "1.28": 2},
    ),
    Behavior.ALREADY_EXISTS_RECOVERS: shipped(
        "1.37",
        "a Job of that name which is the CronJob's own is taken into status.active (before: an "
        "error each time; the first attempt at it, in 1.29, 1.28.3, 1.27.7, 1.26.10 and 1.25.15, "
        "looks the Job up without a namespace, which client-go refuses)",
        f"{_CRON}:syncCronJob",
    ),
    Behavior.QUEUED_ERROR_IN_TERMINATING_NAMESPACE: shipped(
        "1.28",
        "a Job refused because its namespace terminates is an error without an event",
        f"{_CRON}:syncCronJob",
        first_patch={"1.25": 14, "1.26": 9, "1.27": 6},
    ),
    Behavior.LAST_SUCCESSFUL_TIME_OF_COMPLETE_JOBS_ONLY: shipped(
        "1.30", "a failed Job does not touch status.lastSuccessfulTime", f"{_CRON}:syncCronJob"
    ),
    Behavior.LAST_SUCCESSFUL_TIME_IN_SAME_SYNC: shipped(
        "1.31",
        "status.lastSuccessfulTime is set by the sync that sees the Job complete",
        f"{_CRON}:syncCronJob",
    ),
    Behavior.COMPLETED_JOB_EVENT_SAYS_CONDITION: shipped(
        "1.31", "event SawCompletedJob says `condition:` for `status:`", f"{_CRON}:syncCronJob"
    ),
    Behavior.SCHEDULE_PARSER_PANIC_CAUGHT: shipped(
        "1.35", "a schedule that makes the parser panic is an invalid one", f"{_CRON}:syncCronJob"
    ),
    Behavior.KEY_FORGOTTEN_WITHOUT_REQUEUE: shipped(
        "1.37",
        "a sync without error that arms no timer forgets the key's failures (before: the next "
        "error goes on with the old back-off)",
        f"{_CRON}:processNextWorkItem",
    ),
}
