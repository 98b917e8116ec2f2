"""What follows for a Job from the rules of a release."""

import pytest

from tests.support.objects import job as job_of
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules


@pytest.mark.parametrize(
    ("version", "by_phase", "holds"),
    [
        ("1.25.4", False, False),
        ("1.26.0", True, False),
        ("1.27.16", True, False),
        ("1.28.0", True, True),
        ("1.36.4", True, True),
    ],
)
def test_what_a_pod_failure_policy_makes_of_terminating_pods(version, by_phase, holds):
    """Without a podReplacementPolicy, which from 1.28 on the defaults give to new Jobs."""
    rules = JobRules.of(
        Era.resolve(version, {"JobPodFailurePolicy": True} if version < "1.26" else {})
    )
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    job = job_of(podFailurePolicy={"rules": [rule]})
    assert rules.awaits_phase(job) is by_phase
    assert rules.only_replaces_failed(job) is holds


def test_in_1_26_disruption_conditions_can_be_off():
    rules = JobRules.of(Era.resolve("1.26.0", {"PodDisruptionConditions": False}))
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    assert not rules.awaits_phase(job_of(podFailurePolicy={"rules": [rule]}))
