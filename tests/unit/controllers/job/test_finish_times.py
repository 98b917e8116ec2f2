"""When a pod finished, the back-off record that follows, and how long it holds.

Upstream: pkg/controller/job/backoff_utils_test.go: TestNewBackoffRecord, TestGetFinishedTime,
TestGetRemainingBackoffTime, TestGetRemainingBackoffTimePerIndex.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects import LONG_AGO_NS, at, condition, container, pod
from tracekit.base.kube.timestamps import NS_PER_S
from tracekit.base.kube.views import (
    INDEX_FAILURE_COUNT_ANNOTATION,
    INDEX_IGNORED_FAILURE_COUNT_ANNOTATION,
    PodView,
)
from tracekit.ports.job.backoff import (
    NO_FAILURES,
    BackoffRecord,
    absolute_failure_count,
    backoff_end_ns,
    finish_time_ns,
    finish_time_of_containers_ns,
    index_backoff_end_ns,
    index_failure_count,
    new_backoff_record,
)

RUNNING = container()
NO_END = {"name": "main", "state": {"terminated": {"exitCode": 1}}}

FINISH_TIMES: dict[str, tuple[dict[str, Any], int]] = {
    "the latest end of all containers": (
        {"containers": [container(finished_ns=at(s)) for s in (-1, 0, -2)]},
        at(0),
    ),
    "one container still runs: the deletion": (
        {"containers": [container(finished_ns=at(-1)), RUNNING], "deleted_ns": at(5)},
        at(5),
    ),
    "no container ended: the deletion": ({"containers": [RUNNING], "deleted_ns": at(5)}, at(5)),
    "the deletion less its grace period": (
        {"containers": [RUNNING], "deleted_ns": at(5), "grace_s": 30},
        at(-25),
    ),
    "an end without a time: the moment at which it was no longer ready": (
        {
            "containers": [NO_END],
            "conditions": [condition("Ready", "False", at_ns=at(-3))],
            "deleted_ns": at(5),
        },
        at(-3),
    ),
    "ready all the time: the deletion": (
        {
            "containers": [NO_END],
            "conditions": [condition("Ready", at_ns=at(-3))],
            "deleted_ns": at(5),
        },
        at(5),
    ),
    "no longer ready, nobody knows since when: the deletion": (
        {
            "containers": [NO_END],
            "conditions": [{"type": "Ready", "status": "False"}],
            "deleted_ns": at(5),
        },
        at(5),
    ),
    "nothing known: the creation": ({"containers": [NO_END], "created_ns": at(-60)}, at(-60)),
    "no containers at all: the creation": ({"containers": [], "created_ns": at(-60)}, at(-60)),
    "a sidecar ends after the regular containers": (
        {
            "containers": [container(finished_ns=at(-1))],
            "init_containers": [container("proxy", finished_ns=at(0))],
            "sidecars": ["proxy"],
        },
        at(0),
    ),
    "a sidecar still runs: the deletion": (
        {
            "containers": [container(finished_ns=at(-1))],
            "init_containers": [container("proxy")],
            "sidecars": ["proxy"],
            "deleted_ns": at(5),
        },
        at(5),
    ),
    "an init container that is no sidecar does not matter": (
        {
            "containers": [container(finished_ns=at(-1))],
            "init_containers": [container("setup", finished_ns=at(9)), container("more")],
        },
        at(-1),
    ),
    "a regular container still runs, the sidecar has ended: its end": (
        {
            "containers": [RUNNING],
            "init_containers": [container("proxy", finished_ns=at(-4))],
            "sidecars": ["proxy"],
            "deleted_ns": at(5),
        },
        at(-4),
    ),
}


@pytest.mark.parametrize(("fields", "expected"), FINISH_TIMES.values(), ids=FINISH_TIMES.keys())
def test_finish_time(fields: dict[str, Any], expected: int) -> None:
    assert finish_time_ns(pod("a", "Failed", **fields)) == expected


#: What the releases before 1.27.5 make of some of the same pods.
FINISH_TIMES_OF_CONTAINERS: dict[str, tuple[dict[str, Any], int]] = {
    "the latest end of all containers": FINISH_TIMES["the latest end of all containers"],
    "one container still runs: now": (
        {"containers": [container(finished_ns=at(-1)), RUNNING], "deleted_ns": at(-5)},
        at(7),
    ),
    "an end without a time, no longer ready: now": (
        {"containers": [NO_END], "conditions": [condition("Ready", "False", at_ns=at(-3))]},
        at(7),
    ),
    "one of two ends has a time": ({"containers": [NO_END, container(finished_ns=at(-2))]}, at(-2)),
    "no containers at all: now": ({"containers": [], "created_ns": at(-60)}, at(7)),
    "a sidecar that still runs does not matter": (
        {
            "containers": [container(finished_ns=at(-1))],
            "init_containers": [container("proxy")],
            "sidecars": ["proxy"],
        },
        at(-1),
    ),
}


@pytest.mark.parametrize(
    ("fields", "expected"),
    FINISH_TIMES_OF_CONTAINERS.values(),
    ids=FINISH_TIMES_OF_CONTAINERS.keys(),
)
def test_finish_time_of_containers(fields: dict[str, Any], expected: int) -> None:
    assert finish_time_of_containers_ns(pod("a", "Failed", **fields), at(7)) == expected


def test_up_to_1_30_sidecars_do_not_hold_the_finish_time_up() -> None:
    fields, _ = FINISH_TIMES["a sidecar still runs: the deletion"]
    assert finish_time_ns(pod("a", "Failed", **fields), sidecars=False) == at(-1)


def ended(*seconds: float) -> list[int]:
    return [at(second) for second in seconds]


RECORDS: dict[str, tuple[BackoffRecord, list[float], list[float], BackoffRecord]] = {
    # before, successes, failures, after
    "nothing": (NO_FAILURES, [], [], NO_FAILURES),
    "nothing new": (BackoffRecord(2, at(-9)), [], [], BackoffRecord(2, at(-9))),
    "the first failure": (NO_FAILURES, [], [0], BackoffRecord(1, at(0))),
    "two failures, the later one first": (NO_FAILURES, [], [0, -1], BackoffRecord(2, at(0))),
    "one more failure": (BackoffRecord(2, None), [], [0], BackoffRecord(3, at(0))),
    "a success": (NO_FAILURES, [0], [], NO_FAILURES),
    "a success after earlier failures": (BackoffRecord(4, at(-9)), [0], [], NO_FAILURES),
    "failures and a later success": (NO_FAILURES, [0], [-2, -1], NO_FAILURES),
    "failures before and after a success": (
        NO_FAILURES,
        [-2],
        [0, -4, -3, -1],
        BackoffRecord(2, at(0)),
    ),
    "a failure after a success forgets those before": (
        BackoffRecord(5, at(-9)),
        [-2],
        [0],
        BackoffRecord(1, at(0)),
    ),
    "a failure at the time of a success": (NO_FAILURES, [0], [0], NO_FAILURES),
    "the last of several successes counts": (NO_FAILURES, [-5, -1, -3], [-2], NO_FAILURES),
    "a failure that ended before the one on record": (
        BackoffRecord(1, at(0)),
        [],
        [-7],
        BackoffRecord(2, at(-7)),
    ),
}


@pytest.mark.parametrize(
    ("before", "succeeded", "failed", "after"), RECORDS.values(), ids=RECORDS.keys()
)
def test_record(
    before: BackoffRecord, succeeded: list[float], failed: list[float], after: BackoffRecord
) -> None:
    assert new_backoff_record(before, ended(*succeeded), ended(*failed)) == after


DELAYS: dict[str, tuple[int, int]] = {
    # failures -> seconds, with a base of 5 s and a limit of 700 s
    "one": (1, 5),
    "two": (2, 10),
    "three": (3, 20),
    "eight": (8, 640),
    "nine, at the limit": (9, 700),
    "a hundred": (100, 700),
    "as many as an int32 holds": (2**31 - 1, 700),
}


@pytest.mark.parametrize(("failures", "seconds"), DELAYS.values(), ids=DELAYS.keys())
def test_back_off_of_so_many_failures(failures: int, seconds: int) -> None:
    record = BackoffRecord(failures, at(-3))
    end_ns = backoff_end_ns(record, base_ns=5 * NS_PER_S, limit_ns=700 * NS_PER_S)
    assert end_ns == at(seconds - 3)


def test_without_failures_there_is_no_back_off() -> None:
    assert backoff_end_ns(NO_FAILURES, base_ns=1, limit_ns=2) is None
    assert backoff_end_ns(BackoffRecord(0, at(0)), base_ns=1, limit_ns=2) is None


def marked(counted: str | None, ignored: str | None = None) -> PodView:
    marks = {
        INDEX_FAILURE_COUNT_ANNOTATION: counted,
        INDEX_IGNORED_FAILURE_COUNT_ANNOTATION: ignored,
    }
    return pod(
        "a",
        "Failed",
        annotations={key: value for key, value in marks.items() if value is not None},
    )


COUNTS: dict[str, tuple[str | None, str | None, int, int]] = {
    "no annotation": (None, None, 0, 0),
    "counted": ("2", None, 2, 2),
    "counted and ignored": ("2", "3", 2, 5),
    "ignored only": (None, "3", 0, 3),
    "no number": ("many", "", 0, 0),
    "negative": ("-1", "-2", 0, 0),
    "more than an int32 holds": ("2147483648", "1", 0, 1),
}


@pytest.mark.parametrize(
    ("counted", "ignored", "failures", "absolute"), COUNTS.values(), ids=COUNTS.keys()
)
def test_failures_of_an_index(
    counted: str | None, ignored: str | None, failures: int, absolute: int
) -> None:
    found = marked(counted, ignored)
    assert (index_failure_count(found), absolute_failure_count(found)) == (failures, absolute)


INDEX_DELAYS: dict[str, tuple[PodView | None, int | None]] = {
    "no failed pod": (None, None),
    "the first failure": (marked("0"), 5),
    "two before": (marked("2"), 20),
    "two before, one of them ignored": (marked("1", "1"), 20),
    "a corrupt annotation": (marked("x"), 5),
    "at the limit": (marked("40"), 700),
}


@pytest.mark.parametrize(("failed", "seconds"), INDEX_DELAYS.values(), ids=INDEX_DELAYS.keys())
def test_back_off_of_an_index(failed: PodView | None, seconds: int | None) -> None:
    end_ns = index_backoff_end_ns(failed, base_ns=5 * NS_PER_S, limit_ns=700 * NS_PER_S)
    assert end_ns == (None if seconds is None else LONG_AGO_NS + seconds * NS_PER_S)


@given(st.lists(st.integers(-50, 50)), st.lists(st.integers(-50, 50)))
def test_the_record_does_not_depend_on_the_order_of_the_pods(
    succeeded: list[int], failed: list[int]
) -> None:
    before = BackoffRecord(3, at(-60))
    straight = new_backoff_record(before, ended(*succeeded), ended(*failed))
    assert straight == new_backoff_record(before, ended(*succeeded[::-1]), ended(*failed[::-1]))
    assert (straight.last_failure_ns is None) is (straight.failures_after_last_success == 0)


@given(st.integers(1, 200), st.integers(1, 10**10), st.integers(1, 10**12))
def test_more_failures_never_wait_shorter(failures: int, base_ns: int, limit_ns: int) -> None:
    ends = [
        backoff_end_ns(BackoffRecord(count, 0), base_ns=base_ns, limit_ns=limit_ns)
        for count in (failures, failures + 1)
    ]
    assert ends[0] is not None
    assert ends[1] is not None
    assert ends[0] <= ends[1] <= max(limit_ns, base_ns)
