"""What the Job controller keeps in memory for one key; all of it is lost on a restart.

Upstream: pkg/controller/controller_utils.go:ControllerExpectations, pkg/controller/job/
tracking_utils.go:uidTrackingExpectations and backoff_utils.go:backoffStore, and from 1.36 on
pkg/controller/util/consistency:ConsistencyStore.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tracekit.ports.job.backoff import NO_FAILURES, BackoffRecord
from tracekit.versions.constants import EXPECTATIONS_TIMEOUT_NS


class PodExpectations(msgspec.Struct, frozen=True, gc=False):
    """Creations and deletions that the informer has still to show; counts may go below zero."""

    creations: int
    deletions: int
    set_at_ns: int

    def satisfied(self, now_ns: int) -> bool:
        """Nothing outstanding, or so old that nobody waits any more (over 5 minutes)."""
        if self.creations <= 0 and self.deletions <= 0:
            return True
        return now_ns - self.set_at_ns > EXPECTATIONS_TIMEOUT_NS


class CacheRevisions(NamedTuple):
    """How far the informers have come: the last resourceVersion that each one's cache holds."""

    jobs: int
    pods: int


class OwnWrites(NamedTuple):
    """The newest revisions that the controller's own writes made for one Job; 0 for none."""

    uid: str = ""
    jobs: int = 0
    pods: int = 0


NO_WRITES = OwnWrites()


class JobMemory(msgspec.Struct, gc=False):
    """The in-memory state of one key."""

    expectations: PodExpectations | None = None
    finalizers: frozenset[str] = frozenset()  # uids whose removal was sent and not yet seen
    backoff: BackoffRecord = NO_FAILURES
    finished_uids: frozenset[str] = frozenset()  # terminal status written, not seen
    requeues: int = 0  # failures of the key that its queue's limiter counts (up to 1.27)
    own_writes: OwnWrites = NO_WRITES  # that the caches have still to show (1.36 on)

    def copy(self) -> JobMemory:
        """A copy that can be thrown away."""
        return JobMemory(
            self.expectations,
            self.finalizers,
            self.backoff,
            self.finished_uids,
            self.requeues,
            self.own_writes,
        )

    def wrote_at(self, uid: str, *, jobs: int = 0, pods: int = 0) -> None:
        """Note the revision of a status update, or of a pod that was created or patched.

        The caller is whoever answers the controller's writes; a deletion is not noted.
        """
        before = self.own_writes if self.own_writes.uid == uid else OwnWrites(uid)
        self.own_writes = OwnWrites(uid, max(before.jobs, jobs), max(before.pods, pods))

    def ensure_ready(self, read: CacheRevisions) -> bool:
        """Whether the caches hold what the controller wrote for the key (upstream: EnsureReady)."""
        ready = self.own_writes.jobs <= read.jobs and self.own_writes.pods <= read.pods
        if ready:
            self.own_writes = NO_WRITES
        return ready

    def _clear_writes(self, uid: str) -> None:
        if self.own_writes.uid == uid:
            self.own_writes = NO_WRITES

    @property
    def identity(self) -> tuple[object, ...]:
        """All that two memories can differ in, hashable."""
        return (*self.identity_without_requeues, self.requeues)

    @property
    def identity_without_requeues(self) -> tuple[object, ...]:
        """The same for a sync that does not ask how often the key was retried."""
        return (
            self.expectations,
            self.finalizers,
            self.backoff,
            self.finished_uids,
            self.own_writes,
        )

    def satisfied(self, now_ns: int) -> bool:
        """Whether pods may be managed (upstream: SatisfiedExpectations)."""
        return self.expectations is None or self.expectations.satisfied(now_ns)

    def expect_creations(self, count: int, now_ns: int) -> None:
        """Set the row, forgetting what was outstanding."""
        self.expectations = PodExpectations(count, 0, now_ns)

    def expect_deletions(self, count: int, now_ns: int) -> None:
        """Set the row, forgetting what was outstanding."""
        self.expectations = PodExpectations(0, count, now_ns)

    def raise_expectations(self, creations: int, deletions: int) -> None:
        """Expect so many more; no row, no effect, and the row stays as old as it is."""
        row = self.expectations
        if row is not None:
            self.expectations = PodExpectations(
                row.creations + creations, row.deletions + deletions, row.set_at_ns
            )

    def lower_expectations(self, creations: int, deletions: int) -> None:
        """Expect so many less; counts may go below zero."""
        self.raise_expectations(-creations, -deletions)

    def creation_observed(self) -> None:
        """One creation seen or given up."""
        self.lower_expectations(1, 0)

    def deletion_observed(self) -> None:
        """One deletion seen or given up; every update of a terminating pod counts."""
        self.lower_expectations(0, 1)

    def finalizer_removal_observed(self, uid: str) -> None:
        """The informer showed the pod without its finalizer, or the pod is gone."""
        if uid in self.finalizers:
            self.finalizers -= {uid}

    def finished_written(self, uid: str) -> None:
        """The terminal status of the Job went through."""
        self.finished_uids |= {uid}

    def finished_seen(self, uid: str) -> None:
        """The cache shows the Job with its terminal status."""
        self.finished_uids -= {uid}
        self.backoff = NO_FAILURES
        self._clear_writes(uid)

    def job_deleted(self, uid: str, *, finish: bool, backoff: bool, expectations: bool) -> None:
        """The informer showed the deletion; what the version clears at once."""
        self._clear_writes(uid)
        if finish:
            self.finished_uids -= {uid}
        if backoff:
            self.backoff = NO_FAILURES
        if expectations:
            self.expectations = None

    def forget_key(self) -> None:
        """The Job is gone from the lister."""
        self.expectations = None
        self.finalizers = frozenset()
        self.backoff = NO_FAILURES
        self.finished_uids = frozenset()
        self.requeues = 0
        self.own_writes = NO_WRITES
