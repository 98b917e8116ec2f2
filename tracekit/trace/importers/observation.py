"""What importers hand to the writer: a state of an object or a request, and how it is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import astuple

from tracekit.base.json_text import json_text
from tracekit.trace.format.model import Call, Origin, RowType


@dataclass(slots=True)
class Observation:
    """One state of one object."""

    stream: str
    type: RowType
    #: When it had happened at the latest, Unix ns.
    recv_ns: int
    #: None: only its text is at hand.
    obj: dict[str, Any] | None
    #: The object's text as it came; None where it was put together.
    raw: bytes | None = None
    rv: int | None = None
    origin: Origin = field(default_factory=Origin)


class _Packed(msgspec.Struct, array_like=True):
    """An observation or a call, as it waits in a file."""

    tag: str
    type: str
    stream: str
    recv_ns: int
    rv: int | None
    raw: bytes
    origin: tuple[Any, ...]
    rest: tuple[Any, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Packed).decode
_CALL = ("namespace", "name", "uid", "job", "cronjob", "code", "reason", "message")


def pack(row: Observation | Call) -> bytes:
    """The row as bytes."""
    origin = astuple(row.origin)
    if isinstance(row, Call):
        rest = tuple(getattr(row, name) for name in _CALL)
        packed = _Packed("call", "CALL", row.stream, row.recv_ns, None, row.raw, origin, rest)
        return _encode(packed)
    raw = row.raw if row.raw is not None else json_text(row.obj)
    return _encode(_Packed("state", row.type.value, row.stream, row.recv_ns, row.rv, raw, origin))


def unpack(data: bytes) -> Observation | Call:
    """The row again; of an observation's object the text."""
    packed = _decode(data)
    origin = Origin(*packed.origin)
    if packed.tag == "call":
        fields = dict(zip(_CALL, packed.rest, strict=True))
        return Call(packed.stream, packed.recv_ns, packed.raw, origin, **fields)
    return Observation(
        packed.stream,
        RowType(packed.type),
        packed.recv_ns,
        None,
        packed.raw,
        packed.rv,
        origin,
    )
