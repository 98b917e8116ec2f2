"""One pass over one Job whose pods are counted by listing them.

No finalizers, no uncounted lists: succeeded and failed are recounted from the pods that exist, so a
deleted pod is a forgotten one. Back-off lives in the work queue: a sync that wrote a new failure
returns an error on purpose, the limiter delays the key, and up to 1.19 the number of such retries
is what backoffLimit is compared with.

Every Job up to 1.21, and up to 1.26 those without the tracking annotation.

Upstream: pkg/controller/job/job_controller.go:syncJob, v1.11 to v1.26.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import Condition, JobStatus, JobView, PodView
from tracekit.ports.actions import JobApi, Outcome
from tracekit.ports.job.claim import ClaimError, claim_pods
from tracekit.ports.job.context import (
    DONE,
    Choices,
    SyncClock,
    SyncContext,
    SyncResult,
    ensure_condition,
)
from tracekit.ports.job.indexes import format_intervals, total, with_indexes
from tracekit.ports.job.manage_counting import delete_pods, manage_job_by_count
from tracekit.ports.job.memory import JobMemory
from tracekit.versions.job import JobRules

#: Before indexes were checked against the completions, any counted.
_NO_BOUND = 2**31
_GONE = (Outcome.OK, Outcome.NOT_FOUND)
SKIPPED = SyncResult(error=False, forget=False)


@dataclass(slots=True)
class _Verdict:
    """What the sync makes of the counts."""

    ending: Condition | None = None
    new_failure: bool = False
    conditions_changed: bool = False


def sync_counting_job(
    job: JobView | None,
    pods: Iterable[PodView],
    memory: JobMemory,
    api: JobApi,
    *,
    clock: SyncClock,
    rules: JobRules,
    choices: Choices,
) -> SyncResult:
    """Sync one key; parameters as for `sync.sync_job`.

    The worker's answer to the result is applied to `memory.requeues`: an error counts one more
    retry, whatever `forget` says; without one, `forget` clears the count.
    """
    result = _sync(job, pods, memory, api, clock=clock, rules=rules, choices=choices)
    if result.error and result.retried:
        memory.requeues += 1
    elif result.forget:
        memory.requeues = 0
    return result


def _sync(
    job: JobView | None,
    pods: Iterable[PodView],
    memory: JobMemory,
    api: JobApi,
    *,
    clock: SyncClock,
    rules: JobRules,
    choices: Choices,
) -> SyncResult:
    if job is None:
        memory.forget_key()
        return DONE
    if job.status.finished is not None:
        return DONE
    refused = refusal(job, rules)
    if refused is not None:
        api.record_event(job, "Warning", *refused)
        return SKIPPED
    ctx = SyncContext(job, rules, memory, clock, choices)
    # Read before the pods: a pod that arrives in between only defers the work.
    ctx.satisfied = memory.satisfied(clock.now_ns)
    try:
        ctx.pods = claim_pods(job, pods, api, add_finalizer=False)
    except ClaimError:
        return SyncResult(error=True)
    status = _count(ctx)
    verdict = _decide_ending(ctx, status)
    if verdict.ending is not None:
        status = _fail(ctx, api, status, verdict)
    else:
        status = _manage(ctx, api, status, verdict)
    return _write(ctx, api, status, verdict)


def refusal(job: JobView, rules: JobRules) -> tuple[str, str] | None:
    """Reason and message of the event when the completion mode cannot be served."""
    if job.spec.indexed and not rules.counting.indexed_job:
        return "IndexedJobDisabled", "Skipped Indexed Job sync because feature is disabled."
    if job.spec.completion_mode not in ("Indexed", "NonIndexed"):
        return "UnknownCompletionMode", "Skipped Job sync because completion mode is unknown"
    return None


def _count(ctx: SyncContext) -> JobStatus:
    """Fill the counts of the context; returns the status with its startTime."""
    counting, spec, status = ctx.rules.counting, ctx.job.spec, ctx.job.status
    ctx.split_pods()
    countable = ctx.inactive_pods
    if counting.indexes_beyond_completions_ignored:
        countable = [pod for pod in countable if ctx.index_valid(pod)]
    ctx.succeeded = len([pod for pod in countable if pod.phase == "Succeeded"])
    failed = [pod for pod in countable if pod.phase == "Failed"]
    ctx.failed = sum(1 for pod in failed if ctx.policy(pod).counts)
    if spec.indexed:
        bound = spec.completions or 0
        if not counting.indexes_beyond_completions_ignored:
            bound = _NO_BOUND
        ctx.succeeded_indexes = with_indexes(
            (),
            (
                pod.completion_index
                for pod in ctx.inactive_pods
                if pod.phase == "Succeeded" and 0 <= pod.completion_index < bound
            ),
        )
    before = ctx.job.status
    ctx.note_counts(
        len([pod for pod in ctx.inactive_pods if pod.terminating]),
        new_succeeded=[],
        new_failed=[],
        forgotten=max(0, before.succeeded - ctx.succeeded) + max(0, before.failed - ctx.failed),
    )
    if status.start_ns is None and not ctx.suspended:
        status = replace(status, start_ns=ctx.clock.now_ns)
        if spec.active_deadline_s is not None and not counting.deadline_timer_rearmed_on_every_sync:
            # Only here, so a shorter delay of the same key swallows the deadline for good.
            ctx.arm(spec.active_deadline_s * NS_PER_S)
    return status


def _decide_ending(ctx: SyncContext, status: JobStatus) -> _Verdict:
    """Whether the Job has failed: by its policy, by the back-off limit, by the deadline."""
    spec = ctx.job.spec
    verdict = _Verdict(new_failure=ctx.failed > ctx.job.status.failed)
    message = _policy_failure(ctx)
    if message is not None:
        verdict.ending = ctx.condition("Failed", "PodFailurePolicy", message)
    elif _exceeds_backoff_limit(ctx, verdict) or _past_backoff_limit_on_failure(ctx):
        verdict.ending = ctx.condition(
            "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        )
    elif spec.active_deadline_s is not None and status.start_ns is not None and not ctx.suspended:
        span_ns = spec.active_deadline_s * NS_PER_S
        deadline_ns = status.start_ns + span_ns
        over = ctx.clock.spent(status.start_ns, span_ns)
        rearmed = ctx.rules.counting.deadline_timer_rearmed_on_every_sync
        ctx.note(
            "deadline",
            seconds=spec.active_deadline_s,
            deadline_ns=deadline_ns,
            armed=rearmed or ctx.job.status.start_ns is None or over,
        )
        if over:
            verdict.ending = ctx.condition(
                "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
            )
        elif rearmed:
            ctx.arm(deadline_ns - ctx.clock.now_ns)
    if spec.indexed:
        ctx.succeeded = total(ctx.succeeded_indexes)
    return verdict


def _policy_failure(ctx: SyncContext) -> str | None:
    """The message of a pod that fails the Job by its pod failure policy (1.25 and 1.26)."""
    messages = [
        message
        for pod in ctx.pods
        if pod.phase == "Failed" and (message := ctx.policy(pod).fail_message) is not None
    ]
    if not messages:
        return None
    return next((m for m in messages if m in ctx.choices.messages), messages[0])


def _exceeds_backoff_limit(ctx: SyncContext, verdict: _Verdict) -> bool:
    """Whether pods failed too often; container restarts are the other test's business."""
    counting, spec = ctx.rules.counting, ctx.job.spec
    if counting.backoff_limit_ignores_active_pods:
        return ctx.failed > spec.backoff_limit
    # With as many active pods as wanted, the failure was handled before and only the status write
    # went wrong.
    if not verdict.new_failure or ctx.active == spec.parallelism:
        return False
    if counting.backoff_limit_counts_failed_pods:
        return ctx.failed > spec.backoff_limit
    return _retries_exceed(ctx)


