"""What the queue holds of a key from before the record began: it survives the object it was for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.erasures import late_start
from tests.support.simulated_rows import report_of, rows_of
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.check.verdict import Judgement

VERSION = "v1.22.2"
#: They show that the process had the time.
MANY = {
    "name": "many",
    "namespace": "shop",
    "count": 170,
    "every": "1s",
    "spec": {"completions": 1},
}


def judged_from(place: Path, workload: dict[str, Any], at_s: float) -> list[Judgement]:
    """What is said of a recorder's trace that began so long after the workload."""
    rows = rows_of(place, workload, VERSION)
    cut = late_start(rows, rows[0]["recv"] + int(at_s * NS_PER_S))
    return report_of(place / "cut", cut, VERSION).judgements


@pytest.mark.parametrize("at_s", [10, 30, 47])
def test_the_timer_of_a_cron_job_that_was_made_anew(at_s: float, tmp_path: Path) -> None:
    """`@every 40s` counts from each look: 25 s after its time the Job is not late."""
    again = {"name": "again", "namespace": "shop", "pods": {"run": "1s"}}
    again["spec"] = {"schedule": "@every 40s", "concurrencyPolicy": "Forbid"}
    workload = {
        "duration": "3m",
        "cronJobs": [again, {**again, "at": 56}],
        "jobs": [MANY],
        "actions": [{"at": 52, "target": "cronjobs/shop/again", "delete": True}],
    }
    judged = judged_from(tmp_path, workload, at_s)
    starts = [j.subject for j in judged if j.action == "job-create" and j.object.name == "again"]
    assert starts[-2:] == ["again-29453761", "again-29453762"]
    assert [(j.action, j.verdict, j.why) for j in judged if j.divergent] == []


@pytest.mark.parametrize("at_s", [5.9, 6.005, 6.02])
def test_the_retry_of_a_job_that_was_made_anew(at_s: float, tmp_path: Path) -> None:
    """Its pods fail; that it came before its own back-off, by another's retry, is not decidable."""
    fails = {
        "name": "fails",
        "namespace": "shop",
        "spec": {"completions": 6, "parallelism": 1, "backoffLimit": 6},
        "pods": {"run": "500ms", "failFirst": 3},
    }
    workload = {
        "duration": "60s",
        "jobs": [fails, {**fails, "at": 6}, {**MANY, "count": 50}],
        "actions": [{"at": 4, "target": "jobs/shop/fails", "delete": True}],
    }
    judged = judged_from(tmp_path, workload, at_s)
    assert [(j.action, j.verdict, j.why) for j in judged if j.divergent] == []
    third = [j for j in judged if j.action == "pod-create" and j.object.name == "fails"][-7]
    assert third.ambiguous
    assert "of another Job of its name" in third.why
