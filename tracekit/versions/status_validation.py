"""What the API server of each version asks of a Job's status, resolved once per replay.

Plain attributes; `ports.job.status_validation` has the rules that they turn on. They follow
the API server's version and gates, which a trace knows as those of the controller.

Upstream: pkg/registry/batch/job/strategy.go:getStatusValidationOptions.
"""

from __future__ import annotations

from msgspec import Struct

from tracekit.versions.era import Era


class StatusValidation(Struct, frozen=True):
    """The validation of status updates."""

    uncounted_pods: bool  # 1.22+: no uid twice in status.uncountedTerminatedPods
    success_criteria: bool  # 1.30+: SuccessCriteriaMet excludes every failure, and stays
    success_criteria_for_every_job: bool  # else for Indexed Jobs with a successPolicy only
    transitions: bool  # the rules below, which JobManagedBy brought
    interim_condition_before_ending: bool
    ready_within_active: bool
    nothing_terminates_at_the_end: bool
    suspended_empty_job_ends_without_start: bool
    resumed_start_accepted: bool

    @classmethod
    def of(cls, era: Era) -> StatusValidation:
        """The validation of a version with its gates."""
        gates, behaviors = era.gates, era.behaviors
        transitions = gates.JobManagedBy and behaviors.status_transitions_validated
        interim = behaviors.ending_without_interim_condition_refused
        return cls(
            uncounted_pods=era.constants.uncounted_pods_max is not None,
            success_criteria=behaviors.status_transitions_validated,
            success_criteria_for_every_job=interim
            and (gates.JobManagedBy or gates.JobPodReplacementPolicy),
            transitions=transitions,
            interim_condition_before_ending=interim,
            ready_within_active=behaviors.ready_above_active_refused,
            nothing_terminates_at_the_end=behaviors.finished_job_with_terminating_pods_refused,
            suspended_empty_job_ends_without_start=(
                behaviors.suspended_empty_job_ends_without_start
            ),
            resumed_start_accepted=behaviors.resumed_start_time_accepted,
        )
