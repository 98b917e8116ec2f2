"""Audit entries out of what providers wrap around them, recognised by shape.

| shape | source |
|---|---|
| one entry a line | kube-apiserver's log backend; OpenShift's and RKE2's files; Rancher's |
| `EventList` with `items` | kube-apiserver's webhook and batch backends (audit.k8s.io/v1) |
| `NODE {…}` | `oc adm node-logs --path=kube-apiserver/audit.log` |
| `TIME {…}` | CloudWatch's export to S3 |
| `events[].message` | CloudWatch's filter-log-events |
| `logEvents[].message` | CloudWatch's subscriptions |
| `results[][]` | CloudWatch's Logs Insights |
| `protoPayload` | Cloud Logging (google.cloud.audit.AuditLog), as GKE writes it |
| `properties.log`, also in `records` | Azure Monitor's resource logs, category kube-audit |
| `AuditId`, `ObjectRef`, … | Azure's Log Analytics tables AKSAudit and AKSAuditAdmin |
| `log` or `message` with an entry as text | container log shippers |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

Raw = dict[str, Any]

#: What of a line is looked at to take the short way.
_HEAD_BYTES = 512
_NESTED_MAX = 4
#: Methods of Cloud Logging that name the REST verbs of the API.
_RPC_TO_HTTP = {
    0: 200, 1: 499, 2: 500, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 409, 10: 409,
    11: 400, 12: 405, 13: 500, 14: 503, 15: 500, 16: 401,
}  # fmt: skip


def unwrap(line: bytes) -> Iterator[tuple[str, bytes]]:
    """The audit entries in a line or document, each with the name of the shape that held it.

    Nothing comes out of a line that holds none; a line that is no JSON raises ValueError.
    """
    head = line[:_HEAD_BYTES]
    alone = line.startswith(b'{"') and b'"items"' not in head and b'"EventList"' not in head
    if alone and b'"auditID"' in head and b'"stage"' in head:
        yield "audit", line
        return
    start = line.find(b"{")
    bracket = line.find(b"[")
    prefix = ""
    if start > 0 and not (0 <= bracket < start):
        prefix = "cloudwatch" if line[:4].isdigit() else "openshift"
        line = line[start:]
    document = orjson.loads(line)
    for shape, entry in _entries(document, 0):
        yield (prefix if prefix and shape == "audit" else shape), entry


def _entries(value: Any, depth: int) -> Iterator[tuple[str, bytes]]:
    if depth > _NESTED_MAX:
        return
    if type(value) is list:
        for item in value:
            yield from _entries(item, depth)
        return
    if type(value) is not dict:
        return
    if "auditID" in value and "stage" in value:
        yield "audit", orjson.dumps(value)
        return
    for shape, mark, read in _SHAPES:
        if mark in value:
            yield from _named(shape, read(value), depth)
            return


def _named(shape: str, found: Iterator[Any], depth: int) -> Iterator[tuple[str, bytes]]:
    for item in found:
        inner: Any = item
        if type(item) is str:
            try:
                inner = orjson.loads(item)
            except orjson.JSONDecodeError:
                continue  # other streams' messages are plain text
        for inner_shape, entry in _entries(inner, depth + 1):
            yield (shape if inner_shape == "audit" else inner_shape), entry


def _items(value: Raw) -> Iterator[Any]:
    yield value["items"]


def _records(value: Raw) -> Iterator[Any]:
    yield value["records"]


def _messages(name: str) -> Callable[[Raw], Iterator[Any]]:
    def read(value: Raw) -> Iterator[Any]:
        listed = value[name]
        for event in listed if type(listed) is list else ():
            if type(event) is dict and type(event.get("message")) is str:
                yield event["message"]

    return read


def _insights(value: Raw) -> Iterator[Any]:
    rows = value["results"]
    for row in rows if type(rows) is list else ():
        for cell in row if type(row) is list else ():
            if type(cell) is dict and cell.get("field") == "@message":
                yield cell.get("value")


def _properties(value: Raw) -> Iterator[Any]:
    inner = value["properties"]
    if type(inner) is str:
        yield inner
    elif type(inner) is dict and "log" in inner:
        yield inner["log"]


def _text(name: str) -> Callable[[Raw], Iterator[Any]]:
    def read(value: Raw) -> Iterator[Any]:
        yield value[name]

    return read


def _cloud_logging(value: Raw) -> Iterator[Any]:
    entry = from_cloud_logging(value)
    if entry is not None:
        yield entry


def _log_analytics(value: Raw) -> Iterator[Any]:
    yield from_log_analytics(value)


_SHAPES: tuple[tuple[str, str, Callable[[Raw], Iterator[Any]]], ...] = (
    ("gke", "protoPayload", _cloud_logging),
    ("aks", "AuditId", _log_analytics),
    ("aks", "records", _records),
    ("aks", "properties", _properties),
    ("eks", "logEvents", _messages("logEvents")),
    ("eks", "events", _messages("events")),
    ("eks", "results", _insights),
    ("batch", "items", _items),
    ("container log", "log", _text("log")),
    ("container log", "message", _text("message")),
    ("container log", "textPayload", _text("textPayload")),
    ("container log", "jsonPayload", _text("jsonPayload")),
)


def from_cloud_logging(value: Mapping[str, Any]) -> Raw | None:
    """An entry of Cloud Logging as the audit entry that it was made of; None for other APIs.

    `methodName` is `io.k8s.GROUP.VERSION.RESOURCE[.SUBRESOURCE].VERB`, `resourceName` is
    `GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME[/SUBRESOURCE]`, `status.code` is a code of
    google.rpc, `operation.id` is the auditID. There is one time: of the answer.
    """
    payload = value.get("protoPayload")
    if type(payload) is not dict:
        return None
    method, resource = payload.get("methodName"), payload.get("resourceName")
    if type(method) is not str or type(resource) is not str or not method.startswith("io.k8s."):
        return None
    group, *rest = resource.removeprefix("io.k8s.").split("/")
    rest = rest[1:]  # the version
    namespace = None
    if len(rest) > 2 and rest[0] == "namespaces":  # noqa: PLR2004
        namespace, rest = rest[1], rest[2:]
    elif rest and rest[0] == "namespaces" and len(rest) == 2:  # noqa: PLR2004
        namespace = rest[1]
    status, operation = payload.get("status"), value.get("operation")
    rpc = status.get("code", 0) if type(status) is dict else 0
    verb = method.rpartition(".")[2]
    code = _RPC_TO_HTTP.get(rpc, 500) if type(rpc) is int else 500
    response = payload.get("response")
    if type(response) is dict and type(response.get("code")) is int and code >= 400:  # noqa: PLR2004
        code = response["code"]  # the answer's own Status
    who, caller = payload.get("authenticationInfo"), payload.get("requestMetadata")
    entry: Raw = {
        "kind": "Event",
        "level": "RequestResponse" if response is not None else "Metadata",
        "auditID": operation.get("id") if type(operation) is dict else value.get("insertId"),
        "stage": "ResponseComplete",
        "requestURI": "",
        "verb": verb,
        "user": {"username": _str(who, "principalEmail")},
        "userAgent": _str(caller, "callerSuppliedUserAgent"),
        "objectRef": {
            "resource": rest[0] if rest else "",
            "namespace": namespace,
            "name": rest[1] if len(rest) > 1 else None,
            "subresource": rest[2] if len(rest) > 2 else "",  # noqa: PLR2004
            "apiGroup": "" if group == "core" else _full_group(group),
        },
        "responseStatus": {"code": code, "message": _str(status, "message")},
        "stageTimestamp": value.get("timestamp"),
        "requestReceivedTimestamp": value.get("timestamp"),
    }
    if "request" in payload:
        entry["requestObject"] = _untyped(payload["request"])
    if response is not None:
        entry["responseObject"] = _untyped(response)
    return entry


def _full_group(group: str) -> str:
    return group if group in {"batch", "apps", "autoscaling", "policy"} else f"{group}.k8s.io"


def _untyped(body: Any) -> Any:
    """A body without the type that Cloud Logging adds."""
    if type(body) is dict and "@type" in body:
        return {key: value for key, value in body.items() if key != "@type"}
    return body


def _str(value: Any, name: str) -> str:
    found = value.get(name) if type(value) is dict else None
    return found if type(found) is str else ""


def from_log_analytics(value: Mapping[str, Any]) -> Raw:
    """A row of the table AKSAudit as the audit entry that it was made of."""
    names = {
        "auditID": "AuditId", "level": "Level", "stage": "Stage", "verb": "Verb",
        "requestURI": "RequestUri", "userAgent": "UserAgent", "user": "User",
        "objectRef": "ObjectRef", "responseStatus": "ResponseStatus",
        "requestObject": "RequestObject", "responseObject": "ResponseObject",
        "requestReceivedTimestamp": "RequestReceivedTime", "stageTimestamp": "StageReceivedTime",
    }  # fmt: skip
    entry: Raw = {"kind": "Event"}
    for ours, theirs in names.items():
        found = value.get(theirs)
        if ours in _STRUCTURED and type(found) is str:
            try:  # dynamic columns are exported as text
                found = orjson.loads(found)
            except orjson.JSONDecodeError:
                found = None
        if found is not None:
            entry[ours] = found
    return entry


_STRUCTURED = frozenset({"user", "objectRef", "responseStatus", "requestObject", "responseObject"})
