"""`tracekit watch`: what it prints, how it exits, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from prometheus_client import generate_latest
from prometheus_client.core import CollectorRegistry

from tests.watch.test_live import lied
from tracekit.cli.main import cli
from tracekit.errors import TracekitError
from tracekit.judging.judged import resolve_era
from tracekit.trace.format.schema import NAMES
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
    for name in ("missed_ticks_total", "backlog_jobs", "oldest_stuck_job_seconds"):
        assert f"\ntracekit_{name} " in text
