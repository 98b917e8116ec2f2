"""HTTP against one API server: whole answers, and watch streams as raw lines.

urllib3 connects and carries the bytes (a watch's body is read by `body.py`); every way of failing
becomes one class of `failures`. A watch hands out complete lines only: what a broken connection
leaves behind of a line is dropped, since the server sends it again when the watch resumes.
"""

from __future__ import annotations

import contextlib
import io
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3
from urllib3.exceptions import HTTPError, NewConnectionError, ReadTimeoutError
from urllib3.exceptions import SSLError as PoolSslError
from urllib3.exceptions import TimeoutError as PoolTimeoutError

from tracekit.base.bounded_http import (
    TooLarge,
    TooLate,
    pieces,
    retry_after_s,
    shut_after,
    whole,
)
from tracekit.record.credentials.kubeconfig import Connection
from tracekit.record.failures import (
    ConnectionFailed,
    RequestFailed,
    StreamIdle,
    TlsFailed,
    failure,
)
from tracekit.record.server.body import ChunkedBody, LineSplitter, WholeBody
from tracekit.record.server.clock_notes import ClockNotes
from tracekit.trace.format.limits import has_more_values

_LOG_READ_BYTES = 1 << 16
_CONNECT_TIMEOUT_S = 10.0
_MESSAGE_CHARS = 300
#: A page of a list has 500 objects of at most 1.5 MiB each, and seldom a hundredth of that.
_ANSWER_BYTES_MAX = 1 << 28
#: As Python's objects a value takes up to 100 bytes, and in an answer two (`{},`). A page of 500
#: objects may have 8,000 each, ten times what large ones have.
_ANSWER_VALUES_MAX = 4_000_000
#: What an error's own text may take; without it the status says enough.
_STATUS_S = 5.0
_UNREADABLE = (HTTPError, OSError, ValueError, TypeError, KeyError, AttributeError, TooLate)
#: What reading a bounded answer raises: ValueError and AttributeError come of http.client when the
#: time is over.
_BROKEN = (HTTPError, OSError, ValueError, AttributeError, TooLate, TooLarge)
_OK = 200


