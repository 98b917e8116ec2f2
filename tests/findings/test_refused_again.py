"""Requests that are refused again and again, out of an audit log: why a drain hangs, and conflicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.findings.situations import RUNNING, Object, container, job, pod
from tests.findings.test_tracker_reports import MANAGER, asked, refused
from tracekit.cli.import_ import import_
from tracekit.report.findings import text_lines
from tracekit.sql.findings import findings_of
from tracekit.sql.session import Session

ALICE = "alice"
#: Upstream: pkg/registry/core/pod/storage/eviction.go, createTooManyRequestsError.
BUDGET = {"status": "Failure", "reason": "TooManyRequests", "code": 429, "message": "Cannot evict "
          "pod as it would violate the pod's disruption budget.", "details": {"causes": [
              {"reason": "DisruptionBudget", "message": "The disruption budget shop-pdb needs 1 "
               "healthy pods and has 1 currently"}]}}  # fmt: skip
NAMELESS = {**BUDGET, "details": {}}
QUEUES = {"status": "Failure", "reason": "TooManyRequests", "code": 429,
          "message": "Too many requests, please try again later."}  # fmt: skip
SEVERAL = {"status": "Failure", "reason": "InternalError", "code": 500, "message": "This pod has "
           "more than one PodDisruptionBudget, which the eviction subresource does not support."}  # fmt: skip
CONFLICT = {"status": "Failure", "reason": "Conflict", "code": 409, "message": "Operation cannot "
            'be fulfilled on jobs.batch "work": the object has been modified; please apply your '
            "changes to the latest version and try again"}  # fmt: skip
EVICTED = {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}


def runs() -> Object:
    return pod("Running", container("main", RUNNING))


def begun() -> list[Object]:
    made = job(None, {"active": 0, "startTime": None})
    pending = pod("Pending", spec={"nodeName": None}, meta={"generateName": "work-"})
    return [
        asked("create", made, "dora", "09:00:00", 100),
        asked("create", pending, f"{MANAGER}job-controller", "09:00:00", 101),
        asked("patch", runs(), "system:node:n1", "09:01:00", 103, "status"),
    ]


def drain(answer: dict[str, Any], *clocks: str) -> list[Object]:
    return [
        refused(asked("create", runs(), ALICE, clock, 120 + number, "eviction"), answer)
        for number, clock in enumerate(clocks)
    ]


def evicted(clock: str) -> list[Object]:
    return [{**asked("create", runs(), ALICE, clock, 150, "eviction"), "responseObject": EVICTED}]


def conflicts(number: int, user: str = "operator") -> list[Object]:
    return [
        refused(asked("update", job(), user, f"09:10:0{n}", 120 + n, "status"), CONFLICT)
        for n in range(number)
    ]


def written(clock: str, user: str = "operator") -> list[Object]:
    return [asked("update", job(), user, clock, 160, "status")]


AGAIN = ("09:10:00", "09:10:05", "09:10:10")
ASKED: dict[str, tuple[list[Object], tuple[str, ...], tuple[str, ...]]] = {
    "a drain that hangs": (
        drain(BUDGET, *AGAIN),
        ("WARNING TK461", "Pod app/work-a: its eviction was refused again and again",
         "(PodDisruptionBudget shop-pdb), asked for by alice",
         "3 times from 2026-05-04 09:10:00Z to 2026-05-04 09:10:10Z (429)",
         "kubectl describe pdb -n app shop-pdb", "Jobs have no scale subresource"), ()),
    "a budget without its name": (
        drain(NAMELESS, *AGAIN), ("TK461", "(a PodDisruptionBudget)", "kubectl describe pdb -n app"),
        ()),
    "two budgets": (
        drain(SEVERAL, *AGAIN), ("TK461", "more than one PodDisruptionBudget", "(500)"), ()),
    "through a moment later": (drain(BUDGET, *AGAIN) + evicted("09:10:15"), (), ("TK461",)),
    "through after long": (
        drain(BUDGET, *AGAIN, "09:19:00") + evicted("09:20:00"),
        ("INFO TK461", "it went 10 min 0 s after the first"), ()),
    "once": (drain(BUDGET, "09:10:00"), (), ("TK461",)),
    "the API server's own queues": (drain(QUEUES, *AGAIN), (), ("TK461",)),
    "nothing but conflicts": (
        conflicts(4), ("WARNING TK462", "update/status by operator met nothing but conflicts (409)",
                       "Job app/work", "4 times from 2026-05-04 09:10:00Z"), ()),
    "conflicts, then a write": (conflicts(4) + written("09:10:30"), (), ("TK462",)),
    "conflicts, and another's write": (
        conflicts(4) + written("09:10:30", "dora"), ("TK462", "by operator"), ()),
    "two conflicts": (conflicts(2), (), ("TK462",)),
}  # fmt: skip


@pytest.mark.parametrize("case", ASKED)
def test_what_is_refused_again_and_again_is_told(case: str, tmp_path: Path) -> None:
    lines, says, not_said = ASKED[case]
    log = tmp_path / "audit.log"
    log.write_text("".join(json.dumps(line) + "\n" for line in [*begun(), *lines]))
    words = [str(log), "-o", str(tmp_path / "trace"), "--kubernetes-version", "v1.33.4"]
    result = CliRunner().invoke(import_, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    text = " ".join(" ".join(text_lines(findings_of(Session([str(tmp_path / "trace")])))).split())
    assert [part for part in says if part not in text] == [], text
    assert [part for part in not_said if part in text] == [], text


def test_a_log_of_a_drain_alone_says_what_was_refused(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text("".join(json.dumps(line) + "\n" for line in drain(BUDGET, *AGAIN)))
    result = CliRunner().invoke(import_, [str(log), "-o", str(tmp_path / "trace")])
    said = str(result.exception)
    assert "3 writes to Pods, and the API server refused all of them" in said
    assert "create/eviction of app/work-a by alice" in said
    assert "The disruption budget shop-pdb needs 1 healthy pods" in said
