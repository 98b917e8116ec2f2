"""kubernetes#121594, argo-workflows#8137: what clock changes do to a CronJob that was looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.findings.situations import Object, cron
from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture

BEFORE = {"lastScheduleTime": "2026-03-28T01:30:00Z", "lastSuccessfulTime": "2026-03-28T01:31:00Z"}
NIGHTLY = {"schedule": "30 2 * * *", "timeZone": "Europe/Berlin"}


def said(run: Any, folder: Path, spec: Object, look: str, **meta: Any) -> str:  # noqa: F811
    found = cron(spec, BEFORE, **{"creationTimestamp": "2026-01-01T00:00:00Z", **meta})
    file = folder / "cron.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [found]}))
    return " ".join(run("diagnose", str(file), "--at", look)[1].split())


def test_a_local_time_that_the_clock_left_out_is_told(run, tmp_path: Path) -> None:  # noqa: F811
    out = said(run, tmp_path, NIGHTLY, "2026-03-29T10:00:00Z")
    assert (
        "WARNING TK320 CronJob app/tick: was not due at 2026-03-29 02:30:00 (Europe/Berlin)" in out
    )
    assert "at 2026-03-29 01:00:00Z it went from 02:00 to 03:00 (30 2 * * *)" in out
    assert "the next is 2026-03-30 00:30:00Z" in out
    assert "kubectl create job -n app tick-by-hand --from=cronjob/tick" in out


@pytest.mark.parametrize(
    ("spec", "look", "meta"),
    [
        (NIGHTLY, "2026-03-29T00:30:00Z", {}),
        (NIGHTLY, "2026-04-08T10:00:00Z", {}),
        (NIGHTLY, "2026-03-29T10:00:00Z", {"creationTimestamp": "2026-03-29T08:00:00Z"}),
        ({**NIGHTLY, "suspend": True}, "2026-03-29T10:00:00Z", {}),
        ({**NIGHTLY, "schedule": "30 3 * * *"}, "2026-03-29T10:00:00Z", {}),
        ({**NIGHTLY, "schedule": "30 * * * *"}, "2026-03-29T10:00:00Z", {}),
        ({**NIGHTLY, "timeZone": "Etc/UTC"}, "2026-03-29T10:00:00Z", {}),
    ],
    ids=["before", "long after", "younger", "suspended", "beside it", "every hour", "UTC"],
)
def test_no_other_is(run, tmp_path: Path, spec: Object, look: str, meta: Object) -> None:  # noqa: F811
    assert "TK320" not in said(run, tmp_path, spec, look, **meta)


def test_all_times_that_were_left_out_are_counted(run, tmp_path: Path) -> None:  # noqa: F811
    spec = {**NIGHTLY, "schedule": "*/15 1-3 * * *"}
    out = said(run, tmp_path, spec, "2026-03-29T10:00:00Z")
    assert "was not due at 2026-03-29 02:00:00 (and 3 more) (Europe/Berlin)" in out


@pytest.mark.parametrize(
    ("version", "due"),
    [("v1.19.16", "2026-05-11 00:00:00Z"), ("v1.33.4", "2026-05-05 00:00:00Z")],
)
def test_explain_says_when_it_is_due_as_the_release_reads_it(
    run: Any, tmp_path: Path, version: str, due: str  # noqa: F811
) -> None:  # fmt: skip
    """Up to 1.21 `*/2` has the star by which both day fields have to fit: Mondays of odd days."""
    file = tmp_path / "cron.json"
    found = cron({"schedule": "0 0 */2 * 1"}, {"lastScheduleTime": "2026-05-04T00:00:00Z"})
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [found]}))
    asked = (str(file), "tick", "--at", "2026-05-04T10:00:00Z", "--kubernetes-version", version)
    assert f"next due {due} (0 0 */2 * 1 in UTC" in run("explain", *asked)[1]
    tokyo = run("explain", *asked, "--process-zone", "Asia/Tokyo")[1]
    assert "15:00:00Z (0 0 */2 * 1 in Asia/Tokyo, as it has no timeZone)" in tokyo


@pytest.mark.parametrize("version", ["v1.19.16", "v1.33.4"])
def test_times_of_one_reading_alone_are_none_of_the_other(
    run: Any, tmp_path: Path, version: str  # noqa: F811
) -> None:  # fmt: skip
    """The rarer reading's times reach farther: those of the other were not looked at so far."""
    file = tmp_path / "cron.json"
    found = cron({"schedule": "0 0 */2 * 1"}, {"lastScheduleTime": "2026-05-04T00:00:00Z"})
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [found]}))
    asked = (str(file), "--at", "2026-05-04T10:00:00Z", "--kubernetes-version", version)
    out = " ".join(run("diagnose", *asked)[1].split())
    only = "2026-05-05 00:00:00Z, 2026-05-07 00:00:00Z, 2026-05-09 00:00:00Z"
    assert f"times that only one of them has: {only} do:" in out
