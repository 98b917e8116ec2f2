"""Records in which each number and time of an object's stands at an edge, a copy of a Job for each.

One log has as many copies of a Job with its pods and Events, and of a CronJob with its Jobs, as
there are fields; in each copy one field has the same edge. So one question asks for all fields.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from tests.support.traces import TRACES, json_lines

_RECORD = TRACES / "v1.36.3-all" / "watch.jsonl.zst"
_JOB, _CRONJOB, _FAMILY = "t-work-queue", "t-cronjobs", "failing"
_LEASES = 24

#: What stands in a field's place; the names are those of tests.
EDGES: dict[str, Any] = {
    str(number): number
    for number in (
        0, 1, -1, 2**31 - 1, 2**31, 2**31 + 1, -(2**31), 2**53 - 1, 2**53 + 1, 2**63 - 1, 2**63,
        2**63 + 1, -(2**63), -(2**63) - 1, 10**30,
    )
} | {
    "half": 0.5, "1e300": 1e300, "nan": math.nan, "inf": math.inf, "-inf": -math.inf,
    "text": "x", "empty": "", "digits": "9" * 400, "as-text": str(2**63), "null": None,
    "list": [], "object": {}, "true": True,
    "year-1": "0001-01-01T00:00:00Z", "year-9999": "9999-12-31T23:59:59.999999999Z",
    "ns-max": "2262-04-11T23:47:16.854775807Z", "ns-over": "2262-04-11T23:47:17Z",
    "no-day": "2024-02-30T00:00:00Z",
}  # fmt: skip
#: Numbers and times of each kind; `*` is each item of a list.
FIELDS: dict[str, tuple[str, ...]] = {
    "jobs": (
        "spec.parallelism", "spec.completions", "spec.activeDeadlineSeconds", "spec.backoffLimit",
        "spec.backoffLimitPerIndex", "spec.maxFailedIndexes", "spec.ttlSecondsAfterFinished",
        "spec.template.spec.terminationGracePeriodSeconds", "status.active", "status.ready",
        "status.succeeded", "status.failed", "status.terminating", "status.startTime",
        "status.completionTime", "status.conditions.*.lastTransitionTime",
        "status.completedIndexes", "status.failedIndexes", "metadata.generation",
        "metadata.creationTimestamp", "metadata.deletionTimestamp",
        "metadata.deletionGracePeriodSeconds", "metadata.resourceVersion",
        "metadata.managedFields.*.time", "status.uncountedTerminatedPods",
        "status.conditions.*.observedGeneration",
    ),
    "pods": (
        "status.startTime", "status.containerStatuses.*.restartCount",
        "status.containerStatuses.*.state.terminated.exitCode",
        "status.containerStatuses.*.state.terminated.signal",
        "status.containerStatuses.*.state.terminated.startedAt",
        "status.containerStatuses.*.state.terminated.finishedAt",
        "status.containerStatuses.*.state.running.startedAt",
        "status.conditions.*.lastTransitionTime", "status.conditions.*.observedGeneration",
        "spec.terminationGracePeriodSeconds", "spec.priority", "spec.tolerations.*.tolerationSeconds",
        "metadata.creationTimestamp", "metadata.deletionTimestamp",
        "metadata.deletionGracePeriodSeconds", "metadata.resourceVersion",
        "metadata.managedFields.*.time",
    ),
    "events": (
        "firstTimestamp", "lastTimestamp", "eventTime", "count", "series.count",
        "series.lastObservedTime", "metadata.creationTimestamp", "involvedObject.resourceVersion",
    ),
    "cronjobs": (
        "spec.startingDeadlineSeconds", "spec.successfulJobsHistoryLimit",
        "spec.failedJobsHistoryLimit", "spec.schedule", "spec.timeZone", "status.lastScheduleTime",
        "status.lastSuccessfulTime", "spec.jobTemplate.spec.backoffLimit",
        "spec.jobTemplate.spec.ttlSecondsAfterFinished", "metadata.creationTimestamp",
        "metadata.generation", "metadata.resourceVersion",
    ),
    "leases": (
        "spec.leaseDurationSeconds", "spec.acquireTime", "spec.renewTime", "spec.leaseTransitions",
    ),
}  # fmt: skip

#: Every object's, of any type.
_OBJECT = """
    apiVersion kind metadata metadata.namespace metadata.name metadata.uid metadata.labels
    metadata.annotations metadata.ownerReferences metadata.ownerReferences.*
    metadata.ownerReferences.*.uid metadata.ownerReferences.*.name
    metadata.ownerReferences.*.kind metadata.ownerReferences.*.apiVersion
    metadata.ownerReferences.*.controller metadata.finalizers metadata.finalizers.*
    metadata.managedFields metadata.managedFields.* metadata.managedFields.*.fieldsV1
    metadata.managedFields.*.manager metadata.managedFields.*.operation
    metadata.managedFields.*.subresource metadata.generateName spec status
