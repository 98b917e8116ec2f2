"""Situations that no list of objects shows: watches, Events alone, and what views say of them."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.findings.situations import (
    LOOK,
    RUNNING,
    Object,
    at,
    container,
    ended,
    event,
    failed,
    job,
    pod,
)
from tracekit.answers.findings.diagnosis import diagnose
from tracekit.cli.explain import explain
from tracekit.cli.import_ import import_
from tracekit.sql.diagnosed import facts_from
from tracekit.sql.session import Session


def revision(found: Object, number: int, **meta: object) -> Object:
    return {**found, "metadata": {**found["metadata"], "resourceVersion": str(number), **meta}}


def suspended_once() -> list[tuple[str, Object]]:
    """A Job that was suspended while a pod of it ran, and that failed by another pod later."""
    new, wanted = {"name": "work-a", "uid": "p-1"}, ["batch.kubernetes.io/job-tracking"]
    runs = pod("Running", container("main", RUNNING), meta={**new, "finalizers": wanted})
    killed = pod("Failed", container("main", ended(137)), meta={
        **new, "finalizers": [], "deletionTimestamp": at("09:04"),
        "deletionGracePeriodSeconds": 30})  # fmt: skip
    let = pod("Running", container("main", RUNNING), meta={**new, "finalizers": []})
    second = pod("Failed", container("main", ended(3)), meta={
        "name": "work-b", "uid": "p-2", "creationTimestamp": at("09:04")})  # fmt: skip
    begun = pod("Running", container("main", RUNNING), meta=second["metadata"])
    over = failed()
    return [
        ("ADDED", revision(job({"backoffLimit": 0}), 100)),
        ("ADDED", revision(runs, 101)),
        ("MODIFIED", revision(job({"backoffLimit": 0, "suspend": True}), 102)),
        ("MODIFIED", revision(let, 103)),
        ("MODIFIED", revision(killed, 104)),
        ("MODIFIED", revision(job({"backoffLimit": 0}), 105)),
        ("ADDED", revision(begun, 106)),
        ("MODIFIED", revision(second, 107)),
        ("MODIFIED", revision(over, 108)),
        ("MODIFIED", revision(second, 109, finalizers=[])),
    ]


def imported(place: Path, text: str) -> str:
    log, out = place / "log.json", place / "trace"
    log.write_text(text)
    words = [str(log), "-o", str(out), "--kubernetes-version", "v1.33.4"]
    result = CliRunner().invoke(import_, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(out)


@pytest.mark.full
def test_a_pod_that_a_suspension_ended_is_no_failure(tmp_path: Path) -> None:
    lines = (json.dumps({"type": kind, "object": found}) for kind, found in suspended_once())
    trace = imported(tmp_path, "".join(f"{line}\n" for line in lines))
    with closing(Session([trace])) as session:
        found = {finding.id: finding for finding in diagnose(facts_from(session))}
        case = found["TK401"].cases[0]
        assert case.claim == "failed with exit code 3"
        assert case.evidence["pods"] == ["work-b"]
        assert case.evidence["exit_codes"] == [3]
        rows = session.table("SELECT name, cause FROM endings WHERE kind = 'Pod'").to_pylist()
    assert {row["name"]: row["cause"] for row in rows} == {
        "work-a": "its Job wanted it no longer", "work-b": "its own exit code"}  # fmt: skip
    shown = CliRunner().invoke(explain, [trace, "app/work"], catch_exceptions=False)
    assert "1 pod exited 3, more than backoffLimit 0 allows" in shown.output


def test_a_job_of_another_controller_waits_for_that(tmp_path: Path) -> None:
    who = "kueue.x-k8s.io/multikueue"
    held = job({"managedBy": who}, {"active": 0, "startTime": None})
    trace = imported(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": [held]}))
    with closing(Session([trace])) as session:
        (row,) = session.table("SELECT name, waits_for, finding, advice FROM waits").to_pylist()
    assert row["name"] == "work"
    assert row["finding"] == "TK437"
    assert who in row["waits_for"]


def test_events_alone_are_told(tmp_path: Path) -> None:
    quota = (
        'Error creating: pods "work-x" is forbidden: exceeded quota: q, requested: pods=1, used: '
        "pods=4, limited: pods=4"
    )
    items = [
        event("Job", "FailedCreate", quota),
        revision(event("Pod", "BackOff", "Back-off restarting failed container"), 301, name="e2"),
    ]
    trace = imported(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    with closing(Session([trace])) as session:
        found = [case for finding in diagnose(facts_from(session)) for case in finding.cases]
    told = {str(case.target): case for case in found if case.rule.id == "TK445"}
    assert set(told) == {"Job app/work", "Pod app/work-a"}
    assert told["Job app/work"].todo == "Free the quota or raise it, or ask for less."
    assert "exceeded quota" in told["Job app/work"].detail
    assert "kubectl logs -n app work-a --previous" in str(told["Pod app/work-a"].todo)


OTHER = pod("Running", container("main", RUNNING), meta={
    "name": "other", "uid": "p-8", "ownerReferences": [], "labels": {}})  # fmt: skip
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
         "message": "Scheduling is blocked due to non-empty scheduling gates"}  # fmt: skip
NO_ROOM = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
           "message": "0/3 nodes are available: 3 Insufficient cpu."}  # fmt: skip
TWO = {"containers": [{"name": "main", "image": "i:1"}, {"name": "proxy", "image": "p:1"}]}
#: By kind of trouble: the objects, the finding, its claim, and what else it says.
LISTED: dict[str, tuple[list[Object], str, str, str]] = {
    "an active pod that is not there": (
        [job(), OTHER], "TK411", "its status counts 1 active pod, and none of it is there",
        "kubectl get pods -n app -l batch.kubernetes.io/job-name=work"),
    "gates that the list leaves out": (
        [job(), pod("Pending", spec={"nodeName": None}, conditions=[GATED])], "TK411",
        "has not begun: its pods wait for scheduling gates", "take it off the pod"),
    "a deadline before a node had room": (
        [failed("DeadlineExceeded"), pod("Pending", spec={"nodeName": None}, conditions=[NO_ROOM],
                                         meta={"finalizers": []})], "TK406",
        "failed: its deadline passed before a pod ran", "Ask for less of what is insufficient"),
    "a proxy that fails the pod": (
        [failed(), pod("Failed", container("main", ended(0, "Completed")),
                       container("proxy", ended(1)), spec=TWO, meta={"finalizers": []})], "TK401",
        "failed with exit code 1", "; container proxy"),
}  # fmt: skip


@pytest.mark.parametrize("trouble", LISTED)
def test_what_a_list_shows(trouble: str, tmp_path: Path) -> None:
    objects, rule, claim, more = LISTED[trouble]
    items = [LOOK, *objects]
    trace = imported(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    with closing(Session([trace])) as session:
        found = {finding.id: finding for finding in diagnose(facts_from(session))}
    case = found[rule].cases[0]
    assert case.claim == claim
    assert more in f"{case.detail} {case.todo}"


def test_what_is_killed_afterwards_is_not_what_failed(tmp_path: Path) -> None:
    killed = ended(137)
    killed["terminated"].update(finishedAt=at("09:06"), message="killed")
    first = ended(3)
    first["terminated"]["message"] = "no such table"
    proxied = pod("Failed", container("proxy", killed), container("main", first), spec=TWO)
    items = [LOOK, failed(), proxied]
    trace = imported(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    with closing(Session([trace])) as session:
        (row,) = session.table("SELECT exit_code, message FROM attempts").to_pylist()
    assert row == {"exit_code": 3, "message": "no such table"}
