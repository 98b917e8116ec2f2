"""Audit events wherever they are: in a line, in JSON around it, in text within JSON.

What ships a log puts each event into something of its own, often several times over. An event is
told by its own fields, so it is looked for: through objects, lists and texts that are JSON, to a
bounded depth, and never inside an object of the API. Two stores keep no event but its fields under
other names: Cloud Logging (`protoPayload`) and Log Analytics (`AuditId`, `ObjectRef`, …).

| shape, by what stands around an event | source |
|---|---|
| nothing | kube-apiserver's log backend; OpenShift's, RKE2's and Rancher's files |
| `EventList` with `items` | kube-apiserver's webhook and batch backends (audit.k8s.io/v1) |
| text before it | `oc adm node-logs`, `kubectl logs --prefix`, CRI, exports to S3, syslog, logcli |
| text around it | `aws logs … --output text`, `az … -o tsv`, Splunk's export as XML |
| `logEvents`, `events`, `results`, `@message` | CloudWatch: subscription, filter, Insights |
| `protoPayload` | Cloud Logging (google.cloud.audit.AuditLog), as GKE writes it |
| `records`, `properties`, `log_s`, `AuditId` | Azure Monitor's resource logs and tables |
| `log`, `message`, `textPayload`, `jsonPayload` | container log shippers (Fluent Bit, Fluentd, …) |
| `_source`, `kubernetes.audit` | Elasticsearch, Elastic Agent, Filebeat |
| `event`, `_raw` | Splunk's HTTP Event Collector and exports |
| `attributes`, `content` | Datadog |
| `line`, `values` | Loki (`logcli -o jsonl`, its API) |
| `MESSAGE` | journald (`journalctl -o json`) |
| `resourceLogs`, `body`, `kvlistValue` | OpenTelemetry's collector (file exporter, OTLP's JSON) |
| dotted names, a column for each field | what `columns.py` names |
| base64, fields as text, `protopayload_auditlog`, `proto_payload` | what `encoded.py` names |
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from json.decoder import JSONDecoder, scanstring  # type: ignore[attr-defined]
from typing import Any

import orjson

from tracekit.trace.importers.audit.columns import APART, from_fields
from tracekit.trace.importers.audit.encoded import (
    decoded,
    from_bigquery,
    from_log_analytics_view,
    parsed,
    parsed_fields,
)
from tracekit.trace.importers.otlp import value_of

Raw = dict[str, Any]

#: What of a line is looked at to take the short way.
_HEAD_BYTES = 512
#: What stands before the first inner object of an event, and in an event that a store took apart.
_USER, _FLATTENED = b'"user":', b'"objectRef.resource"'
#: How deep objects, lists and texts around an event may be nested.
_NESTED_MAX = 12
_DECODER = JSONDecoder()
#: Stands in a document for what of its text was an event and is not whole.
_CUT = object()
#: What of a cell of CSV is within its quotes.
_CELL = re.compile(r'(?:[^"]|"")*+')
#: So many in text between events are no beginnings of one.
_BRACES_MAX = 64
#: Text before an event may hold so many braces of its own.
_PREFIX_BRACES_MAX = 8
#: Where entries of Cloud Logging have their body: as it writes them, in BigQuery, in its own view.
_PAYLOADS = ("protoPayload", "protopayload_auditlog", "proto_payload")
#: One of these is in every text that holds an event, however often its quotes are escaped.
MARKS = ("auditID", "AuditId", *_PAYLOADS)
BYTE_MARKS = tuple(mark.encode() for mark in MARKS)
#: Who wrote what stands around an event, by the outermost key that tells.
_SHIPPERS = {
    "records": "aks", "properties": "aks", "log_s": "aks", "tables": "aks", "Tables": "aks",
    "awslogs": "eks", "Records": "eks",
    "logEvents": "eks", "events": "eks", "results": "eks", "@message": "eks",
    "_source": "elastic", "kubernetes": "elastic", "kubernetes.audit": "elastic",
    "event": "splunk", "_raw": "splunk",
    "attributes": "datadog", "content": "datadog",
    "line": "loki", "values": "loki", "MESSAGE": "journald", "resourceLogs": "otlp",
    "log": "container log", "message": "container log", "textPayload": "container log",
    "jsonPayload": "container log", "items": "batch",
}  # fmt: skip
#: Categories of Azure Monitor's resource logs: a column of `az monitor log-analytics query -o tsv`.
_AKS_CATEGORIES = (b"kube-audit", b"kube-audit-admin")
#: What `oc adm node-logs` puts before each line.
_NODE_NAME = re.compile(rb"[a-z\d](?:[a-z\d.-]*[a-z\d])?")
#: Methods of Cloud Logging that name the REST verbs of the API.
_RPC_TO_HTTP = {
    0: 200, 1: 499, 2: 500, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 409, 10: 409,
    11: 400, 12: 405, 13: 500, 14: 503, 15: 500, 16: 401,
}  # fmt: skip


def unwrap(line: bytes) -> Iterator[tuple[str, bytes]]:
    """The audit events in a line or document, each with the name of the shape that held it.

    An empty one stands for those that are cut or damaged beside whole ones in a line. Nothing
    comes out of a line that holds none; a line that is no JSON raises ValueError.
    """
    if is_bare(line):
        yield "audit", line
        return
    document, prefix = _after_text(line)
    for shape, event in unwrap_value(document):
        yield (prefix if prefix and shape == "audit" else shape), event


def is_bare(line: bytes) -> bool:
    """Whether a line begins as an event around which nothing is."""
    inner = line.find(b"{", 1, _HEAD_BYTES)  # of the user: what stands before it is the event's own
    head = line[: inner if inner > 0 else _HEAD_BYTES]
    if not (line.startswith(b'{"') and b'"auditID"' in head and b'"stage"' in head):
        return False
    return head.endswith(_USER) or _FLATTENED not in line


def unwrap_value(document: Any) -> Iterator[tuple[str, bytes]]:
    """The audit events in what was read of a document."""
    for shape, event in _events(document, "", 0):
        yield shape or "audit", event


def _after_text(line: bytes) -> tuple[Any, str]:
    """The JSON in a line, and the name of what stands before it, "" if nothing does.

    Cells of a table may stand behind it, or marks.

    Raises:
        ValueError: There is none.
    """
    if b"{&quot;" in line:
        line = html.unescape(line.decode(errors="replace")).encode()  # Splunk's export as XML
    start, end = line.find(b"{"), line.rfind(b"}") + 1
    is_alone = start < 0 or not (line[:start].strip(b" \t\r\n[") or line[end:].strip(b" \t\r\n],"))
    if is_alone or end <= start:
        return orjson.loads(line), ""
    first = start
    for _ in range(_PREFIX_BRACES_MAX):
        try:
            document = orjson.loads(line[start:end])
        except orjson.JSONDecodeError:
            start = line.find(b"{", start + 1)
            if start < 0:
                break
        else:
            if start == first or not any(line.find(mark, 0, start) >= 0 for mark in BYTE_MARKS):
                return document, _prefix(line[:start])
            break  # it stands behind an event
    found = _amid_text(line)
    return (orjson.loads(line), "") if found is None else found


def _amid_text(line: bytes) -> tuple[list[Any], str] | None:
    """The events in text with braces of its own, each as it is or in quotes; None if it has none.

    Go's `%q`, logfmt and structured logs escape what is quoted, CSV doubles its quotes.
    """
    text = line.decode(errors="replace")
    found: list[Any] = []
    before, start, failed, done = "", text.find("{"), 0, 0
    rest = ""
    while start >= 0 and failed < _BRACES_MAX:
        event, end = _event_at(text, start)
        if event is None:
            failed += 1
        else:
            before = before if found else text[:start].strip(' "')
            rest += text[done:start]
            found.append(event)
            done = end
        start = text.find("{", end)
    if not found:
        return None
    if any(mark in rest + text[done:] for mark in MARKS):
        found.append(_CUT)
    return found, _prefix(before.encode()) if before else ""


def _event_at(text: str, start: int) -> tuple[Any, int]:
    """The object with an event that begins at a brace, and where to go on."""
    begin = text[max(0, start - 1) : start + 3]
    try:
        if begin == '"{\\"':
            inner, end = scanstring(text, start)
        elif begin == '"{""' and (cell := _CELL.match(text, start)) is not None:
            inner, end = cell[0].replace('""', '"'), cell.end()
        else:
            _, end = _DECODER.raw_decode(text, start)
            inner = text[start:end]
        if any(mark in inner for mark in MARKS):
            return orjson.loads(inner), end
    except (ValueError, RecursionError):
        pass
    return None, start + 1


def _prefix(text: bytes) -> str:
    if b" stdout " in text or b" stderr " in text or text.startswith(b"["):
        return "container log"
    if text == b"MESSAGE=":
        return "journald"
    if len(text.split()) > 1:
        return "log line"  # of syslog, journalctl, logcli, fluentd: nothing tells which
    if text[:4].isdigit():
        return "cloudwatch"
    word = text.strip()
    if word in _AKS_CATEGORIES:
        return "aks"
    return "openshift" if _NODE_NAME.fullmatch(word) else "log line"


def _events(value: Any, shape: str, depth: int) -> Iterator[tuple[str, bytes]]:
    if depth > _NESTED_MAX:
        return
    if value is _CUT:
        yield shape, b""
    elif type(value) is dict:
        yield from _of_object(value, shape, depth)
    elif type(value) is list:
        if len(value) > _HEAD_BYTES and set(map(type, value)) == {int}:
            yield from _of_text(_text_of(value), shape, depth)  # journald: text with control signs
            return
        for item in value:
            yield from _events(item, shape, depth + 1)
    elif type(value) is str:
        if any(mark in value for mark in MARKS):
            yield from _of_text(value.encode(errors="replace"), shape, depth)
        elif (plain := decoded(value)) is not None and any(m in plain for m in BYTE_MARKS):
            yield from _of_text(plain, shape, depth)


def _text_of(numbers: list[int]) -> bytes:
    try:
        return bytes(numbers)
    except ValueError:
        return b""


def _of_text(text: bytes, shape: str, depth: int) -> Iterator[tuple[str, bytes]]:
    try:
        inner, _ = _after_text(text)
    except ValueError:
        return  # other messages are plain text
    yield from _events(inner, shape, depth + 1)


def _of_object(value: Raw, shape: str, depth: int) -> Iterator[tuple[str, bytes]]:
    """The events in an object: itself, under other names, or in what it holds."""
    if "auditID" in value and "stage" in value and "objectRef.resource" not in value:
        yield shape, orjson.dumps(parsed_fields(value), option=orjson.OPT_NON_STR_KEYS)
        return
    apart = from_fields(value)
    if apart is not None:
        event, is_apart = apart
        yield from _events(event, APART if is_apart else shape or "elastic", depth + 1)
        return
    value = _as_exported(value)
    if type(value.get("protoPayload")) is dict:
        entry = from_cloud_logging(value)
        if entry is not None:
            said = APART if shape == APART else "gke"
            yield said, orjson.dumps(entry, option=orjson.OPT_NON_STR_KEYS)
        return
    if "AuditId" in value and ("Stage" in value or "ObjectRef" in value):
        yield "aks", orjson.dumps(from_log_analytics(value))
        return
    for name, inner in _held(value):
        if type(inner) in (dict, list, str):
            yield from _events(inner, shape or _SHIPPERS.get(name, ""), depth + 1)


def _as_exported(value: Raw) -> Raw:
    """An entry of Cloud Logging as it exports it itself, of other forms; all else as it is."""
    cells = {name: parsed(value[name]) for name in _PAYLOADS if type(value.get(name)) is str}
    if cells:
        value = {**value, **cells}
    if type(value.get("protopayload_auditlog")) is dict:
        value = from_bigquery(value)
    payload = value.get("proto_payload")
    if type(payload) is dict and type(payload.get("audit_log")) is dict:
        value = from_log_analytics_view(value)
    return value


def _held(value: Raw) -> Iterator[tuple[str, Any]]:
    """What of an object may hold events, by the name that tells whose shape it is."""
    version, kind = value.get("apiVersion"), value.get("kind")
    if type(version) is str and type(kind) is str:
        if version.startswith("audit.k8s.io/"):
            yield "items", value.get("items")
        return  # an object of the API holds no event of its own
    for columns, rows in (("columns", "rows"), ("Columns", "Rows")):
        if type(value.get(columns)) is list and type(value.get(rows)) is list:
            yield "tables", _table(value[columns], value[rows])
            return
    if type(value.get("kvlistValue")) is dict:
        yield "kvlistValue", value_of(value)
        return
    for name, inner in value.items():
        yield str(name), inner


def _table(columns: list[Any], rows: list[Any]) -> list[Raw]:
    """The rows of an answer of the query APIs of Azure Monitor and Data Explorer as objects."""
    names = [
        str(c.get("name") or c.get("ColumnName")) if type(c) is dict else str(c) for c in columns
    ]
    return [dict(zip(names, row, strict=False)) for row in rows if type(row) is list]


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
        if ours.endswith("Timestamp") and type(found) is str:
            found = _utc(found)
        if ours in _STRUCTURED and type(found) is str:
            try:  # dynamic columns are exported as text
                found = orjson.loads(found)
            except orjson.JSONDecodeError:
                found = None
        if found is not None:
            entry[ours] = found
    return entry


_STRUCTURED = frozenset({"user", "objectRef", "responseStatus", "requestObject", "responseObject"})


def _utc(text: str) -> str:
    """A time as the portal exports it (M/D/YYYY, H:MM:SS.mmm AM, UTC) as RFC 3339."""
    if text[4:5] == "-":
        return text
    try:
        at = datetime.strptime(text, "%m/%d/%Y, %I:%M:%S.%f %p").replace(tzinfo=UTC)
    except ValueError:
        return text
    return at.isoformat().replace("+00:00", "Z")