"""
#: Objects, lists and texts that are read of each kind; `*` is each item of a list.
STRUCTURES: dict[str, str] = {
    "jobs": _OBJECT
    + """
        spec.completionMode spec.managedBy spec.manualSelector spec.podFailurePolicy
        spec.podFailurePolicy.rules spec.podFailurePolicy.rules.* spec.podReplacementPolicy
        spec.selector spec.selector.matchLabels spec.selector.matchExpressions
        spec.successPolicy spec.successPolicy.rules spec.successPolicy.rules.* spec.suspend
        spec.template spec.template.metadata spec.template.metadata.labels
        spec.template.metadata.annotations spec.template.spec spec.template.spec.containers
        spec.template.spec.containers.* spec.template.spec.containers.*.name
        spec.template.spec.containers.*.command spec.template.spec.containers.*.env
        spec.template.spec.containers.*.resources
        spec.template.spec.containers.*.resources.requests spec.template.spec.initContainers
        spec.template.spec.restartPolicy spec.template.spec.activeDeadlineSeconds
        spec.template.spec.volumes spec.template.spec.serviceAccountName
        spec.template.spec.imagePullSecrets spec.template.spec.nodeSelector
        spec.template.spec.affinity spec.template.spec.topologySpreadConstraints
        spec.template.spec.schedulingGates spec.template.spec.resourceClaims
        spec.template.spec.priorityClassName spec.template.spec.runtimeClassName
        status.conditions status.conditions.* status.conditions.*.type
        status.conditions.*.status status.conditions.*.reason status.conditions.*.message
        status.uncountedTerminatedPods.failed status.uncountedTerminatedPods.succeeded
    """,
    "pods": _OBJECT
    + """
        spec.nodeName spec.containers spec.containers.* spec.containers.*.name
        spec.containers.*.image spec.containers.*.resources
        spec.containers.*.resources.requests spec.containers.*.resources.requests.cpu
        spec.containers.*.env spec.initContainers spec.initContainers.*
        spec.initContainers.*.restartPolicy spec.restartPolicy spec.schedulerName
        spec.activeDeadlineSeconds spec.tolerations spec.tolerations.* spec.volumes
        spec.volumes.* spec.serviceAccountName spec.imagePullSecrets spec.nodeSelector
        spec.affinity spec.topologySpreadConstraints spec.schedulingGates spec.resourceClaims
        spec.priorityClassName spec.readinessGates spec.hostname spec.preemptionPolicy
        status.phase status.reason status.message status.qosClass status.hostIP status.podIP
        status.nominatedNodeName status.conditions status.conditions.*
        status.conditions.*.type status.conditions.*.status status.conditions.*.reason
        status.conditions.*.message status.containerStatuses status.containerStatuses.*
        status.containerStatuses.*.name status.containerStatuses.*.image
        status.containerStatuses.*.imageID status.containerStatuses.*.ready
        status.containerStatuses.*.started status.containerStatuses.*.state
        status.containerStatuses.*.state.waiting
        status.containerStatuses.*.state.waiting.reason
        status.containerStatuses.*.state.waiting.message
        status.containerStatuses.*.state.running status.containerStatuses.*.state.terminated
        status.containerStatuses.*.state.terminated.reason
        status.containerStatuses.*.state.terminated.message
        status.containerStatuses.*.lastState status.containerStatuses.*.lastState.terminated
        status.containerStatuses.*.lastState.terminated.exitCode
        status.containerStatuses.*.resources status.initContainerStatuses
        status.initContainerStatuses.* status.ephemeralContainerStatuses
        status.resourceClaimStatuses status.resize
    """,
    "events": """
        apiVersion kind metadata metadata.namespace metadata.name metadata.uid involvedObject
        involvedObject.kind involvedObject.name involvedObject.namespace involvedObject.uid
        involvedObject.fieldPath involvedObject.apiVersion message reason type source
        source.component source.host reportingComponent reportingInstance action related
        related.kind related.name series regarding note deprecatedCount
        deprecatedLastTimestamp
    """,
    "cronjobs": _OBJECT
    + """
        spec.concurrencyPolicy spec.suspend spec.jobTemplate spec.jobTemplate.metadata
        spec.jobTemplate.metadata.labels spec.jobTemplate.metadata.annotations
        spec.jobTemplate.spec spec.jobTemplate.spec.template
        spec.jobTemplate.spec.template.spec spec.jobTemplate.spec.template.metadata
        spec.jobTemplate.spec.selector spec.jobTemplate.spec.suspend
        spec.jobTemplate.spec.completionMode spec.jobTemplate.spec.podFailurePolicy
        status.active status.active.* status.active.*.name status.active.*.uid
        status.active.*.namespace status.active.*.kind status.active.*.resourceVersion
    """,
    "leases": """
        metadata metadata.name spec spec.holderIdentity
    """,
}


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


#: What stands in the place of one.
SHAPES: tuple[Any, ...] = (
    "x", "", "\x1b[2J\u202e\n\x00", [], {}, ["x"], [None], [{}], ["x", {}, None, 1], {"a": None}, {"a": []},
    True, None, 0, -1, 1e308, 2**63, "9999-12-31T23:59:59Z", _nested(60), "m" * 100_000,
)  # fmt: skip

Row = dict[str, Any]
#: A kind, a field of it, and what stands there.
Placed = tuple[str, str, Any]


@cache
def _families() -> tuple[str, str, str]:
    """The rows of lists, leases and namespaces; of a Job; of a CronJob: each as JSON."""
    shared, job, cronjob = [], [], []
    for row in json_lines(_RECORD):
        meta = row["object"].get("metadata", {})
        if meta.get("namespace") == _JOB or meta.get("name") == _JOB:
            job.append(row)
        elif (meta.get("namespace") == _CRONJOB and meta["name"].startswith(_FAMILY)) or meta.get(
            "name"
        ) == _CRONJOB:
            cronjob.append(row)
        elif not meta.get("namespace") and not meta.get("name"):
            shared.append(row)
    leases = (row for row in json_lines(_RECORD) if row["resource"] == "leases")
    shared += islice((row for row in leases if "metadata" in row["object"]), _LEASES)
    return json.dumps(shared), json.dumps(job), json.dumps(cronjob)


def record(edge: Any, copies: int | None = None) -> list[Row]:
    """A record with each field at this edge; `copies`: only so many fields, from each kind."""
    return record_of(
        (kind, field, edge) for kind, fields in FIELDS.items() for field in fields[:copies]
    )


def shaped(turn: int, part: int, parts: int) -> list[Placed]:
    """One shape for each field of a part of all; in as many turns as there are shapes, each."""
    fields = [(kind, field) for kind, text in STRUCTURES.items() for field in text.split()]
    return [
        (kind, field, SHAPES[(number + turn) % len(SHAPES)])
        for number, (kind, field) in enumerate(fields[part::parts])
    ]


def record_of(placed: Iterable[Placed]) -> list[Row]:
    """A record with a copy of an object's family for each field that is given."""
    shared, job, cronjob = _families()
    rows: list[Row] = json.loads(shared)
    for number, (kind, field, value) in enumerate(placed, 1):
        if kind == "leases":
            leases = [row for row in rows if row["resource"] == kind]
            _put(leases[len(leases) // 2 :], kind, field, value)
            continue
        copy = _copied(cronjob if kind == "cronjobs" else job, number)
        _put(copy, kind, field, value)
        rows += copy
    return sorted(rows, key=lambda row: row["recv"])


def _copied(family: str, number: int) -> list[Row]:
    """The family in a namespace of its own, with uids and revisions of its own."""
    for name in (_JOB, _CRONJOB):
        family = family.replace(f'"{name}"', f'"e{number:03}"')
    rows: list[Row] = json.loads(family)
    for row in rows:
        for holder, key in list(_places(row["object"])):
            if key in ("uid", "batch.kubernetes.io/controller-uid", "controller-uid"):
                holder[key] = str(uuid5(NAMESPACE_OID, f"{holder[key]}{number}"))
            elif key == "resourceVersion" and str(holder[key]).isdigit():
                holder[key] = str(int(holder[key]) * 100 + number)
    return rows


def _put(rows: list[Row], kind: str, field: str, edge: Any) -> None:
    for row in rows:
        if row["resource"] == kind and "metadata" in row["object"]:
            for holder, key in list(_spots(row["object"], field.split("."))):
                holder[key] = edge


def _spots(value: Any, names: list[str]) -> Iterator[tuple[Any, Any]]:
    """Where a field is, as its holder and its key there; made where there is none."""
    name, *below = names
    if isinstance(value, list) and name == "*":
        keys: Iterable[Any] = range(len(value))
    elif isinstance(value, dict) and name != "*":
        keys = (name,)
        if below:
            value.setdefault(name, [{}] if below[0] == "*" else {})
    else:
        return
    for key in keys:
        if below:
            yield from _spots(value[key], below)
        else:
            yield value, key


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(item)
