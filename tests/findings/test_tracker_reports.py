"""Situations out of issues of several trackers, each made here: what `diagnose` says of it first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.findings.test_public_reports import (
    LOOK,
    RUNNING,
    UID,
    Object,
    at,
    container,
    cron,
    disrupted,
    job,
    of_cron,
    pod,
    unschedulable,
)
from tracekit.cli.import_ import import_
from tracekit.report.findings import text_lines
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session

CRON_OWNER = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": "c-1",
              "controller": True}  # fmt: skip


def by_taint(number: int) -> Object:
    """A pod that the taint manager deleted, one of several of a Job."""
    found = disrupted("DeletionByTaintManager")
    found["metadata"].update(name=f"work-{number}", uid=f"p-{number}", finalizers=[])
    found["status"]["containerStatuses"] = []
    return found


def runs(count: int) -> list[Object]:
    """Runs of a CronJob, one a minute, none of which has a node."""
    found = []
    for number in range(count):
        name, uid, when = f"tick-{29630000 + number}", f"r-{number}", at(f"09:{number:02}")
        run = job(name=name, uid=uid, creationTimestamp=when, ownerReferences=[CRON_OWNER])
        waits = unschedulable("0/3 nodes are available: 3 Insufficient cpu.")
        waits["metadata"].update(name=f"{name}-a", uid=f"q-{number}", creationTimestamp=when)
        waits["metadata"]["ownerReferences"][0].update(name=name, uid=uid)
        waits["metadata"]["labels"] = {UID: uid, "batch.kubernetes.io/job-name": name}
        found += [run, waits]
    return found


def second(**meta: Any) -> Object:
    return pod("Running", container("main", RUNNING), meta={
        "name": "work-b", "uid": "p-2", "creationTimestamp": at("09:03"), **meta})  # fmt: skip


#: By thread: the objects, the release, what the first screen says, and what it does not say.
ASKED: dict[str, tuple[list[Object], str, tuple[str, ...], tuple[str, ...]]] = {
    "optscale#568": (
        [job(), unschedulable("0/1 nodes are available: 1 node(s) had untolerated taint "
                              "{node.kubernetes.io/unreachable: }.")],
        "v1.30.4", ("TK411", "Bring the node back"), ("Tolerate the taint", "cannot be changed")),
    "spotinst-kubernetes-helm-charts#29": (
        [job(), unschedulable("0/9 nodes are available: 3 node(s) had taint {CriticalAddonsOnly: "
                              "true}, that the pod didn't tolerate, 6 node(s) didn't match node "
                              "selector.")],
        "v1.19.11", ("Tolerate the taint", "correct nodeSelector"), ("Bring the node back",)),
    "kubernetes#90550": (
        [job({"activeDeadlineSeconds": 40}), pod("Running", container("main", RUNNING))],
        "v1.14.6",
        ("TK424", "activeDeadlineSeconds 40 was over at 2026-05-04 09:00:40Z",
         "not ended as of 2026-05-04 10:00:00Z"), ()),
    "kubernetes#95794, longhorn#1903": (
        [job(None, {"active": 0, "failed": 5}), *(by_taint(number) for number in range(1, 6))],
        "v1.30.4", ("TK414", "5 failed pods (DeletionByTaintManager)"), ("exit code",)),
    "citationhunt#186, kubernetes#119775": (
        [cron(), of_cron("FailedCreate", "jobs.batch is forbidden: exceeded quota: q, requested: "
                         "count/jobs.batch=1, used: count/jobs.batch=4")],
        "v1.27.4", ("TK315", "exceeded quota", "11 times due"), ()),
}  # fmt: skip


def first_screen(place: Path, version: str, *logs: str, lines: int = 24) -> str:
    """What `diagnose` prints first at 80 columns, its lines joined by single spaces."""
    out = place / "trace"
    words = [*logs, "-o", str(out), "--kubernetes-version", version]
    result = CliRunner().invoke(import_, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return " ".join(" ".join(list(text_lines(findings_of(Session([str(out)]))))[:lines]).split())


@pytest.mark.parametrize("thread", ASKED)
def test_what_is_said_first(thread: str, tmp_path: Path) -> None:
    objects, version, says, not_said = ASKED[thread]
    log = tmp_path / "list.json"
    log.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [LOOK, *objects]}))
    screen = first_screen(tmp_path, version, str(log))
    assert [text for text in says if text not in screen] == [], screen
    assert [text for text in not_said if text in screen] == [], screen


#### Out of audit logs ####

MANAGER = "system:serviceaccount:kube-system:"


def asked(
    verb: str, found: Object, user: str, clock: str, version: int, subresource: str | None = None
) -> Object:
    """A line of an audit log: a request for a Job or a pod, and what came of it."""
    kind, meta = found["kind"], found["metadata"]
    resource = {"Job": "jobs", "Pod": "pods"}[kind]
    answer = found | {"metadata": {**meta, "resourceVersion": str(version)}}
    if verb == "delete":
        answer = {"kind": "Status", "apiVersion": "v1", "status": "Success",
                  "details": {"name": meta["name"], "kind": resource, "uid": meta["uid"]}}  # fmt: skip
    group = {"apiGroup": "batch"} if kind == "Job" else {}
    return {
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse",
        "auditID": f"a-{version}", "stage": "ResponseComplete", "verb": verb,
        "requestURI": f"/api/{resource}", "user": {"username": user}, "userAgent": "client/v1",
        "objectRef": {"resource": resource, "namespace": "app", "name": meta["name"],
                      "apiVersion": "v1", "uid": meta["uid"],
                      **group, **({"subresource": subresource} if subresource else {})},
        "responseStatus": {"metadata": {}, "code": 201 if verb == "create" else 200},
        "responseObject": answer,
        "requestReceivedTimestamp": f"2026-05-04T{clock}.000000Z",
        "stageTimestamp": f"2026-05-04T{clock}.010000Z",
    }  # fmt: skip


def deleted_by(user: str, owner: str = "") -> list[Object]:
    """A Job whose pod runs, until somebody deletes the Job."""
    owners = [{"apiVersion": "keda.sh/v1alpha1", "kind": owner, "name": "tick", "uid": "s-1",
               "controller": True}] if owner else []  # fmt: skip
    made = job(None, {"active": 0, "startTime": None}, ownerReferences=owners)
    made["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"] = "work"
    begun = pod("Pending", spec={"nodeName": None}, meta={"generateName": "work-"})
    runs_now = pod("Running", container("main", RUNNING))
    begun_job = {**made, "status": job()["status"]}
    return [
        asked("create", made, user, "09:00:00", 100),
        asked("create", begun, f"{MANAGER}job-controller", "09:00:00", 101),
        asked("update", begun_job, f"{MANAGER}job-controller", "09:00:01", 102, "status"),
        asked("patch", runs_now, "system:node:n1", "09:01:00", 103, "status"),
        asked("delete", made, user, "09:10:00", 104),
        asked("delete", runs_now, f"{MANAGER}generic-garbage-collector", "09:10:01", 105),
    ]


KEDA, ADMIN = "system:serviceaccount:keda:keda-operator", "lukas"
#: By thread: the lines, what the first screen says, and what it does not say.
AUDITED: dict[str, tuple[list[Object], tuple[str, ...], tuple[str, ...]]] = {
    "keda#6440, keda#2098, keda#1021": (
        deleted_by(KEDA, "ScaledJob"),
        ("TK447", f"deleted before it ended, by {KEDA}", "(audit log)", "work-a",
         "2026-05-04 09:10:00Z", "gradual"), ()),
    "helm#8146": (
        deleted_by(ADMIN), ("TK447", f"by {ADMIN}", "tracekit who TRACE --object app/work"), ()),
    "helm#6741": (
        deleted_by("system:serviceaccount:kube-system:tiller"),
        ("TK447", "tiller", "helm.sh/hook-delete-policy"), ()),
}  # fmt: skip


@pytest.mark.parametrize("thread", AUDITED)
def test_what_is_said_first_of_an_audit_log(thread: str, tmp_path: Path) -> None:
    lines, says, not_said = AUDITED[thread]
    log = tmp_path / "audit.log"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    screen = first_screen(tmp_path, "v1.30.4", str(log))
    assert [text for text in says if text not in screen] == [], screen
    assert [text for text in not_said if text in screen] == [], screen
