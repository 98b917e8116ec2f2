"""For which time a CronJob's Job was started: what is no tick has none."""

from __future__ import annotations

import json

import pytest

from tracekit.answers.findings.cronjobs import INSTANTIATED, SCHEDULED_AT, scheduled_ns
from tracekit.answers.trace_model import COLUMNS, Job, State

S = 10**9
AT = 1_795_311_960 * S


def job(name: str, cronjob: str | None = "report", **annotations: str) -> Job:
    row = dict.fromkeys(COLUMNS) | {
        "name": name,
        "cronjob": cronjob,
        "annotations": json.dumps(annotations),
    }
    return Job([State(row)])


@pytest.mark.parametrize(
    ("found", "at_ns"),
    [
        (job("report-29921866"), AT),
        (job("report-1795311960"), AT),  # the polling controller
        (job("renamed", **{SCHEDULED_AT: "2026-11-22T01:46:00Z"}), AT),
        (job("report-29921866", **{INSTANTIATED: "manual"}), None),
        (job("report-manual-42"), None),  # 42 minutes after 1970
        (job("report-42"), None),
        (job("other-29921866"), None),
        (job("report"), None),
    ],
)
def test_the_time_that_a_job_was_started_for(found: Job, at_ns: int | None) -> None:
    assert scheduled_ns(found) == at_ns
