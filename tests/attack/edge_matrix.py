"""Records in which each number and time of an object's stands at an edge, a copy of a Job for each.

One log has as many copies of a Job with its pods and Events, and of a CronJob with its Jobs, as
there are fields; in each copy one field has the same edge. So one question asks for all fields.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
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

Row = dict[str, Any]


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
    shared, job, cronjob = _families()
    rows: list[Row] = json.loads(shared)
    number = 0
    for kind, fields in FIELDS.items():
        for field in fields[:copies]:
            number += 1
            if kind == "leases":
                leases = [row for row in rows if row["resource"] == kind]
                _put(leases[len(leases) // 2 :], kind, field, edge)
                continue
            copy = _copied(cronjob if kind == "cronjobs" else job, number)
            _put(copy, kind, field, edge)
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
    *names, last = field.split(".")
    for row in rows:
        if row["resource"] == kind and "metadata" in row["object"]:
            for holder in _holders(row["object"], names):
                holder[last] = edge


def _holders(value: Any, names: list[str]) -> Iterator[Any]:
    """The objects that have a field, made where there are none."""
    if not names:
        if isinstance(value, dict):
            yield value
    elif names[0] == "*":
        for item in value if isinstance(value, list) else ():
            yield from _holders(item, names[1:])
    elif isinstance(value, dict):
        missing: Any = [] if names[1:2] == ["*"] else {}
        yield from _holders(value.setdefault(names[0], missing), names[1:])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(item)