def _retries_exceed(ctx: SyncContext) -> bool:
    """Compare the queue's count of retries, this failure included, with the back-off limit."""
    return ctx.memory.requeues + 1 > ctx.job.spec.backoff_limit


def _past_backoff_limit_on_failure(ctx: SyncContext) -> bool:
    counting, spec = ctx.rules.counting, ctx.job.spec
    if spec.restart_policy != "OnFailure":
        return False
    phases = ("Running", "Pending") if counting.on_failure_counts_pending_pods else ("Running",)
    restarts = sum(pod.restarts for pod in ctx.pods if pod.phase in phases)
    if spec.backoff_limit == 0 and counting.on_failure_limit_zero_needs_a_restart:
        return restarts > 0
    return restarts >= spec.backoff_limit


def _fail(ctx: SyncContext, api: JobApi, status: JobStatus, verdict: _Verdict) -> JobStatus:
    """Delete what runs and note the failure; those pods count as failed even if it did not work."""
    assert verdict.ending is not None  # noqa: S101 - the caller's branch
    ctx.note("ended", reason=verdict.ending.reason, active=ctx.active, satisfied=True)
    if any(answer not in _GONE for answer in delete_pods(ctx, api, ctx.active_pods)):
        ctx.error = True
    ctx.failed += ctx.active
    ctx.active = 0
    verdict.conditions_changed = True
    ending = verdict.ending
    api.record_event(ctx.job, "Warning", ending.reason, ending.message)
    return replace(status, conditions=(*status.conditions, ending))


