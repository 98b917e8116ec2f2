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


def explained(opened: Trace, key: str) -> str:
    return opened.explain(key).text()


@pytest.mark.full
def test_a_deletion_by_the_ttl_is_told_once_and_as_its_own(opened: Trace) -> None:
    for key in ("t-churn/kept-short", "kept-short-29928705"):
        text = explained(opened, key)
        assert text.count("ttl-controller deleted Job kept-short-29928705  [match]") == 2
        assert "somebody" not in text
    text = explained(opened, "c0008-ttl")
    assert "somebody" not in text
    assert text.count("garbage-collector deleted c0008-ttl-") == 4


def test_who_edited_a_cronjob_is_named_in_the_words_of_the_api(opened: Trace) -> None:
    text = explained(opened, "t-churn/kept-short")
    assert "kubectl-alice changed the CronJob\n    spec suspend: false → true" in text
    assert "schedule @every 15s, suspend false, concurrencyPolicy Allow" in text
    assert "spec suspend: true → false" in explained(opened, "c0021-fail")


def test_writes_of_one_sync_stand_where_it_began(opened: Trace) -> None:
    steps = opened.explain("c0005-deadline").steps
    assert [step.at_ns for step in steps] == sorted(step.at_ns for step in steps)
    assert [step.rv for step in steps[-3:]] == [733, 730, 853]


def test_sentences_about_one_start_do_not_contradict_each_other(opened: Trace) -> None:
    text = explained(opened, "t-churn/often")
    assert "created less than 1 s after it was due" in text
    assert "started 0.674 s after it" in text
    opening = opened.explain("c0016-replace").opening
    assert opening == "Complete less than 1 s after its startTime: 2 pods succeeded."


def test_times_of_one_minute_that_got_no_job_are_found(traces: Traces) -> None:
    refused = case_of(traces, "TK306", "often")
    assert refused is not None
    assert refused.detail.startswith(
        "2 times from 2026-11-26 19:45:44Z to 2026-11-26 19:45:54Z (@every 10s): often-29928705"
    )
    assert "names count minutes" in refused.claim
    assert case_of(traces, "TK306", "kept-short") is None
