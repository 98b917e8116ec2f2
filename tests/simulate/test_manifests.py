"""Plain manifests are a workload: what they say is run, the rest is chosen and said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from tracekit.base.errors import UsageError
from tracekit.cli.simulate import simulate_command
from tracekit.model.simulate.manifests import manifests_of
from tracekit.trace.reading.reader import TraceReader

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"generateName": "load-", "labels": {"job-name": "x", "app": "y"}},
    "spec": {
        "selector": {"matchLabels": {"controller-uid": "1"}},
        "template": {"metadata": {"labels": {"controller-uid": "1", "a": "b"}}},
        "ttlSecondsAfterFinished": 60,
    },
    "status": {"succeeded": 1},
}
CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "nightly", "namespace": "shop"},
    "spec": {"schedule": "30 2 * * *", "jobTemplate": {"spec": {}}},
}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


def test_a_cronjob_runs_from_a_minute_before_it_is_due(tmp_path: Path) -> None:
    path, out = tmp_path / "cronjob.yaml", tmp_path / "trace"
    path.write_text("# nightly\n" + yaml.safe_dump_all([CONFIG, CRON_JOB]))
    args = ["--workload", str(path), "-o", str(out)]
    result = CliRunner().invoke(simulate_command, args, standalone_mode=False)
    assert result.exception is None
    assert "has manifests" in result.output
    assert "1 object of other kinds left out" in result.output
    rows = TraceReader(out).table(("name",), streams=["jobs"], types=["ADDED"]).to_pylist()
    assert [row["name"] for row in rows] == ["nightly-29453910"]  # 2026-01-01T02:30Z, in minutes


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("layout", ["documents", "list", "typed list", "json"])
def test_every_layout_is_the_same_workload(layout: str, encoding: str) -> None:
    objects = [JOB, CRON_JOB, CONFIG]
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    text = {
        "documents": yaml.safe_dump_all(objects),
        "list": yaml.safe_dump(listed),
        "json": json.dumps(listed, indent=2),
        "typed list": yaml.safe_dump_all(
            [
                {"apiVersion": "batch/v1", "kind": f"{obj['kind']}List", "items": [obj]}
                for obj in (JOB, CRON_JOB)
            ]
            + [CONFIG]
        ),
    }[layout]
    found = manifests_of(text.encode(encoding), "x")
    assert found is not None
    (job,), (cron_job,) = found.workload.jobs, found.workload.cron_jobs
    assert (job.name, job.namespace, job.labels) == ("load-00000", "default", {"app": "y"})
    assert job.spec == {
        "template": {"metadata": {"labels": {"a": "b"}}}, "ttlSecondsAfterFinished": 60,
    }  # fmt: skip
    assert (cron_job.name, cron_job.namespace) == ("nightly", "shop")
    assert found.workload.start == "2026-01-01T02:29:00Z"
    assert found.workload.duration == 60 + 60 + 300


def test_what_is_due_often_is_due_three_times() -> None:
    often = {**CRON_JOB, "spec": {"schedule": "*/10 * * * *"}}
    found = manifests_of(yaml.safe_dump_all([often, CRON_JOB]).encode(), "x")
    assert found is not None
    assert found.workload.start == "2026-01-01T00:09:00Z"
    assert found.workload.duration == (2 * 60 + 21) * 60 + 300


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (CONFIG, "neither a Job nor a CronJob, but ConfigMap"),
        ({**CRON_JOB, "spec": {"schedule": "61 * * * *"}}, "cannot read the schedule '61"),
        ({**CRON_JOB, "spec": {"schedule": "* * * * *", "timeZone": "No/Where"}}, "No/Where"),
    ],
)
def test_what_cannot_be_run_is_said(document: dict, why: str) -> None:
    with pytest.raises(UsageError, match=why.replace("*", r"\*")):
        manifests_of(yaml.safe_dump(document).encode(), "x")


@pytest.mark.parametrize("content", [b"duration: 3\njobs: []\n", b"", b"- a\n", b"{}", b"kind: 3"])
def test_a_workload_file_is_none(content: bytes) -> None:
    assert manifests_of(content, "x") is None
