"""From one received object to the values of the typed columns.

The only promise that matters: whatever arrives, the row is kept. A field of the wrong type becomes
null here, and its truth stays in `raw`. Absent and zero are never mixed up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from tracekit.base.kube import job_status
from tracekit.base.kube.job_status import Shape
from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.base.kube.views import COMPLETION_INDEX_ANNOTATION, go_atoi
from tracekit.trace.format.model import STREAM_KINDS, RowType

Row = dict[str, Any]
Raw = Mapping[str, Any]
#: The fields of a struct in the order of its schema; far quicker to turn into Arrow than a dict.
Struct = tuple[Any, ...]
Structs = list[Struct]

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
_EMPTY: Raw = {}
#: States of a container; a malformed status with several counts as the first of these.
_STATES = ("terminated", "running", "waiting")

#: Fields of `.status` that have columns of their own; the rest goes to `observed_status`.
_CRONJOB_STATUS_FIELDS = frozenset({"active", "lastScheduleTime", "lastSuccessfulTime"})


def extract(stream: str | None, row_type: RowType, obj: Any, row: Row) -> None:
    """Add to `row` the columns that the object of a row of this stream and type fills."""
    if type(obj) is not dict:
        return
    if row_type in _BRIEF:
        _BRIEF[row_type](obj, row)
        return
    meta = _map(obj.get("metadata"))
    row["rv"] = number_of(meta.get("resourceVersion"))
    if row_type is RowType.BOOKMARK:
        return
    kind = _text(obj.get("kind"))
    if kind is None and stream is not None:
        kind = STREAM_KINDS.get(stream)
    row["kind"] = kind
    row["api_version"] = _text(obj.get("apiVersion"))
    _metadata(meta, row)
    reader = _READERS.get(stream or "")
    if reader is not None:
        reader(obj, row)


def number_of(value: Any) -> int | None:
    """A resourceVersion as a number; None for anything that is not a plain decimal int64."""
    if type(value) is str and value.isascii() and value.isdigit() and len(value) < 20:  # noqa: PLR2004
        return _int(int(value))
    return None


def canonical_json(value: Any) -> str | None:
    """JSON text with sorted keys, the same for equal values; None if it cannot be written so."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (orjson.JSONEncodeError, UnicodeDecodeError):
        return None


#### Values ####


def _text(value: Any) -> str | None:
    return value if type(value) is str else None


def _int(value: Any) -> int | None:
    return value if type(value) is int and INT64_MIN <= value <= INT64_MAX else None


def _map(value: Any) -> Raw:
    return value if type(value) is dict else _EMPTY


def _maps(value: Any) -> list[Raw] | None:
    if type(value) is not list:
        return None
    return [item for item in value if type(item) is dict]


def _texts(value: Any) -> list[str] | None:
    if type(value) is not list:
        return None
    return [item for item in value if type(item) is str]


def _time(value: Any) -> int | None:
    return _int(parse_rfc3339(value)) if type(value) is str else None


_READ: dict[Shape, Callable[[Any], Any]] = {
    Shape.COUNT: _int,
    Shape.COUNT_OR_NONE: _int,
    Shape.TIME: _time,
    Shape.INDEXES: _text,
    Shape.INDEXES_OR_NONE: _text,
}


def _json_map(value: Any) -> str | None:
    return canonical_json(value) if type(value) is dict else None


#### Rows without an object state ####


def _list_bound(obj: Raw, row: Row) -> None:
    version = obj.get("resourceVersion")
    if version is None:
        version = _map(obj.get("metadata")).get("resourceVersion")
    row["rv"] = number_of(version)


def _error(obj: Raw, row: Row) -> None:
    row["reason"] = _text(obj.get("reason"))
    row["message"] = _text(obj.get("message"))


def _note(obj: Raw, row: Row) -> None:
    row["message"] = _text(obj.get("error"))


_BRIEF: Mapping[RowType, Callable[[Raw, Row], None]] = {
    RowType.LIST_BEGIN: _list_bound,
    RowType.LIST_END: _list_bound,
    RowType.ERROR: _error,
    RowType.NOTE: _note,
}


#### Metadata ####


