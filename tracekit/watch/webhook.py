"""News to a URL: one JSON document in a POST each, retried a few times, never waited for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import orjson

from tracekit import __version__
from tracekit.errors import UsageError
from tracekit.watch.news import News

#: So many wait; of more the oldest are dropped, and counted.
WAITING_MAX = 256
TRIES = 5
_TIMEOUT_S = 10.0
_FIRST_PAUSE_S = 1.0
_SERVER_ERROR = 500
_BUSY = 429


class _NoRedirect(HTTPRedirectHandler):
    """A document goes where the user said, and nowhere else."""

    def redirect_request(self, *_: object) -> None:
        return None


class Webhook:
    """Posts news from a thread of its own."""

    def __init__(self, url: str, *, pause_s: float = _FIRST_PAUSE_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("--webhook takes a URL that begins with http:// or https://")
        if parts.username is not None:
            raise UsageError(
                "--webhook: leave user and password out of the URL; a path that nobody guesses, or "
                "a proxy beside tracekit, keeps others out"
            )
        self._url = url
        self._shown = f"{parts.scheme}://{parts.netloc}"  # a path may be a secret
        self._pause_s = pause_s
        self._waiting: deque[News] = deque()
        self._ready = threading.Condition()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.sent = 0
        self.failed = 0
        self.last_error = ""

    def start(self) -> None:
        """Begin to post."""
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        self._thread.start()

    def post(self, news: News) -> None:
        """Have it posted soon."""
        with self._ready:
            if len(self._waiting) >= WAITING_MAX:
                self._waiting.popleft()
                self.failed += 1
                self.last_error = "more waited than can be kept"
            self._waiting.append(news)
            self._ready.notify()

    def close(self, timeout_s: float = 30.0) -> None:
        """Post what waits, for so long, and end."""
        self._stopping.set()
        with self._ready:
            self._ready.notify()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._waiting or self._stopping.is_set())
                if not self._waiting:
                    return
                news = self._waiting.popleft()
            self._deliver(orjson.dumps(news.document()), self._stopping.wait)

    def _deliver(self, body: bytes, pause: Callable[[float], bool]) -> None:
        for attempt in range(TRIES):
            try:
                self._send(body)
            except HTTPError as error:
                self.last_error = f"{self._shown} answers {error.code}"
                if error.code < _SERVER_ERROR and error.code != _BUSY:
                    break  # it would not be taken another time
            except (OSError, HTTPException) as error:
                reason = getattr(error, "reason", None) or type(error).__name__
                self.last_error = f"{self._shown} cannot be reached ({reason})"
            else:
                self.sent += 1
                return
            if attempt < TRIES - 1:
                pause(self._pause_s * 2**attempt)
        self.failed += 1

    def _send(self, body: bytes) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": f"tracekit/{__version__}"}
        request = Request(self._url, data=body, headers=headers, method="POST")  # noqa: S310 - checked
        with build_opener(_NoRedirect()).open(request, timeout=_TIMEOUT_S) as answer:
            answer.read(1)
