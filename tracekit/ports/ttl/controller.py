"""Deletes finished Jobs whose ttlSecondsAfterFinished has passed.

A timer per key brings the controller back when the time is up. Before the deletion the Job is read
once more from the server, so that a raised TTL or a new Job of the same name is not deleted; the
uid is a precondition of the deletion, the revision never is.

Upstream: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go, from v1.12 on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import JobView
from tracekit.ports.actions import Outcome
from tracekit.ports.cronjob.actions import Answer


class DeleteExpiredJob(Struct, frozen=True):
    """DELETE of a Job with its uid as precondition; its pods go first, in the foreground."""

    namespace: str
    name: str
    uid: str
    propagation: str = "Foreground"


class TtlApi(Protocol):
    """What the controller asks of the API server."""

    def get_job(self, namespace: str, name: str) -> JobView | Answer:
        """Live GET of a Job; an `Answer` where it fails."""

    def delete_job(self, intent: DeleteExpiredJob) -> Answer:
        """DELETE a Job."""


class TtlQueue(Protocol):
    """What is asked of the controller's queue (client-go: RateLimitingInterface)."""

    def add(self, key: str) -> None:
        """Add a key."""

    def add_after(self, key: str, delay_ns: int) -> None:
        """Add a key once the delay has passed; the earliest of several wins."""

    def add_rate_limited(self, key: str) -> None:
        """Add a key once the limiter lets it through; counts one failure."""

    def forget(self, key: str) -> None:
        """Stop counting the key's failures."""

    def get(self) -> str | None:
        """Hand out the oldest key, or None when nothing waits; end it with `done`."""

    def done(self, key: str) -> None:
        """End the processing of a key."""


class TtlResult(Struct, frozen=True):
    """One look at a key: its deletion, when to look again, its error."""

    delete: DeleteExpiredJob | None = None
    rearm_after_ns: int | None = None
    error: str | None = None


class NoFinishTimeError(ValueError):
    """A finished Job whose condition carries no time; the message is the controller's."""


def needs_cleanup(job: JobView) -> bool:
    """Whether the Job has a TTL and is finished."""
    return job.spec.ttl_s is not None and job.status.finished is not None


def job_seen(job: JobView) -> bool:
    """Whether an added or updated Job is put into the queue; deletions are not watched."""
    return job.deleted_ns is None and needs_cleanup(job)


def add_job(job: JobView, queue: TtlQueue) -> None:
    """A Job that the informer shows for the first time."""
    if job_seen(job):
        queue.add(job.key)


def update_job(old: JobView, new: JobView, queue: TtlQueue) -> None:
    """A new revision of a Job, resyncs included: what it was before does not matter."""
    del old
    add_job(new, queue)


def process_next_work_item(queue: TtlQueue, process_job: Callable[[str], TtlResult]) -> bool:
    """Take a key, look at it and settle it with the queue; False if nothing waits.

    `process_job` looks at the Job of a key at the present time, with `process`.
    """
    key = queue.get()
    if key is None:
        return False
    settle(queue, key, process_job(key))
    queue.done(key)
    return True


def settle(queue: TtlQueue, key: str, result: TtlResult) -> None:
    """What one look at a key asks of the queue (upstream: enqueueAfter, handleErr)."""
    if result.rearm_after_ns is not None:
        queue.add_after(key, result.rearm_after_ns)
    if result.error is None:
        queue.forget(key)
    else:
        queue.add_rate_limited(key)


def finished_at_ns(job: JobView) -> int:
    """When the first Complete or Failed condition became True.

    Raises:
        NoFinishTimeError: Where that condition has no transition time.
    """
    finished = job.status.finished
    at_ns = None if finished is None else finished.last_transition_ns
    if at_ns is None:
        raise NoFinishTimeError(
            f"unable to find the time when the Job {job.namespace}/{job.name} finished"
        )
    return at_ns


def time_left_ns(job: JobView, now_ns: int) -> int:
    """Nanoseconds until the Job expires; zero or less means that it has.

    Raises:
        NoFinishTimeError: Where it is unknown when the Job finished.
        ValueError: Where the Job should not be cleaned up at all.
    """
    if job.deleted_ns is not None or not needs_cleanup(job):
        raise ValueError(f"job {job.namespace}/{job.name} should not be cleaned up")
    return expires_at_ns(job) - now_ns


def expires_at_ns(job: JobView) -> int:
    """Finish time plus TTL; only for Jobs that need a clean-up.

    Raises:
        NoFinishTimeError: Where it is unknown when the Job finished.
    """
    return finished_at_ns(job) + (job.spec.ttl_s or 0) * NS_PER_S


def process(job: JobView | None, now_ns: int, api: TtlApi) -> TtlResult:
    """Look at a key: the cached Job, then the live one, then delete.

    The worker adds the key rate-limited on an error, and after `rearm_after_ns` where that is set.
    """
    if job is None:
        return TtlResult()
    early = _not_expired(job, now_ns)
    if early is not None:
        return early
    live = api.get_job(job.namespace, job.name)
    if isinstance(live, Answer):
        gone = live.outcome is Outcome.NOT_FOUND
        return TtlResult() if gone else TtlResult(error=live.message)
    early = _not_expired(live, now_ns)
    if early is not None:
        return early
    intent = DeleteExpiredJob(live.namespace, live.name, live.uid)
    answer = api.delete_job(intent)
    # Every failure is retried, a 404 and a 409 of the precondition included.
    return TtlResult(intent, error=None if answer.ok else answer.message)


def _not_expired(job: JobView, now_ns: int) -> TtlResult | None:
    """The result for a Job that is not to be deleted now, None for one that is."""
    if job.deleted_ns is not None or not needs_cleanup(job):
        return TtlResult()
    try:
        left_ns = time_left_ns(job, now_ns)
    except NoFinishTimeError as error:
        return TtlResult(error=str(error))
    return None if left_ns <= 0 else TtlResult(rearm_after_ns=left_ns)