def _metadata(meta: Raw, row: Row) -> None:
    get = meta.get
    row["namespace"] = _text(get("namespace"))
    row["name"] = _text(get("name"))
    row["uid"] = _text(get("uid"))
    row["created_ns"] = _time(get("creationTimestamp"))
    if "generation" in meta:
        row["generation"] = _int(get("generation"))
    if "generateName" in meta:
        row["generate_name"] = _text(get("generateName"))
    if "deletionTimestamp" in meta:
        row["deleted_ns"] = _time(get("deletionTimestamp"))
    if "deletionGracePeriodSeconds" in meta:
        row["deletion_grace_s"] = _int(get("deletionGracePeriodSeconds"))
    if "finalizers" in meta:
        row["finalizers"] = _texts(get("finalizers"))
    if "labels" in meta:
        row["labels"] = _json_map(get("labels"))
    if "annotations" in meta:
        row["annotations"] = _json_map(get("annotations"))
    if "ownerReferences" in meta:
        _owners(_maps(get("ownerReferences")), row)
    managed = _maps(get("managedFields"))
    if managed is not None:
        row["managers"] = [
            (
                _text(entry.get("manager")),
                _text(entry.get("operation")),
                _text(entry.get("subresource")),
                _time(entry.get("time")),
            )
            for entry in managed
        ]


def _owners(refs: list[Raw] | None, row: Row) -> None:
    if refs is None:
        return
    owners = [
        (
            _text(ref.get("kind")),
            _text(ref.get("name")),
            _text(ref.get("uid")),
            _text(ref.get("apiVersion")),
            controller if type(controller := ref.get("controller")) is bool else None,
            blocks if type(blocks := ref.get("blockOwnerDeletion")) is bool else None,
        )
        for ref in refs
    ]
    row["owners"] = owners
    for kind, name, uid, api_version, is_controller, _ in owners:
        if is_controller:
            row["owner_kind"] = kind
            row["owner_name"] = name
            row["owner_uid"] = uid
            row["owner_api_version"] = api_version
            return


def _conditions(value: Any) -> Structs | None:
    items = _maps(value)
    if items is None:
        return None
    return [
        (
            _text(item.get("type")),
            _text(item.get("status")),
            _text(item.get("reason")),
            _text(item.get("message")),
            _time(item.get("lastProbeTime")),
            _time(item.get("lastTransitionTime")),
        )
        for item in items
    ]


def _other_fields(status: Raw, known: frozenset[str]) -> str | None:
    if status.keys() <= known:
        return None
    return canonical_json({key: value for key, value in status.items() if key not in known})


#### Kinds ####


def _job(obj: Raw, row: Row) -> None:
    row["job"] = row["name"]
    if row.get("owner_kind") == "CronJob":
        row["cronjob"] = row["owner_name"]
    row["spec"] = _json_map(obj.get("spec"))
    status = _map(obj.get("status"))
    get = status.get
    uncounted = get(job_status.UNCOUNTED)
    for field in job_status.FIELDS:
        if field.shape is not Shape.UIDS:
            row[field.name] = _READ[field.shape](get(field.path))
        elif type(uncounted) is dict:
            row[field.name] = _texts(uncounted.get(field.path.partition(".")[2])) or []
    row["conditions"] = _conditions(get("conditions"))
    row["observed_status"] = _other_fields(status, job_status.KNOWN)


def _cronjob(obj: Raw, row: Row) -> None:
    row["cronjob"] = row["name"]
    row["spec"] = _json_map(obj.get("spec"))
    status = _map(obj.get("status"))
    active = _maps(status.get("active"))
    if active is not None:
        row["cron_active"] = [
            (
                _text(ref.get("kind")),
                _text(ref.get("namespace")),
                _text(ref.get("name")),
                _text(ref.get("uid")),
                _text(ref.get("apiVersion")),
                _text(ref.get("resourceVersion")),
            )
            for ref in active
        ]
    row["last_schedule_ns"] = _time(status.get("lastScheduleTime"))
    row["last_successful_ns"] = _time(status.get("lastSuccessfulTime"))
    row["observed_status"] = _other_fields(status, _CRONJOB_STATUS_FIELDS)


def _log(obj: Raw, row: Row) -> None:
    """Put a container's log with the Job of its pod; all else about it is in `raw`."""
    del obj
    if row.get("owner_kind") == "Job":
        row["job"] = row["owner_name"]


def _pod(obj: Raw, row: Row) -> None:
    if row.get("owner_kind") == "Job":
        row["job"] = row["owner_name"]
    spec = obj.get("spec")
    if type(spec) is dict:
        row["node_name"] = _text(spec.get("nodeName"))
        if row["node_name"] is not None:
            # Without it the text is the same for all pods of a template, and parsed once.
            spec = {key: value for key, value in spec.items() if key != "nodeName"}
        row["spec"] = canonical_json(spec)
    index = _map(_map(obj.get("metadata")).get("annotations")).get(COMPLETION_INDEX_ANNOTATION)
    if type(index) is str and len(index) < 20:  # noqa: PLR2004 - Python refuses huge numbers
        row["completion_index"] = _int(go_atoi(index))
    status = _map(obj.get("status"))
    row["phase"] = _text(status.get("phase"))
    row["reason"] = _text(status.get("reason"))
    row["message"] = _text(status.get("message"))
    row["start_ns"] = _time(status.get("startTime"))
    conditions = _conditions(status.get("conditions"))
    row["conditions"] = conditions
    for name, value, *_, changed_ns in conditions or ():
        if name == "Ready":
            row["pod_ready"] = value == "True"
            row["pod_ready_since_ns"] = changed_ns
            break
    _containers(status, row)


