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

    pod_failure_delays_sync: bool = False
    only_first_pod_failure_delays_sync: bool = False
    job_status_updates_batched: bool = True
    deadline_timer_rearmed_on_job_update: bool = True
    batch_ns: int = 1_000_000_000
    # The orphan queue
    orphan_pods_lose_finalizer: bool = True  # there is such a queue
    orphans_without_owner_lose_finalizer: bool = True
    pods_of_finished_jobs_lose_finalizer: bool = True
    finished_job_releases_its_pods: bool = True
    orphans_found_by_selector: bool = True
    orphans_of_other_kinds_kept: bool = True
    orphans_of_managed_jobs_kept: bool = True
    orphan_finalizer_retried: bool = True
    # What a deletion of a Job clears
    deleted_job_forgets_backoff: bool = True
    deleted_job_forgets_expectations: bool = True
    deleted_job_forgets_finish: bool = True

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
