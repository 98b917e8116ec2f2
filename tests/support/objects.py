"""Builders for Jobs, pods and rules: raw objects as an API server sends them, then their views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.base.kube.timestamps import NS_PER_S, format_rfc3339
from tracekit.base.kube.views import (
    COMPLETION_INDEX_ANNOTATION,
    JOB_TRACKING_FINALIZER,
    JobView,
    PodView,
    job_from_raw,
    pod_from_raw,
)
from tracekit.versions.era import Era
from tracekit.versions.job import JobRules

#: When the syncs of the tests run: 2026-03-01T12:00:00Z.
NOW_NS = 1_772_366_400 * NS_PER_S
#: So long ago that no back-off is left.
LONG_AGO_NS = NOW_NS - 3600 * NS_PER_S
LABELS = {"app": "demo"}
JOB_UID = "job-uid"


def at(seconds: float) -> int:
    """A time relative to the sync, in nanoseconds."""
    return NOW_NS + int(seconds * NS_PER_S)


def rules(version: str = "v1.36.3", gates: Mapping[str, bool] | None = None) -> JobRules:
    """The rules of a version with these gates."""
    return JobRules.of(Era.resolve(version, gates or {}))


def raw_job(
    name: str = "demo",
    *,
    parallelism: int | None = 1,
    completions: int | None = 1,
    backoff_limit: int = 6,
    indexed: bool = False,
    suspend: bool | None = None,
    status: Mapping[str, Any] | None = None,
    deleted: bool = False,
    template: Mapping[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A Job; further keyword arguments are fields of its spec, by their JSON names."""
    body: dict[str, Any] = {
        "parallelism": parallelism,
        "completions": completions,
        "backoffLimit": backoff_limit,
        "completionMode": "Indexed" if indexed else "NonIndexed",
        "suspend": suspend,
        "selector": {"matchLabels": dict(LABELS)},
        "template": template
        or {
            "metadata": {"labels": dict(LABELS)},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busy"}]},
        },
        **spec,
    }
    meta = {
        "namespace": "default",
        "name": name,
        "uid": JOB_UID,
        "resourceVersion": "100",
        "generation": 1,
        "creationTimestamp": format_rfc3339(LONG_AGO_NS),
    }
    if deleted:
        meta["deletionTimestamp"] = format_rfc3339(NOW_NS)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {key: value for key, value in body.items() if value is not None},
        "status": dict(status or {}),
    }


def job(name: str = "demo", **fields: Any) -> JobView:
    """The view of `raw_job`."""
    return job_from_raw(raw_job(name, **fields))


def condition(
    kind: str, status: str = "True", reason: str = "", message: str = "", at_ns: int = LONG_AGO_NS
) -> dict[str, Any]:
    """A condition of a Job or pod."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": format_rfc3339(at_ns),
        "lastTransitionTime": format_rfc3339(at_ns),
    }


def container(
    name: str = "main",
    *,
    exit_code: int | None = None,
    finished_ns: int | None = None,
    restarts: int = 0,
) -> dict[str, Any]:
    """A container status; it has terminated where an exit code or an end is given."""
    state: dict[str, Any] = {"running": {}}
    if exit_code is not None or finished_ns is not None:
        state = {"terminated": {"exitCode": exit_code or 0}}
        if finished_ns is not None:
            state["terminated"]["finishedAt"] = format_rfc3339(finished_ns)
    return {"name": name, "restartCount": restarts, "state": state}


def raw_pod(
    name: str = "pod-a",
    phase: str = "Running",
    *,
    index: int | str | None = None,
    finalizer: bool = True,
    owner: str | None = JOB_UID,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    deleted_ns: int | None = None,
    grace_s: int = 0,
    created_ns: int = LONG_AGO_NS,
    ready_since_ns: int | None = None,
    conditions: Sequence[Mapping[str, Any]] = (),
    containers: Sequence[Mapping[str, Any]] | None = None,
    init_containers: Sequence[Mapping[str, Any]] = (),
    sidecars: Sequence[str] = (),
    node: str = "",
) -> dict[str, Any]:
    """A pod; a finished one ended an hour ago unless its containers are given."""
    marks = dict(annotations or {})
    if index is not None:
        marks[COMPLETION_INDEX_ANNOTATION] = str(index)
    meta: dict[str, Any] = {
        "namespace": "default",
        "name": name,
        "uid": name,
        "resourceVersion": "200",
        "labels": dict(LABELS if labels is None else labels),
        "annotations": marks,
        "creationTimestamp": format_rfc3339(created_ns),
    }
    if finalizer:
        meta["finalizers"] = [JOB_TRACKING_FINALIZER]
    if owner is not None:
        meta["ownerReferences"] = [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "demo",
                "uid": owner,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    if deleted_ns is not None:
        meta["deletionTimestamp"] = format_rfc3339(deleted_ns)
        meta["deletionGracePeriodSeconds"] = grace_s
    found = list(conditions)
    if ready_since_ns is not None:
        found.append(condition("Ready", at_ns=ready_since_ns))
    if containers is None:
        ended = {"Succeeded": 0, "Failed": 1}.get(phase)
        containers = [] if ended is None else [container(exit_code=ended, finished_ns=LONG_AGO_NS)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {
            "nodeName": node,
            "initContainers": [
                {"name": sidecar, "restartPolicy": "Always"} for sidecar in sidecars
            ],
        },
        "status": {
            "phase": phase,
            "conditions": found,
            "containerStatuses": list(containers),
            "initContainerStatuses": list(init_containers),
        },
    }


def pod(name: str = "pod-a", phase: str = "Running", **fields: Any) -> PodView:
    """The view of `raw_pod`."""
    return pod_from_raw(raw_pod(name, phase, **fields))


def pods(count: int, phase: str = "Running", *, prefix: str = "", **fields: Any) -> list[PodView]:
    """Several pods that are alike."""
    stem = prefix or phase.lower()
    return [pod(f"{stem}-{number}", phase, **fields) for number in range(count)]


def ready_pods(count: int) -> list[PodView]:
    """Running pods that are ready."""
    return pods(count, prefix="ready", ready_since_ns=LONG_AGO_NS, node="node-1")


def terminating_pods(count: int) -> list[PodView]:
    """Running pods that are being deleted, since a second, with 30 s of grace."""
    return pods(count, prefix="terminating", deleted_ns=at(29), grace_s=30)


def indexed_pods(*given: tuple[int | str | None, str]) -> list[PodView]:
    """One pod per (index, phase); None stands for a pod without index."""
    return [pod(f"pod-{number}", phase, index=index) for number, (index, phase) in enumerate(given)]


def exit_code_rule(
    action: str, *values: int, operator: str = "In", **fields: Any
) -> dict[str, Any]:
    """A rule of a pod failure policy on exit codes."""
    return {
        "action": action,
        "onExitCodes": {"operator": operator, "values": list(values), **fields},
    }


def condition_rule(
    action: str, kind: str = "DisruptionTarget", status: str = "True"
) -> dict[str, Any]:
    """A rule of a pod failure policy on a pod condition."""
    return {"action": action, "onPodConditions": [{"type": kind, "status": status}]}
