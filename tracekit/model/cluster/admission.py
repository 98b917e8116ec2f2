"""What the API server makes of a new object: defaults, generated labels, dropped fields.

Upstream: pkg/apis/batch/v1/defaults.go, pkg/apis/core/v1/defaults.go,
pkg/registry/batch/job/strategy.go, plugin/pkg/admission/defaulttolerationseconds.
"""

from __future__ import annotations

from typing import Any, Final

from tracekit.base.kube.job_defaults import TERMINATION_GRACE_S, default_backoff_limit
from tracekit.base.kube.views import JOB_TRACKING_ANNOTATION
from tracekit.model.cluster.store import Raw, plain_copy
from tracekit.versions.api_server import ApiRules

_UID_LABEL: Final = "controller-uid"
_NAME_LABEL: Final = "job-name"
_PREFIX: Final = "batch.kubernetes.io/"


def new_job(body: Raw, rules: ApiRules) -> Raw:
    """A Job as it is stored; its metadata has its name and uid already."""
    job: Raw = plain_copy(body)
    meta, spec = job["metadata"], job.setdefault("spec", {})
    for name in rules.dropped:
        spec.pop(name, None)
    meta["generation"] = 1
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    per_index = spec.get("backoffLimitPerIndex") is not None
    spec.setdefault("backoffLimit", default_backoff_limit(per_index=per_index))
    if rules.completion_mode:
        spec.setdefault("completionMode", "NonIndexed")
    if "suspend" not in rules.dropped:
        spec.setdefault("suspend", False)
    if rules.pod_replacement_policy:
        failing = spec.get("podFailurePolicy") is not None
        spec.setdefault("podReplacementPolicy", "Failed" if failing else "TerminatingOrFailed")
    template = spec.setdefault("template", {})
    if not spec.get("manualSelector"):
        _generate_selector(meta, spec, template, prefixed=rules.prefixed_labels)
    default_pod_spec(template.setdefault("spec", {}))
    if not meta.get("labels"):
        # A Job without labels takes those of its template.
        labels = template.get("metadata", {}).get("labels")
        if labels:
            meta["labels"] = dict(labels)
    if rules.tracking_annotation:
        meta.setdefault("annotations", {})[JOB_TRACKING_ANNOTATION] = ""
    job["status"] = {}
    return job


def _generate_selector(meta: Raw, spec: Raw, template: Raw, *, prefixed: bool) -> None:
    own = {_UID_LABEL: meta["uid"], _NAME_LABEL: meta["name"]}
    if prefixed:
        own |= {_PREFIX + name: value for name, value in own.items()}
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels.update(own)
    key = _PREFIX + _UID_LABEL if prefixed else _UID_LABEL
    selector = spec.setdefault("selector", {})
    selector.setdefault("matchLabels", {})[key] = meta["uid"]


def new_cron_job(body: Raw, rules: ApiRules) -> Raw:
    """A CronJob as it is stored."""
    cron_job: Raw = plain_copy(body)
    spec = cron_job["spec"]
    if not rules.time_zone:
        spec.pop("timeZone", None)
    cron_job["metadata"]["generation"] = 1
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    job_spec = spec["jobTemplate"].setdefault("spec", {})
    for name in rules.unknown:
        job_spec.pop(name, None)
    template = job_spec.setdefault("template", {})
    default_pod_spec(template.setdefault("spec", {}))
    cron_job["status"] = {}
    return cron_job


def new_pod(body: Raw) -> Raw:
    """A Pod as it is stored."""
    # What is not filled in here is the template's, and nobody changes it.
    spec = dict(body.get("spec") or {})
    for group in ("initContainers", "containers"):
        if spec.get(group):
            spec[group] = [dict(container) for container in spec[group]]
    pod = {**body, "spec": spec}
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    spec["tolerations"] = [*spec.get("tolerations", ()), *_default_tolerations()]
    pod["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
    return pod


def default_pod_spec(spec: Raw) -> None:
    """Fill in the defaults that a template's pods and a pod share."""
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or ():
            container.setdefault("resources", {})
            container.setdefault("terminationMessagePath", "/dev/termination-log")
            container.setdefault("terminationMessagePolicy", "File")
            container.setdefault("imagePullPolicy", "IfNotPresent")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", TERMINATION_GRACE_S)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")


def _default_tolerations() -> list[dict[str, Any]]:
    return [
        {
            "key": f"node.kubernetes.io/{what}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for what in ("not-ready", "unreachable")
    ]
