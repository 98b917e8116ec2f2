"""The beginning of a long list: what is whole of it is told without following all its brackets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracekit.trace.importers.documents import begun
from tracekit.trace.importers.frames import CAN_BE_AHEAD, latest_stamp


def _pod(number: int) -> dict[str, Any]:
    inner = [{"metadata": {"name": "a"}}, {"kind": "b", "apiVersion": "c"}, {"metadata": {}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p-{number}", "note": 'a "},{\\n} in it'},
        "spec": {"inner": inner, "of": {"items": [{}, {}]}},
    }


_LIST = {"apiVersion": "v1", "items": [_pod(n) for n in range(3)], "kind": "List", "metadata": {}}


@pytest.mark.parametrize("kind", ["spaces", "tabs", "CRLF", "sent"])
def test_wherever_a_list_is_cut_its_whole_items_are_told(kind: str) -> None:
    indent = {"spaces": 4, "tabs": "\t", "CRLF": 2, "sent": None}[kind]
    separators = (",", ":") if kind == "sent" else None
    text = json.dumps(_LIST, indent=indent, separators=separators).encode()
    if kind == "CRLF":
        text = text.replace(b"\n", b"\r\n")
    told = []
    for end in range(len(text)):
        found = begun(text[:end])
        items = [] if found is None else json.loads(found)["items"]
        assert items == _LIST["items"][: len(items)], end
        told.append(len(items))
    assert told == sorted(told)
    assert told[-1] >= 2


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"{\n",
        b'{"a":1}{"apiVersion":2},{"apiVersion":3',
        b'{\n  "a": {\n    "b": {\n    }\n',
        b'{\n  "items": [\n    {\n    }\n  ]\n}\n{\n  "items": [',
        b'x},{"kind":',
        b'[{"kind":1},{"kind":2',
    ],
)
def test_what_is_no_list_is_left_to_who_follows_brackets(text: bytes) -> None:
    assert begun(text) is None


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ({"a": ["2026-01-01T00:00:00Z", {"b": "2026-01-02T00:00:00.5Z"}]}, 1767312000500000000),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, None),
        ({"lastScheduleTime": "2026-01-02T00:00:00Z", "a": "2026-01-01T00:00:00Z"}, 1767225600000000000),
        ({"startTime": "2026-01-02T00:00:00Z", "a": "2026-01-01T00:00:00Z"}, 1767225600000000000),
        ({"2026-01-01T00:00:00Z": 1}, None),
        ({"a": '{"b":"2026-01-01T00:00:00Z"}', "c": 'x"2026-01-01T00:00:00Z'}, None),
        ({"é": "2026-01-01T00:00:00Z", "b": "é026-01-01T00:00:00Z"}, 1767225600000000000),
        ({"a": 2**70, "b": "2026-01-01T00:00:00Z"}, 1767225600000000000),
        ({}, None),
    ],
)  # fmt: skip
def test_the_latest_time_of_an_object_is_no_name_and_no_part_of_a_text(
    value: dict[str, Any], seen: int | None
) -> None:
    assert latest_stamp(value, CAN_BE_AHEAD) == seen
