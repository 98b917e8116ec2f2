"""Workloads that no API server would take: refused there, and the run goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.attack.answers import run

SCHEDULE = {"schedule": "* * * * *"}
CRON_JOBS: list[dict[str, Any]] = [
    {}, {"schedule": None}, {"schedule": 5}, {"schedule": True}, {"schedule": []},
    {**SCHEDULE, "jobTemplate": 5}, {**SCHEDULE, "jobTemplate": {"spec": []}},
    {**SCHEDULE, "jobTemplate": {"spec": {"template": "x"}}},
    {**SCHEDULE, "jobTemplate": {"spec": {"template": {"spec": {"containers": 5}}}}},
    {**SCHEDULE, "jobTemplate": {"spec": {"template": {"metadata": {"labels": 5}}}}},
]  # fmt: skip
PATCHES: list[dict[str, Any]] = [
    {"spec": None}, {"spec": 5}, {"metadata": None}, {"metadata": {"labels": 5}},
    {"spec": {"template": 5, "jobTemplate": 5}}, {"spec": {"schedule": 5, "selector": 5}},
]  # fmt: skip


def simulated(place: Path, workload: dict[str, Any]) -> str:
    (place / "workload.json").write_text(json.dumps({"duration": "2m", **workload}))
    words = ("--workload", str(place / "workload.json"), "-o", str(place / "trace"))
    code, _, said = run("simulate", *words)
    assert (code, "fault of tracekit" in said) == (0, False), said
    return said


@pytest.mark.parametrize("spec", CRON_JOBS)
def test_a_cron_job_that_is_none_is_refused(tmp_path: Path, spec: dict[str, Any]) -> None:
    """One without its schedule was a fault of tracekit's own."""
    said = simulated(tmp_path, {"cronJobs": [{"name": "r", "namespace": "s", "spec": spec}]})
    assert 'cronjobs.batch "r" is invalid: spec.' in said


@pytest.mark.parametrize("template", [None, {"spec": None}, {"metadata": {"labels": None}}])
def test_a_null_is_no_field(tmp_path: Path, template: object) -> None:
    spec = {"template": template}
    said = simulated(tmp_path, {"jobs": [{"name": "a", "namespace": "s", "spec": spec}]})
    assert "refused" not in said


@pytest.mark.parametrize("target", ["jobs/s/a", "cronjobs/s/r"])
@pytest.mark.parametrize("patch", PATCHES)
def test_a_patch_that_leaves_no_object_is_refused(
    tmp_path: Path, target: str, patch: dict[str, Any]
) -> None:
    said = simulated(
        tmp_path,
        {
            "jobs": [{"name": "a", "namespace": "s", "spec": {}}],
            "cronJobs": [{"name": "r", "namespace": "s", "spec": SCHEDULE}],
            "actions": [{"at": "4s", "target": target, "patch": patch}],
        },
    )
    assert "is invalid: " in said


def test_a_name_of_a_workload_is_no_command_to_a_terminal(tmp_path: Path) -> None:
    name = "a\x1b[31m\x9b\u2028\u202e\n::error::x"
    said = simulated(tmp_path, {"cronJobs": [{"name": name, "namespace": "s", "spec": {}}]})
    assert r"a\x1b[31m\x9b\u2028\u202e\n\x3a:error::x" in said
    assert not {"\x1b", "\x9b", "\u2028", "\u202e"} & set(said)


def test_the_name_of_what_was_written_is_none_either(tmp_path: Path) -> None:
    simulated(tmp_path, {"jobs": [{"name": "a", "namespace": "s", "spec": {}}]})
    copy = str(tmp_path / "copy\x9b\u2028")
    code, _, said = run("redact", str(tmp_path / "trace"), "-o", copy)
    assert (code, r"copy\x9b\u2028: " in said) == (0, True), said
