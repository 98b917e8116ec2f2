"""What one sync of a Job knows and decides, handed from phase to phase.

Upstream: pkg/controller/job/job_controller.go:syncJobCtx.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
from msgspec import Struct

from tracekit.base.kube.views import Condition, JobView, PodView
from tracekit.ports.job.backoff import NO_FAILURES, BackoffRecord
from tracekit.ports.job.indexes import Intervals
from tracekit.ports.job.memory import JobMemory
from tracekit.ports.job.pod_failure_policy import PolicyMatch, match_pod_failure_policy
from tracekit.versions.job import JobRules


class Choices(msgspec.Struct, frozen=True, gc=False):
    """Picks where upstream is free: list order of the cache, ties of an unstable sort.

    `pods` names uids that are taken first among equals, `messages` failure messages that are taken
    where several pods would each give one.
    """

    pods: Collection[str] = frozenset()
    messages: Collection[str] = frozenset()


class Note(msgspec.Struct, frozen=True, gc=False):
    """One step of a sync's reasoning: the rule that was applied, and its numbers."""

    rule: str
    numbers: dict[str, object]


class SyncClock:
    """The time at which a sync runs, the timers that it asked about, and the steps that it took.

    `asked` collects every moment that a decision compared with `now_ns`: a driver that does not
    know the exact time of a sync learns from it which other times could decide differently.
    `notes` says by which rules the sync decided.
    """

    __slots__ = ("asked", "notes", "now_ns")

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns
        self.asked: list[int] = []
        self.notes: list[Note] = []

    def reached(self, at_ns: int) -> bool:
        """Whether `at_ns` is now or past."""
        self.asked.append(at_ns)
        return self.now_ns >= at_ns

    def spent(self, start_ns: int, span_ns: int) -> bool:
        """Whether so much time has passed since then.

        A start that is now moves with the clock: no other time of the sync decides differently.
        """
        if start_ns == self.now_ns:
            return span_ns <= 0
        return self.reached(start_ns + span_ns)


class SyncResult(Struct, frozen=True, gc=False):
    """How a sync ended, for the worker that called it."""

    error: bool  # the key goes back rate limited, whatever `forget` says
    wake_after_ns: int | None = None  # add_after(key, …), relative to the sync's now
    forget: bool = True  # without an error: whether the key's failures are forgotten
    retried: bool = True  # with an error: False where the key waits for its next event instead
    requeued: bool = False  # add_after(key, its back-off), before anything is forgotten


DONE = SyncResult(error=False)


