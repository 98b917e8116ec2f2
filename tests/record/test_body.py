"""The body of a watch: however the bytes are cut, the same lines come out."""

from __future__ import annotations

import socket
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.record.failures import RequestFailed, StreamIdle
from tracekit.record.server.body import ChunkedBody, LineSplitter

LINES = [b'{"a":1}\n', b"\n", "ü\n".encode(), b"x" * 70_000 + b"\n", b"last\n"]


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


def received(data: bytes, cuts: list[int]) -> tuple[list[bytes], Exception | None]:
    """What a reader makes of bytes that are sent in these pieces, then cut off."""
    ours, theirs = socket.socketpair()
    ours.settimeout(10)

    def send() -> None:
        start = 0
        for cut in [*sorted(cuts), len(data)]:
            theirs.sendall(data[start:cut])
            start = max(start, cut)
        theirs.close()

    sender = threading.Thread(target=send)
    sender.start()
    lines: list[bytes] = []
    failure: Exception | None = None
    with ours, ours.makefile("rb") as file:
        try:
            for batch in ChunkedBody(file, LineSplitter()):
                lines += batch
        except RequestFailed as error:
            failure = error
    sender.join()
    return [line.removesuffix(b"\n") for line in lines], failure


EXPECTED = [line.removesuffix(b"\n") for line in LINES]


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 70_200), max_size=6),
    st.lists(st.integers(1, 70_100), max_size=4),
)
def test_no_cut_changes_a_line(cuts: list[int], chunk_ends: list[int]) -> None:
    text = b"".join(LINES)
    bounds = sorted({0, len(text), *(end for end in chunk_ends if end < len(text))})
    pieces = [text[a:b] for a, b in pairwise(bounds)]
    data = chunked(*pieces) + b"0\r\n\r\n"
    assert received(data, [cut for cut in cuts if cut < len(data)]) == (EXPECTED, None)


@pytest.mark.parametrize(
    "end",
    [b"", b"zz\r\nx", chunked(b'{"half'), b'9\r\n{"half', b"5\r\n12345678"],
    ids=["cut", "bad length", "cut after a half line", "cut in a chunk", "too long a chunk"],
)
def test_what_came_before_a_failure_counts(end: bytes) -> None:
    lines, failure = received(chunked(*LINES) + end, [])
    assert lines == EXPECTED
    assert isinstance(failure, RequestFailed)


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.record.server.body._LINE_BYTES_MAX", 1000)
    lines, failure = received(chunked(b"a\n", *[b"x" * 100] * 20), [])
    assert lines == [b"a"]
    assert "longer than 1000 bytes" in str(failure)


def test_silence_is_a_timeout() -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(0.05)
    with ours, theirs, ours.makefile("rb") as file:
        body = iter(ChunkedBody(file, LineSplitter()))
        theirs.sendall(chunked(b"a\n", b"b"))
        assert next(body) == [b"a\n"]
        with pytest.raises(TimeoutError):
            next(body)


def test_bytes_that_make_no_line_are_silence_too() -> None:
    """A body of a byte a second was waited for without end: each read had something."""
    ours, theirs = socket.socketpair()
    ours.settimeout(10)
    with ours, theirs, ours.makefile("rb") as file:
        body = iter(ChunkedBody(file, LineSplitter(), quiet_s=0.0))
        theirs.sendall(chunked(b"a\n", b"b"))
        assert next(body) == [b"a\n"]
        theirs.sendall(chunked(b" "))
        with pytest.raises(StreamIdle, match="no line"):
            next(body)
