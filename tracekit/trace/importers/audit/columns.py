"""Events that a store has taken apart: each field in a column, or under a dotted name, of its own.

| names | by |
|---|---|
| `auditID`, `objectRef.resource`, `user.username`, …, with or without a prefix | Elasticsearch, Kibana, Splunk, CloudWatch Logs Insights |
| `protoPayload.methodName`, `protoPayload.resourceName`, … | Cloud Logging's Logs Explorer, as CSV |

What tells who did what to which object are texts, so it is whole again. A body that was taken apart,
too, is not put together: of its fields nothing tells a number from a text of digits, and of its
arrays nothing tells which value belongs to which element.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tracekit.trace.importers.tables import nested, single

Raw = dict[str, Any]

#: The shape of an event whose bodies were taken apart.
APART = "columns"
#: So many digits has a status code (RFC 9110, section 15), and one of google.rpc has two.
_CODE_DIGITS = 3
#: Of an event that was taken apart one of these is there.
_MARKS = (".auditID", "objectRef.resource")
_BODIES = ("requestObject", "responseObject")
_LOGGED = "protoPayload."
#: Without these an entry of Cloud Logging cannot be told.
_LOGGED_NEEDS = ("timestamp", f"{_LOGGED}methodName", f"{_LOGGED}resourceName")
#: What else of an entry is wanted: who, and the number of the request.
_BESIDE = ("insertId", "operation.id", "timestamp")


def are_columns(names: Collection[str]) -> bool:
    """Whether columns or fields of these names hold events."""
    return any(name.endswith(_MARKS[0]) for name in names) or _are_logged(names)


def from_fields(value: Mapping[str, Any]) -> tuple[Raw, bool] | None:
    """The event whose fields an object has, and whether bodies of it were taken apart.

    None if it is none. It is an audit event, or an entry of Cloud Logging.
    """
    if _are_logged(value):
        return _logged(value)
    name = next((n for n in value if type(n) is str and n.endswith(_MARKS)), None)
    if name is None:
        return None
    if type(value[name]) is list:
        value = single(value)
    prefix = name.removesuffix("objectRef.resource").removesuffix("auditID")
    kept, is_apart = _without_parts(value, prefix, _BODIES)
    event = nested(kept, prefix)
    _number(event.get("responseStatus"))
    return event, is_apart


def _are_logged(names: Collection[Any]) -> bool:
    """Whether names are those of a table of Cloud Logging that says how requests ended."""
    return all(name in names for name in _LOGGED_NEEDS) and any(
        str(name).startswith((f"{_LOGGED}status", f"{_LOGGED}response")) for name in names
    )


def _logged(value: Mapping[str, Any]) -> tuple[Raw, bool]:
    kept, is_apart = _without_parts(value, _LOGGED, ("request", "response"))
    payload = nested(kept, _LOGGED)
    _number(payload.get("status"))
    beside = nested({name: value.get(name) for name in _BESIDE}, "")
    return {**beside, "protoPayload": payload}, is_apart


def _without_parts(
    value: Mapping[str, Any], prefix: str, bodies: tuple[str, str]
) -> tuple[Raw, bool]:
    """The fields without those of bodies; whether an answer is missing for that."""
    starts = tuple(f"{prefix}{body}." for body in bodies)
    kept = {name: cell for name, cell in value.items() if not str(name).startswith(starts)}
    parts = any(cell for name, cell in value.items() if str(name).startswith(starts))
    return kept, parts and not value.get(f"{prefix}{bodies[1]}")


def _number(status: Any) -> None:
    code = status.get("code") if type(status) is dict else None
    if type(code) is str and code.isdecimal():
        status["code"] = int(code[:_CODE_DIGITS])
