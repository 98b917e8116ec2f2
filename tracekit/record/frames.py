"""One line of a watch into one frame: type, identity, revision, and the object's own bytes.

The object is never rebuilt: its text is cut out of the line as it came, so that the trace holds
what the server wrote. The line is parsed once all the same: only then is it known to be whole, and
the parsed object is handed on so that nobody parses it a second time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from tracekit.record.failures import BadFrame

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
#: How the API server opens a frame: fixed by Go's encoder (field order of the struct).
_OPENING = re.compile(rb'\s*\{"type":"[A-Z]+","object":')
_STATE_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED"})
_TYPES = _STATE_TYPES | {"BOOKMARK", "ERROR"}
_SHOWN_BYTES = 80


@dataclass(slots=True)
class Frame:
    """One watch event as received."""

    type: str
    #: The parsed object.
    body: Mapping[str, Any]
    #: The object's JSON text.
    raw: bytes
    #: Empty for ERROR frames.
    resource_version: str = ""
    uid: str = ""

    @property
    def ends_initial_events(self) -> bool:
        """True for the bookmark that closes a streaming list."""
        annotations = self.body["metadata"].get("annotations") or {}
        return self.type == "BOOKMARK" and annotations.get(_INITIAL_EVENTS_END) == "true"


def parse_frame(line: bytes) -> Frame:
    """Read one line.

    Raises:
        BadFrame: it is not a watch event; nothing of it can be used.
    """
    try:
        event = orjson.loads(line)
        kind = event["type"]
        body = event["object"]
        if kind not in _TYPES or not isinstance(body, dict):
            raise BadFrame(f"not a watch event: {_shown(line)}")
        frame = Frame(kind, body, _object_text(line, event))
        if kind != "ERROR":
            metadata = body["metadata"]
            frame.resource_version = metadata["resourceVersion"]
            if kind != "BOOKMARK":
                frame.uid = metadata["uid"]
                metadata["name"]  # an object without a name is no object
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise BadFrame(f"not a watch event: {_shown(line)}") from error
    if kind != "ERROR" and not frame.resource_version:
        raise BadFrame(f"a watch event without resourceVersion: {_shown(line)}")
    return frame


def _object_text(line: bytes, event: Mapping[str, Any]) -> bytes:
    opening = _OPENING.match(line)
    # Two members and `object` the second: its text ends right before the frame's own brace.
    if opening is not None and len(event) == len(("type", "object")):
        return line.rstrip()[opening.end() : -1].rstrip()
    return orjson.dumps(event["object"])


def _shown(line: bytes) -> str:
    text = line[:_SHOWN_BYTES].decode("utf-8", "replace")
    return f"{text!r}{'…' if len(line) > _SHOWN_BYTES else ''}"
