"""Views of raw objects: absent and zero kept apart, anything malformed survived."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.junk import JUNK, places, with_part
from tests.support.objects import LONG_AGO_NS, NOW_NS, at, condition, container, raw_job, raw_pod
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.base.kube.views import (
    COMPLETION_INDEX_ANNOTATION,
    JOB_TRACKING_FINALIZER,
    UNKNOWN_COMPLETION_INDEX,
    JobStatus,
    completion_index,
    failure_count,
    go_atoi,
    job_from_raw,
    job_spec_from_raw,
    job_status_from_raw,
    pod_from_raw,
)

FULL_POD = raw_pod(
    "web",
    "Running",
    index=4,
    deleted_ns=at(30),
    grace_s=30,
    ready_since_ns=LONG_AGO_NS,
    containers=[container("a", restarts=2), container("b", exit_code=3, finished_ns=at(-1))],
    init_containers=[container("proxy", restarts=5), container("setup", restarts=7)],
    sidecars=["proxy"],
    node="node-1",
)
FULL_JOB = raw_job(
    parallelism=3,
    completions=5,
    backoff_limit=0,
    indexed=True,
    suspend=True,
    activeDeadlineSeconds=60,
    backoffLimitPerIndex=1,
    maxFailedIndexes=2,
    podReplacementPolicy="Failed",
    podFailurePolicy={"rules": [{"action": "Ignore"}]},
    successPolicy={"rules": [{"succeededCount": 1}]},
    managedBy="example.com/x",
    ttlSecondsAfterFinished=0,
    deleted=True,
    status={
        "active": 1,
        "ready": 0,
        "terminating": 0,
        "succeeded": 2,
        "failed": 3,
        "startTime": format_rfc3339(LONG_AGO_NS),
        "completedIndexes": "0,1",
        "failedIndexes": "",
        "uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["b"]},
        "conditions": [condition("Suspended")],
    },
)


def test_every_field_of_a_pod() -> None:
    pod = pod_from_raw(FULL_POD)
    assert (pod.namespace, pod.name, pod.uid, pod.rv) == ("default", "web", "web", 200)
    assert pod.controller is not None
    assert (pod.controller.kind, pod.controller.name) == ("Job", "demo")
    assert pod.finalizers == (JOB_TRACKING_FINALIZER,)
    assert pod.has_tracking_finalizer
    assert (pod.created_ns, pod.deleted_ns, pod.deletion_grace_s) == (LONG_AGO_NS, at(30), 30)
    assert (pod.phase, pod.node_name, pod.completion_index) == ("Running", "node-1", 4)
    assert (pod.ready, pod.ready_since_ns) == (True, LONG_AGO_NS)
    assert (pod.restarts, pod.restarts_max, pod.sidecar_restarts_max) == (14, 2, 5)
    assert [(c.name, c.init, c.exit_code) for c in pod.containers] == [
        ("a", False, None),
        ("b", False, 3),
        ("proxy", True, None),
        ("setup", True, None),
    ]
    assert pod.sidecars == {"proxy"}
    assert (pod.active, pod.terminating, pod.terminal) == (False, True, False)


def test_every_field_of_a_job() -> None:
    job = job_from_raw(FULL_JOB)
    spec, status = job.spec, job.status
    assert (job.key, job.uid, job.rv, job.generation) == ("default/demo", "job-uid", 100, 1)
    assert (job.created_ns, job.deleted_ns) == (LONG_AGO_NS, NOW_NS)
    assert (spec.parallelism, spec.completions, spec.backoff_limit) == (3, 5, 0)
    assert (spec.indexed, spec.suspend, spec.active_deadline_s) == (True, True, 60)
    assert (spec.backoff_limit_per_index, spec.max_failed_indexes) == (1, 2)
    assert (spec.pod_replacement_policy, spec.managed_by, spec.ttl_s) == (
        "Failed",
        "example.com/x",
        0,
    )
    assert spec.pod_failure_rules == ({"action": "Ignore"},)
    assert spec.success_rules == ({"succeededCount": 1},)
    assert spec.restart_policy == "Never"
    assert status == JobStatus(
        active=1,
        ready=0,
        succeeded=2,
        failed=3,
        terminating=0,
        start_ns=LONG_AGO_NS,
        completed_indexes="0,1",
        failed_indexes="",
        uncounted_succeeded=("a",),
        uncounted_failed=("b",),
        tracks_uncounted=True,
        conditions=status.conditions,
    )


def test_defaults_of_an_old_api_server() -> None:
    spec = job_spec_from_raw({})
    assert (spec.parallelism, spec.completions, spec.backoff_limit) == (1, None, 6)
    assert (spec.completion_mode, spec.indexed, spec.suspend) == ("NonIndexed", False, False)
    assert spec.selector is None
    assert spec.pod_failure_rules is None


def test_absent_and_empty_are_kept_apart() -> None:
    assert job_status_from_raw({}) == JobStatus()
    empty = job_status_from_raw(
        {"ready": 0, "terminating": 0, "failedIndexes": "", "uncountedTerminatedPods": {}}
    )
    assert (empty.ready, empty.terminating, empty.failed_indexes) == (0, 0, "")
    assert empty.tracks_uncounted
    assert job_spec_from_raw({"podFailurePolicy": {}}).pod_failure_rules == ()
    assert job_spec_from_raw({"selector": {}}).selector == {}


PHASES = {
    "Pending": (True, False),
    "Running": (True, False),
    "Unknown": (True, False),
    "": (True, False),
    "Succeeded": (False, True),
    "Failed": (False, True),
}


@pytest.mark.parametrize(("phase", "expected"), PHASES.items())
def test_active_and_terminal(phase: str, expected: tuple[bool, bool]) -> None:
    pod = pod_from_raw(raw_pod("a", phase))
    assert (pod.active, pod.terminal) == expected
    assert not pod.terminating


def test_finished_is_the_first_terminal_condition_that_is_true() -> None:
    def finished(*conditions: dict[str, Any]) -> str | None:
        found = job_status_from_raw({"conditions": list(conditions)}).finished
        return None if found is None else found.type

    assert finished() is None
    assert finished(condition("Suspended"), condition("FailureTarget")) is None
    assert finished(condition("Failed", "False"), condition("Complete")) == "Complete"
    assert finished(condition("Failed"), condition("Complete")) == "Failed"


def test_the_controller_is_the_owner_that_says_so() -> None:
    raw = copy.deepcopy(FULL_POD)
    raw["metadata"]["ownerReferences"].insert(0, {"kind": "X", "name": "x", "uid": "x"})
    raw["metadata"]["ownerReferences"].insert(0, {"kind": "Y", "uid": "y", "controller": "true"})
    pod = pod_from_raw(raw)
    assert pod.controller is not None
    assert pod.controller.uid == "job-uid"
    assert len(pod.owners) == 3


ATOI: dict[str, int | None] = {
    "0": 0,
    "07": 7,
    "+7": 7,
    "-7": -7,
    "": None,
    "-": None,
    "--7": None,
    " 7": None,
    "7 ": None,
    "1_000": None,
    "0x7": None,
    "7.0": None,
    "\N{ARABIC-INDIC DIGIT SEVEN}": None,
}


@pytest.mark.parametrize(("text", "expected"), ATOI.items())
def test_atoi_as_go_has_it(text: str, expected: int | None) -> None:
    assert go_atoi(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("12", 12), ("-1", UNKNOWN_COMPLETION_INDEX), ("x", UNKNOWN_COMPLETION_INDEX)],
)
def test_completion_index(text: str, expected: int) -> None:
    assert completion_index({COMPLETION_INDEX_ANNOTATION: text}) == expected
    assert completion_index({}) == UNKNOWN_COMPLETION_INDEX


def test_a_failure_count_is_an_int32_from_zero_on() -> None:
    counts = {"2147483647": 2**31 - 1, "2147483648": 0, "-1": 0, "x": 0}
    assert {text: failure_count({"a": text}, "a") for text in counts} == counts
    assert failure_count({}, "a") == 0


@pytest.mark.parametrize("path", list(places(FULL_POD)), ids=lambda p: ".".join(map(str, p)))
def test_a_pod_with_junk_in_any_place_is_still_viewed(path: tuple[Any, ...]) -> None:
    for junk in JUNK:
        pod = pod_from_raw(with_part(FULL_POD, path, junk))
        assert isinstance(pod.completion_index, int)
        hash((pod.uid, pod.phase, pod.finalizers, pod.conditions, pod.containers))


@pytest.mark.parametrize("path", list(places(FULL_JOB)), ids=lambda p: ".".join(map(str, p)))
def test_a_job_with_junk_in_any_place_is_still_viewed(path: tuple[Any, ...]) -> None:
    for junk in JUNK:
        job = job_from_raw(with_part(FULL_JOB, path, junk))
        assert isinstance(job.spec.parallelism, int)
        hash(job.status)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "spec", "status", "conditions", "template", "rules", "name"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status", "kind"]), JSON))
def test_any_object_is_viewed_without_an_error(raw: dict[str, Any]) -> None:
    pod_from_raw(raw)
    job_from_raw(raw)
