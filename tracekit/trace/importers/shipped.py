"""Events as programs ship them: each as it is, or in something of the shipper's own.

An Event is told by its own fields, so it is looked for: through objects, lists and texts that are
JSON, to a bounded depth, and never inside an object of the API.

| lines | by |
|---|---|
| an Event, told by what it involves | kubernetes-event-exporter, k8s-event-logger, Fluent Bit |
| `verb` and `event` (beside `old_event`), behind the head of a klog line or not | eventrouter |
| `body`, beside `attributes` with the type | OpenTelemetry's k8s_event_input |
| `body` is text, `attributes` and `resource` have the rest | k8s_events, flat, as stores keep it |
| `jsonPayload` | Cloud Logging, the log `events` of GKE |
| `kubernetes.event` | Elastic's Metricbeat and Agent, in names of their own |
| cells of a table (CSV) | exports of Datadog, Grafana, Splunk, Logs Insights |
| columns of one, or dotted names, with the uid | exports of Cloud Logging, Kibana, Splunk |
| `_source`, `log`, `message`, `line`, `_raw`, … around any of these | what ships containers' logs |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

import orjson

from tracekit.base.kube.timestamps import parse_rfc3339
from tracekit.base.numbers import whole_number
from tracekit.trace.importers import otlp
from tracekit.trace.importers.frames import is_object
from tracekit.trace.importers.tables import first_rows, nested, single

Raw = dict[str, Any]

#: What may stand around an Event that names its kind; around others anything may.
_AROUND = frozenset(
    {
        "hits", "_source", "log", "message", "msg", "line", "event", "result", "_raw",
        "jsonPayload", "textPayload", "data", "attributes", "content", "values", "MESSAGE",
    }
)  # fmt: skip
#: By eventrouter's words for them.
_VERBS = {"ADDED": "ADDED", "UPDATED": "MODIFIED"}
_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED"})
_NESTED_MAX = 8
#: One of these is in every text that holds an Event.
_MARK = "involvedObject"
#: What a column ends with that only an Event has: as the API names it, and as Elastic does.
_COLUMN_MARKS = ("involvedObject.name", "involved_object.name")


def events_in(document: Raw) -> Iterator[tuple[str, Raw]]:
    """The Events in what ships them, each with what its watch said of it, "" if nobody says it.

    An Event that stands there as the API has it, with its kind, is an object as any other.
    """
    yield from _found(document, 0, named=False)


def in_cells(row: Mapping[str, str]) -> Raw:
    """A row of a table as what ships what is in its cells, or as the Event that its columns are."""
    return dict(row) if _of_columns(row) is not None else {"values": list(row.values())}


def _of_columns(row: Mapping[str, Any]) -> Raw | None:
    """An Event of which each field has a column, or a dotted name."""
    for mark in _COLUMN_MARKS:
        name = next((n for n in row if type(n) is str and n.endswith(mark)), None)
        if name is None:
            continue
        fields = single(row) if type(row[name]) is list else row
        event = nested(fields, name.removesuffix(mark))
        for inner in (event, event.get("series")):
            count = inner.get("count") if isinstance(inner, dict) else None
            if isinstance(inner, dict) and isinstance(count, str):
                number = whole_number(count)
                inner["count"] = count if number is None else number
        made = event if is_event(event) else _of_elastic({"event": event})
        if made is not None:
            return made
    return None


def is_event_table(head: bytes) -> bool:
    """Whether text begins as a table (CSV) of which a row holds an Event."""
    if _MARK.encode() not in head and _COLUMN_MARKS[1].encode() not in head:
        return False
    return any(True for row in first_rows(head) for _ in events_in(in_cells(row)))


def _found(value: Any, depth: int, *, named: bool) -> Iterator[tuple[str, Raw]]:
    """`named`: it stands under a name by which shippers keep what they ship."""
    if depth > _NESTED_MAX:
        return
    if isinstance(value, str):
        inner = _json_in(value) if _MARK in value else None
        if inner is not None:
            yield from _found(inner, depth + 1, named=named)
    elif isinstance(value, list):
        if not any(map(_is_other, value)):  # else it is a list of objects, of which none is shipped
            for item in value:
                yield from _found(item, depth + 1, named=named)
    elif isinstance(value, dict):
        yield from _in_object(value, depth, named=named)


def _in_object(value: Raw, depth: int, *, named: bool) -> Iterator[tuple[str, Raw]]:
    direct = _direct(value)
    if direct is not None:
        yield direct
    elif is_object(value):
        if named and value["kind"] == "Event" and _has_fields({**value, "kind": None}):
            yield "", value
    else:
        for name, inner in value.items():
            yield from _found(inner, depth + 1, named=name in _AROUND)


def _is_other(value: Any) -> bool:
    return is_object(value) and value["kind"] != "Event"


def _direct(value: Raw) -> tuple[str, Raw] | None:
    """The Event that an object is, or holds in one of the forms above."""
    if is_event(value):
        return "", value
    event = value.get("event")
    if is_event(event) and value.get("verb") in _VERBS:
        return _VERBS[value["verb"]], event
    body, said = value.get("body"), value.get("attributes")
    if is_event(body) and isinstance(said, dict):
        kind = str(said.get("event_type"))
        return kind if kind in _TYPES else "", body
    for made in (
        _of_flat(value, body, said),
        _of_elastic(value.get("kubernetes")),
        _of_columns(value),
    ):
        if made is not None:
            return "", made
    return None


def is_event(value: Any) -> TypeGuard[Raw]:
    """Whether it is an Event of the API that does not name its kind."""
    return isinstance(value, dict) and "kind" not in value and _has_fields(value)


def _has_fields(value: Raw) -> bool:
    meta, involved = value.get("metadata"), value.get("involvedObject")
    return (
        isinstance(meta, dict)
        and isinstance(meta.get("uid"), str)
        and isinstance(involved, dict)
        and isinstance(value.get("reason"), str)
    )


def _json_in(text: str) -> Any:
    """The JSON in a text, behind whatever stands before it; None if there is none."""
    try:
        return orjson.loads(text[max(0, text.find("{")) :])
    except orjson.JSONDecodeError:
        return None


def _of_flat(value: Raw, body: Any, said: Any) -> Raw | None:
    """The Event in a record of OpenTelemetry's `k8s_events` as stores keep and print it."""
    if not isinstance(body, str) or not isinstance(said, dict):
        return None
    resource = value.get("resource")
    severity = value.get("severity_text") or value.get("severityText")
    stamp = value.get("timestamp")
    at_ns = parse_rfc3339(stamp) if isinstance(stamp, str) else None
    about = resource if isinstance(resource, dict) else {}
    return otlp.event_of(otlp.Record(body, {"severityText": severity, **said}, about, at_ns, at_ns))


