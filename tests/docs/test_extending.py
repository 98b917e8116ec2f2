"""The example of docs/extending.md: a controller of one's own is judged wherever a trace is."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from tests.support.traces import ROOT, json_lines
from tracekit.answers.findings.divergences import rule_of
from tracekit.base.errors import UsageError
from tracekit.check.diff.cross_key_timing import CrossKeyTiming
from tracekit.check.diff.registry import ACTIONS, Controller, register, unregister
from tracekit.check.replay.feed import COLUMNS
from tracekit.check.verdict import Verdict
from tracekit.cli.import_ import import_
from tracekit.judge import plugins
from tracekit.judge.judged import Asked, Judge, resolve_era
from tracekit.judge.unit_result import Found, decoded, encoded
from tracekit.trace.reading.reader import TraceReader

EXAMPLE = ROOT / "docs" / "examples" / "pod_gc.py"
RECORD = ROOT / "tests" / "data" / "controllers" / "pod-gc"
#: What the recorded control plane ran with.
THRESHOLD = 6


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Controller]:
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    made: Controller = importlib.import_module("pod_gc").controller(THRESHOLD)
    register(made)
    yield made
    unregister(made.name)


def trace_of(folder: Path, spared: str = "") -> Path:
    """The record, a watch and its audit log as one trace, in which nobody deletes the pod `spared`."""
    watch = (row for row in json_lines(RECORD / "watch.jsonl.zst") if not _goes(row, spared))
    audit = (
        entry
        for entry in json_lines(RECORD / "audit.jsonl.zst")
        if not (entry["verb"] == "delete" and entry["objectRef"].get("name") == spared)
    )
    for name, lines in (("watch.jsonl", watch), ("audit.jsonl", audit)):
        (folder / name).write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    words = [str(folder / "watch.jsonl"), "--with", str(folder / "audit.jsonl")]
    words += ["-o", str(folder / "trace"), "--kubernetes-version", "v1.36.3"]
    done = CliRunner().invoke(import_, words)
    assert done.exit_code == 0, done.output
    return folder / "trace"


def _goes(row: dict[str, Any], spared: str) -> bool:
    meta = row["object"].get("metadata", {})
    going = row["type"] == "DELETED" or "deletionTimestamp" in meta
    return row["resource"] == "pods" and meta.get("name") == spared and going


def judge_of(trace: Path) -> Judge:
    reader = TraceReader(trace)
    return Judge(reader, resolve_era(reader, None, None))


def test_its_deletions_are_explained_beside_those_of_the_others(
    collector: Controller, tmp_path: Path
) -> None:
    report = judge_of(trace_of(tmp_path)).report()
    assert [(j.controller, j.subject, j.why) for j in report.divergences] == []
    told = Counter(j.verdict for j in report.judgements if j.controller == collector.name)
    assert told == {Verdict.MATCH: 20}
    assert report.summary()[collector.name]["pod-delete"]["match"] == 20


def deleted(trace: Path, controller: str) -> list[str]:
    """The pods that the collector deleted, in order."""
    judged = judge_of(trace).report(Asked(controllers=(controller,))).judgements
    return [j.subject for j in sorted(judged, key=lambda j: j.time_ns)]


def test_a_pod_that_it_leaves_is_told(collector: Controller, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    spared = deleted(trace_of(tmp_path / "whole"), collector.name)[0]
    report = judge_of(trace_of(tmp_path, spared)).report()
    told = [j for j in report.divergences if j.controller == collector.name]
    assert told
    assert all(spared in j.why for j in told if j.verdict is Verdict.EXTRA)
    assert {j.verdict for j in told} <= {Verdict.EXTRA, Verdict.MISSING}
    assert {rule_of(j).id for j in told} == {"TK199"}


def test_what_its_judges_tell_each_other_can_be_sent(collector: Controller, tmp_path: Path) -> None:
    judge = judge_of(trace_of(tmp_path))._engine
    part = judge._others(CrossKeyTiming())
    for judged in judge._judged_keys(part.passing(judge._reader.groups(COLUMNS))):
        part.job(judged.replay.history)
    sent = encoded(Found([], [], CrossKeyTiming().summary(), part.summary()), [])
    whole = judge._others(CrossKeyTiming())
    whole.merge(decoded(sent)[0].others)
    mine = [j for j in whole.report() if j.controller == collector.name]
    assert mine == [j for j in part.report() if j.controller == collector.name]
    assert len(mine) == 20


def test_a_name_is_given_once(collector: Controller) -> None:
    with pytest.raises(ValueError, match="already"):
        register(collector)
    assert list(ACTIONS) == ["job", "cronjob", "ttl", collector.name]


@pytest.mark.parametrize(("value", "said"), [("json:dumps", "is no"), ("no_such:X", "cannot be")])
def test_a_package_that_brings_no_controller_is_told(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = EntryPoint("mine", value, plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda **_: [entry])
    with pytest.raises(UsageError, match=said):
        plugins.load_plugins.__wrapped__()


def test_a_package_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    entry = EntryPoint("pod-gc", "pod_gc:POD_GC", plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda **_: [entry])
    try:
        assert plugins.load_plugins.__wrapped__() == ("pod_gc",)
        assert ACTIONS["pod-gc"] == ("pod-delete",)
    finally:
        unregister("pod-gc")
