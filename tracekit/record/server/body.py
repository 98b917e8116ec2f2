"""The body of a watch: all bytes that have arrived, out of their HTTP chunks, as lines.

One read takes whatever the socket has, and a C parser takes the chunks apart, since an API server
makes one chunk (and over TLS one record) of every event.
"""

from __future__ import annotations

import io
import select
from collections.abc import Iterator

import httptools

from tracekit.record.failures import BadFrame, ConnectionFailed

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
    watch gets on even if the server breaks off each time.
    """

    def __init__(self, file: io.BufferedReader, lines: LineSplitter) -> None:
        self._file = file
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
        while not self._ended:
            failure: Exception | None = None
            try:
                self._read()
            except (OSError, ValueError, BadFrame, ConnectionFailed) as error:
                failure = error
            if self._lines.complete:
                yield self._lines.take()
            if failure is not None:
                raise failure

    def _read(self) -> None:
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
                return
