"""Why nothing came: what the API server answered, out of an audit log as out of Events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.traces import TRACES, json_lines
from tracekit.answers.model import Finding
from tracekit.answers.refusals import Refusal, refusal_of
from tracekit.cli.import_ import import_
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session


def found_in(entries: list[dict[str, Any]], place: Path) -> list[Finding]:
    log, out = place / "audit.log", place / "trace"
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    words = [
        "audit",
        str(log),
        "-o",
        str(out),
        "--kubernetes-version",
        "v1.36.3",
        "--processes",
        "1",
    ]
    result = CliRunner().invoke(import_, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return findings_of(Session([str(out)]))


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        ('pods "a-x" is forbidden: exceeded quota: two, requested: pods=1', Refusal.QUOTA),
        (
            "error looking up service account a/b: serviceaccount not found",
            Refusal.NO_SERVICE_ACCOUNT,
        ),
        ('violates PodSecurity "restricted:latest": runAsNonRoot', Refusal.POD_SECURITY),
        ('failed calling webhook "x": connection refused', Refusal.WEBHOOK_UNREACHABLE),
        ('admission webhook "x" denied the request: no', Refusal.WEBHOOK_DENIED),
        (
            "unable to create new content in namespace a because it is being terminated",
            Refusal.NAMESPACE_TERMINATING,
        ),
        ("etcdserver: request timed out", Refusal.NO_ANSWER),
    ],
)
def test_a_message_says_what_stood_against_it(message: str, refusal: Refusal) -> None:
    assert refusal_of(message) is refusal


def test_an_audit_log_without_events_tells_why_no_pod_came(tmp_path: Path) -> None:
    entries = [
        entry
        for entry in json_lines(TRACES / "v1.36.3-troubles" / "audit.jsonl.zst")
        if entry["objectRef"].get("namespace") == "t-refused"
        and entry["objectRef"]["resource"] != "events"
    ]
    (told,) = [
        case
        for finding in found_in(entries, tmp_path)
        for case in finding.cases
        if finding.id == "TK405" and case.target.name == "never-admitted"
    ]
    assert "more than its quota has in all (pods 1, it has 0)" in told.claim
    assert told.todo is not None
    assert "quota" in told.todo


CRON = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {
        "name": "tidy", "namespace": "old", "uid": "c-1", "resourceVersion": "10",
        "creationTimestamp": "2026-03-01T10:00:10Z",
    },
    "spec": {
        "schedule": "* * * * *", "concurrencyPolicy": "Allow", "suspend": False,
        "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}}},
    },
    "status": {},
}  # fmt: skip


def entry(verb: str, resource: str, at: str, code: int, **more: Any) -> dict[str, Any]:
    user = "system:serviceaccount:kube-system:cronjob-controller" if code >= 400 else "dora"
    return {
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse",
        "auditID": f"{resource}{at}", "stage": "ResponseComplete", "verb": verb,
        "requestURI": f"/apis/batch/v1/namespaces/old/{resource}",
        "user": {"username": user}, "responseStatus": {"code": code, **more.pop("status", {})},
        "objectRef": {"resource": resource, "namespace": "old", "apiGroup": "batch", "apiVersion": "v1"},
        "requestReceivedTimestamp": f"2026-03-01T{at}.000000Z",
        "stageTimestamp": f"2026-03-01T{at}.010000Z", **more,
    }  # fmt: skip


def refused_start(minute: int) -> dict[str, Any]:
    name = f"tidy-{29_539_800 + minute}"
    message = (
        f'jobs.batch "{name}" is forbidden: unable to create new content in namespace old because '
        "it is being terminated"
    )
    owner = {
        "apiVersion": "batch/v1", "kind": "CronJob", "name": "tidy", "uid": "c-1", "controller": True,
    }  # fmt: skip
    metadata = {"name": name, "namespace": "old", "ownerReferences": [owner]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
    status = {"status": "Failure", "reason": "Forbidden", "message": message}
    at = f"10:{minute:02}:00"
    return entry("create", "jobs", at, 403, status=status, requestObject=job)


def test_a_cronjob_in_a_namespace_that_goes_is_told_so(tmp_path: Path) -> None:
    created = entry("create", "cronjobs", "10:00:10", 201, requestObject=CRON, responseObject=CRON)
    found = found_in([created, *(refused_start(minute) for minute in range(1, 4))], tmp_path)
    (told,) = [finding for finding in found if finding.id == "TK306"]
    assert "its namespace is being terminated" in told.text
    assert "does not tell why" not in "".join(finding.text for finding in found)
