"""One pass over one Job that is tracked with finalizers.

Upstream: pkg/controller/job/job_controller.go:syncJob, from v1.22 on. Not ported: the patch that
takes the tracking annotation off a Job where the gate was turned off (1.22 to 1.25), and the
Workloads of WorkloadWithJob.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import Condition, JobStatus, JobView, PodView
from tracekit.ports.actions import JobApi, Outcome
from tracekit.ports.job.backoff import (
    absolute_failure_count,
    finish_time_ns,
    finish_time_of_containers_ns,
    index_failure_count,
    new_backoff_record,
)
from tracekit.ports.job.claim import ClaimError, claim_pods
from tracekit.ports.job.context import (
    DONE,
    Choices,
    SyncClock,
    SyncContext,
    SyncResult,
    ensure_condition,
)
from tracekit.ports.job.indexes import (
    Intervals,
    contains,
    parse_intervals,
    total,
    with_indexes,
)
from tracekit.ports.job.manage import manage_job
from tracekit.ports.job.memory import CacheRevisions, JobMemory
from tracekit.ports.job.ranking import indexes_of
from tracekit.ports.job.success_policy import match_success_policy
from tracekit.ports.job.sync_counting import refusal, sync_counting_job
from tracekit.ports.job.tracking import track_job_status
from tracekit.versions.job import JobRules


def sync_job(
    job: JobView | None,
    pods: Iterable[PodView],
    memory: JobMemory,
    api: JobApi,
    *,
    clock: SyncClock,
    rules: JobRules,
    choices: Choices,
    read: CacheRevisions | None = None,
) -> SyncResult:
    """Sync one key.

    `job` is the lister's Job (None: not found); `pods` are the namespace's pods that it owns or
    could adopt, as the pod lister holds them. `memory` changes in place, writes go through `api`.
    `read` is how far the caches have come: where it is known, a version that asks for it refuses a
    sync that does not see the controller's own writes yet.
    """
    if rules.refuses_stale_sync and read is not None and not memory.ensure_ready(read):
        return SyncResult(error=True)
    if job is None:
        memory.forget_key()
        return DONE
    if not rules.tracks(job):
        return sync_counting_job(job, pods, memory, api, clock=clock, rules=rules, choices=choices)
    left_alone = _left_alone(job, memory, api, rules)
    if left_alone is not None:
        return left_alone
    ctx = SyncContext(job, rules, memory, clock, choices)
    # Read before the pods: a pod that arrives in between only defers the work.
    ctx.satisfied = memory.satisfied(clock.now_ns)
    ctx.expected_removals = memory.finalizers
    try:
        ctx.pods = claim_pods(job, pods, api, add_finalizer=True)
    except ClaimError:
        return SyncResult(error=True)
    status = _count(ctx)
    _decide_ending(ctx, status)
    status = _act(ctx, api, status)
    ready = ctx.ready if rules.ready_pods else None
    terminating = ctx.terminating if rules.pod_replacement_policy else None
    flush = (
        ctx.suspend_changed
        or ctx.active != status.active
        or ready != status.ready
        or (rules.tracking.terminating_alone_is_written and terminating != status.terminating)
    )
    status = replace(
        status, active=ctx.active, ready=ready, terminating=terminating, tracks_uncounted=True
    )
    return _result(ctx, track_job_status(ctx, api, status, flush=flush))


def _left_alone(job: JobView, memory: JobMemory, api: JobApi, rules: JobRules) -> SyncResult | None:
    """The result where there is nothing to do, or nothing that this controller knows to do."""
    if rules.managed_elsewhere(job):
        return DONE
    if job.status.finished is not None:
        memory.finished_seen(job.uid)
        return DONE
    if rules.awaits_finished_update and job.uid in memory.finished_uids:
        return DONE
    refused = refusal(job, rules)
    if refused is None:
        return None
    api.record_event(job, "Warning", *refused)
    return SyncResult(error=False, forget=rules.retries.sync_without_error_forgets_retries)


def _result(ctx: SyncContext, answer: Outcome) -> SyncResult:
    """What the worker does with the key after the status was tracked with this answer."""
    retries, before = ctx.rules.retries, ctx.job.status
    if answer is Outcome.CONFLICT and retries.conflict_requeues_without_error:
        # The cache is stale: no reason to count a failure.
        forget = retries.sync_without_error_forgets_retries
        return SyncResult(
            error=False, wake_after_ns=ctx.wake_after_ns, forget=forget, requeued=True
        )
    if answer is not Outcome.OK:
        retried = answer is not Outcome.CONFLICT or retries.conflict_is_retried
        return SyncResult(error=True, wake_after_ns=ctx.wake_after_ns, retried=retried)
    finished = ctx.enacted and not (ctx.flushed and retries.flush_hides_the_end)
    new_failure = ctx.failed > before.failed and not finished
    if new_failure and retries.new_failure_returns_error:
        ctx.note("retry")  # the retry is the back-off
        ctx.error = True
    forget = True
    if retries.status_write_keeps_retries:
        forget = before.succeeded < ctx.succeeded or ctx.suspend_changed
    return SyncResult(error=ctx.error, wake_after_ns=ctx.wake_after_ns, forget=forget)


def _count(ctx: SyncContext) -> JobStatus:
    """Fill the counts of the context; returns the status with its startTime."""
    job, rules = ctx.job, ctx.rules
    status = job.status
    ctx.split_pods()
    if ctx.inactive_pods and rules.tracks_terminating(job):
        ctx.terminating = len([pod for pod in ctx.inactive_pods if pod.terminating])
    succeeded, failed = _new_finished_pods(ctx)
    ctx.succeeded = status.succeeded + len(succeeded) + len(status.uncounted_succeeded)
    counting = [pod for pod in failed if ctx.policy(pod).counts]
    ctx.failed = status.failed + len(counting) + len(status.uncounted_failed)
    ctx.backoff = ctx.memory.backoff
    if succeeded or failed:
        ctx.backoff = new_backoff_record(
            ctx.memory.backoff,
            [_finish_time_ns(ctx, pod) for pod in succeeded],
            [
                _finish_time_ns(ctx, pod)
                for pod in (failed if rules.ignored_failures_delay else counting)
            ],
        )
    ctx.note_counts(
        ctx.terminating,
        new_succeeded=[pod.name for pod in succeeded],
        new_failed=[pod.name for pod in failed],
    )
    if status.start_ns is None and not ctx.suspended:
        status = replace(status, start_ns=ctx.clock.now_ns)
        deadline_s = job.spec.active_deadline_s
        if deadline_s is not None and not rules.counting.deadline_timer_rearmed_on_every_sync:
            # Only here, so a shorter delay of the same key swallows the deadline for good.
            ctx.arm(deadline_s * NS_PER_S)
    return status


def _new_finished_pods(ctx: SyncContext) -> tuple[list[PodView], list[PodView]]:
    """Pods that finished and stand in no list yet."""
    status = ctx.job.status
    succeeded: list[PodView] = []
    failed: list[PodView] = []
    if not ctx.inactive_pods:
        return succeeded, failed
    counted_succeeded = frozenset(status.uncounted_succeeded)
    counted_failed = frozenset(status.uncounted_failed)
    for pod in ctx.inactive_pods:
        if not ctx.uncounted_yet(pod) or not ctx.index_valid(pod):
            continue
        if pod.phase == "Succeeded":
            if pod.uid not in counted_succeeded:
                succeeded.append(pod)
        elif pod.uid not in counted_failed and ctx.pod_failed(pod):
            failed.append(pod)
    return succeeded, failed


def _finish_time_ns(ctx: SyncContext, pod: PodView) -> int:
    if ctx.rules.finish_time_from_pod_status:
        return finish_time_ns(pod, sidecars=ctx.rules.finish_time_covers_sidecars)
    return finish_time_of_containers_ns(pod, ctx.clock.now_ns)


def _decide_ending(ctx: SyncContext, status: JobStatus) -> None:
    """What ends the Job, first that holds; also arms the deadline timer."""
    ctx.ending = _standing_ending(ctx, status) or _policy_failure(ctx)
    if ctx.ending is None:
        ctx.ending = _limit_or_deadline(ctx, status)
    if ctx.job.spec.indexed:
        _count_indexes(ctx, status)


def _standing_ending(ctx: SyncContext, status: JobStatus) -> Condition | None:
    rules = ctx.rules
    if not status.conditions:
        return None
    if rules.success_policy or rules.delayed_terminal:
        met = status.condition("SuccessCriteriaMet")
        if met is not None and met.status == "True":
            return met
    target = status.condition("FailureTarget")
    if target is not None and target.status == "True":
        return ctx.condition("Failed", target.reason, target.message)
    return None


def _policy_failure(ctx: SyncContext) -> Condition | None:
    if ctx.rules.failure_rules(ctx.job) is None:
        return None
    messages = [
        message
        for pod in ctx.pods
        if ctx.pod_failed(pod) and (message := ctx.policy(pod).fail_message) is not None
    ]
    if not messages:
        return None
    # Upstream takes the first pod in list order, and the cache lists in random order.
    picked = next((m for m in messages if m in ctx.choices.messages), messages[0])
    return ctx.condition("FailureTarget", "PodFailurePolicy", picked)


def _failure(ctx: SyncContext, reason: str, message: str) -> Condition:
    kind = "FailureTarget" if ctx.rules.delayed_terminal else "Failed"
    return ctx.condition(kind, reason, message)


def _limit_or_deadline(ctx: SyncContext, status: JobStatus) -> Condition | None:
    spec = ctx.job.spec
    if _exceeds_backoff_limit(ctx) or _past_backoff_limit_on_failure(ctx):
        return _failure(ctx, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    if spec.active_deadline_s is None or ctx.suspended or status.start_ns is None:
        return None
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
        return _failure(ctx, "DeadlineExceeded", "Job was active longer than specified deadline")
    if rearmed:
        ctx.arm(deadline_ns - ctx.clock.now_ns)
    return None


def _exceeds_backoff_limit(ctx: SyncContext) -> bool:
    spec = ctx.job.spec
    if ctx.failed <= spec.backoff_limit:
        return False
    if not ctx.rules.backoff_limit_ignores_active_pods and (
        # With as many active pods as wanted, an earlier sync has handled the failure.
        ctx.failed <= ctx.job.status.failed or ctx.active == spec.parallelism
    ):
        return False
    ctx.note("backoff-limit", limit=spec.backoff_limit, failed=ctx.failed)
    return True


def _past_backoff_limit_on_failure(ctx: SyncContext) -> bool:
    spec = ctx.job.spec
    if spec.restart_policy != "OnFailure":
        return False
    restarts = sum(pod.restarts for pod in ctx.pods if pod.phase in ("Running", "Pending"))
    past = restarts > 0 if spec.backoff_limit == 0 else restarts >= spec.backoff_limit
    if past:
        ctx.note("restart-limit", limit=spec.backoff_limit, restarts=restarts)
    return past


def _count_indexes(ctx: SyncContext, status: JobStatus) -> None:
    spec = ctx.job.spec
    completions = spec.completions or 0
    ctx.previous_succeeded = parse_intervals(status.completed_indexes, completions)
    ctx.succeeded_indexes = with_indexes(
        ctx.previous_succeeded,
        (
            pod.completion_index
            for pod in ctx.pods
            if pod.phase == "Succeeded" and pod.has_tracking_finalizer and ctx.index_valid(pod)
        ),
    )
    ctx.succeeded = total(ctx.succeeded_indexes)
    if ctx.rules.per_index(ctx.job):
        _count_failed_indexes(ctx, status, completions)
    if ctx.ending is None:
        message = match_success_policy(
            ctx.rules.success_rules(ctx.job),
            completions=completions,
            succeeded=ctx.succeeded_indexes,
        )
        if message is not None:
            ctx.ending = ctx.condition("SuccessCriteriaMet", "SuccessPolicy", message)


def _count_failed_indexes(ctx: SyncContext, status: JobStatus, completions: int) -> None:
    before = parse_intervals(status.failed_indexes or "", completions)
    failed = with_indexes(
        before,
        (
            pod.completion_index
            for pod in ctx.pods
            if pod.has_tracking_finalizer and ctx.index_valid(pod) and _index_failed(ctx, pod)
        ),
    )
    ctx.failed_indexes = failed
    if ctx.ending is None:
        limit = ctx.job.spec.max_failed_indexes
        if limit is not None and total(failed) > limit:
            ctx.ending = _failure(
                ctx,
                "MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes",
            )
        elif failed and total(failed) + ctx.succeeded >= completions:
            ctx.ending = _failure(ctx, "FailedIndexes", "Job has failed indexes")
    ctx.delayed_per_index = _pods_with_delayed_deletion(ctx, failed)


def _index_failed(ctx: SyncContext, pod: PodView) -> bool:
    if not ctx.pod_failed(pod):
        return False
    matched = ctx.policy(pod)
    if matched.action == "FailIndex":
        return True
    limit = ctx.job.spec.backoff_limit_per_index or 0
    return matched.counts and index_failure_count(pod) >= limit


def _pods_with_delayed_deletion(ctx: SyncContext, failed: Intervals) -> dict[int, PodView]:
    """Per open index the failed pod whose counts its replacement will carry on."""
    active = indexes_of(ctx.active_pods)
    kept: dict[int, PodView] = {}
    for pod in ctx.pods:
        index = pod.completion_index
        if not ctx.uncounted_yet(pod) or not ctx.index_valid(pod) or not ctx.pod_failed(pod):
            continue
        if any(contains(taken, index) for taken in (ctx.succeeded_indexes, failed, active)):
            continue
        last = kept.get(index)
        if last is None or (
            absolute_failure_count(last) <= absolute_failure_count(pod)
            and _finish_time_ns(ctx, pod) >= _finish_time_ns(ctx, last)
        ):
            kept[index] = pod
    return kept


def _act(ctx: SyncContext, api: JobApi, status: JobStatus) -> JobStatus:
    """Delete the pods of an ended Job, or manage the pods of a running one."""
    if ctx.ending is not None:
        ctx.note(
            "ended",
            reason=ctx.ending.reason,
            message=ctx.ending.message,
            active=ctx.active,
            satisfied=ctx.satisfied,
        )
        _delete_active_pods(ctx, api)
        return status
    managed = ctx.note_expectations()
    if managed:
        ctx.active = manage_job(ctx, api)
    spec = ctx.job.spec
    if spec.completions is None:
        complete = ctx.succeeded > 0 and ctx.active == 0
    else:
        complete = ctx.succeeded >= spec.completions and ctx.active == 0
    if complete:
        kind = "SuccessCriteriaMet" if ctx.rules.delayed_terminal else "Complete"
        reason, message = "", ""
        if ctx.rules.completions_reached:
            reason = "CompletionsReached"
            message = "Reached expected number of succeeded pods"
        ctx.ending = ctx.condition(kind, reason, message)
        return status
    if managed and ctx.rules.counting.suspend_job:
        return _suspend_condition(ctx, api, status)
    return status


def _delete_active_pods(ctx: SyncContext, api: JobApi) -> None:
    """DELETE every active pod; their finalizers stay until they are counted."""
    deleted = 0
    for answer in api.delete_pods(ctx.job, ctx.active_pods):
        if answer in (Outcome.OK, Outcome.NOT_FOUND):
            deleted += 1
        else:
            ctx.error = True
    unmet = ctx.rules.tracking.ending_waits_for_expectations and not ctx.satisfied
    if deleted != ctx.active or unmet:
        # Pods may be left, or not in the cache yet: too early to declare the end.
        ctx.ending = None
    ctx.active -= deleted
    ctx.count_deletions(deleted, ctx.active_pods)


def _suspend_condition(ctx: SyncContext, api: JobApi, status: JobStatus) -> JobStatus:
    if ctx.job.spec.suspend:
        wanted = ctx.condition("Suspended", "JobSuspended", "Job suspended")
    elif status.condition("Suspended") is None:
        return status
    else:
        wanted = ctx.condition("Suspended", "JobResumed", "Job resumed", status="False")
    conditions, changed = ensure_condition(
        status.conditions, wanted, renew_probe=ctx.rules.renews_probe_time
    )
    if not changed:
        return status
    ctx.suspend_changed = True
    status = replace(status, conditions=conditions)
    if wanted.status == "True":
        api.record_event(ctx.job, "Normal", "Suspended", "Job suspended")
        if ctx.rules.resets_start_on_suspend:
            status = replace(status, start_ns=None)
    else:
        api.record_event(ctx.job, "Normal", "Resumed", "Job resumed")
        status = replace(status, start_ns=ctx.clock.now_ns)
    return status
