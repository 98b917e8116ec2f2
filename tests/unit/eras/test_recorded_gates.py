"""The gates of a trace beside a version: what agrees is dropped, what contradicts is said."""

import re

import pytest

from tracekit.versions.era import Era
from tracekit.versions.gates import GATES, Gate
from tracekit.versions.recorded_gates import reconcile_gates
from tracekit.versions.version import KubeVersion

V1_36 = KubeVersion.parse("v1.36.3")
V1_30 = KubeVersion.parse("v1.30.14")
MINORS = [KubeVersion(1, minor, 3) for minor in range(11, 38)]


@pytest.mark.parametrize("version", MINORS, ids=str)
def test_the_effective_gates_of_a_version_never_stop_it_nor_change_it(version):
    effective = {gate.value: GATES[gate].default_at(version) for gate in Gate}
    brought = reconcile_gates(effective, version, recorded_at=version)
    assert brought.warnings == ()
    assert Era.resolve(version, brought.settings) == Era.resolve(version)


@pytest.mark.parametrize("version", MINORS, ids=str)
def test_nor_do_gates_set_the_other_way(version):
    """Each gate turned over is either a setting that the version takes or one warning."""
    turned = {gate.value: not GATES[gate].default_at(version) for gate in Gate}
    brought = reconcile_gates(turned, version, recorded_at=version)
    era = Era.resolve(version, brought.settings)
    settable = {gate.value for gate in Gate if GATES[gate].is_settable(version)}
    assert set(brought.settings) == settable
    assert len(brought.warnings) == len(Gate) - len(settable)
    assert all(era.enabled(Gate[name]) is on for name, on in brought.settings.items())


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        ({"JobTrackingWithFinalizers": False}, "is off.*it was removed in v1.29, so on"),
        ({"JobManagedBy": False}, "is off.*it is locked, so on"),
    ],
)
def test_a_contradiction_says_what_holds(gates, said):
    brought = reconcile_gates(gates, V1_36, recorded_at=V1_36)
    assert brought.settings == {}
    [warning] = brought.warnings
    assert re.search(said, warning)
    assert warning.endswith(".")


def test_a_gate_that_came_later_cannot_be_on():
    [warning] = reconcile_gates({"WorkloadWithJob": True}, V1_30).warnings
    assert "it came with v1.36, so off" in warning


def test_as_another_version_only_what_somebody_set_counts():
    """JobManagedBy is on by default in 1.34, so recorded as on: 1.30 has it off all the same."""
    recorded = {"JobManagedBy": True, "PodIndexLabel": False, "JobReadyPods": True}
    brought = reconcile_gates(recorded, V1_30, recorded_at=KubeVersion.parse("v1.31.0"))
    assert brought.settings == {"JobManagedBy": True, "PodIndexLabel": False}
    brought = reconcile_gates(recorded, V1_30, recorded_at=KubeVersion.parse("v1.34.4"))
    assert brought.settings == {"PodIndexLabel": False}


def test_gates_of_other_controllers_are_left_out_and_group_gates_kept():
    gates = {"StatefulSetAutoDeletePVC": True, "AllAlpha": True}
    brought = reconcile_gates(gates, V1_36, recorded_at=V1_36)
    assert brought.settings == {"AllAlpha": True}


GANGS = {"WorkloadWithJob": True, "GenericWorkload": True}


def test_a_gate_that_is_not_ported_is_said():
    [warning] = Era.resolve("v1.36.3", GANGS).warnings
    assert "WorkloadWithJob" in warning
    assert "not ported" in warning
