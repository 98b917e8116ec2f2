"""Events under encodings that stores put on them: base64, gzip in it, fields that are text.

A subscription of CloudWatch hands Lambda and Kinesis its entries as gzip in base64, Pub/Sub each
entry in base64; Simple Log Service keeps an event's fields as text; BigQuery keeps the bodies of
Cloud Logging's entries as text, and times in a form of its own; Log Analytics has its own names.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64decode
from typing import Any

import orjson

from tracekit.trace.importers.values import check_values

Raw = dict[str, Any]

#: What base64 of an object, of an array of objects and of gzip begins with.
_BEGINNINGS = ("eyJ", "ewo", "ewog", "W3si", "H4sI")
_GZIP_MAGIC = b"\x1f\x8b"
#: So much comes out of one field at most, and so many times its bytes: logs have up to fifty.
_PLAIN_BYTES_MAX = 64 * 1024 * 1024
_PLAIN_TIMES = 200
#: The fields of an event that are no plain texts.
STRUCTURED = frozenset(
    {"user", "impersonatedUser", "objectRef", "responseStatus", "requestObject", "responseObject"}
)
#: The names of an AuditLog in the view, and in what Cloud Logging writes.
_SNAKE = {
    "method_name": "methodName", "resource_name": "resourceName", "status": "status",
    "authentication_info": "authenticationInfo", "request_metadata": "requestMetadata",
    "request": "request", "response": "response",
}  # fmt: skip
_SNAKE_WITHIN = {
    "authenticationInfo": {"principal_email": "principalEmail"},
    "requestMetadata": {"caller_supplied_user_agent": "callerSuppliedUserAgent"},
}
#: A time as BigQuery prints it.
_PRINTED_TIME = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(?: UTC)?")


def decoded(text: str) -> bytes | None:
    """The JSON that a text is the base64 of, in gzip or not; None where it is nothing such.

    Raises:
        TraceFormatError: It has more values than memory should hold.
    """
    if not text.startswith(_BEGINNINGS):
        return None
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        return None
    if data.startswith(_GZIP_MAGIC):
        unpacking = zlib.decompressobj(wbits=31)
        try:
            data = unpacking.decompress(data, min(_PLAIN_BYTES_MAX, _PLAIN_TIMES * len(data)))
        except zlib.error:
            return None
        if not unpacking.eof:
            return None  # cut off, or more than a log of its size may hold
    check_values(data, "a field in base64")
    return data


def parsed_fields(event: Raw) -> Raw:
    """An event of which some fields are the text of what they hold, with these parsed."""
    texts = [name for name in STRUCTURED if type(event.get(name)) is str]
    return {**event, **{name: parsed(event[name]) for name in texts}} if texts else event


def parsed(text: str) -> Any:
    """What a text is as JSON; None if it is none."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def from_bigquery(row: Raw) -> Raw:
    """A row of an audit log's table in BigQuery as the entry of Cloud Logging that it was."""
    payload = {k: v for k, v in row["protopayload_auditlog"].items() if v is not None}
    for name in ("request", "response"):
        text = payload.pop(f"{name}Json", None)
        if type(text) is str:
            payload[name] = parsed(text)
    return _as_logged(row, payload)


def from_log_analytics_view(row: Raw) -> Raw:
    """A row of Log Analytics' view `_AllLogs` as the entry of Cloud Logging that it was made of."""
    found = row["proto_payload"]["audit_log"]
    payload = {theirs: found.get(ours) for ours, theirs in _SNAKE.items() if found.get(ours)}
    for name, fields in _SNAKE_WITHIN.items():
        inner = payload.get(name)
        if type(inner) is dict:
            payload[name] = {theirs: inner.get(ours) for ours, theirs in fields.items()}
    for name in ("request", "response"):
        if type(payload.get(name)) is str:
            payload[name] = parsed(payload[name])
    return _as_logged({**row, "insertId": row.get("insert_id")}, payload)


def _as_logged(row: Raw, payload: Raw) -> Raw:
    at = row.get("timestamp")
    found = _PRINTED_TIME.fullmatch(at) if type(at) is str else None
    if found is not None:
        at = f"{found[1]}T{found[2]}Z"
    return {**row, "timestamp": at, "protoPayload": payload}
