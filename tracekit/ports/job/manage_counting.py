"""Creating and deleting the pods of a Job that is counted by listing.

Up to 1.21 only pods beyond parallelism are deleted, and a sync may then still create; from 1.22 on
what exceeds the completions that are left goes too, and a sync that deletes creates nothing.

Upstream: pkg/controller/job/job_controller.go:manageJob, deleteJobPods, v1.11 to v1.26.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tracekit.base.kube.views import PodView
from tracekit.ports.actions import CreatePod, JobApi, Outcome
from tracekit.ports.job.body import new_pod
from tracekit.ports.job.context import SyncContext
from tracekit.ports.job.indexes import Intervals, first_pending, merge
from tracekit.ports.job.ranking import indexes_of, pods_for_removal

#: Where a release has no bound of its own: a Job may ask for two thousand million pods. A choice:
#: the default --kube-api-qps lets a sync make as many in four minutes, and each that a record lacks
#: is told by itself.
_PODS_PER_SYNC_MAX: Final = 5_000


def manage_job_by_count(ctx: SyncContext, api: JobApi) -> int:
    """Bring the number of active pods to what the spec asks for; returns the active count."""
    counting, spec = ctx.rules.counting, ctx.job.spec
    active = len(ctx.active_pods)
    wanted = _wanted_active(ctx, active)
    ctx.note(
        "wanted",
        wanted=wanted,
        active=active,
        terminating=0,
        parallelism=spec.parallelism,
        completions=spec.completions,
        succeeded=ctx.succeeded,
    )
    kept = wanted if counting.pods_beyond_completions_removed else spec.parallelism
    if ctx.suspended:
        kept = 0
    doomed = pods_for_removal(
        ctx.active_pods,
        max(0, active - kept),
        completions=(spec.completions or 0) if spec.indexed else None,
        preferred=ctx.choices.pods,
    )
    if counting.pods_per_sync_max is not None and not ctx.suspended:
        doomed = doomed[: counting.pods_per_sync_max]
    if doomed or ctx.suspended:
        active -= _delete_pods(ctx, api, doomed)
        if ctx.suspended or ctx.error or counting.deletes_exclude_creates:
            return active
    if active >= min(spec.parallelism, wanted) and (
        active >= spec.parallelism or counting.nothing_to_create_keeps_expectations
    ):
        return active
    return _create_pods(ctx, api, active, max(0, wanted - active))


def _wanted_active(ctx: SyncContext, active: int) -> int:
    """How many pods ought to be active; below 0 where completions were exceeded (up to 1.22)."""
    spec = ctx.job.spec
    if spec.completions is None:
        return active if ctx.succeeded > 0 else spec.parallelism
    return min(spec.completions - ctx.succeeded, spec.parallelism)


def delete_pods(ctx: SyncContext, api: JobApi, pods: list[PodView]) -> list[Outcome]:
    """DELETE pods; says what became of one that was gone already, which changed twice.

    1.11: an error. 1.12 on: the pod control swallows it and tells of a success. Later: the caller
    sees it, and nobody tells of anything.
    """
    answers = api.delete_pods(ctx.job, pods)
    return [_deleted(ctx, api, pod, answer) for pod, answer in zip(pods, answers, strict=True)]


def _deleted(ctx: SyncContext, api: JobApi, pod: PodView, outcome: Outcome) -> Outcome:
    counting = ctx.rules.counting
    if outcome is not Outcome.NOT_FOUND or counting.delete_of_missing_pod_lowers_expectation:
        return outcome
    if counting.delete_of_missing_pod_succeeds:
        api.record_event(ctx.job, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}")
        return Outcome.OK
    api.record_event(
        ctx.job, "Warning", "FailedDelete", f'Error deleting: pods "{pod.name}" not found'
    )
    return Outcome.REFUSED


def _delete_pods(ctx: SyncContext, api: JobApi, pods: list[PodView]) -> int:
    """Delete with an expectation for each; returns how many count as gone."""
    ctx.memory.expect_deletions(len(pods), ctx.clock.now_ns)
    deleted = 0
    for outcome in delete_pods(ctx, api, pods):
        if outcome is not Outcome.OK:
            ctx.memory.deletion_observed()  # the informer will not show this one
        if outcome in (Outcome.OK, Outcome.NOT_FOUND):
            deleted += 1
        else:
            ctx.error = True
    return deleted


def _create_pods(ctx: SyncContext, api: JobApi, active: int, lacking: int) -> int:
    """Create in batches of 1, 2, 4, …; returns the number of pods that count as active then."""
    counting, job = ctx.rules.counting, ctx.job
    if counting.pods_per_sync_max is not None:
        lacking = min(lacking, counting.pods_per_sync_max)
    lacking = min(lacking, _PODS_PER_SYNC_MAX)
    ctx.memory.expect_creations(lacking, ctx.clock.now_ns)
    indexes: Sequence[int | None] = (None,) * lacking
    if job.spec.indexed and job.spec.completions is not None:
        indexes = first_pending(_taken(ctx), count=lacking, completions=job.spec.completions)
    active += len(indexes)
    position, batch = 0, min(len(indexes), 1)
    while position < len(indexes):
        intents = _intents(ctx, indexes[position : position + batch])
        refused = sum(
            1 for answer in api.create_pods(job, intents) if _is_error(ctx, answer.outcome)
        )
        position += batch
        left = len(indexes) - position
        active -= refused
        if refused:
            ctx.error = True
            active -= left
        for _ in range(refused + (left if refused else 0)):
            ctx.memory.creation_observed()  # the informer will not show these
        if refused:
            break
        batch = min(2 * batch, left)
    return active


def _is_error(ctx: SyncContext, outcome: Outcome) -> bool:
    """Some refusals are passed over: the pod stays counted and expected."""
    if outcome is Outcome.NAMESPACE_TERMINATING:
        return not ctx.rules.counting.terminating_namespace_is_silent
    if outcome is Outcome.TIMEOUT:
        return ctx.rules.counting.create_timeout_is_an_error
    return outcome is not Outcome.OK


def _taken(ctx: SyncContext) -> Intervals:
    """Indexes of pods that succeeded or are active."""
    return merge(ctx.succeeded_indexes, indexes_of(ctx.active_pods))


def _intents(ctx: SyncContext, indexes: Sequence[int | None]) -> list[CreatePod]:
    """A pod for each; those without an index are alike."""
    if indexes[0] is None:
        return [_intent(ctx, None)] * len(indexes)
    return [_intent(ctx, index) for index in indexes]


def _intent(ctx: SyncContext, index: int | None) -> CreatePod:
    intent = new_pod(ctx.job, ctx.rules, index, None)
    if index is None or ctx.rules.counting.index_in_pod_name:
        return intent
    spec = dict(intent.spec)
    host_name = (ctx.job.spec.template.get("spec") or {}).get("hostname")
    if host_name is None:
        spec.pop("hostname", None)
    else:
        spec["hostname"] = host_name
    return replace(intent, generate_name=f"{ctx.job.name}-", spec=spec)
