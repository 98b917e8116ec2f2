"""Creating and deleting pods: one or the other in a sync, never both.

Upstream: pkg/controller/job/job_controller.go:manageJob, deleteJobPods, from v1.28 on.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracekit.base.kube.views import PodView
from tracekit.ports.actions import JobApi, Outcome
from tracekit.ports.job.backoff import backoff_end_ns, index_backoff_end_ns
from tracekit.ports.job.body import new_pod
from tracekit.ports.job.context import SyncContext
from tracekit.ports.job.indexes import first_pending, merge
from tracekit.ports.job.ranking import indexes_of, pods_for_removal
from tracekit.versions.constants import SLOW_START_BATCH_INITIAL


def manage_job(ctx: SyncContext, api: JobApi) -> int:
    """Bring the number of active pods to what the spec asks for; returns the active count."""
    active = len(ctx.active_pods)
    spec = ctx.job.spec
    if ctx.suspended:
        doomed = _pods_for_removal(ctx, active)
        ctx.note("suspended", active=active)
        ctx.memory.expect_deletions(len(doomed), ctx.clock.now_ns)
        return active - _delete_pods(ctx, api, doomed)
    wanted = _wanted_active(ctx, active)
    counted = ctx.terminating if ctx.rules.only_replaces_failed(ctx.job) else 0
    ctx.note(
        "wanted",
        wanted=wanted,
        active=active,
        terminating=counted,
        parallelism=spec.parallelism,
        completions=spec.completions,
        succeeded=ctx.succeeded,
    )
    excess = active - wanted
    if ctx.rules.terminating_counts_as_excess:
        excess += counted
    doomed = _pods_for_removal(ctx, max(0, excess))[: ctx.rules.max_pods_per_sync]
    if doomed:
        ctx.memory.expect_deletions(len(doomed), ctx.clock.now_ns)
        return active - _delete_pods(ctx, api, doomed)
    lacking = wanted - counted - active
    return _create_pods(ctx, api, active, lacking) if lacking > 0 else active


def _pods_for_removal(ctx: SyncContext, at_least: int) -> list[PodView]:
    spec = ctx.job.spec
    if not at_least and not spec.indexed:
        return []
    return pods_for_removal(
        ctx.active_pods,
        at_least,
        completions=spec.completions or 0 if spec.indexed else None,
        preferred=ctx.choices.pods,
        by_sidecars=ctx.rules.ranks_by_sidecars,
    )


def _wanted_active(ctx: SyncContext, active: int) -> int:
    spec = ctx.job.spec
    if spec.completions is None:
        return active if ctx.succeeded > 0 else spec.parallelism
    return max(0, min(spec.parallelism, spec.completions - ctx.succeeded))


def _delete_pods(ctx: SyncContext, api: JobApi, pods: Sequence[PodView]) -> int:
    """Take the finalizers off and delete, side by side; returns how many deletions went through.

    Upstream each pod has a goroutine for both: with few tokens all patches come before.
    """
    deleted = 0
    tracked = [pod for pod in pods if pod.has_tracking_finalizer]
    answers = {
        pod.uid: answer for pod, answer in zip(tracked, api.remove_finalizers(tracked), strict=True)
    }
    doomed = [pod for pod in pods if answers.get(pod.uid, Outcome.OK) is Outcome.OK]
    answers |= {
        pod.uid: answer
        for pod, answer in zip(doomed, api.delete_pods(ctx.job, doomed), strict=True)
    }
    for pod in pods:
        answer = answers[pod.uid]
        if answer is not Outcome.OK:
            # The informer will not show this deletion.
            ctx.memory.deletion_observed()
        if answer in (Outcome.OK, Outcome.NOT_FOUND):
            deleted += 1
        else:
            ctx.error = True
    ctx.count_deletions(deleted, doomed)
    return deleted


def _create_pods(ctx: SyncContext, api: JobApi, active: int, lacking: int) -> int:
    rules, job = ctx.rules, ctx.job
    per_index = rules.per_index(job)
    if not per_index and rules.pod_backoff_base_ns:
        until_ns = backoff_end_ns(
            ctx.backoff, base_ns=rules.pod_backoff_base_ns, limit_ns=rules.pod_backoff_limit_ns
        )
        if until_ns is not None and not ctx.clock.reached(until_ns):
            return _wait_for_backoff(ctx, active, until_ns)
    lacking = min(lacking, rules.max_pods_per_sync)
    indexes: list[int] = []
    if job.spec.indexed:
        indexes = _pending_indexes(ctx, lacking)
        if per_index and indexes:
            indexes, until_ns = _indexes_past_backoff(ctx, indexes)
            if until_ns is not None:
                return _wait_for_backoff(ctx, active, until_ns)
        lacking = len(indexes)
    ctx.memory.expect_creations(lacking, ctx.clock.now_ns)
    return active + lacking - _slow_start(ctx, api, lacking, indexes)


def _wait_for_backoff(ctx: SyncContext, active: int, until_ns: int) -> int:
    ctx.note("backoff", failures=ctx.backoff.failures_after_last_success, until_ns=until_ns)
    left_ns = until_ns - ctx.clock.now_ns
    ctx.arm(max(left_ns, ctx.rules.sync_batch_ns) if ctx.rules.backoff_waits_for_batch else left_ns)
    return 0 if ctx.rules.hides_active_in_backoff else active


def _pending_indexes(ctx: SyncContext, count: int) -> list[int]:
    taken = merge(ctx.succeeded_indexes, indexes_of(ctx.active_pods))
    if ctx.rules.only_replaces_failed(ctx.job):
        taken = merge(taken, indexes_of([pod for pod in ctx.pods if pod.terminating]))
    if ctx.failed_indexes is not None:
        taken = merge(taken, ctx.failed_indexes)
    return first_pending(taken, count=count, completions=ctx.job.spec.completions or 0)


def _indexes_past_backoff(ctx: SyncContext, indexes: list[int]) -> tuple[list[int], int | None]:
    """The indexes whose own back-off is over; if none, the moment when the first one is."""
    ready: list[int] = []
    earliest_ns: int | None = None
    for index in indexes:
        until_ns = index_backoff_end_ns(
            ctx.delayed_per_index.get(index),
            base_ns=ctx.rules.pod_backoff_base_ns,
            limit_ns=ctx.rules.pod_backoff_limit_ns,
            sidecars=ctx.rules.finish_time_covers_sidecars,
        )
        if until_ns is None or ctx.clock.reached(until_ns):
            ready.append(index)
        elif earliest_ns is None or until_ns < earliest_ns:
            earliest_ns = until_ns
    return ready, None if ready else earliest_ns


def _slow_start(ctx: SyncContext, api: JobApi, lacking: int, indexes: list[int]) -> int:
    """Create in batches of 1, 2, 4, …; returns how many were refused or never tried.

    A refusal ends the series after its batch. A terminating namespace is not an error: the pods
    stay counted.
    """
    job, memory = ctx.job, ctx.memory
    missing = 0
    position = 0
    batch = min(lacking, SLOW_START_BATCH_INITIAL)
    alike = None if indexes or not lacking else new_pod(job, ctx.rules, None, None)
    while lacking > 0:
        if alike is not None:
            intents = [alike] * batch
        else:
            intents = [
                new_pod(job, ctx.rules, index, ctx.delayed_per_index.get(index))
                for index in indexes[position : position + batch]
            ]
        position += batch
        refused = 0
        for answer in api.create_pods(job, intents):
            if answer.outcome not in (Outcome.OK, Outcome.NAMESPACE_TERMINATING):
                refused += 1
                memory.creation_observed()
        missing += refused
        skipped = lacking - batch
        if refused:
            ctx.error = True
            if skipped > 0:
                for _ in range(skipped):
                    memory.creation_observed()
                return missing + skipped
        lacking -= batch
        batch = min(2 * batch, lacking)
    return missing
