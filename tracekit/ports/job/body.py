"""The pod that the Job controller posts.

Upstream: pkg/controller/job/job_controller.go:manageJob, indexed_job_utils.go and
pkg/controller/controller_utils.go:GetPodFromTemplate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracekit.base.kube.decode import as_list, as_map, as_string_map, as_strings
from tracekit.base.kube.views import (
    COMPLETION_INDEX_ANNOTATION,
    INDEX_FAILURE_COUNT_ANNOTATION,
    INDEX_IGNORED_FAILURE_COUNT_ANNOTATION,
    JOB_TRACKING_FINALIZER,
    UNKNOWN_COMPLETION_INDEX,
    JobView,
    PodView,
    failure_count,
)
from tracekit.ports.actions import CreatePod
from tracekit.ports.job.backoff import index_failure_count
from tracekit.ports.job.pod_failure_policy import match_pod_failure_policy
from tracekit.versions.job import JobRules

_ENV_NAME = "JOB_COMPLETION_INDEX"
#: Of the name that the API server makes: its random end, and what that leaves of generateName.
GENERATED_SUFFIX = 5
MAX_GENERATED_NAME = 63 - GENERATED_SUFFIX


def new_pod(
    job: JobView, rules: JobRules, index: int | None, replaced: PodView | None
) -> CreatePod:
    """The pod for one index of an Indexed Job, or for no index.

    `replaced` is the failed pod of that index whose failure counts the new pod carries on
    (backoffLimitPerIndex only).
    """
    template = job.spec.template
    meta, spec = as_map(template.get("metadata")), as_map(template.get("spec"))
    labels = dict(as_string_map(meta.get("labels")))
    annotations = dict(as_string_map(meta.get("annotations")))
    finalizers = as_strings(meta.get("finalizers"))
    if rules.tracks(job) and JOB_TRACKING_FINALIZER not in finalizers:
        finalizers = (*finalizers, JOB_TRACKING_FINALIZER)
    generate_name = f"{job.name}-"
    if rules.plain_names_carry_index:
        generate_name = _generate_name_with_index(job.name, UNKNOWN_COMPLETION_INDEX)
    if job.spec.indexed:
        spec = _with_index_env(spec, by_label=rules.pod_index_label)
    if index is not None:
        annotations[COMPLETION_INDEX_ANNOTATION] = str(index)
        if rules.pod_index_label:
            labels[COMPLETION_INDEX_ANNOTATION] = str(index)
        spec = {**spec, "hostname": f"{job.name}-{index}"}
        generate_name = _generate_name_with_index(job.name, index)
        if rules.per_index(job):
            _add_failure_counts(annotations, job, rules, replaced)
    return CreatePod(generate_name, labels, annotations, finalizers, spec, index)


def _generate_name_with_index(job_name: str, index: int) -> str:
    suffix = f"-{index}-"
    if len(job_name) + len(suffix) > MAX_GENERATED_NAME:
        return job_name[: MAX_GENERATED_NAME - len(suffix)] + suffix
    return job_name + suffix


def _with_index_env(spec: Mapping[str, Any], *, by_label: bool) -> Mapping[str, Any]:
    source = "labels" if by_label else "annotations"
    variable = {
        "name": _ENV_NAME,
        "valueFrom": {
            "fieldRef": {"fieldPath": f"metadata.{source}['{COMPLETION_INDEX_ANNOTATION}']"}
        },
    }
    changed = dict(spec)
    for group in ("initContainers", "containers"):
        if isinstance(spec.get(group), list):
            changed[group] = [_with_variable(container, variable) for container in spec[group]]
    return changed


def _with_variable(container: Any, variable: Mapping[str, Any]) -> Any:
    if not isinstance(container, dict):
        return container
    env = as_list(container.get("env"))
    if any(as_map(entry).get("name") == _ENV_NAME for entry in env):
        return container
    return {**container, "env": [*env, variable]}


def _add_failure_counts(
    annotations: dict[str, str], job: JobView, rules: JobRules, replaced: PodView | None
) -> None:
    counted = ignored = 0
    if replaced is not None:
        counted = index_failure_count(replaced)
        ignored = failure_count(replaced.annotations, INDEX_IGNORED_FAILURE_COUNT_ANNOTATION)
        policy = rules.failure_rules(job)
        if match_pod_failure_policy(policy, replaced, fail_index=rules.fail_index).counts:
            counted += 1
        else:
            ignored += 1
    annotations[INDEX_FAILURE_COUNT_ANNOTATION] = str(counted)
    if ignored > 0:
        annotations[INDEX_IGNORED_FAILURE_COUNT_ANNOTATION] = str(ignored)
