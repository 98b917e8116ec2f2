"""Version and gates of the shipped traces, found from nothing but their objects."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from tests.lies import plant
from tests.support.traces import ALL, TRACES, about, import_log, json_lines
from tracekit.check.verdict import Reason, Verdict
from tracekit.judge import detected
from tracekit.judge.detected import detected_gates, detected_version
from tracekit.judge.judged import Judge, resolve_era
from tracekit.judge.verdict_cache import verdicts_key
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
    log = TRACES / name / "watch.jsonl.zst"
    return name, without_version(log, tmp_path_factory.mktemp("nameless") / name, name)


def without_version(log: Path, target: Path, name: str) -> TraceReader:
    """A log of a shipped trace, imported by somebody who does not know its version and gates."""
    header = import_log(log, target, name).header
    write_header(target, replace(header, kubernetes_version=None, feature_gates={}))
    reader = TraceReader(target)
    assert (reader.header.kubernetes_version, reader.header.feature_gates) == (None, {})
    return reader


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


@pytest.mark.full
def test_no_real_record_diverges_whose_version_nobody_says(
    nameless: tuple[str, TraceReader],
) -> None:
    _, reader = nameless
    assert Judge(reader, resolve_era(reader, None, None)).tally().divergences == []


#: Of each what the rules of the newest version that it fits are contradicted by.
_HANGING: dict[str, tuple[str, Counter[tuple[str, str]]]] = {
    "v1.36.3-conflicts": ("v1.36", Counter({("cronjob", "job-create"): 2})),
    "v1.32.2-twins": (
        "v1.32.",
        Counter(
            {
                ("job", "finalizer-removal"): 4,
                ("job", "status-update"): 3,
                ("job", "event"): 1,
            }
        ),
    ),
}


@pytest.mark.parametrize("name", _HANGING)
def test_what_hangs_on_the_version_is_unknowable(name: str, tmp_path: Path) -> None:
    """By all ways to ask, and by the version that it is of nothing is."""
    reader = without_version(TRACES / name / "watch.jsonl.zst", tmp_path / "trace", name)
    other, actions = _HANGING[name]
    era = resolve_era(reader, None, None)
    asked = [
        Judge(reader, era).report(),
        Judge(reader, era, kept_as=verdicts_key(reader.snapshot)).report(),
    ]
    for report in asked:
        told = [j for j in report.judgements if j.reason is Reason.VERSION_UNSAID]
        assert Counter((j.controller, j.action) for j in told) == actions
        assert all(f"its version, and {other}" in j.why for j in told)
        assert report.divergences == []
    counted = Judge(reader, era).tally()
    assert counted.divergences == []
    unknowable = Verdict.UNKNOWABLE
    assert counted.how_many(unknowable) == asked[0].how_many(unknowable)
    assert counted.actions == asked[0].actions
    named = Judge(reader, resolve_era(reader, about(name)["gitVersion"], None)).report()
    assert not any(j.reason is Reason.VERSION_UNSAID for j in named.judgements)


@pytest.mark.parametrize("kind", ["status-ready-high", "cron-body-label"])
def test_a_lie_is_one_by_all_versions_that_fit(kind: str, tmp_path: Path) -> None:
    name = "v1.36.3-conflicts" if kind.startswith("cron") else "v1.36.3-twins"
    rows = list(json_lines(TRACES / name / "watch.jsonl.zst"))
    planted = plant(kind, rows, random.Random(3))
    assert planted is not None
    log = tmp_path / "watch.jsonl"
    log.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in planted[0]))
    reader = without_version(log, tmp_path / "trace", name)
    report = Judge(reader, resolve_era(reader, None, None)).report()
    assert report.divergences


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