def _manage(ctx: SyncContext, api: JobApi, status: JobStatus, verdict: _Verdict) -> JobStatus:
    """Create or delete pods, then see whether the Job is complete or its suspension turned over."""
    managed = ctx.note_expectations()
    if managed:
        ctx.active = manage_job_by_count(ctx, api)
    if _complete(ctx, api):
        verdict.conditions_changed = True
        verdict.ending = ctx.condition("Complete", "", "")
        if ctx.rules.counting.completed_event:
            api.record_event(ctx.job, "Normal", "Completed", "Job completed")
        return replace(
            status,
            conditions=(*status.conditions, verdict.ending),
            completion_ns=ctx.clock.now_ns,
        )
    if managed and ctx.rules.counting.suspend_job:
        return _suspend_condition(ctx, api, status, verdict)
    return status


def _complete(ctx: SyncContext, api: JobApi) -> bool:
    completions = ctx.job.spec.completions
    if completions is None:
        return ctx.succeeded > 0 and ctx.active == 0
    if ctx.succeeded < completions:
        return False
    if ctx.active > 0:
        if ctx.rules.counting.completion_waits_for_active_pods:
            return False
        api.record_event(
            ctx.job,
            "Warning",
            "TooManyActivePods",
            "Too many active pods running after completion count reached",
        )
    if ctx.succeeded > completions:
        api.record_event(
            ctx.job,
            "Warning",
            "TooManySucceededPods",
            "Too many succeeded pods running after completion count reached",
        )
    return True


def _suspend_condition(
    ctx: SyncContext, api: JobApi, status: JobStatus, verdict: _Verdict
) -> JobStatus:
    if ctx.job.spec.suspend:
        wanted = ctx.condition("Suspended", "JobSuspended", "Job suspended")
    else:
        wanted = ctx.condition("Suspended", "JobResumed", "Job resumed", status="False")
    conditions, changed = ensure_condition(
        status.conditions, wanted, renew_probe=ctx.rules.renews_probe_time
    )
    if not changed:
        return status
    verdict.conditions_changed = ctx.suspend_changed = True
    if wanted.status == "True":
        api.record_event(ctx.job, "Normal", "Suspended", "Job suspended")
        return replace(status, conditions=conditions)
    api.record_event(ctx.job, "Normal", "Resumed", "Job resumed")
    # A deadline counts from here on; nothing arms its timer before 1.25's fix.
    return replace(status, conditions=conditions, start_ns=ctx.clock.now_ns)


def _write(ctx: SyncContext, api: JobApi, status: JobStatus, verdict: _Verdict) -> SyncResult:
    """Write the status if a number or a condition differs from the cached one."""
    # Left from a time when the Job was tracked.
    tracked = [pod for pod in ctx.pods if pod.has_tracking_finalizer]
    if any(answer not in _GONE for answer in api.remove_finalizers(tracked)):
        return SyncResult(error=True, wake_after_ns=ctx.wake_after_ns)
    before = ctx.job.status
    forget = before.succeeded < ctx.succeeded
    ready = ctx.ready if ctx.rules.ready_pods else before.ready
    changed = (
        before.active != ctx.active
        or before.succeeded != ctx.succeeded
        or before.failed != ctx.failed
        or (ctx.rules.ready_pods and before.ready != ready)
        or verdict.conditions_changed
    )
    error = ctx.error
    if changed:
        status = replace(
            status,
            active=ctx.active,
            succeeded=ctx.succeeded,
            failed=ctx.failed,
            ready=ready,
            uncounted_succeeded=(),
            uncounted_failed=(),
            tracks_uncounted=False,
        )
        if ctx.job.spec.indexed:
            status = replace(status, completed_indexes=format_intervals(ctx.succeeded_indexes))
        outcome, _ = api.update_status(ctx.job, status)
        retries = ctx.rules.retries
        if outcome is not Outcome.OK:
            retried = outcome is not Outcome.CONFLICT or retries.conflict_is_retried
            return SyncResult(error=True, wake_after_ns=ctx.wake_after_ns, retried=retried)
        forget |= ctx.suspend_changed or not retries.status_write_keeps_retries
        unfinished = status.finished is None
        if verdict.new_failure and unfinished and retries.new_failure_returns_error:
            error = True  # the retry is the back-off
            ctx.note("retry")
    return SyncResult(error=error, wake_after_ns=ctx.wake_after_ns, forget=forget)
