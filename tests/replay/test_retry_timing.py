"""A retry that comes before its back-off is over, where the back-off sits in the work queue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.traces import TRACES, import_log, json_lines
from tracekit.check.verdict import Verdict
from tracekit.judge.judged import Asked, Judge, resolve_era

NS_PER_S = 10**9
NAMESPACE, JOB = "t-backoff-limit", "flaky"


@pytest.mark.parametrize(
    ("moved_s", "early"),
    [(0, False), (0.5, False), (4, True)],
)
def test_a_retry_that_nothing_can_have_woken_yet_is_early(
    tmp_path: Path, moved_s: float, early: bool
) -> None:
    """The second failure of the Job waits 10 s for the timer of the first one's error.

    What woke the key before must have been used up: others were served in the meantime.
    """
    rows = list(json_lines(TRACES / "v1.17.17-all" / "watch.jsonl.zst"))
    pods = [
        row
        for row in rows
        if row["resource"] == "pods"
        and row["type"] == "ADDED"
        and row["object"]["metadata"]["namespace"] == NAMESPACE
        and row["object"]["metadata"]["name"].startswith(f"{JOB}-")
    ]
    retry_ns = pods[2]["recv"]
    moved_ns = int(moved_s * NS_PER_S)
    for row in rows:
        meta = row["object"].get("metadata", {})
        mine = meta.get("namespace") == NAMESPACE and meta.get("name", "").startswith(JOB)
        if mine and retry_ns <= row["recv"] < retry_ns + NS_PER_S // 5:
            row["recv"] -= moved_ns
    rows.sort(key=lambda row: row["recv"])
    log = tmp_path / "watch.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reader = import_log(log, tmp_path / "trace", "v1.17.17-all")
    report = Judge(reader, resolve_era(reader, None, None)).report(Asked(namespace=NAMESPACE))
    found = {(j.object.name, j.action, j.verdict) for j in report.divergences}
    if not early:
        assert found == set()
        return
    assert {name for name, _, _ in found} == {JOB}
    assert (JOB, "pod-create", Verdict.EARLY) in found


def test_the_deadline_wakes_a_job_whose_failed_pod_still_waits(tmp_path: Path) -> None:
    """The second pod failed at 3.3 s and is counted when the deadline of 6 s ends the Job."""
    namespace, job = "t-active-deadline", "failing"
    rows = [
        row
        for row in json_lines(TRACES / "v1.20.15-all" / "watch.jsonl.zst")
        if row["object"].get("metadata", {}).get("namespace") in (None, "", namespace)
    ]
    log = tmp_path / "watch.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reader = import_log(log, tmp_path / "trace", "v1.20.15-all")
    report = Judge(reader, resolve_era(reader, None, None)).report(Asked(namespace=namespace))
    assert [j for j in report.divergences if j.object.name == job] == []
    assert any(j.object.name == job and "DeadlineExceeded" in j.subject for j in report.judgements)
