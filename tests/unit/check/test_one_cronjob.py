"""One CronJob of two runs, seen whole: what is said when one thing in its record is otherwise."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.simulated_rows import Row, report_of, rows_of

VERSION = "v1.36.3"
WORKLOAD = {
    "duration": "150s",
    "seed": 1,
    "cronJobs": [
        {
            "name": "tick",
            "namespace": "ns",
            "spec": {
                "schedule": "* * * * *",
                "concurrencyPolicy": "Forbid",
                "successfulJobsHistoryLimit": 1,
            },
            "pods": {"run": "2s"},
        }
    ],
}
#: Names that the schedule gives its runs: minutes since 1970.
FIRST, SECOND = "tick-29453761", "tick-29453762"
Edit = Callable[[list[Row]], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return rows_of(tmp_path_factory.mktemp("tick"), WORKLOAD, VERSION)


def _without(rows: list[Row], *texts: str) -> None:
    rows[:] = [row for row in rows if not any(t in json.dumps(row["object"]) for t in texts)]


def _second_never_was(rows: list[Row]) -> None:
    # Its status names it as well, and the first run is kept where no second one succeeded.
    _without(rows, SECOND, '"lastScheduleTime": "2026-01-01T00:02:00Z"', "SuccessfulDelete")
    rows[:] = [row for row in rows if row["type"] != "DELETED"]


def _first_stays(rows: list[Row]) -> None:
    rows[:] = [row for row in rows if row["type"] != "DELETED"]
    _without(rows, '"SuccessfulDelete"')


def _never_scheduled(rows: list[Row]) -> None:
    for row in rows:
        if row["resource"] == "cronjobs" and "active" in row["object"].get("status", {}):
            row["object"]["status"]["lastScheduleTime"] = "2026-01-01T00:00:00Z"
            return


def _another_name(rows: list[Row]) -> None:
    text = json.dumps(rows).replace(SECOND, "tick-29453999")
    rows[:] = json.loads(text)


def _other_image(rows: list[Row]) -> None:
    for row in rows:
        if row["resource"] == "jobs" and row["object"].get("metadata", {}).get("name") == SECOND:
            template = row["object"]["spec"]["template"]
            template["spec"]["containers"][0]["image"] = "another"


def _event_lost(rows: list[Row]) -> None:
    _without(rows, "SawCompletedJob")


def _suspended(rows: list[Row]) -> None:
    for row in rows:
        if row["resource"] == "cronjobs" and "spec" in row["object"]:
            row["object"]["spec"]["suspend"] = True


GONE = "job: foreign pod-delete"  # the garbage collector's, after the first run's deletion
#: The change, and all that is said then but `match`.
CASES: dict[str, tuple[Edit, list[str]]] = {
    "whole": (lambda _: None, [GONE]),
    "an Event was lost, as client-go may": (_event_lost, [GONE]),
    "the second run never was": (_second_never_was, ["cronjob: missing job-create"]),
    "the first run outlives its limit": (_first_stays, ["cronjob: missing job-delete"]),
    "a status names no run": (
        _never_scheduled,
        [
            "cronjob: extra status-update",
            "cronjob: extra event",
            "cronjob: different status-update",
            GONE,
        ],
    ),
    "the second run has another time's name": (
        _another_name,
        [
            "cronjob: missing job-create",
            "cronjob: different status-update",
            "cronjob: different job-create",
            "cronjob: extra event",
            GONE,
        ],
    ),
    "the second run is not as the template has it": (
        _other_image,
        ["cronjob: different job-create", "job: different pod-create", GONE],
    ),
    "it was suspended all the time": (
        _suspended,
        ["cronjob: extra job-create", "cronjob: extra status-update", "cronjob: extra event"] * 2
        + [GONE],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_change_has_its_verdicts(name: str, whole: list[Row], tmp_path: Path) -> None:
    edit, said = CASES[name]
    rows = copy.deepcopy(whole)
    edit(rows)
    found = [
        f"{one.controller}: {one.verdict.value} {one.action}"
        for one in report_of(tmp_path / "trace", rows, VERSION).judgements
        if one.verdict.value != "match"
    ]
    assert sorted(found) == sorted(said)
