"""A server for one browser on this machine: it gives out the page and its answers, to nobody else.

Everybody on a machine can connect to its loopback address, and every page in a browser can make it
ask there. So an address has a secret that only the one who started the server was told; the name
that a browser believes to talk to has to be this machine's (a name of somebody else's that resolves
to 127.0.0.1 is not); and nothing but reading is answered.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import duckdb

from tracekit.base.errors import TracekitError, UsageError
from tracekit.base.http_serving import BoundedHandler, BoundedServer
from tracekit.report.html.page import embedded_json, served_page
from tracekit.report.serving.answers import Answers

LOOPBACK: Final = ("127.0.0.1", "::1")
_NAMES: Final = ("127.0.0.1", "[::1]", "localhost")
#: A line of a request, in characters; a whole answer, in bytes.
_PATH_CHARS: Final = 2_000
MAX_ANSWER_BYTES: Final = 64 << 20
#: So many are answered at a time.
_AT_A_TIME: Final = 16
_PAGES_KEPT: Final = 4
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_HTML: Final = "text/html; charset=utf-8"
_JSON: Final = "application/json"
_TEXT: Final = "text/plain; charset=utf-8"


class ReportServer:
    """Serves one trace's page until it is closed."""

    def __init__(self, answers: Answers, *, address: str, port: int) -> None:
        """Listen; nothing is answered before `serve`.

        Args:
            answers: What is asked. One question at a time is put to it. Before it was judged
                there is its first page alone.
            address: One of `LOOPBACK`.
            port: 0: any that is free.

        Raises:
            UsageError: It is no address of this machine alone, or the port cannot be had.
        """
        if address not in LOOPBACK:
            raise UsageError(
                f"{address} is not this machine alone: a report is served on 127.0.0.1 or ::1"
            )
        self._answers = answers
        self._secret = secrets.token_urlsafe(24)
        self._has_ended = False
        self._pages: dict[tuple[tuple[str, str], ...], bytes] = {}
        self._one = threading.Lock()
        self._seats = threading.BoundedSemaphore(_AT_A_TIME)
        try:
            self._server = _Server(address, port, _handler(self))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(
                f"port {port} cannot be served on ({reason}): choose another with --port, or leave "
                "it out"
            ) from error
        self.port = int(self._server.server_address[1])
        self._host = f"[{address}]" if ":" in address else address
        self._questions: Mapping[str, Callable[[Mapping[str, str]], Any]] = {
            "job": answers.job,
            "happenings": answers.happenings,
            "writes": answers.writes,
        }
        self._first = b"" if answers.is_judged else served_page(answers.page({})).encode()

    @property
    def url(self) -> str:
        """Where the page is, for who may see it."""
        return f"http://{self._host}:{self.port}/{self._secret}/"

    def judge(self) -> None:
        """Have the trace judged; who asks for more than the first page waits until it is."""
        with self._one:
            self._answers.judge()

    def serve(self) -> None:
        """Answer until somebody calls `stop` or interrupts."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        """End `serve`; from another thread."""
        self._server.shutdown()

    def close(self) -> None:
        """Listen no more; who is connected already is told so."""
        self._has_ended = True
        self._server.server_close()

    def answer(self, host: str, path: str) -> tuple[int, str, bytes]:
        """Status, type and body of an answer.

        Args:
            host: What the request calls this server.
            path: The path and the question of the request.
        """
        if host.rpartition(":")[0] not in _NAMES or host.rpartition(":")[2] != str(self.port):
            return 421, _TEXT, b"this is not the server of that name\n"
        if self._has_ended:
            return 503, _TEXT, b"the server of this page has ended\n"
        if len(path) > _PATH_CHARS:
            return 414, _TEXT, b"that is too much to ask for at once\n"
        try:
            parts = urlsplit(path)
            _, secret, *rest = [*parts.path.split("/", 2), ""]
            if not hmac.compare_digest(secret.encode(), self._secret.encode()):
                return 404, _TEXT, b"nothing is here; tracekit printed the address of the page\n"
            return self._of(rest[0], dict(parse_qsl(parts.query, max_num_fields=20)))
        except (TracekitError, ValueError, duckdb.Error) as error:
            return 400, _TEXT, str(error).encode()

    def _of(self, what: str, asked: Mapping[str, str]) -> tuple[int, str, bytes]:
        is_judged = self._answers.is_judged
        if what == "judged":
            return 200, _JSON, embedded_json(is_judged).encode()
        if not (what or asked or is_judged):
            return _bounded(200, _HTML, self._first)
        with self._one:
            self._answers.judge()
            if not what:
                return _bounded(200, _HTML, self._page(tuple(sorted(asked.items()))))
            ask = self._questions.get(what)
            found = ask(asked) if ask else None
        if found is None:
            return 404, _TEXT, b"the record has none of that\n"
        return _bounded(200, _JSON, embedded_json(found).encode())

    def _page(self, asked: tuple[tuple[str, str], ...]) -> bytes:
        """A page, made once: the rows of a session stay what they are."""
        if asked not in self._pages:
            if len(self._pages) >= _PAGES_KEPT:
                self._pages.pop(next(iter(self._pages)))
            self._pages[asked] = served_page(self._answers.page(dict(asked))).encode()
        return self._pages[asked]

    def enter(self) -> bool:
        """Whether there is room for one more who asks; who may enter has to leave."""
        return self._seats.acquire(blocking=False)

    def leave(self) -> None:
        """Give the room free."""
        self._seats.release()


def _bounded(code: int, kind: str, body: bytes) -> tuple[int, str, bytes]:
    if len(body) > MAX_ANSWER_BYTES:
        return 413, _TEXT, b"the answer is too large: ask for a shorter time or one namespace\n"
    return code, kind, body


class _Server(BoundedServer):
    allow_reuse_address = False


def _handler(server: ReportServer) -> type[BoundedHandler]:
    class Handler(BoundedHandler):
        def do_GET(self) -> None:  # noqa: N802 - as the library calls it
            self._answer(with_body=True)

        def do_HEAD(self) -> None:  # noqa: N802 - as above
            self._answer(with_body=False)

        def _answer(self, *, with_body: bool) -> None:
            self.close_connection = True
            if not server.enter():
                code, kind, body = 503, _TEXT, b"too many ask at once\n"
            else:
                try:
                    hosts = self.headers.get_all("Host") or [""]
                    host = hosts[0] if len(hosts) == 1 else ""
                    foreign = self.headers.get("Sec-Fetch-Site") == "cross-site"
                    code, kind, body = server.answer("" if foreign else host, self.path)
                finally:
                    server.leave()
            self.send_response(code)
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

    return Handler
