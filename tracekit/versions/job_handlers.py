"""What the Job controller's event handlers do in each version, resolved once per replay.

Plain attributes; what each means stands with the behavior of the same name in `behavior_releases`.
Defaults are those of the newest version.
"""

from __future__ import annotations

from msgspec import Struct

from tracekit.versions.behaviors import flags_named
from tracekit.versions.era import Era


class HandlerRules(Struct, frozen=True):
    """When an event enqueues a Job, and when a pod goes to the orphan queue."""

    pod_failure_delays_sync: bool
    only_first_pod_failure_delays_sync: bool
    job_status_updates_batched: bool
    deadline_timer_rearmed_on_job_update: bool
    batch_ns: int
    # The orphan queue
    orphan_pods_lose_finalizer: bool  # there is such a queue
    orphans_without_owner_lose_finalizer: bool
    pods_of_finished_jobs_lose_finalizer: bool
    finished_job_releases_its_pods: bool
    orphans_found_by_selector: bool
    orphans_of_other_kinds_kept: bool
    orphans_of_managed_jobs_kept: bool
    orphan_finalizer_retried: bool
    # What a deletion of a Job clears
    deleted_job_forgets_backoff: bool
    deleted_job_forgets_expectations: bool
    deleted_job_forgets_finish: bool

    @classmethod
    def of(cls, era: Era) -> HandlerRules:
        """The rules of a version with its gates."""
        behaviors, constants = era.behaviors, era.constants
        batched = era.gates.JobReadyPods or behaviors.job_status_updates_batched
        return cls(
            **flags_named(cls, behaviors),
            batch_ns=constants.sync_batch_period_ns if batched else 0,
            orphans_of_managed_jobs_kept=era.gates.JobManagedBy,
            deleted_job_forgets_finish=behaviors.finished_job_awaits_its_update,
        )
