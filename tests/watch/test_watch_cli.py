"""`tracekit watch`: what it prints, how it exits, what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner
from prometheus_client import generate_latest
from prometheus_client.core import CollectorRegistry

from tests.support.traces import TRACES, import_log
from tests.watch.test_live import lied, lied_by
from tracekit.answers.findings.divergences import rule_of
from tracekit.answers.judgements import Listed
from tracekit.answers.model import Severity
from tracekit.answers.trace_model import Facts
from tracekit.base.errors import TracekitError
from tracekit.cli.main import cli
from tracekit.judge.judged import Judge, resolve_era
from tracekit.judge.rolling import SETTLED_NS, RollingJudge
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session
from tracekit.trace.format.schema import NAMES
from tracekit.trace.writing.copying import copy_row, rows_of
from tracekit.trace.writing.writer import TraceWriter
from tracekit.watch.follow import Follower
from tracekit.watch.live import LiveJudge
from tracekit.watch.metrics import WatchCollector


def invoke(*words: str) -> Any:
    return CliRunner().invoke(cli, ["watch", *words], catch_exceptions=False, standalone_mode=False)


def test_a_record_is_told_line_by_line() -> None:
    result = invoke(str(lied().path), "--once", "-o", "jsonl", "--fail-on", "error")
    assert result.return_value == 1
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert {"TK126", "TK136"} <= {one["id"] for one in told}
    assert all(one["schema_version"] == 1 for one in told)


@pytest.mark.parametrize("ahead_s", [-0.3, 5])
def test_it_says_what_replay_says_whatever_the_recorders_clock_showed(ahead_s: float) -> None:
    trace = str(lied_by(ahead_s).path)
    told = map(json.loads, invoke(trace, "--once", "-o", "jsonl").stdout.splitlines())
    words = ["replay", trace, "--diff", "-o", "json"]
    document = json.loads(CliRunner().invoke(cli, words, standalone_mode=False).stdout)
    wanted = sorted(
        (
            said["object"]["name"],
            said["time"],
            f"{said['subject']}, resourceVersion {said['resource_version']}: {said['why']}",
        )
        for said in document["divergences"]
    )
    assert wanted
    assert wanted == sorted(
        (one["object"]["name"], one["time"], one["why"]) for one in told if one["id"] < "TK2"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--webhook", "nowhere"], "begins with http"),
        (["--metrics-port", "99999999"], "--metrics-port"),
        (["--poll", "soon"], "soon"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], says: str) -> None:
    with pytest.raises((TracekitError, click.ClickException), match=says):
        invoke(str(lied().path), "--once", *words)


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match="is not a trace"):
        invoke(str(tmp_path))


def test_metrics_say_what_was_told() -> None:
    reader = lied()
    live = LiveJudge(reader.header, resolve_era(reader, None, None))
    live.feed(reader.table(NAMES))
    live.judge(last=True)
    registry = CollectorRegistry()
    registry.register(WatchCollector(live, None))
    text = generate_latest(registry).decode()
    assert (
        'tracekit_divergences_total{action="status-update",controller="job",verdict="different"} 1.0'
        in text
    )
    assert 'tracekit_findings_total{id="TK126"} 1.0' in text
    for name in ("missed_runs_total", "backlog_jobs", "oldest_stuck_job_seconds"):
        assert f"\ntracekit_{name} " in text


class Rotating(Follower):
    """Follows a folder whose recorder begins another trace when all of the first is handed out."""

    def poll(self) -> pa.Table | None:
        rows = super().poll()
        if rows is None and not self.rotated_to.exists():
            with TraceWriter(self.rotated_to, lied().header) as writer:
                writer.append("jobs", "LIST_BEGIN", 2**61, {})
        return rows

    @property
    def rotated_to(self) -> Path:
        return self.trace.parent / "20990101T000000Z"


def test_a_rotation_takes_nothing_of_what_was_not_certain_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = lied()
    whole = Judge(reader, resolve_era(reader, None, None)).report().divergences
    at_ns = next(j.time_ns for j in whole if rule_of(j).id == "TK126")
    first = tmp_path / "20260101T000000Z"
    with TraceWriter(first, reader.header) as writer:
        for row in rows_of(reader):
            if row["recv_ns"] <= at_ns + SETTLED_NS // 2:
                copy_row(writer, row)
    told_at_the_end = invoke(str(first), "--once", "-o", "jsonl").stdout
    assert "TK126" in told_at_the_end
    monkeypatch.setattr("tracekit.cli.watch.Follower", Rotating)
    result = invoke(str(tmp_path), "--once", "-o", "jsonl")
    told, wanted = (
        [(one["id"], one["object"], one["time_ns"]) for one in map(json.loads, text.splitlines())]
        for text in (result.stdout, told_at_the_end)
    )
    # The second trace has nothing yet, which is told of it alone.
    assert [one for one in told if one[0] != "TK903"] == wanted


@pytest.mark.parametrize("name", ["v1.37.1-all", "v1.36.3-troubles"])
def test_once_tells_all_that_diagnose_warns_of(name: str, tmp_path: Path) -> None:
    """Most of its Jobs were over, and forgotten by a judge that lives beside them, long before."""
    path = import_log(TRACES / name / "watch.jsonl.zst", tmp_path / "trace", name).path
    session = Session([path])
    wanted = {
        (finding.id, target.kind, target.namespace, target.name)
        for finding in findings_of(session)
        for target in finding.objects
        if finding.severity is not Severity.INFO
    }
    session.close()
    told = [
        json.loads(line) for line in invoke(str(path), "--once", "-o", "jsonl").stdout.splitlines()
    ]
    keys = [(one["id"], *(one["object"][n] for n in ("kind", "namespace", "name"))) for one in told]
    assert set(keys) == wanted
    assert len(keys) == len(wanted)
    assert len({key for key in keys if key[0].startswith("TK4")}) > 20


def _not_judged(session: Session) -> Facts:
    return replace(facts_from(session), judgements=Listed(), not_judged="it cannot be")


def test_once_takes_in_no_row_of_what_is_judged_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else each row would be judged beside those verdicts, for nothing."""
    taken: list[int] = []
    feed = RollingJudge.feed
    monkeypatch.setattr(
        RollingJudge, "feed", lambda judge, rows: (taken.append(rows.num_rows), feed(judge, rows))
    )
    trace = str(lied().path)
    told = invoke(trace, "--once", "-o", "jsonl").stdout
    assert "TK126" in told
    assert not taken
    monkeypatch.setattr("tracekit.cli.watch.facts_from", _not_judged)
    beside = invoke(trace, "--once", "-o", "jsonl").stdout
    assert sum(taken) == lied().rows
    assert "TK126" in beside
