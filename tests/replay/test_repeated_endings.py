"""An ending that is told twice: the work of a sync on an old Job, where versions tell it early.

Met on a control plane of 1.24.17: a second sync found the Job unfinished in its cache, told of its
end and only then met the conflict of its PUT.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from tests.support.traces import TRACES, import_log, json_lines
from tracekit.judge.judged import Asked, Judge, resolve_era

#: Indexed: a Job that is not counts the pod again before it ends, which is refused.
NAMESPACE, JOB = "t-indexed", "idx"
NS_PER_MS = 10**6


@pytest.mark.parametrize(
    ("trace", "after_ms", "event_type", "divergent"),
    [
        ("v1.23.17-all", 5, "Normal", False),
        ("v1.23.17-all", 5, "Warning", True),  # it tells of no end in this way
        ("v1.23.17-all", 5_000, "Normal", False),  # an Event may be late
        (
            "v1.28.15-all",
            5,
            "Normal",
            True,
        ),  # the Event follows the status, so a conflict repeats nothing
    ],
)
def test_the_end_of_a_job_told_twice(
    trace: str, after_ms: int, event_type: str, *, divergent: bool, tmp_path: Path
) -> None:
    rows = [
        row
        for row in json_lines(TRACES / trace / "watch.jsonl.zst")
        if row["object"].get("metadata", {}).get("namespace") in (None, "", NAMESPACE)
    ]
    told = next(
        row
        for row in rows
        if row["resource"] == "events"
        and row["object"].get("reason") == "Completed"
        and row["object"]["involvedObject"]["name"] == JOB
    )
    again = copy.deepcopy(told)
    again["type"] = "MODIFIED"
    again["recv"] += after_ms * NS_PER_MS
    again["object"] |= {"count": 2, "type": event_type}
    meta = again["object"]["metadata"]
    meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
    rows.insert(rows.index(told) + 1, again)
    rows.sort(key=lambda row: row["recv"])
    log = tmp_path / "watch.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reader = import_log(log, tmp_path / "trace", trace)
    report = Judge(reader, resolve_era(reader, None, None)).report(Asked(namespace=NAMESPACE))
    found = [(j.object.name, j.action, j.verdict.value) for j in report.divergences]
    assert found == ([(JOB, "event", "extra")] if divergent else [])


def test_the_end_of_a_job_that_was_deleted_before_it_was_written(tmp_path: Path) -> None:
    """The Job is deleted under the sync that tells of its end; the Event arrives 6 s later."""
    trace = "v1.24.17-all"
    rows = [
        row
        for row in json_lines(TRACES / trace / "watch.jsonl.zst")
        if row["object"].get("metadata", {}).get("namespace") in (None, "", NAMESPACE)
    ]
    revisions = [
        row
        for row in rows
        if row["resource"] == "jobs" and row["object"].get("metadata", {}).get("name") == JOB
    ]
    ended = next(row for row in revisions if row["object"].get("status", {}).get("conditions"))
    before = revisions[revisions.index(ended) - 1]
    gone = copy.deepcopy(before) | {"type": "DELETED", "recv": ended["recv"]}
    gone["object"]["metadata"]["resourceVersion"] = ended["object"]["metadata"]["resourceVersion"]
    told = next(
        row
        for row in rows
        if row["resource"] == "events"
        and row["object"].get("reason") == "Completed"
        and row["object"]["involvedObject"]["name"] == JOB
    )
    kept = [row for row in rows if row not in revisions[revisions.index(ended) :] and row != told]
    late = told | {"recv": told["recv"] + 6_000 * NS_PER_MS}
    log = tmp_path / "watch.jsonl"
    changed = sorted([*kept, gone, late], key=lambda row: row["recv"])
    log.write_text("".join(json.dumps(row) + "\n" for row in changed))
    reader = import_log(log, tmp_path / "trace", trace)
    report = Judge(reader, resolve_era(reader, None, None)).report(Asked(namespace=NAMESPACE))
    assert [(j.object.name, j.action, j.why) for j in report.divergences] == []
