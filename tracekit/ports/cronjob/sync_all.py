"""A pass of the polling controller (v1): the Jobs, the CronJobs, then one sync after the other.

Jobs come first: a Job that lost its owner to the garbage collector's orphaning is then seen with a
CronJob that is being deleted already. A list that fails ends the pass; the next one begins 10 s
later. Releases with pages that work sync the CronJobs of a page before they ask for the next one.

Upstream: pkg/controller/cronjob/cronjob_controller.go:syncAll, v1.11 to v1.21.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Protocol, TypeVar

from tracekit.base.cron.zones import UTC, Zone
from tracekit.ports.cronjob.actions import Answer, CronJobApi, SyncResult
from tracekit.ports.cronjob.children import group_by_owner_uid
from tracekit.ports.cronjob.sync_polling import PAGE_SIZE, sync_one
from tracekit.versions.cronjob import Paging

if TYPE_CHECKING:
    from tracekit.base.kube.cronjob_views import CronJobView
    from tracekit.base.kube.views import JobView
    from tracekit.versions.cronjob import CronJobEra


T = TypeVar("T")


class PassApi(Protocol):
    """What a pass asks of the API server and of the clock."""

    def list_jobs(self, page_size: int | None) -> Iterable[Sequence[JobView] | Answer]:
        """Every Job of the cluster, page by page; without a size, whole. An Answer is an error."""
        ...

    def list_cron_jobs(self, page_size: int | None) -> Iterable[Sequence[CronJobView] | Answer]:
        """Every CronJob of the cluster, as `list_jobs`."""
        ...

    def now_ns(self) -> int:
        """The time, which each CronJob's sync asks for anew."""
        ...

    def of(self, cron_job: CronJobView) -> CronJobApi:
        """The port for the sync of one CronJob."""
        ...


def sync_all(api: PassApi, era: CronJobEra, *, process_zone: Zone = UTC) -> list[SyncResult] | None:
    """One pass: the result for each CronJob in the order of the list; None if it did nothing.

    1.14 cannot read a list of more than one page: with more than 500 Jobs or CronJobs in the
    cluster no CronJob is synced at all.
    """
    size = None if era.paging is Paging.WHOLE else PAGE_SIZE
    job_pages = _whole(api.list_jobs(size), era)
    if job_pages is None:
        return None
    groups = group_by_owner_uid(chain.from_iterable(job_pages))
    pages: Iterable[Sequence[CronJobView] | Answer] | None = api.list_cron_jobs(size)
    if pages is not None and era.paging is not Paging.PAGES:
        pages = _whole(pages, era)
    if pages is None:
        return None
    results: list[SyncResult] = []
    for page in pages:
        if isinstance(page, Answer):
            break  # what was synced stays; only the rest has to wait for the next pass
        for cron_job in page:
            children = groups.get(cron_job.uid, ())
            port = api.of(cron_job)
            results.append(
                sync_one(cron_job, children, api.now_ns(), era, port, process_zone=process_zone)
            )
    return results


def _whole(pages: Iterable[Sequence[T] | Answer], era: CronJobEra) -> list[Sequence[T]] | None:
    """Every page of a list, None where one failed or there are more than the release can read."""
    found: list[Sequence[T]] = []
    for page in pages:
        if isinstance(page, Answer):
            return None
        found.append(page)
    return None if era.paging is Paging.BROKEN and len(found) > 1 else found
