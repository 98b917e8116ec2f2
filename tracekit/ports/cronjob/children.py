"""Which Jobs belong to a CronJob: by uid for the polling controller, by name or uid for the other.

Upstream: pkg/controller/cronjob/utils.go, cronjob_controllerv2.go:getJobsToBeReconciled (to 1.36),
getCronJobJobsByIndexer (from 1.37).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tracekit.base.kube.cronjob_views import CronJobView
from tracekit.base.kube.views import JobView, OwnerRef

if TYPE_CHECKING:
    from tracekit.versions.cronjob import CronJobEra

OWNER_KIND = "CronJob"
#: Looks a CronJob up by namespace and name in the controller's cache.
CronJobLister = Callable[[str, str], CronJobView | None]


def group_by_owner_uid(jobs: Iterable[JobView]) -> dict[str, list[JobView]]:
    """The polling controller's grouping: Jobs by the uid of the CronJob that controls them."""
    groups: dict[str, list[JobView]] = {}
    for job in jobs:
        if job.controller is not None and job.controller.kind == OWNER_KIND:
            groups.setdefault(job.controller.uid, []).append(job)
    return groups


def children_of(
    cron_job: CronJobView, jobs: Iterable[JobView], era: CronJobEra
) -> Sequence[JobView]:
    """The queue-based controller's choice, from 1.37 on by the owner's uid.

    Before, the owner's name counts and its uid and kind do not: Jobs of a deleted CronJob become
    children of one created later under its name. Early releases also wanted every label of the Job
    template on the Job.
    """
    if era.children_by_uid:
        return [
            job for job in jobs if job.controller is not None and job.controller.uid == cron_job.uid
        ]
    return [
        job
        for job in jobs
        if job.namespace == cron_job.namespace
        and job.controller is not None
        and job.controller.name == cron_job.name
        and (
            not era.children_need_labels
            or all(job.labels.get(k) == v for k, v in cron_job.spec.job_labels.items())
        )
    ]


def resolve_owner(
    namespace: str, owner: OwnerRef | None, lister: CronJobLister
) -> CronJobView | None:
    """The CronJob that an owner reference means: right kind, in the cache, same uid."""
    if owner is None or owner.kind != OWNER_KIND:
        return None
    cron_job = lister(namespace, owner.name)
    return cron_job if cron_job is not None and cron_job.uid == owner.uid else None


def finished_status(job: JobView) -> str | None:
    """`Complete` or `Failed` by the first such condition that is True, None while running."""
    finished = job.status.finished
    return None if finished is None else finished.type
