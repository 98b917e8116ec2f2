"""Statuses that a user edits again within a second: no entry of managedFields changes with it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.support.simulated_rows import Row, report_of, rows_of
from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.check.verdict import Verdict

WORKLOAD = {
    "duration": "20s",
    "jobs": [
        {"name": "edited", "namespace": "shop", "spec": {"completions": 1}, "pods": {"run": "2s"}}
    ],
}


def edited(rows: list[Row], subresource: str, after_s: int) -> list[Row]:
    """The Job's last state, edited by alice and in the same second again: now in its status."""
    last = next(
        row for row in reversed(rows) if row["resource"] == "jobs" and "spec" in row["object"]
    )
    second_ns = (last["recv"] // NS_PER_S + after_s) * NS_PER_S
    entry = {"operation": "Update", "apiVersion": "batch/v1"}
    if subresource:
        entry["subresource"] = subresource
    entries: list[dict[str, Any]] = [
        {**entry, "manager": "kube-controller-manager", "time": format_rfc3339(last["recv"])},
        {**entry, "manager": "kubectl-alice", "time": format_rfc3339(second_ns)},
    ]
    made = []
    for number in (1, 2):
        row = copy.deepcopy(last)
        row["recv"] = max(second_ns, last["recv"]) + number * 1_000_000
        meta = row["object"]["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1000 + number)
        meta["managedFields"] = entries
        meta["annotations"] = {"by": "alice"}
        if number > 1:
            row["object"]["status"]["active"] = 2
        made.append(row)
    return made


@pytest.mark.parametrize(
    ("version", "subresource", "after_s", "verdict"),
    [
        ("v1.21.14", "", 3, Verdict.FOREIGN),
        ("v1.31.0", "status", 3, Verdict.FOREIGN),
        ("v1.21.14", "", 0, Verdict.UNKNOWABLE),
        ("v1.31.0", "status", 0, Verdict.UNKNOWABLE),
    ],
)
def test_who_set_a_field_that_no_entry_shows(
    version: str, subresource: str, after_s: int, verdict: Verdict, tmp_path: Path
) -> None:
    rows = rows_of(tmp_path, WORKLOAD, version)
    made = edited(rows, subresource, after_s)
    report = report_of(
        tmp_path / "edited", sorted([*rows, *made], key=lambda row: row["recv"]), version
    )
    assert [(j.action, j.verdict) for j in report.divergences] == []
    [told] = [j for j in report.judgements if j.time_ns == made[-1]["recv"]]
    assert told.verdict is verdict
    assert "kubectl-alice" in told.why
