"""What is said of Jobs of a real 1.35.1 that were scaled, suspended, deleted and left to fail."""

from __future__ import annotations

import pytest

from tests.findings.conftest import Traces
from tracekit.answers.model import Case
from tracekit.api.trace import Trace

CHURN = "churn-1.35"


@pytest.fixture(scope="module")
def opened(traces: Traces) -> Trace:
    return Trace(str(traces.path(CHURN)))


def case_of(traces: Traces, finding_id: str, job: str) -> Case | None:
    found = (f for f in traces.findings(CHURN) if f.id == finding_id)
    return next((c for f in found for c in f.cases if c.target.name == job), None)


def test_failed_pods_that_the_ttl_took_later_were_left_by_the_failure(traces: Traces) -> None:
    assert case_of(traces, "TK427", "c0008-ttl") is None
    restarted = case_of(traces, "TK427", "c0023-restart")
    assert restarted is not None
    assert restarted.claim == "failed and left no pod to look at (restartPolicy OnFailure)"


@pytest.mark.parametrize("job", ["c0008-ttl", "c0005-deadline"])
def test_pods_that_ran_side_by_side_are_no_retries(traces: Traces, job: str) -> None:
    assert case_of(traces, "TK407", job) is None
    failed = case_of(traces, "TK401", job)
    assert failed is not None
    assert failed.claim == "failed with exit code 1"
    assert "retr" not in (failed.todo or "")


def test_a_pod_that_came_after_one_had_failed_is_a_retry(traces: Traces) -> None:
    retried = case_of(traces, "TK407", "c0024-fail")
    assert retried is not None
    assert retried.claim == "failed: every retry ended with exit code 137 (SIGKILL)"


def test_pods_that_the_controller_deleted_did_not_exit_by_themselves(
    traces: Traces, opened: Trace
) -> None:
    restarted = case_of(traces, "TK401", "c0023-restart")
    assert restarted is not None
    assert restarted.detail.endswith("backoffLimit 6, 9 restarts")
    assert restarted.todo == (
        "The pods are gone, and their logs with them: keep logs outside the pods."
    )
    opening = opened.explain("c0023-restart").opening
    assert opening == "Failed after 7 s: 9 restarts of its containers, backoffLimit 6."