class ApiClient:
    """Requests against one API server."""

    def __init__(self, connection: Connection, *, request_timeout_s: float = 30.0) -> None:
        self.connection = connection
        self._request_timeout_s = request_timeout_s
        #: Told of the Date of each answer, once somebody wants to know.
        self.clock_notes: ClockNotes | None = None

    def get(self, path: str, params: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Read a whole JSON answer, which is an object."""
        return self._whole("GET", path, params, None)

    def post(self, path: str, body: Any) -> dict[str, Any]:
        """Send a JSON body, read a whole JSON answer, which is an object."""
        return self._whole("POST", path, None, orjson.dumps(body))

    def text_lines(self, path: str) -> Iterator[bytes]:
        """Read an answer line by line without keeping it (for /metrics)."""
        response, left_s = self._answer("GET", path, None, None)
        lines = LineSplitter()
        with contextlib.closing(response):
            try:
                for data in pieces(response, seconds=left_s, most_bytes=_ANSWER_BYTES_MAX):
                    lines.feed(data)
                    yield from lines.take()
            except (*_BROKEN, RequestFailed) as error:
                raise self.cleaned(_connection_failure(error)) from None

    def watch(
        self, path: str, params: Mapping[str, str], *, idle_timeout_s: float
    ) -> WatchResponse:
        """Open a watch; no line for `idle_timeout_s` ends it with `StreamIdle`."""
        response = self._request("GET", path, params, None, read_timeout_s=idle_timeout_s)
        return WatchResponse(response, self, idle_timeout_s)

    def log(self, path: str, params: Mapping[str, str], *, idle_timeout_s: float) -> LogResponse:
        """Open a container's log."""
        response = self._request("GET", path, params, None, read_timeout_s=idle_timeout_s)
        return LogResponse(response, self)

    def reload_credentials(self, generation: int) -> None:
        """Read the configuration anew after a 401 seen with `generation`."""
        self.connection.reload(generation)

    def _answer(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: bytes | None,
        *,
        gzip: bool = False,
    ) -> tuple[urllib3.BaseHTTPResponse, float]:
        """An answer that has begun, and the seconds that are left for the whole of it."""
        begun_s = time.monotonic()
        limit_s = self._request_timeout_s
        response = self._request(method, path, params, body, read_timeout_s=limit_s, gzip=gzip)
        return response, limit_s - (time.monotonic() - begun_s)

    def _whole(
        self, method: str, path: str, params: Mapping[str, str] | None, body: bytes | None
    ) -> dict[str, Any]:
        response, left_s = self._answer(method, path, params, body, gzip=True)
        try:
            data = whole(response, seconds=left_s, most_bytes=_ANSWER_BYTES_MAX)
        except _BROKEN as error:
            response.close()
            raise self.cleaned(_connection_failure(error)) from None
        response.release_conn()
        if has_more_values(data, _ANSWER_VALUES_MAX):
            raise ConnectionFailed(f"an answer of more than {_ANSWER_VALUES_MAX:,} values")
        try:
            answer = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise ConnectionFailed(f"the answer to {path} is not JSON ({error})") from None
        if not isinstance(answer, dict):
            raise ConnectionFailed(f"the answer to {path} is no JSON object")
        return answer

    def _request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: bytes | None,
        *,
        read_timeout_s: float,
        gzip: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        connection = self.connection
        headers = connection.headers()
        headers["Accept"] = "application/json"
        headers["Accept-Encoding"] = "gzip" if gzip else "identity"
        if body is not None:
            headers["Content-Type"] = "application/json"
        url = connection.host + path + (f"?{urlencode(params)}" if params else "")
        connect_s = min(_CONNECT_TIMEOUT_S, read_timeout_s)
        notes = self.clock_notes
        sent = notes.read() if notes is not None else None
        try:
            response = connection.pool.urlopen(
                method,
                url,
                body=body,
                headers=headers,
                preload_content=False,
                retries=False,
                redirect=False,
                timeout=urllib3.Timeout(connect=connect_s, read=read_timeout_s),
            )
        except (HTTPError, OSError, ValueError, TooLate) as error:
            raise self.cleaned(_connection_failure(error)) from None
        if notes is not None and sent is not None:
            notes.answered(sent, response.headers.get("Date"))
        if not _OK <= response.status < _OK + 100:
            with contextlib.closing(response):
                raise self.cleaned(_status_failure(response))
        return response

    def cleaned(self, error: RequestFailed) -> RequestFailed:
        """Take credentials out of what a library or the server says: both quote what they got."""
        # Cut last: of a credential that is cut in two the rest would not be known for one.
        error.reason = self.connection.credentials.clean(error.reason)[:_MESSAGE_CHARS]
        error.args = (error.reason,)
        return error


class LogResponse:
    """An open log: bytes as they come, to the last one; `close` may be called from any thread."""

    def __init__(self, response: urllib3.BaseHTTPResponse, client: ApiClient) -> None:
        self._response = response
        self._client = client
        self._closed = threading.Event()

    def pieces(self) -> Iterator[bytes]:
        """Yield what arrives until the log ends."""
        try:
            # `stream` would wait for so many bytes of a log that is not in chunks.
            while piece := self._response.read1(_LOG_READ_BYTES):
                yield piece
        except (HTTPError, OSError, ValueError, AttributeError) as error:
            if not self._closed.is_set():
                raise self._client.cleaned(_connection_failure(error)) from None
        finally:
            self._response.close()

    def close(self) -> None:
        """End it."""
        self._closed.set()
        with contextlib.suppress(Exception):
            self._response.shutdown()


class WatchResponse:
    """An open watch; `close` may be called from any thread and ends `chunks`."""

    def __init__(
        self, response: urllib3.BaseHTTPResponse, client: ApiClient, idle_timeout_s: float
    ) -> None:
        self._response = response
        self._client = client
        self._idle_timeout_s = idle_timeout_s
        self._closed = threading.Event()

    def chunks(self) -> Iterator[list[bytes]]:
        """Yield complete lines, as many at a time as have arrived; ends when the server ends.

        A line may have its newline or not.
        """
        try:
            yield from self._batches()
        except (TimeoutError, ReadTimeoutError) as error:
            raise StreamIdle("no byte for longer than bookmarks are apart") from error
        except (HTTPError, OSError, ValueError, AttributeError, ConnectionFailed) as error:
            # ValueError and AttributeError: what http.client does when `close` pulls the socket
            # away under it.
            if not self._closed.is_set():
                raise self._client.cleaned(_connection_failure(error)) from None
        finally:
            self._response.close()

    def _batches(self) -> Iterator[list[bytes]]:
        lines = LineSplitter()
        file = _buffered_socket(self._response)
        if file is not None:
            yield from ChunkedBody(file, lines, quiet_s=self._idle_timeout_s)
        else:
            yield from WholeBody(self._response, lines, quiet_s=self._idle_timeout_s)

    def close(self) -> None:
        """End the stream from another thread."""
        self._closed.set()
        with contextlib.suppress(Exception):
            # Only `shutdown` is safe while another thread reads; it makes that read return.
            self._response.shutdown()


def _buffered_socket(response: urllib3.BaseHTTPResponse) -> io.BufferedReader | None:
    """The file that http.client reads the answer from, if the answer is chunked.

    An API server sends every event as a chunk of its own, and urllib3 makes several calls for each:
    most of a recorder's time. None if there is no such file: then urllib3 reads the chunks.
    """
    file = getattr(getattr(response, "_fp", None), "fp", None)
    is_chunked = getattr(response, "chunked", False)
    return file if is_chunked and isinstance(file, io.BufferedReader) else None


def _status_failure(response: urllib3.BaseHTTPResponse) -> RequestFailed:
    """Read the Status object of an error answer, as far as there is one."""
    message = f"{response.status} {response.reason or ''}".strip()
    with contextlib.suppress(*_UNREADABLE):
        with shut_after(_STATUS_S, response.shutdown):
            data = response.read(1 << 16, decode_content=True)
        with contextlib.suppress(orjson.JSONDecodeError):
            body = orjson.loads(data)
            message = f"{message}: {body['message']}"
    if (elsewhere := response.headers.get("Location")) is not None:
        # Without what it asks there: a page to log in is told who asked.
        message = f"{message}, to {elsewhere.partition('?')[0]}"
    wait_s = retry_after_s(response.headers.get("Retry-After"))
    return failure(response.status, message, wait_s)


def _connection_failure(error: Exception) -> RequestFailed:
    """Sort what urllib3, ssl and the socket raise."""
    if isinstance(error, RequestFailed):
        return error
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, TooLate):  # of whatever was interrupted for it
            return ConnectionFailed(_short(seen))
        if isinstance(seen, (ssl.SSLError, PoolSslError)):
            return TlsFailed(f"TLS: {_short(seen)}")
        if isinstance(seen, NewConnectionError):
            return ConnectionFailed(f"cannot connect: {_short(seen.__cause__ or seen)}")
        if isinstance(seen, PoolTimeoutError):
            return ConnectionFailed("timed out")
        if seen is seen.__cause__:
            break
        seen = seen.__cause__ or (seen.args[-1] if _wraps(seen) else None)
    return ConnectionFailed(_short(error))


def _wraps(error: BaseException) -> bool:
    return bool(error.args) and isinstance(error.args[-1], BaseException)


def _short(error: BaseException) -> str:
    said = str(error)
    if _wraps(error):  # of which str() shows both, as Python writes them
        what, cause = str(error.args[0]).rstrip("."), str(error.args[-1])
        said = what if not cause or cause in what else f"{what}: {cause}"
    return " ".join(said.split()) or type(error).__name__
