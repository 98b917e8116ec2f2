"""Frames: what the API server writes, what it might, and what is no frame at all."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.record.failures import BadFrame
from tracekit.record.streams import frames
from tracekit.record.streams.frames import parse_frame

META = {"name": "n", "uid": "u", "resourceVersion": "7"}


def _line(kind: str = "ADDED", **parts: object) -> bytes:
    body = {"kind": "Job", "metadata": META, **parts}
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), orjson.dumps(body))


def test_the_usual_frame_is_cut_and_not_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_odd_frame", pytest.fail)
    meta = b'{"name":"n","uid":"u","resourceVersion":"7","annotations":{"a":"b"}}'
    status = b'{"message":{"x":"\\u003c\xc3\xbc"},"code":"str"}'
    text = b'{"kind":"Job",  "metadata":%s,"status":%s}' % (meta, status)
    frame = parse_frame(b'{"type":"MODIFIED","object":' + text + b"}\r\n")
    assert (frame.type, frame.uid, frame.resource_version) == ("MODIFIED", "u", "7")
    assert frame.raw == text


def test_bookmarks() -> None:
    meta = {"resourceVersion": "9"}
    assert not parse_frame(_line("BOOKMARK", metadata=meta)).ends_initial_events
    ended = {**meta, "annotations": {"k8s.io/initial-events-end": "true"}}
    assert parse_frame(_line("BOOKMARK", metadata=ended)).ends_initial_events
    for odd in (None, {}, {"other": "true"}):
        line = _line("BOOKMARK", metadata={**meta, "annotations": odd})
        assert not parse_frame(line).ends_initial_events


def test_errors_carry_code_and_message() -> None:
    frame = parse_frame(b'{"type":"ERROR","object":{"kind":"Status","message":"gone","code":410}}')
    assert (frame.type, frame.code, frame.message) == ("ERROR", 410, "gone")
    frame = parse_frame(
        b'{"type":"ERROR","object":{"kind":"Status","metadata":{},"reason":"Expired"}}'
    )
    assert (frame.code, frame.message) == (None, "Expired")


@pytest.mark.parametrize(
    "line",
    [
        b'{"object":{"metadata":{"name":"n","uid":"u","resourceVersion":"7"}},"type":"ADDED"}',
        b'{ "type" : "ADDED" , "object" : {"metadata":{"name":"n","uid":"u","resourceVersion":"7"}} }',
        b'{"type":"ADDED","object":{"metadata":{"name":"n","uid":"u","resourceVersion":"7"}},"more":{}}',
    ],
)
def test_frames_written_another_way(line: bytes) -> None:
    frame = parse_frame(line)
    assert orjson.loads(frame.raw)["metadata"] == META
    assert (frame.uid, frame.resource_version) == ("u", "7")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"<html>",
        b'{"a":1}',
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":[]}',
        b'{"type":"ADDED","object":{"metadata":{"name":"n","uid":"u"}}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"n","resourceVersion":"7"}}}',
        b'{"type":"ADDED","object":{"metadata":{"uid":"u","resourceVersion":""}}}',
        b'{"type":"NEW","object":{"metadata":{"name":"n","uid":"u","resourceVersion":"7"}}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"n","uid":"u","resourceVersion":7}}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"n","uid":"u","resourceVersion":"7"},"x":"\xff"}}',
        _line()[:-3],
        _line() + b"x",
        _line().replace(b"}}", b"}"),
    ],
)
def test_what_is_no_frame(line: bytes) -> None:
    with pytest.raises(BadFrame):
        parse_frame(line)


@given(st.integers(0, 200))
def test_no_prefix_of_a_frame_is_a_frame(length: int) -> None:
    line = _line(status={"a": {"b": {"c": {}}}}).rstrip()
    if length < len(line):
        with pytest.raises(BadFrame):
            parse_frame(line[:length])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), _JSON), st.sampled_from(["ADDED", "MODIFIED", "DELETED"]))
def test_the_text_is_the_object(extra: dict, kind: str) -> None:
    body = {**extra, "metadata": {**META, "labels": {"ü": "}}"}}}
    line = b'{"type":"%s","object":%s}\n' % (kind.encode(), orjson.dumps(body))
    assert parse_frame(line).raw == orjson.dumps(body)


@given(st.binary(max_size=60))
def test_anything_else_is_refused_not_crashed_on(noise: bytes) -> None:
    with pytest.raises(BadFrame):
        parse_frame(noise)


def test_of_two_objects_the_last_one_counts() -> None:
    """As for the API's own decoders; what is cut out of the line must be one object."""
    first, last = (orjson.dumps({"metadata": {**META, "name": name}}) for name in "ab")
    frame = parse_frame(b'{"type":"ADDED","object":%s,"object":%s}\n' % (first, last))
    assert (orjson.loads(frame.raw)["metadata"]["name"], frame.resource_version) == ("b", "7")
