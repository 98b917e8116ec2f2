"""How the Job controller counts pods that it does not track with finalizers, version by version.

That is every Job up to 1.21, and up to 1.26 each Job without the tracking annotation. Plain
attributes, resolved once; the meaning of most stands with the behavior of the same name in
`behavior_releases`.
"""

from __future__ import annotations

from msgspec import Struct

from tracekit.versions.behaviors import flags_named
from tracekit.versions.era import Era


class CountingRules(Struct, frozen=True):
    """Defaults are those of the last version that counts, 1.26."""

    backoff_limit_counts_failed_pods: bool
    backoff_limit_ignores_active_pods: bool
    on_failure_limit_zero_needs_a_restart: bool
    on_failure_counts_pending_pods: bool
    nothing_to_create_keeps_expectations: bool
    create_timeout_is_an_error: bool
    terminating_namespace_is_silent: bool
    delete_of_missing_pod_succeeds: bool
    delete_of_missing_pod_lowers_expectation: bool
    completed_event: bool
    pods_beyond_completions_removed: bool
    deletes_exclude_creates: bool
    completion_waits_for_active_pods: bool
    indexes_beyond_completions_ignored: bool
    index_in_pod_name: bool
    deadline_timer_rearmed_on_every_sync: bool
    indexed_job: bool
    suspend_job: bool
    pods_per_sync_max: int | None

    @classmethod
    def of(cls, era: Era) -> CountingRules:
        """The rules of a version with its gates."""
        return cls(
            **flags_named(cls, era.behaviors),
            indexed_job=era.gates.IndexedJob,
            suspend_job=era.gates.SuspendJob,
            pods_per_sync_max=era.constants.pods_per_sync_max,
        )
