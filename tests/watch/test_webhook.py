"""News reach a webhook: retried where that may help, never followed elsewhere, never waited for."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tracekit.base.errors import UsageError
from tracekit.watch.news import News
from tracekit.watch.outbox import TRIES, WAITING_MAX
from tracekit.watch.webhook import Webhook

NEWS = News("TK126", "error", "Job", "shop", "import", "a status", "why", 10**9, 46 * 10**9)


class Server(ThreadingHTTPServer):
    """Answers with the statuses that it was given, then with 200."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.got: list[Any] = []
        self.paths: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(json.loads(body))
        self.server.paths.append(self.path)
        status = self.server.answers.pop(0) if self.server.answers else 200
        self.send_response(status)
        if status == 307:
            self.send_header("Location", f"{self.server.url}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()


def posted(url: str, count: int = 1) -> Webhook:
    webhook = Webhook(url, pause_s=0.0)
    webhook.start()
    for _ in range(count):
        webhook.post(NEWS)
    webhook.close()
    return webhook


def test_a_finding_is_one_json_document(server: Server) -> None:
    webhook = posted(f"{server.url}/hook", 3)
    assert (webhook.sent, webhook.failed) == (3, 0)
    assert server.got[0] == {
        "schema_version": 1,
        "id": "TK126",
        "severity": "error",
        "object": {"kind": "Job", "namespace": "shop", "name": "import"},
        "text": "a status",
        "why": "why",
        "time": "1970-01-01T00:00:01Z",
        "time_ns": 10**9,
        "delay_s": 45.0,
    }


def test_a_server_that_fails_is_asked_again(server: Server) -> None:
    server.answers = [500, 429, 503]
    webhook = posted(server.url)
    assert (webhook.sent, webhook.failed, len(server.got)) == (1, 0, 4)


def test_retries_are_bounded(server: Server) -> None:
    server.answers = [500] * 20
    webhook = posted(server.url)
    assert (webhook.sent, webhook.failed, len(server.got)) == (0, 1, TRIES)
    assert "answers 500" in webhook.last_error


@pytest.mark.parametrize("status", [103, 199, 400, 401, 404, 307])
def test_what_would_not_help_is_not_tried_again(server: Server, status: int) -> None:
    server.answers = [status]
    webhook = posted(f"{server.url}/secret-path")
    assert (webhook.failed, server.paths) == (1, ["/secret-path"])
    assert "secret" not in webhook.last_error


def test_nobody_there_is_a_failure_and_no_error(server: Server) -> None:
    url = server.url
    server.server_close()
    webhook = posted(url)
    assert (webhook.sent, webhook.failed) == (0, 1)
    assert "cannot be reached" in webhook.last_error


def test_the_pauses_hold_at_the_end_too(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """`watch --once` ends at once: five posts within a millisecond help no server that is busy."""
    paused: list[float] = []

    class Never(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            paused.append(timeout or 0.0)
            return self.is_set()

    webhook = Webhook(server.url)
    monkeypatch.setattr(webhook, "_over", Never())
    server.answers = [503] * 20
    webhook.start()
    webhook.post(NEWS)
    webhook.close()
    assert paused == [1.0, 2.0, 4.0, 8.0]
    assert (webhook.failed, len(server.got)) == (1, TRIES)


def test_what_there_is_no_time_for_has_failed(server: Server) -> None:
    webhook = Webhook(server.url, pause_s=60.0)
    server.answers = [503] * 20
    webhook.start()
    for _ in range(3):
        webhook.post(NEWS)
    while not server.got:
        time.sleep(0.01)
    webhook.close(timeout_s=0.05)
    assert (webhook.sent, webhook.failed) == (0, 3)


def test_what_waits_is_bounded() -> None:
    webhook = Webhook("http://127.0.0.1:1/", pause_s=0.0)
    for _ in range(WAITING_MAX + 7):
        webhook.post(NEWS)
    assert webhook.failed == 7


@pytest.mark.parametrize("url", ["ftp://a/b", "hook", "http://", "file:///etc/passwd"])
def test_only_http_is_a_webhook(url: str) -> None:
    with pytest.raises(UsageError, match="begins with http"):
        Webhook(url)


def test_credentials_in_a_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        Webhook("https://me:hunter2@hooks.example/x")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("proxy", ["socks5://me:hunter2@p.example:1", "me:hunter2@[::1"])
def test_a_proxy_that_cannot_be_used_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(UsageError, match="http_proxy") as caught:
        Webhook("http://hooks.example/x")
    assert "hunter2" not in str(caught.value)
