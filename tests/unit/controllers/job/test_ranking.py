"""Which active pods are deleted first.

Upstream: pkg/controller/controller_utils_test.go:TestSortingActivePods,
pkg/controller/job/indexed_job_utils_test.go:TestAppendDuplicatedIndexPodsForRemoval.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fake_api import Bench
from tests.support.objects import at, container, indexed_pods, job, pod, rules
from tracekit.base.kube.views import PodView
from tracekit.ports.job.ranking import (
    compare_active_pods,
    indexes_of,
    pods_for_removal,
    rank_active_pods,
)

#: Deleted first to last; each pod differs from its neighbour in the one respect that its name says.
IN_ORDER = [
    pod("unassigned", "Pending"),
    pod("unassigned-running", "Running"),
    pod("assigned-pending", "Pending", node="n"),
    pod("assigned-unknown", "Unknown", node="n"),
    pod("running-not-ready", node="n"),
    pod("ready-since-when", node="n", conditions=[{"type": "Ready", "status": "True"}]),
    pod("ready-since-a-second", node="n", ready_since_ns=at(-1)),
    pod(
        "ready-for-long-restarted",
        node="n",
        ready_since_ns=at(-9),
        containers=[container(restarts=3)],
    ),
    pod(
        "ready-for-long-restarted-once",
        node="n",
        ready_since_ns=at(-9),
        containers=[container(restarts=1)],
    ),
    pod(
        "ready-for-long-sidecar-restarted",
        node="n",
        ready_since_ns=at(-9),
        init_containers=[container("proxy", restarts=2)],
        sidecars=["proxy"],
    ),
    pod("ready-for-long-young", node="n", ready_since_ns=at(-9), created_ns=at(-100)),
    pod("ready-for-long-old", node="n", ready_since_ns=at(-9), created_ns=at(-200)),
]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(first, second, id=f"{first.name} before {second.name}")
        for first, second in itertools.pairwise(IN_ORDER)
    ],
)
def test_neighbours(first: PodView, second: PodView) -> None:
    assert compare_active_pods(first, second) < 0
    assert compare_active_pods(second, first) > 0


def test_every_pair_ranks_as_the_list_says() -> None:
    for left, right in itertools.combinations(IN_ORDER, 2):
        assert compare_active_pods(left, right) < 0, (left.name, right.name)


@given(st.permutations(IN_ORDER))
def test_the_given_order_does_not_matter(given_pods: list[PodView]) -> None:
    assert rank_active_pods(given_pods, ()) == IN_ORDER


TIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "alike": ({}, {}),
    "two nodes": ({"node": "n"}, {"node": "m"}),
    "restarts of init containers": ({"init_containers": [container("i", restarts=9)]}, {}),
    "labels": ({"labels": {"a": "b"}}, {}),
}


@pytest.mark.parametrize(("left", "right"), TIES.values(), ids=TIES.keys())
def test_pods_that_rank_equal(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert compare_active_pods(pod("a", **left), pod("b", **right)) == 0


def test_the_most_restarted_container_counts_not_the_sum() -> None:
    one = pod("one", containers=[container(restarts=3)])
    many = pod("many", containers=[container(restarts=2), container("b", restarts=2)])
    assert compare_active_pods(one, many) < 0


@pytest.mark.parametrize(
    ("version", "goes"),
    [
        pytest.param("v1.31.14", "young", id="1.31 does not look at sidecars"),
        pytest.param("v1.36.3", "proxied", id="1.36 does"),
    ],
)
def test_restarts_of_sidecars_rank_before_age(version: str, goes: str) -> None:
    proxied = pod("proxied", init_containers=[container("proxy", restarts=2)], sidecars=["proxy"])
    bench = Bench.of(job(completions=5), rules(version), [proxied, pod("young", created_ns=at(-1))])
    bench.sync()
    assert bench.api.deleted == [goes]


def test_among_equals_preferred_pods_come_first_and_then_names_decide() -> None:
    alike = [pod(name) for name in "cab"]
    assert [found.name for found in rank_active_pods(alike, ())] == ["a", "b", "c"]
    assert [found.name for found in rank_active_pods(alike, {"c"})] == ["c", "a", "b"]


REMOVED: dict[str, tuple[list[PodView], int, int | None, list[str]]] = {
    # pods, at least so many, completions (None: not indexed), names that go
    "none": ([pod("a"), pod("b")], 0, None, []),
    "one of three": ([pod("a", node="n"), pod("b"), pod("c", node="n")], 1, None, ["b"]),
    "more than there are": ([pod("a")], 5, None, ["a"]),
    "unique indexes": (
        indexed_pods((None, "Pending"), (2, "Pending"), (5, "Running"), (6, "Running")),
        0,
        6,
        ["pod-0", "pod-3"],
    ),
    "repeated indexes": (
        indexed_pods(
            (5, "Pending"),
            (0, "Running"),
            (3, "Pending"),
            (0, "Running"),
            (3, "Running"),
            (0, "Pending"),
            (6, "Running"),
            (6, "Pending"),
        ),
        0,
        6,
        ["pod-5", "pod-1", "pod-2", "pod-6", "pod-7"],
    ),
    "invalid and repeated indexes": (
        indexed_pods(
            (None, "Pending"),
            ("x", "Running"),
            ("-2", "Running"),
            (0, "Pending"),
            (1, "Pending"),
            (1, "Pending"),
            (1, "Running"),
        ),
        0,
        6,
        ["pod-0", "pod-1", "pod-2", "pod-4", "pod-5"],
    ),
    "a repeated index is enough": (
        indexed_pods((0, "Pending"), (0, "Running"), (1, "Pending")),
        1,
        6,
        ["pod-0"],
    ),
    "a repeated index and one more": (
        indexed_pods((0, "Pending"), (0, "Running"), (1, "Pending")),
        2,
        6,
        ["pod-0", "pod-2"],
    ),
    "no completions: every index is beyond": (
        indexed_pods((0, "Running"), (1, "Running")),
        0,
        0,
        ["pod-0", "pod-1"],
    ),
}


@pytest.mark.parametrize(
    ("given_pods", "at_least", "completions", "names"), REMOVED.values(), ids=REMOVED.keys()
)
def test_pods_for_removal(
    given_pods: list[PodView], at_least: int, completions: int | None, names: list[str]
) -> None:
    removed = pods_for_removal(given_pods, at_least, completions=completions, preferred=())
    assert sorted(found.name for found in removed) == sorted(names)


def test_indexes_of_pods_without_one_are_left_out() -> None:
    given_pods = indexed_pods(
        (3, "Running"), (None, "Running"), ("x", "Running"), (3, "Pending"), (0, "Running")
    )
    assert indexes_of(given_pods) == ((0, 0), (3, 3))
