"""What the API server refuses of a Job's status, by version.

Upstream: pkg/apis/batch/validation/validation_test.go: TestValidateJobUpdateStatus;
pkg/registry/batch/job/strategy_test.go: TestStatusStrategy_ValidateUpdate. Witnessed by
traces/v1.32.2-twins (a suspended Job with completions 0, a resumed Job, more ready pods than active
ones); the audit log there has the server's 422s. The other rules guard against controllers other
than the one that is ported: no trace shows them.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.objects import at, job
from tracekit.base.kube.views import Condition, JobStatus, JobView
from tracekit.ports.job.status_validation import status_refusals
from tracekit.versions.era import Era
from tracekit.versions.status_validation import StatusValidation


def validation(version: str, **gates: bool) -> StatusValidation:
    return StatusValidation.of(Era.resolve(version, gates))


def conditions(*types: str) -> tuple[Condition, ...]:
    """Conditions that are True, or False where the name ends in a minus."""
    return tuple(
        Condition(kind.rstrip("-"), "False" if kind.endswith("-") else "True", "", "", at(0), at(0))
        for kind in types
    )


def held(status: JobStatus, **spec: Any) -> JobView:
    return replace(job(**spec), status=status)


STARTED = JobStatus(start_ns=at(-60), tracks_uncounted=True)
ENDING = replace(STARTED, conditions=conditions("SuccessCriteriaMet"))
COMPLETE = replace(
    STARTED, completion_ns=at(0), conditions=conditions("SuccessCriteriaMet", "Complete")
)
FAILING = replace(STARTED, conditions=conditions("FailureTarget"))
FAILED = replace(STARTED, conditions=conditions("FailureTarget", "Failed"))
SUSPENDED = replace(STARTED, conditions=conditions("Suspended"))
INDEXED = {"indexed": True, "completions": 5, "parallelism": 2}
PER_INDEX = {**INDEXED, "backoffLimitPerIndex": 1}

REFUSED: dict[str, tuple[JobStatus, JobStatus, dict[str, Any], str]] = {
    # the status before, the new one, the spec -> the field that is complained about
    "a negative count": (STARTED, replace(STARTED, failed=-1), {}, "active"),
    "a uid in both lists": (
        STARTED,
        replace(STARTED, uncounted_succeeded=("a",), uncounted_failed=("a",)),
        {},
        "uncountedTerminatedPods",
    ),
    "complete and failed": (
        FAILED,
        replace(COMPLETE, conditions=(*FAILED.conditions, *COMPLETE.conditions)),
        {},
        "conditions",
    ),
    "complete without a completion time": (
        ENDING,
        replace(COMPLETE, completion_ns=None),
        {},
        "completionTime",
    ),
    "a completion time of a Job that goes on": (
        STARTED,
        replace(STARTED, completion_ns=at(0)),
        {},
        "completionTime",
    ),
    "a completion before the start": (
        ENDING,
        replace(COMPLETE, completion_ns=at(-61)),
        {},
        "completionTime",
    ),
    "failed without an interim condition": (
        STARTED,
        replace(STARTED, conditions=conditions("Failed")),
        {},
        "conditions",
    ),
    "complete without an interim condition": (
        STARTED,
        replace(COMPLETE, conditions=conditions("Complete")),
        {},
        "conditions",
    ),
    "finished with active pods": (ENDING, replace(COMPLETE, active=1), {}, "active"),
    "finished without a start": (
        replace(ENDING, start_ns=None),
        replace(COMPLETE, start_ns=None),
        {"suspend": True},
        "startTime",
    ),
    "finished with uncounted pods": (
        replace(ENDING, uncounted_failed=("a",)),
        replace(COMPLETE, uncounted_failed=("a",)),
        {},
        "uncountedTerminatedPods",
    ),
    "indexes out of order": (
        STARTED,
        replace(STARTED, completed_indexes="3,1"),
        INDEXED,
        "completedIndexes",
    ),
    "an index beyond the completions": (
        STARTED,
        replace(STARTED, completed_indexes="0-5"),
        INDEXED,
        "completedIndexes",
    ),
    "failed indexes that are no numbers": (
        STARTED,
        replace(STARTED, failed_indexes="x"),
        PER_INDEX,
        "failedIndexes",
    ),
    "completed indexes of a Job without indexes": (
        STARTED,
        replace(STARTED, completed_indexes="0"),
        {},
        "completedIndexes",
    ),
    "failed indexes without a limit per index": (
        STARTED,
        replace(STARTED, failed_indexes="0"),
        INDEXED,
        "failedIndexes",
    ),
    "an index that completed and failed": (
        STARTED,
        replace(STARTED, completed_indexes="0-2", failed_indexes="2-3"),
        PER_INDEX,
        "failedIndexes",
    ),
    "finished while pods terminate": (ENDING, replace(COMPLETE, terminating=1), {}, "terminating"),
    "more ready than active": (STARTED, replace(STARTED, ready=1), {}, "ready"),
    "an ending taken back": (FAILING, STARTED, {}, "conditions"),
    "fewer failures": (replace(STARTED, failed=2), replace(STARTED, failed=1), {}, "failed"),
    "fewer successes": (replace(STARTED, succeeded=2), STARTED, {}, "succeeded"),
    "another completion time": (
        COMPLETE,
        replace(COMPLETE, completion_ns=at(9)),
        {},
        "completionTime",
    ),
    "another start": (STARTED, replace(STARTED, start_ns=at(0)), {}, "startTime"),
    "a start that is gone": (STARTED, replace(STARTED, start_ns=None), {}, "startTime"),
    "criteria met and failing": (
        FAILING,
        replace(FAILING, conditions=conditions("FailureTarget", "SuccessCriteriaMet")),
        {},
        "conditions",
    ),
    "criteria taken back": (ENDING, STARTED, {}, "conditions"),
}


@pytest.mark.parametrize(("before", "after", "spec", "field"), REFUSED.values(), ids=REFUSED.keys())
def test_a_status_is_refused(
    before: JobStatus, after: JobStatus, spec: dict[str, Any], field: str
) -> None:
    found = status_refusals(held(before, **spec), after, validation("1.32.2"))
    assert found
    assert found[0].startswith(f"status.{field}: ")
    always = field in ("active", "uncountedTerminatedPods") and before is STARTED
    assert bool(status_refusals(held(before, **spec), after, validation("1.29.15"))) is always


TAKEN: dict[str, tuple[JobStatus, JobStatus, dict[str, Any]]] = {
    "a first start": (JobStatus(), STARTED, {}),
    "an ending": (ENDING, COMPLETE, {}),
    "a failure": (FAILING, FAILED, {}),
    "a start within the same second": (
        STARTED,
        replace(STARTED, start_ns=at(-60) + 999_999_999),
        {},
    ),
    "a start that goes while the Job is suspended": (
        STARTED,
        replace(SUSPENDED, start_ns=None),
        {"suspend": True},
    ),
    "what was wrong before and does not change": (
        replace(STARTED, ready=2, active=1, completed_indexes="9"),
        replace(STARTED, ready=2, active=1, completed_indexes="9", failed=1),
        {},
    ),
    "fewer successes of an Indexed Job that may be scaled": (
        replace(STARTED, succeeded=2),
        replace(STARTED, succeeded=1),
        {**INDEXED, "parallelism": 5},
    ),
    "indexes": (
        STARTED,
        replace(STARTED, completed_indexes="0,2-3", failed_indexes="1,4"),
        PER_INDEX,
    ),
}


@pytest.mark.parametrize(("before", "after", "spec"), TAKEN.values(), ids=TAKEN.keys())
def test_a_status_is_taken(before: JobStatus, after: JobStatus, spec: dict[str, Any]) -> None:
    assert status_refusals(held(before, **spec), after, validation("1.32.2")) == ()


BY_VERSION: dict[str, tuple[JobStatus, JobStatus, dict[str, Any], dict[str, bool]]] = {
    # before, after, spec -> whether a version refuses it
    "a resumed Job begins anew": (
        SUSPENDED,
        replace(STARTED, start_ns=at(0), conditions=conditions("Suspended-")),
        {},
        {
            "1.29.15": False,
            "1.31.14": False,  # the gate JobManagedBy is off there
            "1.32.9": True,
            "1.32.10": False,
            "1.33.5": True,
            "1.33.6": False,
            "1.34.1": True,
            "1.34.2": False,
            "1.35.0": False,
        },
    ),
    "a suspended Job without completions ends": (
        replace(ENDING, start_ns=None),
        replace(COMPLETE, start_ns=None),
        {"suspend": True, "completions": 0, "parallelism": 0},
        {
            "1.31.14": False,
            "1.32.6": True,
            "1.32.7": False,
            "1.33.2": True,
            "1.33.3": False,
            "1.34.0": False,
        },
    ),
    "more ready than active": (
        STARTED,
        replace(STARTED, ready=1),
        {},
        {"1.31.14": False, "1.32.0": True, "1.36.3": True},
    ),
}


@pytest.mark.parametrize(
    ("version", "case", "refused"),
    [(v, case, r) for case, (*_, table) in BY_VERSION.items() for v, r in table.items()],
)
def test_what_a_version_refuses(version: str, case: str, *, refused: bool) -> None:
    before, after, spec, _ = BY_VERSION[case]
    assert bool(status_refusals(held(before, **spec), after, validation(version))) is refused


def test_the_gate_brings_the_rules_of_its_release() -> None:
    before, after = held(STARTED), replace(STARTED, ready=1)
    assert not status_refusals(before, after, validation("1.30.14", JobManagedBy=True))
    assert status_refusals(before, after, validation("1.31.0", JobManagedBy=True))
    assert not status_refusals(before, after, validation("1.32.2", JobManagedBy=False))
    moved = replace(STARTED, start_ns=at(0))
    assert status_refusals(before, moved, validation("1.30.14", JobManagedBy=True))
    # An ending needs no interim condition there yet.
    failed = replace(STARTED, conditions=conditions("Failed"))
    assert not status_refusals(before, failed, validation("1.30.14", JobManagedBy=True))


def test_success_criteria_are_for_jobs_that_ask_for_them_where_endings_need_no_interim_condition():
    plain, indexed = held(STARTED), held(STARTED, **INDEXED, successPolicy={"rules": [{}]})
    for version, refused in (("1.30.14", True), ("1.31.0", False), ("1.36.3", False)):
        assert bool(status_refusals(plain, ENDING, validation(version))) is refused
        assert not status_refusals(indexed, ENDING, validation(version))
    off = validation("1.31.0", JobPodReplacementPolicy=False)
    assert status_refusals(plain, ENDING, off)
    assert not status_refusals(held(ENDING), replace(ENDING, failed=1), off)
    without = replace(COMPLETE, conditions=conditions("Complete"))
    asked = held(STARTED, **INDEXED, successPolicy={"rules": [{}]})
    assert status_refusals(asked, without, off)
