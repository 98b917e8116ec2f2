"""The body of a watch: all bytes that have arrived, out of their HTTP chunks, as lines.

One read takes whatever the socket has, and a C parser takes the chunks apart, since an API server
makes one chunk (and over TLS one record) of every event.
"""

from __future__ import annotations

import io
import math
import select
import time
from collections.abc import Callable, Iterator

import httptools
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from tracekit.record.failures import BadFrame, ConnectionFailed, StreamIdle

_READ_BYTES = 1 << 18
#: A single object is at most about 1.5 MiB in etcd; a line beyond this is not a watch event.
_LINE_BYTES_MAX = 1 << 25
#: The head was read by http.client; the parser must be told what it said.
_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class LineSplitter:
    """Pieces of any size in, complete lines out; what is cut off at the end is never a line."""

    def __init__(self) -> None:
        self.complete: list[bytes] = []
        self._tail: list[bytes] = []
        self._tail_bytes = 0

    def feed(self, piece: bytes) -> None:
        """Add what came next."""
        end = piece.find(b"\n")
        if end < 0:
            self._tail.append(piece)
            self._tail_bytes += len(piece)
            if self._tail_bytes > _LINE_BYTES_MAX:
                raise BadFrame(f"a line is longer than {_LINE_BYTES_MAX} bytes")
            return
        if end == len(piece) - 1 and not self._tail_bytes:
            self.complete.append(piece)  # the usual: a chunk is a line
            return
        lines = b"".join((*self._tail, piece)).split(b"\n")
        tail = lines.pop()
        self._tail = [tail]
        self._tail_bytes = len(tail)
        self.complete += lines

    def take(self) -> list[bytes]:
        """Give the lines that are complete, once."""
        lines, self.complete = self.complete, []
        return lines


class ChunkedBody:
    """Iterates over the lines of a chunked body, as many at a time as have arrived.

    Lines that came before something that is wrong are handed out before it is raised, so that a
    watch gets on even if the server breaks off each time. A body that brings bytes but no line for
    `quiet_s` is as silent as one that brings none: bookmarks are lines.
    """

    def __init__(
        self, file: io.BufferedReader, lines: LineSplitter, *, quiet_s: float = math.inf
    ) -> None:
        self._file = file
        self._quiet_s = quiet_s
        self._lines = lines
        self._ended = False
        self.on_body = lines.feed  # called by the parser
        self._parser = httptools.HttpResponseParser(self)
        self._parser.feed_data(_HEAD)
        self._poll = select.poll()
        self._poll.register(file.fileno(), select.POLLIN)

    def on_message_complete(self) -> None:
        """Note the closing chunk; called by the parser."""
        self._ended = True

    def __iter__(self) -> Iterator[list[bytes]]:
        """Yield lines until the body ends."""
        return _as_they_come(self._read, self._lines, self._quiet_s)

    def _read(self) -> bool:
        """Wait for bytes, then take all that is there: a TLS read gives one record at most."""
        taken = 0
        while True:
            data = self._file.read1(_READ_BYTES)
            if not data:
                raise ConnectionFailed("the connection ended in the middle of the answer")
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserError as error:
                cause = error.__context__  # what a callback raised is more to the point
                if isinstance(cause, BadFrame):
                    raise cause from None
                raise ConnectionFailed(f"not an HTTP chunk: {error}") from error
            taken += len(data)
            if self._ended or taken >= _READ_BYTES or not self._poll.poll(0):
                return not self._ended


class WholeBody:
    """Iterates over the lines of a body without chunks, in the same way: as a proxy may send it.

    It ends with its connection, or after so many bytes as its head said.
    """

    def __init__(
        self, response: BaseHTTPResponse, lines: LineSplitter, *, quiet_s: float = math.inf
    ) -> None:
        self._response = response
        self._lines = lines
        self._quiet_s = quiet_s

    def __iter__(self) -> Iterator[list[bytes]]:
        """Yield lines until the body ends."""
        return _as_they_come(self._read, self._lines, self._quiet_s)

    def _read(self) -> bool:
        data = self._response.read1(_READ_BYTES)
        self._lines.feed(data)
        return bool(data)


def _as_they_come(
    read: Callable[[], bool], lines: LineSplitter, quiet_s: float
) -> Iterator[list[bytes]]:
    """The lines that each reading completes, as long as there is more to read."""
    line_s = time.monotonic()
    more = True
    while more:
        failure: Exception | None = None
        try:
            more = read()
        except (OSError, ValueError, HTTPError, BadFrame, ConnectionFailed) as error:
            failure = error
        if lines.complete:
            yield lines.take()
            line_s = time.monotonic()
        elif failure is None and time.monotonic() - line_s > quiet_s:
            failure = StreamIdle("bytes, but no line for longer than bookmarks are apart")
        if failure is not None:
            raise failure
