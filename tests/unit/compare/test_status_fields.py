"""An observed Job status against the one that the controller wrote."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.objects import LONG_AGO_NS, NOW_NS, at
from tracekit.base.kube.timestamps import NS_PER_S, floor_second
from tracekit.base.kube.views import Condition, JobStatus
from tracekit.check.compare.status import Interval, status_differences

#: A time that no API object can hold: what the controller took from its clock in this sync.
FRESH_NS = NOW_NS + 1
WINDOW = Interval(at(-3), at(2.5), slack_ns=NS_PER_S)


def cond(kind: str = "Complete", at_ns: int = LONG_AGO_NS, **fields: Any) -> Condition:
    base = Condition(kind, "True", "Why", "because", at_ns, at_ns)
    return base._replace(**fields)


STATUS = JobStatus(
    active=1,
    ready=1,
    succeeded=2,
    failed=3,
    terminating=0,
    start_ns=LONG_AGO_NS,
    completion_ns=LONG_AGO_NS,
    completed_indexes="0,1",
    failed_indexes="2",
    uncounted_succeeded=("a", "b"),
    uncounted_failed=("c", "d"),
    tracks_uncounted=True,
    conditions=(cond("Suspended"), cond("Complete")),
)


def paths(expected: JobStatus, observed: JobStatus) -> list[str]:
    found = status_differences(expected, observed, fresh_ns=FRESH_NS, window=WINDOW)
    return [difference.path for difference in found]


def test_the_same_status_has_no_differences() -> None:
    assert paths(STATUS, replace(STATUS)) == []


CHANGED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "active": ({"active": 0}, ["status.active"]),
    "ready": ({"ready": 0}, ["status.ready"]),
    "ready absent": ({"ready": None}, ["status.ready"]),
    "succeeded": ({"succeeded": 3}, ["status.succeeded"]),
    "failed": ({"failed": 2}, ["status.failed"]),
    "terminating": ({"terminating": 1}, ["status.terminating"]),
    "terminating absent": ({"terminating": None}, ["status.terminating"]),
    "completed indexes": ({"completed_indexes": "0"}, ["status.completedIndexes"]),
    "failed indexes": ({"failed_indexes": ""}, ["status.failedIndexes"]),
    "failed indexes absent": ({"failed_indexes": None}, ["status.failedIndexes"]),
    "start time": ({"start_ns": at(0)}, ["status.startTime"]),
    "start time absent": ({"start_ns": None}, ["status.startTime"]),
    "completion time": ({"completion_ns": at(0)}, ["status.completionTime"]),
    "uncounted lists absent": (
        {"tracks_uncounted": False, "uncounted_succeeded": (), "uncounted_failed": ()},
        [
            "status.uncountedTerminatedPods",
            "status.uncountedTerminatedPods.succeeded",
            "status.uncountedTerminatedPods.failed",
        ],
    ),
    "another uncounted success": (
        {"uncounted_succeeded": ("a", "x")},
        ["status.uncountedTerminatedPods.succeeded"],
    ),
    "an uncounted failure too few": (
        {"uncounted_failed": ("c",)},
        ["status.uncountedTerminatedPods.failed"],
    ),
    "an uncounted failure twice": (
        {"uncounted_failed": ("c", "d", "d")},
        ["status.uncountedTerminatedPods.failed"],
    ),
    "a condition too few": ({"conditions": (cond("Suspended"),)}, ["status.conditions"]),
    "conditions in another order": (
        {"conditions": (cond("Complete"), cond("Suspended"))},
        ["status.conditions"],
    ),
    "another condition": (
        {"conditions": (cond("Suspended"), cond("Failed"))},
        ["status.conditions"],
    ),
    "a condition that is False": (
        {"conditions": (cond("Suspended"), cond(status="False"))},
        ["status.conditions[1].status"],
    ),
    "another reason and message": (
        {"conditions": (cond("Suspended"), cond(reason="X", message="y"))},
        ["status.conditions[1].reason", "status.conditions[1].message"],
    ),
    "another transition time": (
        {"conditions": (cond("Suspended", last_transition_ns=at(0)), cond())},
        ["status.conditions[0].lastTransitionTime"],
    ),
    "another probe time": (
        {"conditions": (cond("Suspended", last_probe_ns=None), cond())},
        ["status.conditions[0].lastProbeTime"],
    ),
    "two fields": ({"active": 0, "failed": 0}, ["status.active", "status.failed"]),
}


@pytest.mark.parametrize(("changes", "expected"), CHANGED.values(), ids=CHANGED.keys())
def test_each_changed_field_is_told(changes: dict[str, Any], expected: list[str]) -> None:
    assert paths(STATUS, replace(STATUS, **changes)) == expected
    assert paths(replace(STATUS, **changes), STATUS) == expected


def test_uids_have_no_order() -> None:
    shuffled = replace(STATUS, uncounted_succeeded=("b", "a"), uncounted_failed=("d", "c"))
    assert paths(STATUS, shuffled) == []


FRESH: dict[str, tuple[int | None, bool]] = {
    "the first second of the window, less the slack": (floor_second(at(-4)), True),
    "a second before that": (floor_second(at(-5)), False),
    "the last second of the window, plus the slack": (at(3), True),
    "a second after that": (at(4), False),
    "absent": (None, False),
}


@pytest.mark.parametrize(("observed", "fits"), FRESH.values(), ids=FRESH.keys())
def test_times_taken_in_the_sync_must_lie_in_its_window(observed: int | None, fits: bool) -> None:
    fresh = replace(STATUS, start_ns=FRESH_NS)
    found = paths(fresh, replace(STATUS, start_ns=observed))
    assert found == ([] if fits else ["status.startTime"])


def test_a_fresh_condition_may_have_any_second_of_the_window() -> None:
    fresh = replace(STATUS, conditions=(cond("Suspended"), cond(at_ns=FRESH_NS)))
    seen = replace(STATUS, conditions=(cond("Suspended"), cond(at_ns=at(1))))
    assert paths(fresh, seen) == []
    late = replace(STATUS, conditions=(cond("Suspended"), cond(at_ns=at(60))))
    assert paths(fresh, late) == [
        "status.conditions[1].lastProbeTime",
        "status.conditions[1].lastTransitionTime",
    ]


def test_times_are_told_as_rfc_3339() -> None:
    (found,) = status_differences(
        STATUS, replace(STATUS, start_ns=at(0)), fresh_ns=FRESH_NS, window=WINDOW
    )
    assert (found.expected, found.observed) == ("2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z")


@pytest.mark.parametrize(
    ("decided_s", "apart"), [(0, []), (-1, []), (-6, ["status.completionTime"])]
)
def test_the_completion_time_is_as_old_as_the_decision(decided_s: int, apart: list[str]) -> None:
    """A sync that waits between the decision and its last write takes two times far apart."""
    window = Interval(at(-9), at(2.5), slack_ns=NS_PER_S)
    expected = replace(
        STATUS,
        completion_ns=FRESH_NS,
        conditions=(
            cond("SuccessCriteriaMet", floor_second(at(-5 + decided_s))),
            cond("Complete", FRESH_NS),
        ),
    )
    observed = replace(
        expected,
        completion_ns=floor_second(at(-5)),
        conditions=(expected.conditions[0], cond("Complete", floor_second(at(0)))),
    )
    found = status_differences(expected, observed, fresh_ns=FRESH_NS, window=window)
    assert [difference.path for difference in found] == apart
