"""A sync over Jobs and pods with junk in any place goes on, on every kind of controller."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.fake_api import Bench
from tests.support.junk import spoiled
from tests.support.objects import (
    LONG_AGO_NS,
    condition,
    condition_rule,
    container,
    exit_code_rule,
    job,
    pod,
    raw_job,
    raw_pod,
    rules,
)
from tracekit.base.kube.timestamps import format_rfc3339
from tracekit.base.kube.views import job_from_raw, pod_from_raw
from tracekit.check.compare.pod_body import pod_body_differences

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "demo"}, "annotations": {"a": "b"}, "finalizers": ["f"]},
    "spec": {
        "restartPolicy": "OnFailure",
        "initContainers": [{"name": "setup"}],
        "containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "volumes": [{"name": "data", "emptyDir": {}}],
    },
}
JOB = raw_job(
    indexed=True,
    parallelism=3,
    completions=5,
    suspend=False,
    template=TEMPLATE,
    backoffLimitPerIndex=1,
    maxFailedIndexes=2,
    activeDeadlineSeconds=99_999,
    podFailurePolicy={
        "rules": [exit_code_rule("Ignore", 3, containerName="main"), condition_rule("Count")]
    },
    successPolicy={"rules": [{"succeededIndexes": "0-4", "succeededCount": 5}]},
    status={
        "active": 1,
        "startTime": format_rfc3339(LONG_AGO_NS),
        "completedIndexes": "0,1",
        "failedIndexes": "",
        "uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["b"]},
        "conditions": [condition("Suspended", "False")],
    },
)
FAILED = raw_pod(
    "failed",
    "Failed",
    index=3,
    conditions=[condition("DisruptionTarget")],
    init_containers=[container("setup", exit_code=3)],
    sidecars=["proxy"],
)
VERSIONS = ["v1.17.17", "v1.25.16", "v1.28.15", "v1.36.3"]


@pytest.mark.parametrize("version", VERSIONS)
def test_junk_in_the_job(version: str) -> None:
    given = [
        pod("a", index=2),
        pod_from_raw(FAILED),
        pod("c", "Succeeded", index=0),
        pod("o", owner=None, finalizer=False),
    ]
    for raw in spoiled(JOB):
        Bench.of(job_from_raw(raw), rules(version), given).sync()


@pytest.mark.parametrize("version", VERSIONS)
def test_junk_in_a_pod(version: str) -> None:
    the_job = job_from_raw(JOB)
    for raw in spoiled(FAILED):
        Bench.of(the_job, rules(version), [pod_from_raw(raw), pod("a", index=2)]).sync()


def test_junk_in_the_template_is_told_and_stops_nothing() -> None:
    clean = Bench.of(job(indexed=True, template=TEMPLATE), rules())
    clean.sync()
    (intent,) = clean.api.created
    observed = {"metadata": {}, "spec": intent.spec}
    for template in spoiled(TEMPLATE):
        bench = Bench.of(
            job_from_raw({**JOB, "spec": {**JOB["spec"], "template": template}}), rules()
        )
        bench.sync()
        for found in bench.api.created:
            pod_body_differences(found, pod_from_raw(observed), intent.spec, "demo-0-")


def test_junk_in_the_observed_spec_is_told_with_its_path() -> None:
    bench = Bench.of(job(indexed=True, template=TEMPLATE), rules())
    bench.sync()
    (intent,) = bench.api.created
    observed = pod_from_raw(
        {
            "metadata": {
                "name": f"{intent.generate_name}abcde",
                "labels": intent.labels,
                "annotations": intent.annotations,
                "finalizers": list(intent.finalizers),
            }
        }
    )
    for spec in spoiled(dict(intent.spec)):
        found = pod_body_differences(intent, observed, spec, intent.generate_name)
        assert all(difference.path.startswith("spec.") for difference in found)
