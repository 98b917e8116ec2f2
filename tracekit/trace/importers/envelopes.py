"""Splitting one line of a watch log or of a watch response into its envelope and its object.

The object is wanted twice: as the very bytes that came in, for the evidence, and parsed, for the
columns. Where the object comes last in its line (as every API server and recorder writes it) both
come from slicing the line; any other order of keys is read with the standard library's scanner.
"""

from __future__ import annotations

import json
from json.decoder import JSONDecoder
from typing import Annotated, Any, NamedTuple

import msgspec
import orjson

from tracekit.base.json_text import json_text
from tracekit.trace.format.api_fields import Typed
from tracekit.trace.format.model import RECEIVED_BEFORE_NS, STATE_TYPES, RowType
from tracekit.trace.format.typed import decoded

_OBJECT_KEY = b'"object":'
#: How far into a line the object of a usual envelope begins.
_ENVELOPE_BYTES_MAX = 512
_SPACE = " \t\r\n"
_STATES = {row_type.value: row_type for row_type in STATE_TYPES}


class Frame(NamedTuple):
    """One line, taken apart."""

    #: All fields of the line but `object`.
    envelope: dict[str, Any]
    #: The object's JSON text as received.
    raw: bytes
    #: The same, parsed.
    obj: dict[str, Any]


class _Envelope(msgspec.Struct):
    """What a line says of its object, as a recorder writes it."""

    resource: str
    type: str
    recv: Annotated[int, msgspec.Meta(ge=0, lt=RECEIVED_BEFORE_NS)] | None = None


_envelope = msgspec.json.Decoder(_Envelope).decode


class State(NamedTuple):
    """A line with the state of an object that is as the API promises."""

    stream: str
    type: RowType
    recv_ns: int | None
    raw: bytes
    obj: Typed


def typed_state(line: bytes) -> State | None:
    """What most lines are; None if this one is something else, which `split_frame` may read."""
    parts = _cut(line.strip())
    if parts is None:
        return None
    try:
        envelope = _envelope(parts[0])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    row_type = _STATES.get(envelope.type)
    if row_type is None:
        return None
    raw = parts[1].strip()
    obj = decoded(envelope.resource, raw)
    if obj is None or not obj.metadata.resource_version:
        return None
    return State(envelope.resource, row_type, envelope.recv, raw, obj)


def object_text(line: bytes) -> bytes:
    """The text of the object in a line that `typed_state` reads."""
    parts = _cut(line.strip())
    return b"" if parts is None else parts[1].strip()


def _cut(line: bytes) -> tuple[bytes, bytes] | None:
    """The envelope with null for its object, and the object, where that seems to come last.

    Both parse only if the cut is the right one: a key `object` further inside would leave the
    envelope with an open brace.
    """
    start = line.find(_OBJECT_KEY, 0, _ENVELOPE_BYTES_MAX)
    if start < 0 or not line.endswith(b"}"):
        return None
    start += len(_OBJECT_KEY)
    return line[:start] + b"null}", line[start:-1]


def split_frame(line: bytes) -> Frame | str:
    """The frame in a line, or the reason why it holds none."""
    line = line.strip()
    parts = _cut(line)
    if parts is not None:
        raw = parts[1].strip()
        try:
            envelope = orjson.loads(parts[0])
            obj = orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass
        else:
            if type(obj) is dict:
                del envelope["object"]
                return Frame(envelope, raw, obj)
    return _split_slowly(line)


def _split_slowly(line: bytes) -> Frame | str:
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        try:
            line.decode()
        except UnicodeDecodeError:
            return "the line is not UTF-8 text"
        return f"the line is not JSON ({error.msg})"
    if type(document) is not dict:
        return "the line is not a JSON object"
    if type(document.get("object")) is not dict:
        return "the line has no object"
    raws = _values_of_key(line.decode(), "object")
    if len(raws) > 1:
        return "the line has several objects"
    obj = document.pop("object")
    return Frame(document, raws[0].encode() if raws else json_text(obj), obj)


def _values_of_key(text: str, key: str) -> list[str]:
    """The texts of top-level values in an object that is known to parse; none if nested deeply."""
    decoder = JSONDecoder()
    found = []
    position = _skip(text, _skip(text, 0) + 1)
    try:
        while text[position] == '"':
            name, position = json.decoder.scanstring(text, position + 1)  # type: ignore[attr-defined]
            start = _skip(text, _skip(text, position) + 1)
            _, position = decoder.raw_decode(text, start)
            if name == key:
                found.append(text[start:position])
            position = _skip(text, position)
            if text[position] == ",":
                position = _skip(text, position + 1)
    except (ValueError, IndexError, RecursionError):
        return []
    return found


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position
