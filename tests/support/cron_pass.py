"""A cluster as one pass of the polling CronJob controller lists it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.support.cron_world import World, at
from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.views import JobView
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import Answer

FAILS = Answer(Outcome.TIMEOUT, "the server was not able to return a response in the time allotted")


@dataclass
class Cluster:
    """Lists that may fail, and what a pass asked for, in its order."""

    jobs: Sequence[JobView] = ()
    cron_jobs: Sequence[CronJobView] = ()
    failing_job_page: int | None = None
    failing_cron_job_page: int | None = None
    log: list[str] = field(default_factory=list)
    worlds: dict[str, World] = field(default_factory=dict)

    def _pages(self, kind: str, items: Sequence, size: int | None, failing: int | None) -> Iterator:
        step = size or max(1, len(items))
        for number, start in enumerate(range(0, max(1, len(items)), step)):
            self.log.append(f"{kind} {number}")
            if number == failing:
                yield FAILS
                return
            yield items[start : start + step]

    def list_jobs(self, page_size: int | None) -> Iterator:
        return self._pages("jobs", self.jobs, page_size, self.failing_job_page)

    def list_cron_jobs(self, page_size: int | None) -> Iterator:
        return self._pages("cronjobs", self.cron_jobs, page_size, self.failing_cron_job_page)

    def now_ns(self) -> int:
        self.log.append("now")
        return at("09:59:59") + len(self.log)

    def of(self, cron_job: CronJobView) -> World:
        self.log.append(f"sync {cron_job.name}")
        return self.worlds.setdefault(cron_job.name, World())
