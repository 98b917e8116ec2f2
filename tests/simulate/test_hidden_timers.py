"""A timer that went off and was not served, hidden by what came just before the key's next sync."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.lies import plant
from tests.support.simulated_rows import report_of, rows_of
from tracekit.check.verdict import Verdict

#: The pod ends a moment before the deadline; other Jobs show that the process had the time.
WORKLOAD = {
    "duration": "40s",
    "seed": 4,
    "jobs": [
        {
            "name": "ends",
            "namespace": "shop",
            "at": 10,
            "spec": {"completions": 2, "parallelism": 1, "activeDeadlineSeconds": 8},
            "pods": {"run": "7.6s"},
        },
        {
            "name": "many",
            "namespace": "shop",
            "count": 30,
            "every": "1s",
            "spec": {"completions": 1},
            "pods": {"run": "500ms"},
        },
    ],
}


@pytest.mark.parametrize(("deadline_s", "late"), [(8, 0), (7, 0), (4, 1), (2, 1)])
@pytest.mark.parametrize("version", ["v1.28.15", "v1.36.3"])
def test_a_deadline_that_passed_before_the_pod_ended(
    version: str, deadline_s: int, late: int, tmp_path: Path
) -> None:
    rows = rows_of(tmp_path, WORKLOAD, version)
    for row in rows:
        if row["resource"] == "jobs" and "activeDeadlineSeconds" in row["object"].get("spec", ()):
            row["object"]["spec"]["activeDeadlineSeconds"] = deadline_s
    report = report_of(tmp_path / "lied", rows, version)
    found = [(j.object.name, j.verdict) for j in report.divergences]
    assert found == [("ends", Verdict.LATE)] * late


def test_a_retry_long_after_refusals_that_events_tell_of(tmp_path: Path) -> None:
    """Whether more were refused, of which no Event tells, nobody can know: it may be late."""
    fails = {"completions": 3, "parallelism": 1, "backoffLimit": 6}
    workload = {
        "duration": "90s",
        "jobs": [
            {
                "name": "fails",
                "namespace": "shop",
                "spec": fails,
                "pods": {"run": "500ms", "failFirst": 2},
            },
            {"name": "many", "namespace": "shop", "count": 85, "every": "1s", "spec": {}},
        ],
        "faults": {"refuse": [{"at": "100ms", "until": "2500ms", "namespace": "shop"}]},
    }
    rows = rows_of(tmp_path, workload, "v1.28.15")
    planted = plant("retry-late", rows, random.Random(0))
    assert planted is not None
    lied, lie = planted
    assert lie.key == "shop/fails"
    judged = report_of(tmp_path / "lied", lied, "v1.28.15").judgements
    assert not any(j.divergent for j in judged)
    [late] = [j for j in judged if j.ambiguous]
    assert (late.object.name, late.action) == ("fails", "pod-create")
    assert "calls that were refused left no Event" in late.why
