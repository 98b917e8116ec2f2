"""The gate table: its own consistency, and defaults that release notes state."""

import pytest

from tracekit.base.errors import UnsupportedVersionError, UsageError
from tracekit.versions.era import Era
from tracekit.versions.gates import GATES, Gate, GateFlags, Stage
from tracekit.versions.recorded_gates import reconcile_gates
from tracekit.versions.texts import parse_feature_gates
from tracekit.versions.version import KubeVersion


def test_every_gate_has_a_history_and_a_flag_of_its_name():
    assert list(GATES) == list(Gate)
    assert [gate.value for gate in Gate] == [gate.name for gate in Gate]
    for gate in Gate:
        assert getattr(GateFlags(frozenset({gate})), gate.name)
        assert not getattr(GateFlags(frozenset()), gate.name)


@pytest.mark.parametrize("gate", list(Gate), ids=lambda gate: gate.value)
def test_a_history_only_moves_forward(gate):
    history = GATES[gate]
    versions = [spec.version for spec in history.specs]
    assert versions == sorted(set(versions), key=lambda v: v.triple)
    stages = [list(Stage).index(spec.stage) for spec in history.specs]
    assert stages == sorted(stages)
    assert all(spec.locked == (spec.stage is Stage.GA) for spec in history.specs)
    assert all(spec.default for spec in history.specs if spec.locked)
    if history.removed is not None:
        assert history.specs[-1].locked
        assert history.removed > history.specs[-1].version


@pytest.mark.parametrize(
    ("version", "gate", "on"),
    [
        ("1.20.15", Gate.TTLAfterFinished, False),
        ("1.21.0", Gate.TTLAfterFinished, True),
        ("1.30.0", Gate.TTLAfterFinished, True),
        ("1.20.0", Gate.CronJobControllerV2, False),
        ("1.21.14", Gate.CronJobControllerV2, True),
        ("1.21.14", Gate.IndexedJob, False),
        ("1.22.0", Gate.SuspendJob, True),
        ("1.22.17", Gate.JobTrackingWithFinalizers, False),
        ("1.23.0", Gate.JobTrackingWithFinalizers, True),
        ("1.23.17", Gate.JobTrackingWithFinalizers, False),
        ("1.24.0", Gate.JobTrackingWithFinalizers, False),
        ("1.25.0", Gate.JobTrackingWithFinalizers, True),
        ("1.36.0", Gate.JobTrackingWithFinalizers, True),
        ("1.28.15", Gate.JobPodReplacementPolicy, False),
        ("1.29.0", Gate.JobPodReplacementPolicy, True),
        ("1.28.15", Gate.PodIndexLabel, True),
        ("1.30.14", Gate.JobSuccessPolicy, False),
        ("1.31.0", Gate.JobManagedBy, False),
        ("1.32.0", Gate.JobManagedBy, True),
        ("1.35.4", Gate.MutableSchedulingDirectivesForSuspendedJobs, False),
        ("1.36.0", Gate.StaleControllerConsistencyJob, True),
        ("1.36.0", Gate.WorkloadWithJob, False),
    ],
)
def test_defaults_are_those_of_the_release(version, gate, on):
    era = Era.resolve(version)
    assert era.enabled(gate) is on
    assert getattr(era.gates, gate.name) is on


def test_a_setting_moves_an_unlocked_gate():
    era = Era.resolve("v1.23.17", {"JobTrackingWithFinalizers": True})
    assert era.gates.JobTrackingWithFinalizers


def test_setting_a_locked_gate_to_its_default_is_allowed():
    assert Era.resolve("1.26.0", {"JobTrackingWithFinalizers": True}).gates.IndexedJob


@pytest.mark.parametrize(
    ("version", "overrides", "sentence"),
    [
        ("1.26.0", {"JobTrackingWithFinalizers": False}, "is locked on"),
        ("1.30.0", {"JobTrackingWithFinalizers": True}, "was removed in v1.29"),
        ("1.37.1", {"JobSuccessPolicy": True}, "was removed in v1.37"),
        ("1.20.0", {"IndexedJob": True}, "came with v1.21"),
        ("1.30.0", {"JobReadyPod": True}, "did you mean JobReadyPods"),
        ("1.36.3", {"WorkloadWithJob": True}, "needs GenericWorkload, which is off"),
        ("1.37.1", {"AtomicFIFO": False}, "StaleControllerConsistencyJob is on and needs"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_a_sentence(version, overrides, sentence):
    with pytest.raises(UnsupportedVersionError, match=sentence) as raised:
        Era.resolve(version, overrides)
    assert str(raised.value).endswith((".", "lists those that are", "?"))


def test_the_gates_of_a_managers_other_controllers_are_taken_and_named_once():
    flags = {"GangScheduling": True, "GenericWorkload": True, "StaleControllerConsistencyHPA": True}
    era = Era.resolve("1.37.1", flags)
    assert era.enabled_gates - Era.resolve("1.37.1").enabled_gates == {Gate.GenericWorkload}
    assert [w for w in era.warnings if "GangScheduling, StaleControllerConsistencyHPA" in w]
    assert Era.resolve("1.36.3", {"GenericWorkload": True, "WorkloadWithJob": True}).enabled(
        Gate.WorkloadWithJob
    )


@pytest.mark.parametrize("gates", [{"WorkloadWithJob": True}, {"AtomicFIFO": False}])
def test_a_control_plane_that_ran_had_what_its_gates_need(gates):
    version = KubeVersion.parse("1.36.3")
    era = Era.resolve(version, reconcile_gates(gates, version).settings)
    assert all(era.enabled(Gate[name]) is on for name, on in gates.items())


def test_all_alpha_and_all_beta_move_what_is_not_set_by_name():
    era = Era.resolve("1.28.15", {"AllAlpha": True, "JobBackoffLimitPerIndex": False})
    assert era.gates.JobPodReplacementPolicy
    assert not era.gates.JobBackoffLimitPerIndex
    assert not Era.resolve("1.28.15", {"AllBeta": False}).gates.PodIndexLabel
    assert Era.resolve("1.28.15", {"AllBeta": False}).gates.JobTrackingWithFinalizers


def test_emulation_takes_the_gates_of_the_old_version_and_the_rest_of_the_new_one():
    era = Era.resolve("1.33.0", emulation_version="1.30")
    assert not era.gates.JobSuccessPolicy
    assert era.behaviors.terminal_condition_waits_for_terminating_pods
    assert Era.resolve("1.33.0").gates.JobSuccessPolicy


def test_a_newer_version_cannot_be_emulated():
    with pytest.raises(UnsupportedVersionError, match="cannot emulate"):
        Era.resolve("1.31.0", emulation_version="1.32")


def test_gate_settings_are_read_as_the_controller_manager_reads_them():
    assert parse_feature_gates("A=true, B=F,,C=1") == {"A": True, "B": False, "C": True}
    for text in ("A=yes", "A", "=true", "A=tRUE"):
        with pytest.raises(UsageError, match="Gate=true"):
            parse_feature_gates(text)


def test_a_name_that_is_none_is_no_flag():
    era = Era.resolve("1.36.3")
    with pytest.raises(AttributeError, match="no feature gate JobReadyPod"):
        _ = era.gates.JobReadyPod
    with pytest.raises(AttributeError, match="no behavior completed_events"):
        _ = era.behaviors.completed_events
