"""When the Job controller of each version tries a key again, and what makes it forget failures.

Up to 1.27 the work queue is the back-off of failed pods: syncs fail on purpose so that the limiter
counts, and what clears its count decides how long replacements wait. Defaults are those of the
newest version, where the queue only counts what went wrong.
"""

from __future__ import annotations

from msgspec import Struct

from tracekit.versions.behaviors import flags_named
from tracekit.versions.era import Era


class RetryRules(Struct, frozen=True):
    """How the results of syncs become requests to the work queue."""

    new_failure_returns_error: bool
    conflict_is_retried: bool
    conflict_requeues_without_error: bool  # of tracked Jobs: with the key's back-off
    status_write_keeps_retries: bool
    sync_without_error_forgets_retries: bool
    flush_hides_the_end: bool  # a status flush before the end: the sync counts as unfinished
    backoff_ns_base: int
    backoff_ns_max: int

    @classmethod
    def of(cls, era: Era) -> RetryRules:
        """The rules of a version."""
        behaviors, constants = era.behaviors, era.constants
        return cls(
            **flags_named(cls, behaviors),
            # Where a status is written over whatever is there, there are no conflicts.
            conflict_is_retried=behaviors.status_conflict_is_retried
            or not behaviors.status_written_from_cached_revision,
            conflict_requeues_without_error=behaviors.status_conflict_requeues_without_error,
            flush_hides_the_end=behaviors.status_written_from_cached_revision,
            backoff_ns_base=constants.queue_backoff_ns_base,
            backoff_ns_max=constants.queue_backoff_ns_max,
        )

    def backoff_ns(self, retries: int) -> int:
        """The back-off of a key with so many retries: none before the first, then doubling.

        Upstream: pkg/controller/job/job_controller.go:getBackoff, up to v1.27.
        """
        if retries <= 0:
            return 0
        return min(self.backoff_ns_base << min(retries - 1, 63), self.backoff_ns_max)
