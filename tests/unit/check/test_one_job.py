"""One Job of one pod, seen whole: what is said when one thing in its record is other than it was.

Each case names the change and the verdicts that it makes, beside the controller's reason for them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.simulated_rows import Row, report_of, rows_of

VERSION = "v1.36.3"
WORKLOAD = {
    "duration": "30s",
    "seed": 1,
    "jobs": [
        {
            "name": "one",
            "namespace": "ns",
            "at": 2,
            "spec": {"completions": 1, "parallelism": 1},
            "pods": {"run": "3s"},
        }
    ],
}

Edit = Callable[[list[Row]], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return rows_of(tmp_path_factory.mktemp("one"), WORKLOAD, VERSION)


def _of(rows: list[Row], resource: str) -> list[Row]:
    return [r for r in rows if r["resource"] == resource and "metadata" in r["object"]]


def _without(rows: list[Row], gone: list[Row]) -> None:
    rows[:] = [row for row in rows if row not in gone]


def _pod_unseen(rows: list[Row]) -> None:
    _without(rows, _of(rows, "pods"))


def _event_unseen(rows: list[Row]) -> None:
    _without(rows, _of(rows, "events")[:1])


def _finalizer_kept(rows: list[Row]) -> None:
    _without(rows, _of(rows, "pods")[-1:])


def _last_status_unseen(rows: list[Row]) -> None:
    _without(rows, _of(rows, "jobs")[-1:])


def _succeeded_two(rows: list[Row]) -> None:
    _of(rows, "jobs")[-1]["object"]["status"]["succeeded"] = 2


def _other_reason(rows: list[Row]) -> None:
    for condition in _of(rows, "jobs")[-1]["object"]["status"]["conditions"]:
        condition["reason"] = "Other"


def _other_image(rows: list[Row]) -> None:
    for row in _of(rows, "pods"):
        row["object"]["spec"]["containers"][0]["image"] = "another"


def _ends_early(rows: list[Row]) -> None:
    last = _of(rows, "jobs")[-2]
    del rows[rows.index(last) + 1 :]


def _signed_by_a_user(rows: list[Row]) -> None:
    for entry in _of(rows, "jobs")[-1]["object"]["metadata"]["managedFields"]:
        entry["manager"] = "kubectl-edit"


#: The change, and all that is said then but `match`.
CASES: dict[str, tuple[Edit, list[str]]] = {
    "whole": (lambda _: None, []),
    "its last revisions are after the end of the record": (_ends_early, []),
    "an Event was lost, as client-go may": (_event_unseen, []),
    "the last status was never written": (_last_status_unseen, ["extra event"]),
    "the finalizer stays": (
        _finalizer_kept,
        ["missing finalizer-removal by the Job controller", "missing finalizer-removal by orphans"],
    ),
    "the status counts a pod too many": (_succeeded_two, ["different status-update"]),
    "its conditions have another reason": (_other_reason, ["different status-update"]),
    "the pod is not as the template has it": (_other_image, ["different pod-create"]),
    "a user wrote the last status": (
        _signed_by_a_user,
        ["foreign status-update", "extra event"],
    ),
    "its pod never was": (
        _pod_unseen,
        [
            "extra event",
            "missing pod-create",
            "extra status-update",
            "different status-update",
            "different status-update",
            "extra event",
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_change_has_its_verdicts(name: str, whole: list[Row], tmp_path: Path) -> None:
    edit, said = CASES[name]
    rows = copy.deepcopy(whole)
    edit(rows)
    assert _verdicts(rows, tmp_path / "trace") == said


def _verdicts(rows: list[Row], place: Path) -> list[str]:
    return [
        f"{one.verdict.value} {one.action}{_by_whom(one.why)}"
        for one in report_of(place, rows, VERSION).judgements
        if one.verdict.value != "match"
    ]


def _by_whom(why: str) -> str:
    if "finalizer" not in why:
        return ""
    return " by orphans" if "orphan worker" in why else " by the Job controller"
