"""An audit log without bodies (level Metadata): who asked for what, and nothing of how it stood."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture

MANAGER = (
    "kube-controller-manager/v1.33.4 (linux) kubernetes/abc/system:serviceaccount:kube-system:"
)


def asked(
    verb: str, name: str, user: str, clock: str, code: int = 200, agent: str = "kubectl/v1.33",
    resource: str = "jobs", **more: Any,
) -> dict[str, Any]:  # fmt: skip
    group = {} if resource == "pods" else {"apiGroup": "batch"}
    status = {"code": code, **({"message": more.pop("said")} if "said" in more else {})}
    return {
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
        "auditID": f"{clock}-{verb}", "stage": "ResponseComplete", "verb": verb,
        "requestURI": f"/apis/{resource}/{name}", "user": {"username": user}, "userAgent": agent,
        "objectRef": {"resource": resource, "namespace": "app", "name": name, "apiVersion": "v1",
                      **group, **more},
        "responseStatus": {"metadata": {}, **status},
        "requestReceivedTimestamp": f"2026-05-04T{clock}.000000Z",
        "stageTimestamp": f"2026-05-04T{clock}.010000Z",
    }  # fmt: skip


#: argo-cd#25323: a hook's Job that somebody deleted while it was waited for.
LINES = [
    asked("create", "migrate", "argocd", "09:00:00", 201, "argocd/v2"),
    asked("update", "migrate", "system:serviceaccount:kube-system:job-controller", "09:00:01",
          agent=f"{MANAGER}job-controller", subresource="status"),
    asked("delete", "migrate", "lena", "09:01:00"),
    asked("delete", "migrate", "mia", "09:02:00", 403, said="mia may not delete jobs.batch"),
    asked("delete", "old", "system:serviceaccount:kube-system:ttl-after-finished-controller",
          "09:03:00", agent=f"{MANAGER}ttl-after-finished-controller"),
    asked("patch", "nightly", "zoe", "09:04:00", resource="cronjobs"),
    asked("delete", "migrate-x2x4z", "zoe", "09:05:00", resource="pods"),
]  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> str:
    file = tmp_path / "audit.log"
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return str(file)


def test_who_names_who_wrote_and_who_was_refused(run, log: str) -> None:  # noqa: F811
    out = run("who", log, "-o", "json")[1]
    actors = {row["actor"]: (row["writes"], row["refused"]) for row in json.loads(out)["actors"]}
    assert actors == {
        "argocd": (1, 0), "job-controller": (1, 0), "lena": (1, 0), "mia": (0, 1),
        "ttl-after-finished-controller": (1, 0), "zoe": (2, 0),
    }  # fmt: skip


def test_who_tells_of_one_object_and_what_the_log_has_not(run, log: str) -> None:  # noqa: F811
    out = " ".join(run("who", log, "--object", "app/migrate")[1].split())
    assert (
        "2026-05-04 09:01:00.010 lena delete Job app/migrate audit log, which has not what it "
        "changed 2026-05-04 09:02:00.010 mia asked to delete Job app/migrate audit log 403: mia may"
    ) in out
    code, _, err = run("who", log, "--object", "app/migrat")
    assert (code, "did you mean app/migrate" in err) == (2, True)


def test_timeline_tells_requests_in_order(run, log: str) -> None:  # noqa: F811
    out = run("timeline", log)[1].splitlines()
    assert [line[14:] for line in out[1:]] == [
        "Job app/migrate: create, by argocd",
        "Job app/migrate: delete, by lena",
        "Job app/migrate: asked to delete, refused (403): mia may not delete jobs.batch, by mia",
        "Job app/old: delete, by ttl-after-finished-controller",
        "CronJob app/nightly: patch (what it changed is not logged), by zoe",
        "Pod app/migrate-x2x4z: delete, by zoe",
    ]


def test_diagnose_names_who_deleted_and_judges_nothing(run, log: str) -> None:  # noqa: F811
    out = " ".join(run("diagnose", log)[1].split())
    assert "INFO TK463 Job app/migrate: deletion was asked for by lena" in out
    assert "whether it had ended is not known" in out
    assert "TK433 Job app/migrate: delete by mia was refused (403)" in out
    assert "TK906 the record: has no verdicts" in out
    assert "written at Metadata level" in out
    assert "app/old" not in out  # its controller did that
    assert "TK908" not in out
    assert "`tracekit diagnose` says" not in out


def test_explain_tells_the_requests_for_one(run, log: str) -> None:  # noqa: F811
    out = " ".join(run("explain", log, "migrate")[1].split())
    assert "info TK463: deletion was asked for by lena" in out
    assert "2026-05-04 09:00:00.010 Job: create (by argocd)" in out
    assert "Nothing of it is judged: this log was written at Metadata level" in out


def test_deletions_have_the_requests_for_jobs(run, log: str) -> None:  # noqa: F811
    query = "SELECT kind, name, deleted_by, actor, gone_at, delete_evidence FROM deletions"
    rows = json.loads(run("sql", log, query, "-o", "json")[1])
    assert [tuple(row.values())[:3] for row in rows] == [
        ("Job", "migrate", "user"), ("Job", "old", "ttl-after-finished-controller"),
    ]  # fmt: skip
    assert (rows[0]["actor"], rows[0]["gone_at"]) == ("lena", None)
    assert rows[0]["delete_evidence"] == (
        "audit log: delete by lena (kubectl/v1.33), without a body"
    )


def test_beside_a_record_it_names_who_wrote_as_before(run, log: str, tmp_path: Path) -> None:  # noqa: F811
    states = tmp_path / "job.json"
    states.write_text(json.dumps({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {
            "name": "other", "namespace": "app", "uid": "u-1", "resourceVersion": "7",
            "creationTimestamp": "2026-05-04T09:00:00Z"},
        "spec": {}, "status": {}}))  # fmt: skip
    trace = tmp_path / "trace"
    code, _, err = run("import", str(states), "--with", log, "-o", str(trace))
    assert code == 0
    assert "it tells who wrote, and the other sources what was written" in err
