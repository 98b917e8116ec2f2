"""Bodies of Jobs against the template: what the server adds, and what it would not."""

from __future__ import annotations

import pytest

from tracekit.check.compare.job_body import job_body_differences
from tracekit.ports.cronjob.actions import CreateJob

CONTAINER = {"name": "main", "image": "busybox:1"}
OWNER = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "name": "cj",
    "uid": "u",
    "controller": True,
    "blockOwnerDeletion": True,
}


def intent(labels=None, pod_labels=None, **spec) -> CreateJob:
    template: dict = {"metadata": {"creationTimestamp": None}, "spec": {"containers": [CONTAINER]}}
    if pod_labels:
        template["metadata"]["labels"] = pod_labels
    return CreateJob(
        "ns",
        "cj-1",
        labels or {},
        {},
        "batch/v1",
        "cj",
        "u",
        {"template": template, **spec},
        0,
        None,
    )


def body(meta=None, pod_labels=None, container=None, **spec) -> dict:
    generated = {"controller-uid": "x", "batch.kubernetes.io/job-name": "cj-1"}
    return {
        "metadata": {"name": "cj-1", "ownerReferences": [OWNER], **(meta or {})},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 6,
            "suspend": False,
            "selector": {"matchLabels": {"controller-uid": "x"}},
            "template": {
                "metadata": {"labels": {**generated, **(pod_labels or {})}},
                "spec": {
                    "containers": [{**CONTAINER, "resources": {}, **(container or {})}],
                    "restartPolicy": "Never",
                },
            },
            **spec,
        },
    }


@pytest.mark.parametrize(
    ("sentence", "wanted", "observed"),
    [
        ("what the server fills in", intent(), body()),
        (
            "labels of the pod template on a Job without labels",
            intent(pod_labels={"a": "b"}),
            body({"labels": {"a": "b"}}, pod_labels={"a": "b"}),
        ),
        (
            "labels that the server generates",
            intent(),
            body({"labels": {"controller-uid": "x", "job-name": "cj-1"}}),
        ),
        (
            "the annotation of tracking with finalizers",
            intent(),
            body({"annotations": {"batch.kubernetes.io/job-tracking": ""}}),
        ),
        ("a field of the template", intent(backoffLimit=2), body(backoffLimit=2)),
    ],
)
def test_no_difference(sentence: str, wanted: CreateJob, observed: dict) -> None:
    assert job_body_differences(wanted, observed) == [], sentence


@pytest.mark.parametrize(
    ("path", "wanted", "observed"),
    [
        ("spec.parallelism", intent(), body(parallelism=2)),
        ("spec.backoffLimit", intent(backoffLimit=2), body()),
        ("spec.activeDeadlineSeconds", intent(), body(activeDeadlineSeconds=1)),
        (
            "spec.template.spec.containers[0].image",
            intent(),
            body(container={"image": "other"}),
        ),
        ("metadata.labels.a", intent(labels={"a": "b"}), body({"labels": {"a": "c"}})),
        ("metadata.labels.z", intent(labels={"a": "b"}), body({"labels": {"a": "b", "z": "1"}})),
        ("metadata.annotations.z", intent(), body({"annotations": {"z": "1"}})),
        (
            "metadata.ownerReferences[0].uid",
            intent(),
            body({"ownerReferences": [{**OWNER, "uid": "other"}]}),
        ),
        ("metadata.ownerReferences", intent(), body({"ownerReferences": []})),
        (
            "spec.template.metadata.labels.z",
            intent(pod_labels={"a": "b"}),
            body({"labels": {"a": "b"}}, pod_labels={"a": "b", "z": "1"}),
        ),
    ],
)
def test_a_difference_is_named_by_its_path(path: str, wanted: CreateJob, observed: dict) -> None:
    assert [difference.path for difference in job_body_differences(wanted, observed)] == [path]


def test_a_field_whose_gate_is_off_stays_in_the_template_of_the_cron_job() -> None:
    wanted = intent(ttlSecondsAfterFinished=5)
    dropped = ("ttlSecondsAfterFinished",)
    assert job_body_differences(wanted, body()) != []
    assert job_body_differences(wanted, body(), dropped) == []
    assert job_body_differences(wanted, body(ttlSecondsAfterFinished=5), dropped) == []
    assert job_body_differences(wanted, body(ttlSecondsAfterFinished=6), dropped) != []


def test_a_limit_for_each_index_is_in_place_of_one_for_the_job() -> None:
    wanted = intent(backoffLimitPerIndex=1)
    unlimited = body(backoffLimitPerIndex=1, backoffLimit=2**31 - 1)
    assert job_body_differences(wanted, unlimited) == []
    assert job_body_differences(wanted, body(backoffLimitPerIndex=1)) != []
