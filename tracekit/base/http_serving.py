"""HTTP servers of our own that nobody can hold: neither their threads, nor their process's files.

Whoever can connect may open connections and say nothing, or a byte now and then. So there are a few
at a time; one whose request has not come is cut off when its time is over, or when others want its
place; an answer has to be taken in time. Who goes away in the middle makes no traceback.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Final

from tracekit.base.errors import UsageError

#: So many connections are open at a time; a scrape or a browser takes a few.
_AT_A_TIME: Final = 32
#: In that a request has come to the end of its head, whatever its pieces.
_HEAD_S: Final = 10.0
#: In that an answer is taken.
_ANSWER_S: Final = 20

#: Status, type and body of an answer.
Answer = Callable[[], tuple[int, str, bytes]]


class BoundedServer(ThreadingHTTPServer):
    """A server of a few connections at a time, for requests without a body."""

    daemon_threads = True
    request_queue_size = _AT_A_TIME

    def __init__(self, address: str, port: int, handler: type[BoundedHandler]) -> None:
        """Listen.

        Raises:
            OSError: There is no such address, or it is taken.
            ValueError: It is no address, or no port.
        """
        if not 0 <= port < 1 << 16:
            raise ValueError("a port is a number from 0 to 65535")
        if not address:
            raise ValueError("an address is missing")
        self.address_family, *_, where = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        #: Connections in the order in which they came: since when, and whether a request has.
        self._open: dict[Any, tuple[float, bool]] = {}
        self._lock = threading.Lock()
        super().__init__(where[:2], handler)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        """Bind, and ask nobody for the name of this machine."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if there is room or somebody is silent."""
        with self._lock:
            has_room = len(self._open) < _AT_A_TIME or self._cut_off(float("inf"), most=1)
            if has_room:
                self._open[request] = time.monotonic(), False
        if has_room:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def heard(self, request: Any) -> None:
        """Note that a request has come; who is heard stays until it is answered."""
        with self._lock:
            if request in self._open:
                self._open[request] = time.monotonic(), True

    def service_actions(self) -> None:
        """Cut off those whose time is over; the library calls it twice a second."""
        with self._lock:
            self._cut_off(time.monotonic() - _HEAD_S)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of those who went away in the middle."""

    def _cut_off(self, before: float, most: int = _AT_A_TIME) -> bool:
        """Cut off the first connections that are silent since then; whether there were any."""
        silent = [
            request
            for request, (since, heard) in self._open.items()
            if not heard and since < before
        ][:most]
        for request in silent:
            del self._open[request]
            # Its thread reads the end, and closes it.
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)
        return bool(silent)


class BoundedHandler(BaseHTTPRequestHandler):
    """One request, one answer."""

    timeout = _ANSWER_S
    server_version = "tracekit"
    sys_version = ""

    def parse_request(self) -> bool:
        """Read the head."""
        is_whole = super().parse_request()
        if isinstance(self.server, BoundedServer):
            self.server.heard(self.connection)
        return is_whole

    def log_message(self, *_: object) -> None:
        """Say nothing: a scrape every few seconds is no news."""


class PageServer:
    """Serves a few pages from a thread of its own, until it is closed."""

    def __init__(
        self, pages: Mapping[str, Answer], *, address: str, port: int, option: str
    ) -> None:
        """Begin.

        Args:
            pages: What answers, by path.
            address: Where to listen.
            port: 0: any that is free.
            option: What a user writes for the port, and for the address begins with.

        Raises:
            UsageError: The address cannot be had.
        """

        class Handler(BoundedHandler):
            def do_GET(self) -> None:
                page = pages.get(self.path.partition("?")[0])
                missing = 404, "text/plain", f"{' and '.join(pages)} are here\n".encode()
                code, kind, body = missing if page is None else page()
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        try:
            self._server = BoundedServer(address, port, Handler)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(
                f"nothing can be served on {address or 'no address'}, port {port} ({reason}): "
                f"choose another {option}-port or {option}-address"
            ) from error
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="pages", daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
