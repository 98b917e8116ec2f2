"""Runs one sync of whichever CronJob controller an era has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tracekit.base.cron.schedule import EverySchedule, Schedule
from tracekit.base.cron.zones import UTC, Zone
from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.ports.cronjob.actions import CronJobApi, SyncResult
from tracekit.ports.cronjob.children import children_of, group_by_owner_uid
from tracekit.ports.cronjob.missed import (
    ScheduleError,
    parse_schedule,
    requeue_after_ns,
    requeues_from_now,
)
from tracekit.ports.cronjob.sync_polling import sync_one
from tracekit.ports.cronjob.sync_queued import sync
from tracekit.versions.cronjob import Controller, CronJobEra, DeletePath

#: So many slots before a write are tried as what its sync's clock had not reached.
SLOTS_MAX = 8


class CronRunner(Struct, frozen=True):
    """The CronJob controller of one era in a process of one zone."""

    era: CronJobEra
    process_zone: Zone = UTC

    @property
    def polls(self) -> bool:
        """Whether it is the polling controller."""
        return self.era.controller is Controller.POLLING

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

    def timer_ns(self, cron_job: CronJobView, at_ns: int) -> int | None:
        """When the timer goes off that a sync of that time arms: at a slot, its pad apart.

        Releases that count `@every` from now on come later.
        """
        slot_ns, schedule = self.next_slot_ns(cron_job, at_ns), self.schedule(cron_job)
        if slot_ns is None or self.polls or not isinstance(schedule, EverySchedule):
            return slot_ns
        wait_ns = requeue_after_ns(cron_job, schedule, at_ns, self.era, self.process_zone)
        return max(slot_ns, at_ns + wait_ns)

    @property
    def deletes_pods(self) -> bool:
        """Whether a Job's pods are deleted one by one before the Job is."""
        return self.polls and self.era.delete_path is DeletePath.SCALE_DOWN

    def drifts(self, cron_job: CronJobView) -> bool:
        """Whether the next timer of a sync that comes later goes off later."""
        from_now = not self.polls and requeues_from_now(self.era)
        return from_now and isinstance(self.schedule(cron_job), EverySchedule)

    def slots_ns(self, cron_job: CronJobView, after_ns: int, until_ns: int) -> list[int]:
        """The last few slots of a time, the newest first."""
        first_ns = self.next_slot_ns(cron_job, until_ns)
        second_ns = None if first_ns is None else self.next_slot_ns(cron_job, first_ns)
        if first_ns is not None and second_ns is not None:
            after_ns = max(after_ns, until_ns - SLOTS_MAX * (second_ns - first_ns))
        found: list[int] = []
        slot_ns = self.next_slot_ns(cron_job, after_ns)
        while slot_ns is not None and slot_ns <= until_ns and len(found) < 2 * SLOTS_MAX:
            found.append(slot_ns)
            slot_ns = self.next_slot_ns(cron_job, slot_ns)
        return found[::-1]
