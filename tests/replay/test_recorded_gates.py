"""A trace that names feature gates, as one recorded with an admin's kubeconfig does, is replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from tests.support.traces import TRACES
from tracekit.base.errors import UnsupportedVersionError
from tracekit.cli import main as entry
from tracekit.trace.format.header import read_header, write_header
from tracekit.versions.gates import GATES, Gate
from tracekit.versions.version import KubeVersion

NAME = "v1.36.3-restart"
#: What /metrics of a real v1.36.3 says of the gates in whose names the recorder sees a Job.
EFFECTIVE = {
    gate.value: GATES[gate].default_at(KubeVersion.parse("v1.36.3"))
    for gate in Gate
    if not GATES[gate].is_removed(KubeVersion.parse("v1.36.3"))
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gates") / "trace"
    log = TRACES / NAME / "watch.jsonl.zst"
    options = ("--kubernetes-version", "v1.36.3")
    done = _run("import", "watch", str(log), "-o", str(path), *options)
    assert done.exception is None
    return path


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(entry.cli, list(arguments), standalone_mode=False)


def _with_gates(trace: Path, gates: dict[str, bool]) -> Path:
    write_header(trace, replace(read_header(trace), feature_gates=gates))
    return trace


def _verdicts(*arguments: str) -> tuple[dict[str, Any], str]:
    done = _run("replay", *arguments, "--diff", "-o", "json")
    assert done.exception is None
    assert done.return_value == 0, done.stdout
    return json.loads(done.stdout), done.stderr


def test_the_gates_that_a_cluster_reports_change_nothing(trace: Path) -> None:
    without, _ = _verdicts(str(_with_gates(trace, {})))
    document, stderr = _verdicts(str(_with_gates(trace, EFFECTIVE)))
    assert document == without
    assert stderr == ""


def test_a_gate_that_contradicts_the_version_is_a_warning(trace: Path) -> None:
    gates = {**EFFECTIVE, "JobBackoffLimitPerIndex": False, "JobReadyPods": False}
    document, stderr = _verdicts(str(_with_gates(trace, gates)))
    assert ["JobBackoffLimitPerIndex" in text for text in document["warnings"]] == [True, False]
    assert [line.removeprefix("tracekit: ") for line in stderr.splitlines()] == document["warnings"]


def test_a_gate_that_is_on_and_not_ported_is_a_warning(trace: Path) -> None:
    gates = {**EFFECTIVE, "GenericWorkload": True, "WorkloadWithJob": True}
    document, _ = _verdicts(str(_with_gates(trace, gates)))
    assert "not ported" in document["warnings"][0]


def test_a_gate_that_is_on_without_the_one_that_it_needs_is_a_warning(trace: Path) -> None:
    gates = {**EFFECTIVE, "GenericWorkload": False, "WorkloadWithJob": True}
    document, _ = _verdicts(str(_with_gates(trace, gates)))
    (warning,) = document["warnings"]
    assert "WorkloadWithJob is on and GenericWorkload, which it needs, off" in warning


def test_a_gate_that_is_typed_and_cannot_be_set_is_an_error(trace: Path) -> None:
    done = _run("replay", str(trace), "--diff", "--feature-gates", "JobReadyPods=false")
    assert isinstance(done.exception, UnsupportedVersionError)
    assert "was removed in v1.31" in str(done.exception)


def test_as_another_version_the_defaults_of_the_recorded_one_do_not_count(trace: Path) -> None:
    """The record has JobManagedBy on, by default; 1.30 has it off by default, too."""
    done = _run(
        *("replay", str(_with_gates(trace, EFFECTIVE)), "--kubernetes-version", "v1.30.14"),
        *("--diff", "-o", "json", "--exit-zero"),
    )
    assert done.exception is None
    assert json.loads(done.stdout)["warnings"] == []


@pytest.mark.parametrize("recorded", ["v1.5.0", "nonsense", "v1.99.0"])
def test_a_recorded_version_that_is_not_known_does_not_stop_a_named_one(
    trace: Path, recorded: str
) -> None:
    header = read_header(_with_gates(trace, EFFECTIVE))
    write_header(trace, replace(header, kubernetes_version=recorded))
    document, _ = _verdicts(str(trace), "--kubernetes-version", "v1.36.3")
    assert document["divergences"] == []
