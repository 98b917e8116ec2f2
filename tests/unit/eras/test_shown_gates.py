"""Gates that objects show to be set other than by default."""

import pytest

from tracekit.versions.detect import Fact
from tracekit.versions.era import Era
from tracekit.versions.inferred_gates import shown_gates
from tracekit.versions.version_markers import Sign


def shown(version, *signs, **gates):
    found = shown_gates([Fact(sign, sign.name) for sign in signs], Era.resolve(version, gates))
    return {gate.gate.value: gate.on for gate in found}


@pytest.mark.parametrize(
    ("version", "signs", "expected"),
    [
        ("1.23.17", [Sign.UNCOUNTED_PODS], {"JobTrackingWithFinalizers": True}),
        ("1.23.17", [Sign.NO_READY], {}),
        ("1.24.17", [Sign.UNTRACKED], {}),
        ("1.25.4", [Sign.UNTRACKED], {"JobTrackingWithFinalizers": False}),
        ("1.24.0", [Sign.NO_READY], {"JobReadyPods": False}),
        ("1.28.15", [Sign.TERMINATING], {"JobPodReplacementPolicy": True}),
        ("1.30.0", [Sign.NO_TERMINATING], {"JobPodReplacementPolicy": False}),
        ("1.21.14", [Sign.SUSPEND, Sign.COMPLETION_MODE], {"IndexedJob": True, "SuspendJob": True}),
        ("1.20.8", [Sign.NAME_IN_MINUTES], {"CronJobControllerV2": True}),
        ("1.21.14", [Sign.NAME_IN_SECONDS], {"CronJobControllerV2": False}),
        ("1.32.0", [Sign.COMPLETE_WITHOUT_REASON], {"JobSuccessPolicy": False}),
        (
            "1.36.3",
            [Sign.SUSPENDED_WITH_START],
            {"MutableSchedulingDirectivesForSuspendedJobs": False},
        ),
    ],
)
def test_a_mark_that_no_default_leaves_shows_the_gate(version, signs, expected):
    assert shown(version, *signs) == expected


def test_a_gate_that_does_not_exist_or_is_locked_is_not_shown():
    assert shown("1.17.17", Sign.NO_READY) == {}
    assert shown("1.29.0", Sign.NO_READY) == {}
    assert shown("1.36.3", Sign.COMPLETE_WITHOUT_REASON) == {}
    assert shown("1.30.0", Sign.SUSPENDED_WITH_START) == {}


def test_marks_of_both_settings_show_nothing():
    assert shown("1.24.0", Sign.READY, Sign.NO_READY) == {}


def test_a_gate_that_is_set_as_shown_is_not_told():
    assert shown("1.23.17", Sign.UNCOUNTED_PODS, JobTrackingWithFinalizers=True) == {}


def test_a_shown_gate_says_where_it_was_seen():
    (gate,) = shown_gates([Fact(Sign.UNCOUNTED_PODS, "Job ns/x")], Era.resolve("1.23.17"))
    assert gate.describe() == (
        "JobTrackingWithFinalizers on (status.uncountedTerminatedPods is written: Job ns/x)"
    )


def test_every_sign_names_a_gate_that_can_be_off_and_on():
    gates = {sign.rule.shows[0] for sign in Sign if sign.rule.shows is not None}
    assert len(gates) > 10
