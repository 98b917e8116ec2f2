"""Counting finished pods exactly once: status first, finalizers second, counters third.

A finished pod is written into status.uncountedTerminatedPods, then loses its finalizer, then moves
into the counters; a crash between the steps loses and doubles nothing.

Upstream: pkg/controller/job/job_controller.go:trackJobStatusAndRemoveFinalizers, KEP-2307.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from tracekit.base.kube.views import Condition, JobStatus, JobView, PodView
from tracekit.ports.actions import JobApi, Outcome
from tracekit.ports.job.context import SyncContext, ensure_condition
from tracekit.ports.job.indexes import contains, format_intervals, total, with_indexes


def track_job_status(ctx: SyncContext, api: JobApi, status: JobStatus, *, flush: bool) -> Outcome:
    """Write the status, remove finalizers, write the counters; the answer that stopped it, or OK.

    `status` is the status as the earlier phases of the sync left it, `flush` whether they changed
    something that must be written.
    """
    tracking = ctx.rules.tracking
    with_finalizer = {pod.uid for pod in ctx.pods if pod.has_tracking_finalizer}
    with_finalizer -= ctx.expected_removals
    moved = False
    if tracking.uncounted_pods_leave_their_list_one_by_one:
        status, moved = _count_without_finalizer(status, with_finalizer)
    pods_to_remove_finalizer, status, added, capped = _collect_uncounted(ctx, status)
    status, indexes_changed = _write_indexes(ctx, status)
    status, interim = _append_interim_condition(ctx, status)
    flush = flush or moved or added or indexes_changed or interim
    if not flush:
        job = replace(ctx.job, status=status)
    else:
        answer, job = api.update_status(ctx.job, status)
        if answer is not Outcome.OK:
            return answer
        ctx.flushed = True
        ctx.memory.backoff = ctx.backoff
    answer = _remove_finalizers(ctx, api, pods_to_remove_finalizer, with_finalizer)
    status, moved = _count_without_finalizer(job.status, with_finalizer)
    if answer is not Outcome.OK:
        written = api.update_status(job, status)[0] if moved else Outcome.OK
        return answer if written is Outcome.OK else written
    capped = capped and tracking.ending_waits_for_all_pods
    finished = None if capped else _enact_finished(ctx, status)
    if finished is not None:
        return _write_finished(ctx, api, job, finished)
    return api.update_status(job, status)[0] if moved else Outcome.OK


def _count_without_finalizer(
    status: JobStatus, with_finalizer: AbstractSet[str]
) -> tuple[JobStatus, bool]:
    """Move uncounted pods whose finalizer is gone into the counters."""
    if not status.uncounted_succeeded and not status.uncounted_failed:
        return status, False
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
    known_succeeded, known_failed = frozenset(succeeded), frozenset(failed)
    before = len(succeeded) + len(failed)
    pods_to_remove_finalizer: list[PodView] = []
    new_indexes: list[int] = []
    capped = False
    for pod in _removable(ctx):
        pods_to_remove_finalizer.append(pod)
        if pod.phase != "Succeeded":
            if pod.uid not in known_failed and _counts_as_failed(ctx, pod):
                failed.append(pod.uid)
        elif _stays_failed(ctx, pod, known_failed):
            pass
        elif indexed and _is_new_success(ctx, pod):
            new_indexes.append(pod.completion_index)
        elif not indexed and pod.uid not in known_succeeded:
            succeeded.append(pod.uid)
        if len(new_indexes) + len(succeeded) + len(failed) >= ctx.rules.max_uncounted:
            capped = True
            break
    if indexed:
        every = ctx.rules.tracking.every_succeeded_index_written
        listed = ctx.succeeded_indexes if every else ctx.previous_succeeded
        ctx.succeeded_indexes = with_indexes(listed, new_indexes)
    noted = len(succeeded) + len(failed) > before
    if noted:
        status = replace(
            status, uncounted_succeeded=tuple(succeeded), uncounted_failed=tuple(failed)
        )
    return pods_to_remove_finalizer, status, noted or bool(new_indexes), capped


def _removable(ctx: SyncContext) -> Iterator[PodView]:
    """Pods that may lose their finalizer, those of an Indexed Job by index."""
    pods = ctx.pods
    if ctx.job.deleted_ns is None and ctx.ending is None:
        pods = ctx.inactive_pods
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


def _stays_failed(ctx: SyncContext, pod: PodView, failed: AbstractSet[str]) -> bool:
    """Whether a pod that succeeded is noted as failed, because it was terminating before."""
    return ctx.rules.tracking.failed_pod_is_not_counted_as_success and pod.uid in failed


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
    kept = ctx.succeeded_indexes == ctx.previous_succeeded
    if kept and not ctx.rules.tracking.completed_indexes_cut_to_completions:
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
) -> Outcome:
    """PATCH the finalizers away; what went leaves `with_finalizer`. An error's answer, or OK."""
    if pods and ctx.rules.tracking.finalizer_removals_expected:
        ctx.memory.finalizers |= {pod.uid for pod in pods}
    result = Outcome.OK
    kept: set[str] = set()
    for pod, answer in zip(pods, api.remove_finalizers(pods), strict=True):
        if answer is not Outcome.OK:
            ctx.memory.finalizer_removal_observed(pod.uid)
        if answer in (Outcome.OK, Outcome.NOT_FOUND):
            with_finalizer.discard(pod.uid)
        else:
            result = answer
            kept.add(pod.uid)
    if not ctx.rules.tracking.uncounted_pods_leave_their_list_one_by_one:
        with_finalizer &= kept
    return result


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


def _write_finished(ctx: SyncContext, api: JobApi, job: JobView, status: JobStatus) -> Outcome:
    """Write the terminal status and tell of it, in the order of the version."""
    ctx.enacted = True
    if not ctx.rules.ending_event_follows_status:
        _record_finished(ctx, api, job, status)
    answer, job = api.update_status(job, status)
    if answer is not Outcome.OK:
        return answer
    ctx.memory.finished_written(job.uid)
    if ctx.rules.ending_event_follows_status:
        _record_finished(ctx, api, job, job.status)
    return Outcome.OK


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