class SyncContext(msgspec.Struct, gc=False):
    """The state of one running sync."""

    job: JobView
    rules: JobRules
    memory: JobMemory
    clock: SyncClock
    choices: Choices
    satisfied: bool = True
    #: Uids whose finalizer was on its way when the sync began (upstream: expectedRmFinalizers): the
    #: handlers go on while it waits for its calls, and the pods that it listed do not change.
    expected_removals: frozenset[str] = frozenset()
    pods: list[PodView] = []
    active_pods: list[PodView] = []
    inactive_pods: list[PodView] = []  # the others: finished, or being deleted
    active: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    failed: int = 0
    previous_succeeded: Intervals = ()
    succeeded_indexes: Intervals = ()
    failed_indexes: Intervals | None = None
    delayed_per_index: dict[int, PodView] = {}
    backoff: BackoffRecord = NO_FAILURES
    ending: Condition | None = None  # what ends the Job in this sync
    wake_after_ns: int | None = None  # a timer that this sync armed, relative to now
    error: bool = False  # a create or delete failed: the key is retried, rate limited
    suspend_changed: bool = False  # the Suspended condition turned over
    flushed: bool = False  # the status was written before the counters were
    enacted: bool = False  # the terminal condition was set

    @property
    def suspended(self) -> bool:
        """Whether the Job asks to be suspended, and may (upstream: jobSuspended)."""
        return self.rules.counting.suspend_job and self.job.spec.suspend

    def split_pods(self) -> None:
        """Set the active pods apart from the others, and count them."""
        for pod in self.pods:
            (self.active_pods if pod.active else self.inactive_pods).append(pod)
        self.active = len(self.active_pods)
        self.ready = len([pod for pod in self.active_pods if pod.ready])

    def count_deletions(self, deleted: int, pods: Iterable[PodView]) -> None:
        """Let the counts follow deletions of this sync: so many went through, of these pods."""
        if self.rules.counts_deleted:
            self.terminating += deleted
            self.ready -= sum(pod.ready for pod in pods)

    def note_counts(self, terminating: int, **numbers: object) -> None:
        """Write down what was counted of the pods."""
        self.note(
            "counted",
            active=self.active,
            ready=self.ready,
            terminating=terminating,
            succeeded=self.succeeded,
            failed=self.failed,
            **numbers,
        )

    def note(self, rule: str, **numbers: object) -> None:
        """Write down the rule that is being applied."""
        self.clock.notes.append(Note(rule, numbers))

    def note_expectations(self) -> bool:
        """Whether the pods may be managed in this sync; written down where it says something."""
        row = self.memory.expectations
        creations, deletions = (row.creations, row.deletions) if row is not None else (0, 0)
        deleting = self.job.deleted_ns is not None
        if deleting or not self.satisfied:
            self.note("unmanaged", deleting=deleting, creations=creations, deletions=deletions)
            return False
        if creations > 0 or deletions > 0:
            self.note("expired", creations=creations, deletions=deletions)
        return True

    def policy(self, pod: PodView) -> PolicyMatch:
        """What the pod failure policy says of a failed pod."""
        return match_pod_failure_policy(
            self.rules.failure_rules(self.job), pod, fail_index=self.rules.fail_index
        )

    def pod_failed(self, pod: PodView) -> bool:
        """Whether the pod counts as failed (upstream: isPodFailed)."""
        if pod.phase == "Failed":
            return True
        if self.rules.awaits_phase(self.job):
            return False
        return pod.deleted_ns is not None and pod.phase != "Succeeded"

    def index_valid(self, pod: PodView) -> bool:
        """Whether the pod has an index below completions; always true for other Jobs."""
        spec = self.job.spec
        return not spec.indexed or 0 <= pod.completion_index < (spec.completions or 0)

    def uncounted_yet(self, pod: PodView) -> bool:
        """Whether the pod still carries its finalizer, as far as this controller knows."""
        return pod.has_tracking_finalizer and pod.uid not in self.expected_removals

    def condition(self, kind: str, reason: str, message: str, status: str = "True") -> Condition:
        """A condition that turns over now."""
        now_ns = self.clock.now_ns
        return Condition(kind, status, reason, message, now_ns, now_ns)

    def arm(self, delay_ns: int) -> None:
        """Ask to be synced again; the earliest request of a sync wins."""
        if self.wake_after_ns is None or delay_ns < self.wake_after_ns:
            self.wake_after_ns = delay_ns


def ensure_condition(
    conditions: tuple[Condition, ...], wanted: Condition, *, renew_probe: bool = True
) -> tuple[tuple[Condition, ...], bool]:
    """Append or update a condition; the second value tells whether the list changed.

    A condition that is not there is never appended with status False. Without `renew_probe` an
    updated one keeps its lastProbeTime.
    Upstream: ensureJobConditionStatus.
    """
    for position, present in enumerate(conditions):
        if present.type == wanted.type:
            if (present.status, present.reason, present.message) == (
                wanted.status,
                wanted.reason,
                wanted.message,
            ):
                return conditions, False
            if not renew_probe:
                wanted = wanted._replace(last_probe_ns=present.last_probe_ns)
            return (*conditions[:position], wanted, *conditions[position + 1 :]), True
    if wanted.status == "False":
        return conditions, False
    return (*conditions, wanted), True
