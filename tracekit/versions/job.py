"""What the Job controller does differently in each version, resolved once per replay.

`JobRules` holds plain attributes: looking one up costs nothing in a sync, and no controller code
compares versions. The gates and behaviours behind it are in `gates` and `behaviors`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from tracekit.base.kube.views import JOB_TRACKING_ANNOTATION, JobView
from tracekit.versions.era import Era
from tracekit.versions.job_counting import CountingRules
from tracekit.versions.job_handlers import HandlerRules
from tracekit.versions.job_retries import RetryRules
from tracekit.versions.job_tracking import TrackingRules
from tracekit.versions.status_validation import StatusValidation

MANAGED_BY_JOB_CONTROLLER = "kubernetes.io/job-controller"


class JobRules(Struct, frozen=True):
    """The Job controller of one version with one set of gates."""

    tracking_always: bool  # 1.26+: every Job is tracked with finalizers
    tracking_by_annotation: bool  # 1.22-1.25: Jobs that carry the annotation
    ready_pods: bool
    pod_failure_policy: bool
    fail_index: bool
    backoff_limit_per_index: bool
    pod_replacement_policy: bool
    pod_index_label: bool
    plain_names_carry_index: bool  # -1, in the pod names of Jobs that are not Indexed
    success_policy: bool
    managed_by: bool
    delayed_terminal: bool  # interim condition first, terminal when nothing terminates
    completions_reached: bool  # the success condition has a reason and a message
    counts_deleted: bool  # ready and terminating follow the deletions of the same sync
    terminating_counts_as_excess: bool  # pods that terminate push active pods out
    failure_policy_holds_replacements: bool  # as podReplacementPolicy Failed does
    failure_policy_awaits_phase: bool  # so it does for what counts as failed, 1.26 on
    hides_active_in_backoff: bool  # a Job that waits for its back-off reports active 0
    resets_start_on_suspend: bool
    ending_event_follows_status: bool  # else it comes first, and again after a conflict
    renews_probe_time: bool  # of a condition that turns over
    refuses_stale_sync: bool
    ranks_by_sidecars: bool  # restarts of sidecars decide who is deleted first
    awaits_finished_update: bool  # no sync until the terminal status is in the cache
    backoff_limit_ignores_active_pods: bool
    overwrites_status: bool  # a status PUT goes over a fresh read of the Job
    sync_batch_ns: int
    batches_job_updates: bool  # Job updates that keep the generation wait, too
    batches_pod_events: bool  # pod events wait for the batch period
    queue_delays_failures: bool  # failed pods wait in the work queue (up to 1.27)
    pod_backoff_base_ns: int  # 0: failed pods are replaced at once
    pod_backoff_limit_ns: int
    finish_time_from_pod_status: bool  # else from ended containers, or now
    finish_time_covers_sidecars: bool
    ignored_failures_delay: bool  # pods that the policy ignores count for the back-off
    backoff_waits_for_batch: bool  # the timer of a back-off is no shorter than a batch
    max_uncounted: int
    max_pods_per_sync: int
    counting: CountingRules
    tracking: TrackingRules
    retries: RetryRules
    handlers: HandlerRules
    status_validation: StatusValidation

    @classmethod
    def of(cls, era: Era) -> JobRules:
        """The rules of a version with its gates."""
        gates, behaviors, constants = era.gates, era.behaviors, era.constants
        delayed = behaviors.terminal_condition_waits_for_terminating_pods and (
            gates.JobManagedBy or gates.JobPodReplacementPolicy
        )
        tracking = gates.JobTrackingWithFinalizers
        return cls(
            tracking_always=tracking and behaviors.tracking_needs_no_annotation,
            tracking_by_annotation=tracking,
            ready_pods=gates.JobReadyPods,
            pod_failure_policy=gates.JobPodFailurePolicy,
            fail_index=gates.JobBackoffLimitPerIndex,
            backoff_limit_per_index=gates.JobBackoffLimitPerIndex,
            pod_replacement_policy=gates.JobPodReplacementPolicy,
            pod_index_label=gates.PodIndexLabel,
            success_policy=gates.JobSuccessPolicy,
            managed_by=gates.JobManagedBy,
            delayed_terminal=delayed,
            completions_reached=gates.JobSuccessPolicy and behaviors.completion_names_its_reason,
            counts_deleted=behaviors.ready_and_terminating_follow_deletions,
            terminating_counts_as_excess=not behaviors.active_pods_survive_terminating_ones,
            failure_policy_holds_replacements=behaviors.failure_policy_awaits_phase
            and not behaviors.only_replacement_policy_holds_replacements_back,
            failure_policy_awaits_phase=gates.PodDisruptionConditions
            and behaviors.pod_disruption_conditions_await_phase,
            hides_active_in_backoff=not behaviors.active_kept_during_creation_backoff,
            resets_start_on_suspend=gates.MutableSchedulingDirectivesForSuspendedJobs,
            ranks_by_sidecars=behaviors.sidecar_restarts_rank_pods,
            awaits_finished_update=behaviors.finished_job_awaits_its_update,
            refuses_stale_sync=gates.StaleControllerConsistencyJob and gates.AtomicFIFO,
            sync_batch_ns=constants.sync_batch_period_ns,
            batches_job_updates=behaviors.job_status_updates_batched,
            batches_pod_events=gates.JobReadyPods or behaviors.job_status_updates_batched,
            queue_delays_failures=not behaviors.backoff_from_pod_finish_times,
            pod_backoff_base_ns=constants.pod_failure_backoff_ns_base or 0,
            pod_backoff_limit_ns=constants.pod_failure_backoff_ns_max or 0,
            finish_time_from_pod_status=behaviors.finish_time_read_from_pod_status,
            finish_time_covers_sidecars=behaviors.finish_time_covers_sidecars,
            ignored_failures_delay=behaviors.ignored_failures_delay_replacements,
            backoff_waits_for_batch=behaviors.job_status_updates_batched,
            plain_names_carry_index=behaviors.index_in_pod_name
            and not behaviors.only_indexed_jobs_put_index_in_names,
            max_uncounted=constants.uncounted_pods_max or 500,
            max_pods_per_sync=constants.pods_per_sync_max or 500,
            ending_event_follows_status=behaviors.ending_event_follows_status,
            renews_probe_time=behaviors.condition_update_renews_probe_time,
            backoff_limit_ignores_active_pods=behaviors.backoff_limit_ignores_active_pods,
            overwrites_status=not behaviors.status_written_from_cached_revision,
            counting=CountingRules.of(era),
            tracking=TrackingRules.of(era),
            retries=RetryRules.of(era),
            handlers=HandlerRules.of(era),
            status_validation=StatusValidation.of(era),
        )

    def tracks(self, job: JobView) -> bool:
        """Whether the Job's pods are tracked with finalizers."""
        return self.tracking_always or (
            self.tracking_by_annotation and JOB_TRACKING_ANNOTATION in job.annotations
        )

    def failure_rules(self, job: JobView) -> Sequence[Mapping[str, Any]] | None:
        """The rules of the Job's pod failure policy, None where it has none or the gate is off."""
        return job.spec.pod_failure_rules if self.pod_failure_policy else None

    def per_index(self, job: JobView) -> bool:
        """Whether the Job has a back-off limit per index."""
        return self.backoff_limit_per_index and job.spec.backoff_limit_per_index is not None

    def only_replaces_failed(self, job: JobView) -> bool:
        """Whether a terminating pod keeps its place until it has failed (KEP-3939)."""
        if self.pod_replacement_policy and job.spec.pod_replacement_policy == "Failed":
            return True
        return self.failure_policy_holds_replacements and self.failure_rules(job) is not None

    def awaits_phase(self, job: JobView) -> bool:
        """Whether a terminating pod has not failed before its phase says so."""
        if self.only_replaces_failed(job):
            return True
        return self.failure_policy_awaits_phase and self.failure_rules(job) is not None

    def tracks_terminating(self, job: JobView) -> bool:
        """Whether terminating pods are counted for the Job."""
        return (
            self.pod_replacement_policy
            or (self.managed_by and self.delayed_terminal)
            or self.failure_rules(job) is not None
        )

    def managed_elsewhere(self, job: JobView) -> bool:
        """Whether another controller reconciles the Job (KEP-4368)."""
        return (
            self.managed_by
            and job.spec.managed_by is not None
            and job.spec.managed_by != MANAGED_BY_JOB_CONTROLLER
        )

    def success_rules(self, job: JobView) -> Sequence[Mapping[str, Any]] | None:
        """The rules of the Job's success policy, None where it has none or the gate is off."""
        return job.spec.success_rules if self.success_policy else None