def _of_elastic(kubernetes: Any) -> Raw | None:
    """The Event in a document of Metricbeat's metricset `kubernetes.event`.

    Upstream: elastic/beats, metricbeat/module/kubernetes/event/_meta/fields.yml.
    """
    event = kubernetes.get("event") if isinstance(kubernetes, dict) else None
    if not isinstance(event, dict):
        return None
    meta, involved = _map(event, "metadata"), _map(event, "involved_object")
    if not isinstance(meta.get("uid"), str) or not involved:
        return None
    seen, source = _map(event, "timestamp"), _map(event, "source")
    fields = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": otlp.said_only(
            {
                "name": meta.get("name"),
                "namespace": meta.get("namespace"),
                "uid": meta["uid"],
                "resourceVersion": meta.get("resource_version"),
                "creationTimestamp": _map(meta, "timestamp").get("created"),
            }
        ),
        "involvedObject": otlp.said_only(
            {
                "kind": involved.get("kind"),
                "namespace": meta.get("namespace"),
                "name": involved.get("name"),
                "uid": involved.get("uid"),
                "apiVersion": involved.get("api_version"),
                "resourceVersion": involved.get("resource_version"),
            }
        ),
        "reason": event.get("reason"),
        "message": event.get("message"),
        "type": event.get("type"),
        "count": event.get("count"),
        "source": otlp.said_only(
            {"component": source.get("component"), "host": source.get("host")}
        ),
        "firstTimestamp": seen.get("first_occurrence"),
        "lastTimestamp": seen.get("last_occurrence"),
    }
    return otlp.said_only(fields)


def _map(value: Mapping[str, Any], name: str) -> Raw:
    found = value.get(name)
    return found if isinstance(found, dict) else {}