def _containers(status: Raw, row: Row) -> None:
    regular = _maps(status.get("containerStatuses"))
    init = _maps(status.get("initContainerStatuses"))
    if regular is None and init is None:
        return
    counts = [_int(item.get("restartCount")) or 0 for item in regular or ()]
    row["restarts_max"] = max(counts, default=None)
    counts += (_int(item.get("restartCount")) or 0 for item in init or ())
    row["restarts"] = _int(sum(counts))
    row["containers"] = [_container(item, init=False) for item in regular or ()]
    row["containers"] += (_container(item, init=True) for item in init or ())


def _container(item: Raw, *, init: bool) -> Struct:
    states = _map(item.get("state"))
    state = next((name for name in _STATES if type(states.get(name)) is dict), None)
    detail = states[state] if state is not None else _EMPTY
    return (
        _text(item.get("name")),
        init,
        _int(item.get("restartCount")),
        state,
        _int(detail.get("exitCode")),
        _int(detail.get("signal")),
        _text(detail.get("reason")),
        _time(detail.get("startedAt")),
        _time(detail.get("finishedAt")),
    )


def _event(obj: Raw, row: Row) -> None:
    involved = _map(obj.get("involvedObject")) or _map(obj.get("regarding"))
    row["involved_kind"] = kind = _text(involved.get("kind"))
    row["involved_namespace"] = _text(involved.get("namespace"))
    row["involved_name"] = name = _text(involved.get("name"))
    row["involved_uid"] = _text(involved.get("uid"))
    row["involved_rv"] = number_of(involved.get("resourceVersion"))
    if kind == "Job":
        row["job"] = name
    elif kind == "CronJob":
        row["cronjob"] = name
    row["reason"] = _text(obj.get("reason"))
    row["message"] = _first_text(obj.get("message"), obj.get("note"))
    row["event_type"] = _text(obj.get("type"))
    series = _map(obj.get("series"))
    row["count"] = _first_int(series.get("count"), obj.get("count"), obj.get("deprecatedCount"))
    row["first_ns"] = _first_time(
        obj.get("firstTimestamp"), obj.get("deprecatedFirstTimestamp"), obj.get("eventTime")
    )
    row["last_ns"] = _first_time(
        series.get("lastObservedTime"),
        obj.get("lastTimestamp"),
        obj.get("deprecatedLastTimestamp"),
        obj.get("eventTime"),
    )
    row["component"] = _first_text(
        _map(obj.get("source")).get("component"),
        obj.get("reportingComponent"),
        obj.get("reportingController"),
        _map(obj.get("deprecatedSource")).get("component"),
    )


def _first_text(*values: Any) -> str | None:
    return next((value for value in values if type(value) is str and value), None)


def _first_int(*values: Any) -> int | None:
    return next((value for value in map(_int, values) if value is not None), None)


def _first_time(*values: Any) -> int | None:
    return next((time for time in map(_time, values) if time is not None), None)


def _lease(obj: Raw, row: Row) -> None:
    spec = _map(obj.get("spec"))
    row["holder"] = _text(spec.get("holderIdentity"))
    row["lease_duration_s"] = _int(spec.get("leaseDurationSeconds"))
    row["acquire_ns"] = _time(spec.get("acquireTime"))
    row["renew_ns"] = _time(spec.get("renewTime"))
    row["lease_transitions"] = _int(spec.get("leaseTransitions"))


def _namespace(obj: Raw, row: Row) -> None:
    row["phase"] = _text(_map(obj.get("status")).get("phase"))


def _quota(obj: Raw, row: Row) -> None:
    row["spec"] = _json_map(obj.get("spec"))
    row["status"] = _json_map(obj.get("status"))


_READERS: Mapping[str, Callable[[Raw, Row], None]] = {
    "jobs": _job,
    "logs": _log,
    "cronjobs": _cronjob,
    "pods": _pod,
    "events": _event,
    "leases": _lease,
    "namespaces": _namespace,
    "resourcequotas": _quota,
}
