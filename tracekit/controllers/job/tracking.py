"""Counting finished pods exactly once: status first, finalizers second, counters third.

A finished pod is written into status.uncountedTerminatedPods, then loses its finalizer, then moves
into the counters; a crash between the steps loses and doubles nothing.

Upstream: pkg/controller/job/job_controller.go:trackJobStatusAndRemoveFinalizers, KEP-2307.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tracekit.controllers.actions import JobApi, Outcome
from tracekit.controllers.job.context import SyncContext, ensure_condition
from tracekit.controllers.job.indexes import contains, format_intervals, total, with_indexes
from tracekit.kube.views import Condition, JobStatus, JobView, PodView


def track_job_status(ctx: SyncContext, api: JobApi, status: JobStatus, *, flush: bool) -> bool:
    """Write the status, remove finalizers, write the counters; False if a write failed.

    `status` is the status as the earlier phases of the sync left it, `flush` whether they changed
    something that must be written.
    """
    with_finalizer = {pod.uid for pod in ctx.pods if ctx.uncounted_yet(pod)}
    status, moved = _count_without_finalizer(status, with_finalizer)
    doomed, status, added, capped = _collect_uncounted(ctx, status)
    status, indexes_changed = _write_indexes(ctx, status)
    status, interim = _append_interim_condition(ctx, status)
    flush = flush or moved or added or indexes_changed or interim
    job = replace(ctx.job, status=status)
    if flush:
        answer, job = api.update_status(ctx.job, status)
        if answer is not Outcome.OK:
            return False
        ctx.memory.backoff = ctx.backoff
    removed_all = _remove_finalizers(ctx, api, doomed, with_finalizer)
    status, moved = _count_without_finalizer(job.status, with_finalizer)
    if not removed_all:
        if moved:
            api.update_status(job, status)
        return False
    finished = None if capped else _enact_finished(ctx, status)
    if finished is not None:
        return _write_finished(ctx, api, job, finished)
    return not moved or api.update_status(job, status)[0] is Outcome.OK


def _count_without_finalizer(
    status: JobStatus, with_finalizer: AbstractSet[str]
) -> tuple[JobStatus, bool]:
    """Move uncounted pods whose finalizer is gone into the counters."""
    succeeded = tuple(uid for uid in status.uncounted_succeeded if uid in with_finalizer)
    failed = tuple(uid for uid in status.uncounted_failed if uid in with_finalizer)
    new_succeeded = len(status.uncounted_succeeded) - len(succeeded)
    new_failed = len(status.uncounted_failed) - len(failed)
    if not new_succeeded and not new_failed:
        return status, False
    return (
        replace(
            status,
            succeeded=status.succeeded + new_succeeded,
            failed=status.failed + new_failed,
            uncounted_succeeded=succeeded,
            uncounted_failed=failed,
        ),
        True,
    )


def _collect_uncounted(
    ctx: SyncContext, status: JobStatus
) -> tuple[list[PodView], JobStatus, bool, bool]:
    """Pods that may lose their finalizer now, and the status with those that must be noted first.

    Returns (pods, status, whether something was noted, whether the cap was reached).
    """
    indexed = ctx.job.spec.indexed
    succeeded, failed = list(status.uncounted_succeeded), list(status.uncounted_failed)
    known_failed = frozenset(failed)
    known = known_failed.union(succeeded)
    before = len(succeeded) + len(failed)
    doomed: list[PodView] = []
    new_indexes: list[int] = []
    capped = False
    for pod in _removable(ctx):
        doomed.append(pod)
        if pod.phase != "Succeeded":
            if pod.uid not in known_failed and _counts_as_failed(ctx, pod):
                failed.append(pod.uid)
        elif indexed and pod.uid not in known_failed and _is_new_success(ctx, pod):
            new_indexes.append(pod.completion_index)
        elif not indexed and pod.uid not in known:
            succeeded.append(pod.uid)
        if len(new_indexes) + len(succeeded) + len(failed) >= ctx.rules.max_uncounted:
            capped = True
            break
    if indexed:
        ctx.succeeded_indexes = with_indexes(ctx.succeeded_indexes, new_indexes)
    noted = len(succeeded) + len(failed) > before
    if noted:
        status = replace(
            status, uncounted_succeeded=tuple(succeeded), uncounted_failed=tuple(failed)
        )
    return doomed, status, noted or bool(new_indexes), capped


def _removable(ctx: SyncContext) -> Iterator[PodView]:
    """Pods that may lose their finalizer, those of an Indexed Job by index."""
    pods = ctx.pods
    if ctx.job.spec.indexed:
        pods = sorted(pods, key=lambda pod: pod.completion_index)
    for pod in pods:
        if ctx.uncounted_yet(pod) and _may_lose_finalizer(ctx, pod):
            yield pod


def _counts_as_failed(ctx: SyncContext, pod: PodView) -> bool:
    # The job is over and not by success: whatever has not finished counts as failed.
    ended_badly = ctx.ending is not None and ctx.ending.type != "SuccessCriteriaMet"
    failed = ended_badly or ctx.pod_failed(pod)
    return failed and ctx.index_valid(pod) and ctx.policy(pod).counts


def _is_new_success(ctx: SyncContext, pod: PodView) -> bool:
    return ctx.index_valid(pod) and not contains(ctx.previous_succeeded, pod.completion_index)


def _may_lose_finalizer(ctx: SyncContext, pod: PodView) -> bool:
    if ctx.job.deleted_ns is not None or ctx.ending is not None or pod.phase == "Succeeded":
        return True
    if not ctx.pod_failed(pod):
        return False
    # The pod that carries an index's failure count stays until its replacement is there.
    kept = ctx.delayed_per_index.get(pod.completion_index)
    return kept is None or kept.uid != pod.uid


def _write_indexes(ctx: SyncContext, status: JobStatus) -> tuple[JobStatus, bool]:
    if not ctx.job.spec.indexed:
        return status, False
    completed = format_intervals(ctx.succeeded_indexes)
    failed = None if ctx.failed_indexes is None else format_intervals(ctx.failed_indexes)
    changed = completed != status.completed_indexes or failed != status.failed_indexes
    return (
        replace(
            status,
            succeeded=total(ctx.succeeded_indexes),
            completed_indexes=completed,
            failed_indexes=failed,
        ),
        changed,
    )


def _append_interim_condition(ctx: SyncContext, status: JobStatus) -> tuple[JobStatus, bool]:
    """Announce the ending before finalizers go, and turn it into the terminal condition."""
    ending = ctx.ending
    if ending is None:
        return status, False
    if ending.type == "FailureTarget":
        status = replace(status, conditions=(*status.conditions, ending))
        ctx.ending = ctx.condition("Failed", ending.reason, ending.message)
        return status, True
    if ending.type == "SuccessCriteriaMet":
        present = status.condition("SuccessCriteriaMet")
        announced = present is not None and present.status == "True"
        if not announced:
            status = replace(status, conditions=(*status.conditions, ending))
        ctx.ending = ctx.condition("Complete", ending.reason, ending.message)
        return status, not announced
    return status, False


def _remove_finalizers(
    ctx: SyncContext, api: JobApi, pods: list[PodView], with_finalizer: set[str]
) -> bool:
    """PATCH the finalizers away; those that went leave `with_finalizer`. False on any error."""
    if not pods:
        return True
    ctx.memory.finalizers |= {pod.uid for pod in pods}
    removed_all = True
    for pod in pods:
        answer = api.remove_finalizer(pod)
        if answer is not Outcome.OK:
            ctx.memory.finalizer_removal_observed(pod.uid)
        if answer in (Outcome.OK, Outcome.NOT_FOUND):
            with_finalizer.discard(pod.uid)
        else:
            removed_all = False
    return removed_all


def _enact_finished(ctx: SyncContext, status: JobStatus) -> JobStatus | None:
    """The status with its terminal condition, or None while the Job cannot be declared over."""
    ending = ctx.ending
    if ending is None or status.uncounted_succeeded or status.uncounted_failed:
        return None
    if ctx.rules.delayed_terminal and ctx.terminating > 0:
        return None
    conditions, _ = ensure_condition(status.conditions, ending)
    completion_ns = ending.last_transition_ns if ending.type == "Complete" else None
    return replace(
        status,
        conditions=conditions,
        completion_ns=completion_ns if ending.type == "Complete" else status.completion_ns,
    )


def _write_finished(ctx: SyncContext, api: JobApi, job: JobView, status: JobStatus) -> bool:
    """Write the terminal status and tell of it, in the order of the version."""
    if not ctx.rules.ending_event_follows_status:
        _record_finished(ctx, api, job, status)
    answer, job = api.update_status(job, status)
    if answer is not Outcome.OK:
        return False
    ctx.memory.finished_written(job.uid)
    if ctx.rules.ending_event_follows_status:
        _record_finished(ctx, api, job, job.status)
    return True


def _record_finished(ctx: SyncContext, api: JobApi, job: JobView, status: JobStatus) -> None:
    ending: Condition | None = ctx.ending
    if ending is None:
        return
    if ending.type == "Complete":
        completions = job.spec.completions
        if completions is not None and status.succeeded > completions:
            api.record_event(
                job,
                "Warning",
                "TooManySucceededPods",
                "Too many succeeded pods running after completion count reached",
            )
        api.record_event(job, "Normal", "Completed", "Job completed")
    else:
        api.record_event(job, "Warning", ending.reason, ending.message)
