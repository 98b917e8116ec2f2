"""Version and gates of the shipped traces, found from nothing but their objects."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.lies import plant
from tests.support.traces import ALL, TRACES, about, import_log, json_lines
from tracekit.check.verdict import Reason
from tracekit.judge import detected
from tracekit.judge.detected import detected_gates, detected_version
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.format.header import write_header
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter
from tracekit.versions.version import KubeVersion


@pytest.fixture(scope="module", params=ALL)
def nameless(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, TraceReader]:
    """A shipped trace without its version and gates."""
    name: str = request.param
    target: Path = tmp_path_factory.mktemp("nameless") / name
    header = import_log(TRACES / name / "watch.jsonl.zst", target, name).header
    write_header(target, replace(header, kubernetes_version=None, feature_gates={}))
    reader = TraceReader(target)
    assert (reader.header.kubernetes_version, reader.header.feature_gates) == (None, {})
    return name, reader


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


def test_what_hangs_on_the_version_is_unknowable_and_no_divergence(
    nameless: tuple[str, TraceReader],
) -> None:
    name, reader = nameless
    found = Judge(reader, resolve_era(reader, None, None)).report()
    assert not found.divergences
    if name == "v1.36.3-conflicts":  # by 1.37 two CronJobs are started late
        hanging = [j for j in found.judgements if j.reason is Reason.VERSION]
        assert len(hanging) == 2
        assert all("by the rules of v1.36" in j.why for j in hanging)


@pytest.mark.parametrize("lie", ["pod-extra-silent", "cron-early", "status-failed-high-once"])
def test_a_lie_by_the_rules_of_each_version_stays_one(lie: str, tmp_path: Path) -> None:
    name = "v1.36.3-all"
    rows = list(json_lines(TRACES / name / "watch.jsonl.zst"))
    lied = plant(lie, rows, random.Random(1))
    assert lied is not None
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in lied[0]))
    target = tmp_path / "trace"
    header = import_log(log, target, name).header
    write_header(target, replace(header, kubernetes_version=None, feature_gates={}))
    reader = TraceReader(target)
    era = resolve_era(reader, None, None)
    assert era.others
    assert Judge(reader, era).report().divergences


def test_replay_says_what_it_took_from_the_objects(nameless: tuple[str, TraceReader]) -> None:
    _, reader = nameless
    era = resolve_era(reader, None, None)
    assert "does not say which Kubernetes version" in " ".join(era.warnings)
    assert era.version == detected_version(reader).best


def test_the_objects_of_a_trace_are_read_once_as_long_as_there_are_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    facts = detected._facts

    def noted(reader: TraceReader, *rest: Any) -> Any:
        read.append(reader.path)
        return facts(reader, *rest)

    monkeypatch.setattr(detected, "_facts", noted)
    path, header = tmp_path / "trace", TraceHeader(kubernetes_version="v1.36.3")
    for version in ("v1.36.3", "v1.24.17"):
        jobs = [
            line["object"]
            for line in json_lines(TRACES / f"{version}-all" / "watch.jsonl.zst")
            if (line["resource"], line["type"]) == ("jobs", "MODIFIED")
        ]
        with TraceWriter(path, header, append=path.exists()) as writer:
            for job in jobs:
                writer.append("jobs", "MODIFIED", 1, job)
        era = resolve_era(TraceReader(path), None, None)
        assert resolve_era(TraceReader(path), None, None) == era
        assert resolve_era(TraceReader(path), "v1.30.1", None) != era
    assert len(read) == 2
