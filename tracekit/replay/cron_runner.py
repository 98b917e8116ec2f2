"""Runs one sync of whichever CronJob controller an era has."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracekit.controllers.cronjob.actions import CronJobApi, SyncResult
from tracekit.controllers.cronjob.children import children_of, group_by_owner_uid
from tracekit.controllers.cronjob.missed import ScheduleError, parse_schedule
from tracekit.controllers.cronjob.sync_polling import sync_one
from tracekit.controllers.cronjob.sync_queued import sync
from tracekit.cron.schedule import EverySchedule, Schedule
from tracekit.cron.zones import UTC, Zone
from tracekit.eras.constants import CRON_POLL_PERIOD_NS, Constants
from tracekit.eras.cronjob import Controller, CronJobEra
from tracekit.kube.cronjob_views import CronJobView
from tracekit.kube.timestamps import NS_PER_S
from tracekit.kube.views import JobView

#: How long after its trigger a sync may come: queue, throttle and cache lag together.
QUEUED_BOUND_NS = 10 * NS_PER_S
#: The polling controller's period is 10 s plus the time of a pass.
POLLING_BOUND_NS = CRON_POLL_PERIOD_NS + 15 * NS_PER_S
#: The longest wait between two retries of a failing CronJob, in every version.
RETRY_NS_MAX = Constants().default_backoff_ns_max
#: How old the caches of a sync may be when its first write is seen.
LAG_NS = 5 * NS_PER_S
#: The default throttle of a controller's client, and what a write costs with its reads and Events.
_REQUESTS_PER_S = 20
_REQUESTS_PER_WRITE = 3
_THROTTLE_WINDOW_NS = 5 * NS_PER_S


def throttled_ns(bound_ns: int, writes_ns: Sequence[int], from_ns: int, until_ns: int) -> int:
    """A bound, and the time that the client's throttle may add for the writes of that time."""
    found = bisect_right(writes_ns, until_ns) - bisect_left(
        writes_ns, from_ns - _THROTTLE_WINDOW_NS
    )
    return bound_ns + found * _REQUESTS_PER_WRITE * NS_PER_S // _REQUESTS_PER_S


@dataclass(frozen=True, slots=True)
class CronRunner:
    """The CronJob controller of one era in a process of one zone."""

    era: CronJobEra
    process_zone: Zone = UTC

    @property
    def polls(self) -> bool:
        """Whether it is the polling controller."""
        return self.era.controller is Controller.POLLING

    @property
    def bound_ns(self) -> int:
        """How late a sync may come."""
        return POLLING_BOUND_NS if self.polls else QUEUED_BOUND_NS

    def children(self, cron_job: CronJobView, jobs: Iterable[JobView]) -> Sequence[JobView]:
        """The Jobs that this controller takes for the CronJob's."""
        if self.polls:
            return group_by_owner_uid(jobs).get(cron_job.uid, ())
        return children_of(cron_job, jobs, self.era)

    def run(
        self, cron_job: CronJobView, jobs: Iterable[JobView], now_ns: int, api: CronJobApi
    ) -> SyncResult:
        """One sync, or one CronJob's part of a pass."""
        children = self.children(cron_job, jobs)
        if self.polls:
            return sync_one(
                cron_job, children, now_ns, self.era, api, process_zone=self.process_zone
            )
        return sync(cron_job, children, now_ns, self.era, api, process_zone=self.process_zone)

    def schedule(self, cron_job: CronJobView) -> Schedule | None:
        """The parsed schedule, None where it does not parse."""
        try:
            return parse_schedule(cron_job, self.era)
        except ScheduleError:
            return None

    def next_slot_ns(self, cron_job: CronJobView, after_ns: int) -> int | None:
        """The first slot after an instant, counted from the last run for `@every`."""
        schedule = self.schedule(cron_job)
        if schedule is None:
            return None
        if isinstance(schedule, EverySchedule):
            base_ns = cron_job.base_ns
            step_ns = schedule.delay_s * NS_PER_S
            return base_ns + max(1, (after_ns - base_ns) // step_ns + 1) * step_ns
        return schedule.next_ns(after_ns, zone=self.process_zone)
