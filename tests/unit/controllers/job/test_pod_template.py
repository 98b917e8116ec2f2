"""The body of the pod that the controller posts.

Upstream: pkg/controller/job/indexed_job_utils_test.go:TestPodGenerateNameWithIndex,
job_controller_test.go: checkIndexedJobPods, TestJobBackoffForOnFailure and the finalizer tests;
controller_utils.go:GetPodFromTemplate.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects import exit_code_rule, job, pod, rules
from tracekit.base.kube.views import (
    COMPLETION_INDEX_ANNOTATION,
    INDEX_FAILURE_COUNT_ANNOTATION,
    INDEX_IGNORED_FAILURE_COUNT_ANNOTATION,
    JOB_TRACKING_ANNOTATION,
    JOB_TRACKING_FINALIZER,
    PodView,
    job_from_raw,
)
from tracekit.ports.job.body import new_pod

INDEX = "JOB_COMPLETION_INDEX"


def template(**meta: Any) -> dict[str, Any]:
    return {
        "metadata": meta,
        "spec": {
            "restartPolicy": "Never",
            "initContainers": [{"name": "setup", "env": [{"name": "A", "value": "1"}]}],
            "containers": [
                {"name": "main"},
                {"name": "side", "env": [{"name": INDEX, "value": "x"}]},
            ],
        },
    }


def test_a_plain_pod_is_the_template_with_the_finalizer() -> None:
    the_job = job(template=template(labels={"a": "b"}, annotations={"c": "d"}))
    intent = new_pod(the_job, rules(), None, None)
    assert intent.generate_name == "demo-"
    assert (intent.labels, intent.annotations) == ({"a": "b"}, {"c": "d"})
    assert intent.finalizers == (JOB_TRACKING_FINALIZER,)
    assert intent.spec == the_job.spec.template["spec"]
    assert intent.completion_index is None


def test_finalizers_of_the_template_are_kept_and_ours_is_not_repeated() -> None:
    mine = ["example.com/a", JOB_TRACKING_FINALIZER]
    intent = new_pod(job(template=template(finalizers=mine)), rules(), None, None)
    assert list(intent.finalizers) == mine
    intent = new_pod(job(template=template(finalizers=mine[:1])), rules(), None, None)
    assert list(intent.finalizers) == mine


@pytest.mark.parametrize(
    ("version", "annotated", "tracked"),
    [
        ("v1.23.17", True, False),  # the gate was off by default again
        ("v1.25.16", True, True),
        ("v1.25.16", False, False),
        ("v1.28.15", False, True),
    ],
)
def test_only_pods_of_tracked_jobs_get_the_finalizer(
    version: str, annotated: bool, tracked: bool
) -> None:
    the_job = job()
    if annotated:
        raw = {"metadata": {"annotations": {JOB_TRACKING_ANNOTATION: ""}}, "spec": the_job.spec.raw}
        the_job = job_from_raw(raw)
    intent = new_pod(the_job, rules(version), None, None)
    assert (JOB_TRACKING_FINALIZER in intent.finalizers) is tracked


def test_an_indexed_pod_carries_its_index_everywhere() -> None:
    intent = new_pod(job(indexed=True, template=template()), rules(), 7, None)
    assert intent.generate_name == "demo-7-"
    assert intent.annotations == {COMPLETION_INDEX_ANNOTATION: "7"}
    assert intent.labels == {COMPLETION_INDEX_ANNOTATION: "7"}
    assert intent.spec["hostname"] == "demo-7"
    assert intent.completion_index == 7
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX_ANNOTATION}']"}}
    variable = {"name": INDEX, "valueFrom": source}
    setup, main, side = (*intent.spec["initContainers"], *intent.spec["containers"])
    assert setup["env"] == [{"name": "A", "value": "1"}, variable]
    assert main["env"] == [variable]
    assert side["env"] == [{"name": INDEX, "value": "x"}], "a variable of that name stays"


@pytest.mark.parametrize(
    ("version", "gates", "by_label"),
    [
        pytest.param("v1.27.16", {}, False, id="1.27: the annotation only"),
        pytest.param("v1.28.15", {}, True, id="1.28: the label, too"),
        pytest.param("v1.28.15", {"PodIndexLabel": False}, False, id="1.28 without the gate"),
        pytest.param("v1.36.3", {}, True, id="1.36"),
    ],
)
def test_the_index_label_and_where_the_variable_comes_from(
    version: str, gates: dict[str, bool], by_label: bool
) -> None:
    intent = new_pod(job(indexed=True, template=template()), rules(version, gates), 0, None)
    assert (COMPLETION_INDEX_ANNOTATION in intent.labels) is by_label
    (variable,) = intent.spec["containers"][0]["env"]
    path = variable["valueFrom"]["fieldRef"]["fieldPath"]
    assert path.startswith("metadata.labels" if by_label else "metadata.annotations")


def test_the_template_is_not_touched() -> None:
    the_job = job(indexed=True, backoffLimitPerIndex=1, template=template(labels={"a": "b"}))
    before = copy.deepcopy(the_job.spec.template)
    for index in (0, 1):
        new_pod(the_job, rules(), index, pod("a", "Failed", index=index))
    assert the_job.spec.template == before


def test_a_job_without_a_template_spec_still_gives_a_body() -> None:
    intent = new_pod(job_from_raw({"metadata": {"name": "bare"}}), rules(), None, None)
    assert (intent.generate_name, intent.spec, intent.labels) == ("bare-", {}, {})


NAMES = {
    "short": ("indexed-job", 1, "indexed-job-1-"),
    "just fits": ("j" * 55, 1, "j" * 55 + "-1-"),
    "one too long": ("j" * 56, 1, "j" * 55 + "-1-"),
    "far too long": ("j" * 80, 12, "j" * 54 + "-12-"),
    "a longer index leaves less": ("j" * 80, 99_999, "j" * 51 + "-99999-"),
}


@pytest.mark.parametrize(("name", "index", "expected"), NAMES.values(), ids=NAMES.keys())
def test_generated_names_leave_room_for_the_suffix(name: str, index: int, expected: str) -> None:
    assert new_pod(job(name, indexed=True), rules(), index, None).generate_name == expected


@given(st.text("abc-0", min_size=1, max_size=90), st.integers(0, 99_999))
def test_an_indexed_name_never_exceeds_63_with_its_suffix(name: str, index: int) -> None:
    generated = new_pod(job(name, indexed=True), rules(), index, None).generate_name
    assert len(generated) + 5 <= 63
    assert generated.endswith(f"-{index}-")


def failed(counted: str | None = None, ignored: str | None = None, code: int = 1) -> PodView:
    marks = {
        INDEX_FAILURE_COUNT_ANNOTATION: counted,
        INDEX_IGNORED_FAILURE_COUNT_ANNOTATION: ignored,
    }
    return pod(
        "old",
        "Failed",
        index=0,
        annotations={key: value for key, value in marks.items() if value is not None},
        containers=[
            {"name": "main", "state": {"terminated": {"exitCode": code}}, "restartCount": 0}
        ],
    )


PER_INDEX = {"indexed": True, "backoffLimitPerIndex": 3}
IGNORING = {
    **PER_INDEX,
    "podFailurePolicy": {"rules": [exit_code_rule("Ignore", 3), exit_code_rule("Count", 4)]},
}
COUNTS: dict[str, tuple[dict[str, Any], PodView | None, str | None, str | None]] = {
    # job, replaced pod -> failure count, ignored failure count
    "no back-off limit per index: no counts": ({"indexed": True}, failed("2"), None, None),
    "the first pod of an index": (PER_INDEX, None, "0", None),
    "the second one": (PER_INDEX, failed("0"), "1", None),
    "after two failures": (PER_INDEX, failed("2"), "3", None),
    "the replaced pod has no annotation": (PER_INDEX, failed(), "1", None),
    "the replaced pod's annotation is corrupt": (PER_INDEX, failed("two"), "1", None),
    "the failure is ignored": (IGNORING, failed("1", code=3), "1", "1"),
    "another one is ignored": (IGNORING, failed("1", "2", code=3), "1", "3"),
    "the failure is counted by a rule": (IGNORING, failed("1", "2", code=4), "2", "2"),
    "no rule matches": (IGNORING, failed("1", "2", code=5), "2", "2"),
}


@pytest.mark.parametrize(
    ("fields", "replaced", "counted", "ignored"), COUNTS.values(), ids=COUNTS.keys()
)
def test_failure_counts_are_carried_on(
    fields: dict[str, Any], replaced: PodView | None, counted: str | None, ignored: str | None
) -> None:
    marks = new_pod(job(**fields), rules(), 0, replaced).annotations
    assert marks.get(INDEX_FAILURE_COUNT_ANNOTATION) == counted
    assert marks.get(INDEX_IGNORED_FAILURE_COUNT_ANNOTATION) == ignored


@pytest.mark.parametrize(
    ("version", "name", "expected"),
    [
        ("1.21.14", "demo", "demo-"),
        ("1.22.0", "demo", "demo--1-"),
        ("1.22.9", "demo", "demo--1-"),
        ("1.22.9", "d" * 60, "d" * 54 + "--1-"),
        ("1.22.10", "demo", "demo-"),
        ("1.23.0", "demo", "demo-"),
    ],
)
def test_1_22_named_pods_of_plain_jobs_by_an_index_that_they_have_not(
    version: str, name: str, expected: str
) -> None:
    """Unwitnessed by a trace that ships: a churn of 1.22.2 showed 568 such pods."""
    assert new_pod(job(name), rules(version), None, None).generate_name == expected
    indexed = new_pod(job("demo", indexed=True), rules("1.22.9"), 3, None)
    assert indexed.generate_name == "demo-3-"
