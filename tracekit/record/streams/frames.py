"""One line of a watch into one frame: type, identity, revision, and the object's own bytes.

The object is never rebuilt: its text is cut out of the line as it came, so that the trace holds
what the server wrote. msgspec walks the whole line, so that what is not JSON is noticed, but makes
Python objects of four fields only: several times faster than any parser that makes them all.
"""

from __future__ import annotations

import re

import msgspec
import orjson

from tracekit.record.failures import BadFrame
from tracekit.trace.format.limits import has_more_values

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
#: How the API server opens a frame: fixed by Go's encoder (field order of the struct).
_OPENING = re.compile(rb'\s*\{"type":"[A-Z]+","object":')
_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})
#: The same without spaces, for frames of objects.
_USUAL = {
    kind: b'{"type":"%b","object":{' % kind.encode() for kind in ("ADDED", "MODIFIED", "DELETED")
}
_OBJECT = b'"object":'
_ENDINGS = (b"}}\n", b"}}")
_BRACE = ord("}")
#: An object has at most about 1.5 MiB in etcd, and in most of its values ten bytes and more. As
#: Python's objects a value takes up to 100 bytes, and the writer's columns as much again.
_VALUES_MAX = 2_000_000
#: The API server's Status has a few hundred bytes; one of megabytes is none.
_ERROR_BYTES_MAX = 1 << 16


class _Metadata(msgspec.Struct, gc=False):
    resourceVersion: str  # noqa: N815 (the API's spelling)
    uid: str = ""
    name: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata


class _Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: str
    object: _Object


_decode = msgspec.json.Decoder(_Event).decode


class Frame(msgspec.Struct, gc=False):
    """One watch event as received."""

    type: str
    #: The object's JSON text.
    raw: bytes
    #: Empty for ERROR frames.
    resource_version: str = ""
    uid: str = ""
    #: True for the bookmark that closes a streaming list.
    ends_initial_events: bool = False
    #: Of ERROR frames.
    code: int | None = None
    message: str = ""


def parse_frame(line: bytes) -> Frame:
    """Read one line.

    Raises:
        BadFrame: it is not a watch event; nothing of it can be used.
    """
    if has_more_values(line, _VALUES_MAX):
        raise BadFrame(f"a watch event of more than {_VALUES_MAX:,} values", line=line)
    try:
        event = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _odd_frame(line)
    kind, metadata = event.type, event.object.metadata
    usual = _USUAL.get(kind)
    if usual is not None and line.startswith(usual) and line.endswith(_ENDINGS):
        if not (metadata.uid and metadata.name and metadata.resourceVersion):
            raise BadFrame("a watch event of no object, or without revision", line=line)
        if not line.isascii():
            _check_text(line)
        if line.find(_OBJECT, len(usual)) >= 0:
            return _odd_frame(line)  # perhaps a second object, of which the last one counts
        # Two members, `type` the first: the object ends right before the frame's own brace.
        end = -1 if line[-1] == _BRACE else -2
        return Frame(kind, line[len(usual) - 1 : end], metadata.resourceVersion, metadata.uid)
    return _unusual_frame(line, event)


def _unusual_frame(line: bytes, event: _Event) -> Frame:
    kind, metadata = event.type, event.object.metadata
    if kind == "ERROR" or kind not in _TYPES:
        return _odd_frame(line)
    _check_text(line)
    opening = _OPENING.match(line)
    if opening is None:
        return _odd_frame(line)
    raw = line.rstrip()[opening.end() : -1].rstrip()
    frame = Frame(kind, raw, metadata.resourceVersion, metadata.uid)
    if kind == "BOOKMARK":
        frame.ends_initial_events = _ends_initial_events(raw)
    elif not (metadata.uid and metadata.name):
        raise BadFrame("a watch event of no object", line=line)
    if not frame.resource_version:
        raise BadFrame("a watch event without resourceVersion", line=line)
    return frame


def _odd_frame(line: bytes) -> Frame:
    """Read an ERROR frame, or a frame that is not written as the API server writes them."""
    try:
        event = orjson.loads(line)
        kind, body = event["type"], event["object"]
        raw = orjson.dumps(body)
        if kind == "ERROR":
            if len(raw) > _ERROR_BYTES_MAX:
                raise BadFrame("an ERROR frame that is too large", line=line)
            frame = Frame(kind, raw)
            code = body.get("code")
            frame.code = code if isinstance(code, int) else None
            frame.message = str(body.get("message") or body.get("reason") or "ERROR frame")
            return frame
        metadata = body["metadata"]
        uid = "" if kind == "BOOKMARK" else metadata["uid"]
        revision = metadata["resourceVersion"]
        if not (isinstance(revision, str) and isinstance(uid, str)):
            raise BadFrame("not a watch event", line=line)
        frame = Frame(kind, raw, revision, uid)
        annotations = metadata.get("annotations") or {}
        frame.ends_initial_events = annotations.get(_INITIAL_EVENTS_END) == "true"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadFrame("not a watch event", line=line) from error
    if kind not in _TYPES or not frame.resource_version:
        raise BadFrame("not a watch event", line=line)
    return frame


def _check_text(line: bytes) -> None:
    """Look into the text that msgspec skips."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise BadFrame("not UTF-8", line=line) from error


def _ends_initial_events(raw: bytes) -> bool:
    annotations = orjson.loads(raw)["metadata"].get("annotations")
    return isinstance(annotations, dict) and annotations.get(_INITIAL_EVENTS_END) == "true"
