"""Records of OpenTelemetry's logs: what their values stand for, and what of the API is in them.

The collector's file exporter writes OTLP as JSON, a batch of records a line. Two of its receivers
ship what a trace keeps:

| receiver | a record |
|---|---|
| `k8sobjects`, mode watch | its body is a watch event, observed when it came |
| `k8sobjects`, mode pull | its body is an object; those of one list were observed at one time |
| `k8s_events` | an Event, taken apart into attributes; its own revision is not among them |

Upstream: opentelemetry-proto, logs/v1 and common/v1 (JSON encoding);
opentelemetry-collector-contrib, receiver/k8sobjectsreceiver and receiver/k8seventsreceiver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from tracekit.base.kube.timestamps import NS_PER_S, floor_second, format_rfc3339, parse_rfc3339

Raw = dict[str, Any]

_EVENT_UID = "k8s.event.uid"
_NS_MAX = 1 << 63
#: What a pull ends with, which is no object.
PULL_END = "PullEnd"
#: Before 2022 the object that an Event is about stood under the name of its kind.
_KINDS = {"job": "Job", "cronjob": "CronJob", "pod": "Pod"}


class Record(Struct):
    """A record of a log."""

    body: Any
    attributes: Raw
    resource: Raw
    #: When it was observed, and what it says of its time itself, Unix ns.
    observed_ns: int | None
    at_ns: int | None


def value_of(value: Any) -> Any:
    """What a value of OTLP's JSON encoding stands for (AnyValue).

    Integers are text there; what is none of its kinds is null.
    """
    kind, inner = next(iter(value.items()), ("", None)) if type(value) is dict else ("", None)
    if kind == "kvlistValue" and type(inner) is dict:
        return _pairs(inner.get("values"))
    if kind == "arrayValue" and type(inner) is dict:
        return [value_of(item) for item in _list(inner.get("values"))]
    if kind == "intValue":
        try:
            return int(str(inner))
        except ValueError:
            return None
    return inner if kind in ("stringValue", "boolValue", "doubleValue") else None


def is_log(document: Raw) -> bool:
    """Whether a document is a batch of records."""
    return type(document.get("resourceLogs")) is list


def records(document: Raw) -> Iterator[Record]:
    """The records of a batch."""
    for resource_logs in _dicts(document.get("resourceLogs")):
        resource = resource_logs.get("resource")
        about = _pairs(resource.get("attributes")) if type(resource) is dict else {}
        for scope_logs in _dicts(resource_logs.get("scopeLogs")):
            for record in _dicts(scope_logs.get("logRecords")):
                attributes = _pairs(record.get("attributes"))
                if "severityText" in record:
                    attributes.setdefault("severityText", record["severityText"])
                yield Record(
                    value_of(record.get("body")),
                    attributes,
                    about,
                    _ns(record.get("observedTimeUnixNano")),
                    _ns(record.get("timeUnixNano")),
                )


def event_of(record: Record) -> Raw | None:
    """The Event in a record of `k8s_events`, as far as its attributes tell it; None without one."""
    said = {**record.resource, **record.attributes}
    uid, message = said.get(_EVENT_UID), record.body
    if type(uid) is not str or not uid or type(message) is not str:
        return None
    kind, name, of = said.get("k8s.object.kind"), said.get("k8s.object.name"), "object"
    if not kind:
        of = next((word for word in _KINDS if said.get(f"k8s.{word}.name")), "")
        kind, name = _KINDS.get(of), said.get(f"k8s.{of}.name")
    namespace = said.get("k8s.namespace.name")
    involved = {
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "uid": said.get(f"k8s.{of}.uid"),
        "apiVersion": said.get("k8s.object.api_version"),
        "resourceVersion": said.get("k8s.object.resource_version"),
        "fieldPath": said.get("k8s.object.fieldpath"),
    }
    meta = {
        "name": said.get("k8s.event.name"),
        "namespace": namespace,
        "uid": uid,
        "creationTimestamp": _go_time(said.get("k8s.event.start_time")),
    }
    source = {"component": said.get("k8s.event.source"), "host": said.get("k8s.node.name")}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": said_only(meta),
        "involvedObject": said_only(involved),
        "reason": said.get("k8s.event.reason"),
        "message": message,
        "type": said.get("severityText"),
        "action": said.get("k8s.event.action"),
        "count": said.get("k8s.event.count"),
        "source": said_only(source),
        "lastTimestamp": _second(record.at_ns),
    }
    return said_only(event)


def said_only(fields: Raw) -> Raw:
    """The fields that say something: what is absent comes as an empty text."""
    return {name: value for name, value in fields.items() if value not in (None, "", {})}


def _second(at_ns: int | None) -> str | None:
    return None if at_ns is None else format_rfc3339(floor_second(at_ns))


def _go_time(text: Any) -> str | None:
    """A time as Go prints it (`2026-03-01 10:00:00 +0000 UTC`) as RFC 3339."""
    if type(text) is not str:
        return None
    day, _, rest = text.partition(" ")
    clock, _, zone = rest.partition(" ")
    offset = zone.partition(" ")[0]
    if len(offset) != len("+0000"):
        return None
    at_ns = parse_rfc3339(f"{day}T{clock}{offset[:3]}:{offset[3:]}")
    return _second(at_ns)


def _ns(value: Any) -> int | None:
    """A time in Unix ns, as text or as a number; 0 is none."""
    try:
        found = int(value) if type(value) in (int, str) else 0
    except ValueError:
        return None
    return found if NS_PER_S <= found < _NS_MAX else None


def _pairs(value: Any) -> Raw:
    return {str(pair.get("key")): value_of(pair.get("value")) for pair in _dicts(value)}


def _dicts(value: Any) -> list[Raw]:
    return [item for item in _list(value) if type(item) is dict]


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []
