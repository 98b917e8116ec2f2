"""Version and gates of the shipped traces, found from nothing but their objects."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.traces import ALL, TRACES, about
from tracekit.cli.import_ import import_
from tracekit.eras.version import KubeVersion
from tracekit.judging.detected import detected_gates, detected_version
from tracekit.judging.judged import resolve_era
from tracekit.trace.reading.reader import TraceReader


@pytest.fixture(scope="module", params=ALL)
def nameless(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, TraceReader]:
    """A shipped trace without its version and gates."""
    name: str = request.param
    target: Path = tmp_path_factory.mktemp("nameless") / name
    log = str(TRACES / name / "watch.jsonl.zst")
    result = CliRunner().invoke(import_, ["watch", log, "-o", str(target)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return name, TraceReader(target)


def test_the_range_holds_the_version_that_was_recorded(nameless: tuple[str, TraceReader]) -> None:
    name, reader = nameless
    found = detected_version(reader)
    recorded = KubeVersion.parse(about(name)["gitVersion"])
    assert found.whatever_gates[0] <= recorded <= found.whatever_gates[1], found.describe()
    assert found.evidence
    assert not found.contradictions


def test_gates_that_were_set_are_shown_and_no_others(nameless: tuple[str, TraceReader]) -> None:
    name, reader = nameless
    era = resolve_era(reader, about(name)["gitVersion"], None)
    assert not detected_gates(reader, era)
    text: str = about(name)["feature_gates"]
    if "JobTrackingWithFinalizers=true" in text:
        assert era.gates.JobTrackingWithFinalizers
    if not text:
        assert "feature gates" not in " ".join(era.warnings)


def test_replay_says_what_it_took_from_the_objects(nameless: tuple[str, TraceReader]) -> None:
    _, reader = nameless
    era = resolve_era(reader, None, None)
    assert "does not say which Kubernetes version" in " ".join(era.warnings)
    assert era.version == detected_version(reader).best
