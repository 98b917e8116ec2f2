"""TK454: what a namespace's quota has left, and what is said of a Job that finds no room in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.findings.situations import container, job, pod
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture
from tracekit.answers.quotas import no_room, quota_of
from tracekit.base.kube.stored import object_of

AT = "2026-05-04T10:00:00Z"
LIMITED = {"resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}


def status(hard: dict[str, str], used: dict[str, str]) -> dict[str, Any]:
    return {"hard": hard, "used": used}


CASES = {
    # hard and used, containers -> the resource that is full
    "a pod too many": ({"pods": "10"}, {"pods": "10"}, [{}], "pods"),
    "one is left": ({"pods": "10"}, {"pods": "9"}, [{}], None),
    "not asked for": ({"limits.cpu": "1"}, {"limits.cpu": "1"}, [{}], None),
    "less than it asks for": (
        {"limits.cpu": "2"},
        {"limits.cpu": "1600m"},
        [LIMITED],
        "limits.cpu",
    ),
    "just as much": ({"limits.cpu": "2"}, {"limits.cpu": "1500m"}, [LIMITED], None),
    "of two containers": ({"memory": "4Gi"}, {"memory": "2049Mi"}, [LIMITED, LIMITED], "memory"),
    "a limit is a request": (
        {"requests.cpu": "1"},
        {"requests.cpu": "1"},
        [LIMITED],
        "requests.cpu",
    ),
    "an amount that is none": ({"pods": "many"}, {"pods": "10"}, [{}], None),
    "not counted yet": ({"pods": "10"}, {}, [{}], None),
}


@pytest.mark.parametrize(("hard", "used", "containers", "full"), CASES.values(), ids=CASES.keys())
def test_what_is_left(
    hard: dict[str, str], used: dict[str, str], containers: list[Any], full: str | None
) -> None:
    quota = quota_of("team", {}, status(hard, used))
    assert quota is not None
    found = list(no_room(quota, {"containers": containers}))
    assert [entry[:4] for entry in found] == (
        [] if full is None else [("team", full, used[full], hard[full])]
    )


def test_more_than_a_quota_has_in_all_is_told_apart() -> None:
    small = quota_of("team", {}, status({"pods": "0", "cpu": "2"}, {"pods": "0", "cpu": "1900m"}))
    assert small is not None
    found = {
        entry.resource: entry.never_fits for entry in no_room(small, {"containers": [LIMITED]})
    }
    assert found == {"pods": True, "cpu": False}


def test_a_quota_with_scopes_holds_for_some_pods_only() -> None:
    of_all = status({"pods": "1"}, {"pods": "1"})
    assert quota_of("team", {"scopes": ["BestEffort"]}, of_all) is None
    assert quota_of("team", {"scopeSelector": {"matchExpressions": []}}, of_all) is None


@pytest.mark.parametrize("text", [None, "no JSON", "[1]", '{"hard":3,"used":{}}'])
def test_of_a_column_that_holds_no_status_nothing_is_said(text: str | None) -> None:
    assert quota_of("team", object_of("{"), object_of(text)) is None


def quota(used: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "app", "uid": "q-1", "resourceVersion": "50",
                     "creationTimestamp": "2026-05-04T01:00:00Z"},
        "spec": {"hard": {"pods": "10"}}, "status": status({"pods": "10"}, {"pods": used}),
    }  # fmt: skip


def said(run: Any, tmp_path: Path, *objects: dict[str, Any]) -> str:  # noqa: F811
    for found in objects:
        found["metadata"]["namespace"] = "app"
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    code, out, _ = run("diagnose", file, "--at", AT)
    assert code == 0
    return " ".join(out.split())


def test_a_job_that_finds_no_room_is_not_passed_over(run, tmp_path: Path) -> None:  # noqa: F811
    waits = job(status={"active": 0})
    full = said(run, tmp_path, waits, quota("10"))
    assert "TK454 Job app/work: has no pod: ResourceQuota team has no room for one" in full
    assert "pods 10 of 10 used" in full
    assert "kubectl -n app describe resourcequota team" in full
    assert "Free the quota or raise it" in full
    assert "TK411" not in full
    assert "TK454" not in said(run, tmp_path, job(status={"active": 1}), quota("10"))


def test_where_pods_were_looked_at_they_tell(run, tmp_path: Path) -> None:  # noqa: F811
    lives = pod("Running", container("main", {"running": {}}))
    waits = job(status={"active": 1})
    assert "TK454" not in said(run, tmp_path, waits, lives, quota("10"))
    failed = pod("Failed", container("main", {"terminated": {"exitCode": 1}}))
    assert "TK454" in said(run, tmp_path, job(status={"failed": 1}), failed, quota("10"))


def test_of_jobs_alone_the_status_tells_that_none_has_begun(run, tmp_path: Path) -> None:  # noqa: F811
    found = said(run, tmp_path, job(status={"active": 0}), quota("9"))
    assert "TK411 Job app/work: has not begun: its status counts no pod" in found
    assert "kubectl describe job -n app work" in found
    assert "TK411" not in said(run, tmp_path, job(status={"active": 0, "succeeded": 1}))
