"""A status that no sync explains: whose it may be, in a record that holds no managedFields."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from tests.support.objects import job
from tracekit.base.kube.views import Condition, JobStatus, JobView
from tracekit.check.compare.fields import FieldDifference
from tracekit.check.replay.history import Manager, Revision, WriteKind, build_history
from tracekit.check.replay.recorded_api import Problem
from tracekit.check.replay.unsigned_writes import miscounts, unsigned
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

JOB = job()
RUNNING = JobStatus(active=2, ready=1, start_ns=1)
OVER = replace(RUNNING, active=0, conditions=(Condition("Complete", "True", "", "", None, None),))


class Unsigned:
    """The evidence of objects whose managedFields were left out."""

    def managers(self) -> tuple[Manager, ...]:
        return ()


class Signed:
    """The evidence of objects that only the controller wrote."""

    def managers(self) -> tuple[Manager, ...]:
        return (Manager("kube-controller-manager", "Update", "status", 1),)


def why(
    statuses: list[JobStatus], evidence: object, version: str, *, other_counts: bool = False
) -> str | None:
    """What is said of the second of these statuses of a Job."""
    jobs: list[Revision[JobView]] = [
        Revision(rv, rv, rv, "MODIFIED", replace(JOB, rv=rv, status=status), cast("Any", evidence))
        for rv, status in enumerate(statuses, 1)
    ]
    history = build_history("default", "demo", jobs, (), ())
    write = next(write for write in history.writes if write.kind is WriteKind.STATUS_UPDATE)
    return unsigned(history, write, JobRules.of(Era.resolve(version)), other_counts=other_counts)


HIGHER = replace(RUNNING, active=3)
FAILED = replace(RUNNING, failed=3)
COUNTING = replace(RUNNING, uncounted_failed=("a",))
CASES = {
    # the statuses of a Job, of which no sync wrote the second -> what tells that it may be a user's
    "a count that the next one takes back": ([RUNNING, FAILED, RUNNING], "takes it back"),
    "a count that the next one goes on from": (
        [RUNNING, FAILED, replace(FAILED, failed=4)],
        "write this count alone",
    ),
    "a count that nothing follows": ([RUNNING, FAILED], "write this count alone"),
    "a count before the first sync": (
        [JobStatus(), JobStatus(succeeded=4), replace(RUNNING, active=0, succeeded=4)],
        "write this count alone",
    ),
    "a count of what was to be counted": (
        [COUNTING, replace(COUNTING, failed=1, uncounted_failed=())],
        None,
    ),
    "counted anew, and something else by then": (
        [RUNNING, HIGHER, replace(RUNNING, active=1, failed=1)],
        "write this count alone",
    ),
    "counted anew, at the end of the record": ([RUNNING, HIGHER], "write this count alone"),
    "counted anew, with another field": (
        [RUNNING, replace(HIGHER, succeeded=1), replace(RUNNING, active=1, succeeded=1)],
        None,
    ),
    "two counts": ([JobStatus(), JobStatus(active=1, ready=1)], None),
    "of a Job that is over": ([OVER, replace(OVER, failed=1)], "a Job that is over"),
}


@pytest.mark.parametrize(("statuses", "said"), CASES.values(), ids=CASES.keys())
def test_without_managed_fields(statuses: list[JobStatus], said: str | None) -> None:
    found = why(statuses, Unsigned(), "v1.30.14")
    assert (found is None) if said is None else (found is not None and said in found)


@pytest.mark.parametrize("statuses", [case for case, _ in CASES.values()], ids=CASES.keys())
def test_with_managed_fields_the_controller_is_held_to_its_rules(statuses: list[JobStatus]) -> None:
    assert why(statuses, Signed(), "v1.30.14") is None


@pytest.mark.parametrize("statuses", [case for case, _ in CASES.values()], ids=CASES.keys())
def test_up_to_1_22_a_sync_on_an_old_cache_may_write_over_a_status(
    statuses: list[JobStatus],
) -> None:
    assert why(statuses, Unsigned(), "v1.22.17") is None


def test_where_a_sync_writes_other_counts_it_is_the_controller_that_is_asked() -> None:
    statuses = [RUNNING, HIGHER, replace(RUNNING, active=1)]
    assert why(statuses, Unsigned(), "v1.30.14") is not None
    assert why(statuses, Unsigned(), "v1.30.14", other_counts=True) is None


@pytest.mark.parametrize(
    ("paths", "is_a_count"),
    [
        (["status.active"], True),
        (["status.active", "status.uncountedTerminatedPods.failed"], False),
    ],
)
def test_a_sync_that_writes_more_than_other_counts_has_not_made_the_write(
    paths: list[str], is_a_count: bool
) -> None:
    fields = tuple(FieldDifference(path, 1, 2) for path in paths)
    problem = Problem(WriteKind.STATUS_UPDATE, "different", None, "another status", fields)
    assert miscounts(problem) is is_a_count
