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
from tracekit.sql.diagnosed import findings_of
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
