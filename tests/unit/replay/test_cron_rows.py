"""The rows of an imported trace give the verdicts of the watch log that it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cron_logs import era_of, judge, log
from tests.support.traces import TRACES, import_log
from tracekit.judging.cron_rows import cron_rows
from tracekit.replay.cron_runner import CronRunner
from tracekit.replay.observed_cronjob import judge_cron_jobs


@pytest.mark.parametrize("name", ["v1.17.17-all", "v1.30.14-all", "v1.36.3-restart"])
def test_a_trace_gives_the_same_verdicts_as_its_log(name: str, tmp_path: Path) -> None:
    reader = import_log(TRACES / name / "watch.jsonl.zst", tmp_path / "trace", name)
    rows, run_context = cron_rows(reader)
    era = era_of(name)
    judged = judge_cron_jobs(rows, CronRunner(era), run_context)
    assert judged == [j for j in judge(name, log(name)) if j.controller == "cronjob"]
    assert judged
