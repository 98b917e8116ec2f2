"""Objects as the API server stores them, as the JSON that it serves.

A value begins with `k8s` and a zero byte and is a `runtime.Unknown` whose `raw` is the object's own
message; or it is JSON; or it is encrypted (`k8s:enc:`), which only that API server reads.
The types are those of `tracekit.base.kube.api_types`.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from tracekit.base.kube.api_types import Field, schema

Raw = dict[str, Any]

PROTOBUF_PREFIX = b"k8s\0"
ENCRYPTED_PREFIX = b"k8s:enc:"
_ROOTS = {
    ("v1", "Pod"): "core.Pod",
    ("v1", "Event"): "core.Event",
    ("v1", "Namespace"): "core.Namespace",
    ("v1", "ResourceQuota"): "core.ResourceQuota",
    ("batch/v1", "Job"): "batch.Job",
    ("batch/v1", "CronJob"): "batch.CronJob",
    ("batch/v1beta1", "CronJob"): "batch.CronJob",
    ("coordination.k8s.io/v1", "Lease"): "coordination.Lease",
}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIGN = 1 << 63
_UINT64_MAX = (1 << 64) - 1
#: A varint of so many bytes has 64 bits.
_VARINT_BYTES_MAX = 10
#: What reading a message trips over that is none: its fields may be of any type, its times of any
#: year, its text of any bytes. `ValueError`: also text and JSON that are none.
_MALFORMED = (
    *(LookupError, ValueError, AttributeError, TypeError),
    *(OverflowError, OSError, RecursionError),
)


class EncryptedError(ValueError):
    """The value is encrypted at rest."""


class UnreadableError(ValueError):
    """The value is not what the API server stores."""


def object_of(value: bytes, unknown: Counter[str]) -> Raw | None:
    """The object of a stored value; None for kinds that are not recorded.

    `unknown` counts fields that the schema does not have. The resourceVersion is the caller's to
    add: the store keeps it beside the value.

    Raises:
        EncryptedError: The value is encrypted.
        UnreadableError: The value is cut off or is no object.
    """
    if value.startswith(ENCRYPTED_PREFIX):
        raise EncryptedError
    if value.startswith(b"{"):
        try:
            found = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise UnreadableError("it is no JSON") from error
        return found if isinstance(found, dict) else None
    if not value.startswith(PROTOBUF_PREFIX):
        raise UnreadableError("it is neither protobuf nor JSON")
    try:
        envelope = dict(fields_of(value[len(PROTOBUF_PREFIX) :]))
        meta = dict(fields_of(envelope[1]))
        api_version, kind = meta.get(1, b"").decode(), meta.get(2, b"").decode()
        root = _ROOTS.get((api_version, kind))
        if root is None:
            return None
        return {"kind": kind, "apiVersion": api_version, **_message(root, envelope[2], unknown)}
    except _MALFORMED as error:
        raise UnreadableError("it is cut off or no object") from error


def fields_of(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message in the wire format: numbers with ints or bytes.

    Raises:
        IndexError: The message is cut off.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
        elif wire == _BYTES:
            size, at = _varint(data, at)
            if at + size > end:
                raise IndexError(number)
            yield number, data[at : at + size]
            at += size
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
            yield number, int.from_bytes(data[at : at + size], "little")
            at += size
        else:
            raise IndexError(number)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    for _ in range(_VARINT_BYTES_MAX):
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004
            return result & _UINT64_MAX, at
        shift += 7
    raise IndexError(at)


def _message(name: str, data: bytes, unknown: Counter[str]) -> Raw:
    fields = schema()[name]
    result: Raw = {}
    for number, value in fields_of(data):
        field = fields.get(number)
        if field is None:
            unknown[f"{name} field {number}"] += 1
            continue
        if field.shape == "map":
            entry = dict(fields_of(value))
            key = entry.get(1, b"").decode()
            result.setdefault(field.name, {})[key] = _value(field, entry.get(2, b""), unknown)
        elif field.shape == "list":
            result.setdefault(field.name, []).append(_value(field, value, unknown))
        else:
            made = _value(field, value, unknown)
            if not field.name:
                result.update(made)
            elif field.omit_zero and made is None:
                continue
            elif field.pointer or not field.omit_empty or not _empty(field, made):
                result[field.name] = made
    return result


def _empty(field: Field, value: Any) -> bool:
    """Whether Go leaves the value out: structs never are, not even empty ones."""
    return "." not in field.kind and field.kind not in _STRUCTS and not value


_STRUCTS = frozenset({"time", "microtime", "quantity", "intorstring"})


def _value(field: Field, value: Any, unknown: Counter[str]) -> Any:
    kind = field.kind
    if kind == "s":
        return value.decode()
    if kind == "i":
        return value - (1 << 64) if value & _SIGN else value
    if kind == "b":
        return bool(value)
    if kind == "y":
        return base64.b64encode(value).decode()
    if "." in kind:
        return _message(kind, value, unknown)
    return _SPECIAL[kind](dict(fields_of(value)))


def _signed(value: int) -> int:
    return value - (1 << 64) if value & _SIGN else value


def _time(fields: dict[int, Any]) -> str | None:
    if not fields:
        return None
    seconds = _signed(fields.get(1, 0))
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(fields: dict[int, Any]) -> str | None:
    if not fields:
        return None
    seconds, nanos = _signed(fields.get(1, 0)), fields.get(2, 0)
    whole = datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{nanos // 1000:06d}Z"


def _int_or_string(fields: dict[int, Any]) -> int | str:
    if fields.get(1, 0):
        text: str = fields.get(3, b"").decode()
        return text
    return _signed(fields.get(2, 0))


def _json(fields: dict[int, Any]) -> Any:
    text = fields.get(1, b"")
    return orjson.loads(text) if text else None


_SPECIAL: dict[str, Any] = {
    "time": _time,
    "microtime": _micro_time,
    "quantity": lambda fields: fields.get(1, b"").decode(),
    "intorstring": _int_or_string,
    "fields": _json,
    "raw": _json,
    "duration": lambda fields: fields.get(1, 0),
}
