"""Servers that never come to an end, send a thousand times what was read, or ask for a long wait.

docs/record.md and docs/watch.md: a request and its answer end within `--request-timeout`, a webhook's
try within ten seconds, and nobody waits longer than five minutes because a server says so.
"""

from __future__ import annotations

import gzip
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson
import pytest
import yaml

from tests.attack.answers import run
from tracekit.base import bounded_http, http_serving
from tracekit.base.bounded_http import RETRY_AFTER_MAX_S, retry_after_s
from tracekit.base.errors import ClusterError, UsageError
from tracekit.base.http_serving import PageServer
from tracekit.record.credentials.kubeconfig import Connection
from tracekit.record.credentials.options import ConnectOptions
from tracekit.record.failures import (
    ConnectionFailed,
    RequestFailed,
    StreamIdle,
    Throttled,
    TlsFailed,
)
from tracekit.record.server import transport
from tracekit.record.server.probe import probe_cluster
from tracekit.record.server.transport import ApiClient
from tracekit.trace.stores import store
from tracekit.watch import webhook
from tracekit.watch.news import News
from tracekit.watch.outbox import NotSent

Answer = Callable[[socket.socket], None]
NEWS = News("TK126", "error", "Job", "shop", "import", "a status", "why", 10**9, 46 * 10**9)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that signs itself, and its key, in one file."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(path), "-out", str(path)],
        check=True, capture_output=True,
    )  # fmt: skip
    return path


@contextmanager
def server(answer: Answer, certificate: Path | None = None) -> Iterator[str]:
    """A server that answers each connection so, from its first byte."""
    listener = socket.create_server(("127.0.0.1", 0))
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        listener = context.wrap_socket(listener, server_side=True)
    stopped = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            answer(connection)

    def accept() -> None:
        with suppress(OSError):
            while not stopped.is_set():
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    scheme = "http" if certificate is None else "https"
    yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    stopped.set()
    listener.close()


TOKEN = "tok-Zq8+canary0123456789"  # noqa: S105 - made up


def client(
    tmp_path: Path, url: str, timeout_s: float, certificate: Path | None = None
) -> ApiClient:
    config = tmp_path / "config"
    trusted = {} if certificate is None else {"certificate-authority": str(certificate)}
    named = {"name": "c", "cluster": {"server": url, **trusted}}
    context = {"name": "c", "context": {"cluster": "c", "user": "c"}}
    users = [{"name": "c", "user": {"token": TOKEN}}]
    document = {"clusters": [named], "contexts": [context], "current-context": "c", "users": users}
    config.write_text(yaml.safe_dump(document))
    return ApiClient(
        Connection(ConnectOptions(kubeconfig=str(config))), request_timeout_s=timeout_s
    )


def dripping(data: bytes) -> Answer:
    def answer(connection: socket.socket) -> None:
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    return answer


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize(
    "data",
    [HEAD + b"X: y\r\n" * 100, HEAD + b"Content-Length: 500\r\n\r\n" + b" " * 500],
    ids=["head", "body"],
)
def test_an_answer_that_drips_is_late(
    tmp_path: Path, data: bytes, tls: bool, certificate: Path
) -> None:
    """What comes at once is not counted: each byte would begin a socket's timeout anew."""
    start = len(HEAD) if data.startswith(HEAD + b"Content") else 10

    def answer(connection: socket.socket) -> None:
        connection.sendall(data[:start])
        dripping(data[start:])(connection)

    with (
        server(answer, certificate if tls else None) as url,
        pytest.raises(ConnectionFailed, match=r"no answer within|timed out"),
    ):
        client(tmp_path, url, 0.3, certificate if tls else None).get("/version")


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "rest"),
    [
        (CHUNKED, b"1\r\nx\r\n" * 100),
        (CHUNKED + b"1;", b"ext=" * 100),
        (CHUNKED + b"1\r\nx\r\n0\r\n", b"T: y\r\n" * 100),
        (HEAD + b"Content-Length: 500\r\n\r\n", b" " * 500),
    ],
    ids=["chunks", "extension", "trailers", "body"],
)
def test_an_answer_of_lines_that_drips_is_late(tmp_path: Path, begin: bytes, rest: bytes) -> None:
    """`/metrics`, which is read line by line."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(begin)
        dripping(rest)(connection)

    begun_s = time.monotonic()
    with server(answer) as url, suppress(ConnectionFailed):
        list(client(tmp_path, url, 0.3).text_lines("/metrics"))
    assert time.monotonic() - begun_s < 3  # the bytes would take 5 s and more


#: How a watch says where it ends, if it is not in chunks: a proxy may make it so.
ENDS = [HEAD + b"Connection: close\r\n\r\n", HEAD + b"Content-Length: 4000\r\n\r\n"]


@pytest.mark.parametrize("head", ENDS, ids=["connection", "length"])
def test_a_watch_without_chunks_hands_out_each_line_as_it_comes(
    tmp_path: Path, head: bytes
) -> None:
    """Also those before the connection breaks; the server sends a line as the one before is read."""
    read = threading.Semaphore(1)

    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        for number in range(3):
            assert read.acquire(timeout=20)
            connection.sendall(b'{"n":%d}\n' % number)
        read.acquire(timeout=20)
        connection.sendall(b'{"cut')

    found = []
    with server(answer) as url, suppress(ConnectionFailed):
        for lines in (
            client(tmp_path, url, 5).watch("/api/v1/pods", {}, idle_timeout_s=10.0).chunks()
        ):
            found += lines
            read.release()
    assert [line.rstrip() for line in found] == [b'{"n":0}', b'{"n":1}', b'{"n":2}']


@pytest.mark.parametrize("head", [*ENDS, CHUNKED], ids=["connection", "length", "chunks"])
def test_a_log_is_handed_out_as_it_comes(tmp_path: Path, head: bytes) -> None:
    """The server sends a piece as the one before is read."""
    read = threading.Semaphore(1)

    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        for piece in (b"one", b"two"):
            assert read.acquire(timeout=20)
            connection.sendall(b"3\r\n%b\r\n" % piece if head == CHUNKED else piece)
        read.acquire(timeout=20)

    found = []
    with server(answer) as url, suppress(ConnectionFailed):
        for piece in client(tmp_path, url, 5).log("/log", {}, idle_timeout_s=10.0).pieces():
            found.append(piece)
            read.release()
    assert found == [b"one", b"two"]


@pytest.mark.parametrize("head", ENDS, ids=["connection", "length"])
def test_a_watch_without_chunks_and_lines_ends(tmp_path: Path, head: bytes) -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        dripping(b" " * 400)(connection)

    begun_s = time.monotonic()
    with server(answer) as url, pytest.raises(StreamIdle):
        list(client(tmp_path, url, 5).watch("/api/v1/pods", {}, idle_timeout_s=0.5).chunks())
    assert time.monotonic() - begun_s < 10  # the bytes would take 20 s


def test_a_credential_that_a_message_would_be_cut_in_is_cleaned(tmp_path: Path) -> None:
    body = orjson.dumps({"message": "x" * 280 + TOKEN})
    head = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n" % len(body)
    with (
        server(lambda connection: connection.sendall(head + body)) as url,
        pytest.raises(RequestFailed) as failed,
    ):
        client(tmp_path, url, 5).get("/api/v1/pods")
    assert "tok" not in failed.value.reason
    assert len(failed.value.reason) <= 300  # it is cut all the same


def test_an_answer_of_lines_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_ANSWER_BYTES_MAX", 1 << 20)
    body = gzip.compress(b"x 1\n" * (1 << 20))
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    with (
        server(lambda connection: connection.sendall(head + body)) as url,
        pytest.raises(ConnectionFailed, match="an answer of more than 1 MiB"),
    ):
        list(client(tmp_path, url, 5).text_lines("/metrics"))


def test_a_compressed_answer_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_ANSWER_BYTES_MAX", 1 << 20)
    body = gzip.compress(b"[" + b" " * (8 << 20) + b"]")
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    with (
        server(lambda connection: connection.sendall(head + body)) as url,
        pytest.raises(ConnectionFailed, match="an answer of more than 1 MiB"),
    ):
        client(tmp_path, url, 5).get("/api/v1/pods")


@pytest.mark.parametrize("value", [b"[],", b"{},", b"0,"])
def test_an_answer_of_tiny_values_is_bounded(
    tmp_path: Path, value: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """245 kB of gzip were 256 MiB of JSON, and as Python's objects 7.6 GiB."""
    monkeypatch.setattr(transport, "_ANSWER_VALUES_MAX", 1000)
    body = gzip.compress(b"[" + value * 1001 + b"0]")
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    with (
        server(lambda connection: connection.sendall(head + body)) as url,
        pytest.raises(ConnectionFailed, match=r"an answer of more than 1,000 values"),
    ):
        client(tmp_path, url, 5).get("/api/v1/pods")


@pytest.mark.parametrize("body", [b"null", b"[]", b'"x"', b"5", b"true"])
def test_an_answer_that_is_no_object_is_said_to_be_none(tmp_path: Path, body: bytes) -> None:
    head = HEAD + b"Content-Length: %d\r\n\r\n" % len(body)
    with (
        server(lambda connection: connection.sendall(head + body)) as url,
        pytest.raises(ConnectionFailed, match="the answer to /version is no JSON object"),
    ):
        client(tmp_path, url, 5).get("/version")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (HEAD + b"X: y\r\n" * 200, "Connection aborted: got more than 100 headers"),
        (HEAD + b"X: " + b"y" * 70_000, "Connection aborted: got more than 65536 bytes"),
        (HEAD + b"Content-Length: 9\r\n\r\n{}", "Connection broken: IncompleteRead(2 bytes read"),
        (b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n", "307 X"),
    ],
    ids=["headers", "header", "body", "redirect"],
)
def test_what_a_library_says_of_an_answer_is_a_sentence(
    tmp_path: Path, answer: bytes, said: str
) -> None:
    """It was `('Connection aborted.', HTTPException('got more than 100 headers'))`."""
    with (
        server(lambda connection: connection.sendall(answer)) as url,
        pytest.raises(RequestFailed) as failed,
    ):
        client(tmp_path, url, 5).get("/version")
    assert failed.value.reason.startswith(said)


@pytest.mark.parametrize(
    ("status", "location", "said"),
    [
        ("302 Found", "https://login.example/?who=me", r"\(302 Found, to https://login.example/\)"),
        ("308 \x1b[2J", f"https://x/{TOKEN}", r"to https://x/\[credential\]"),
        ("304 Not Modified", None, r"\(304 Not Modified\)"),
    ],
)
def test_a_redirect_is_said_to_be_one(
    tmp_path: Path, status: str, location: str | None, said: str
) -> None:
    """`try again later` was the advice."""
    where = "" if location is None else f"Location: {location}\r\n"
    head = f"HTTP/1.1 {status}\r\n{where}Content-Length: 0\r\n\r\n".encode()
    with (
        server(lambda connection: connection.sendall(head)) as url,
        pytest.raises(ClusterError, match=said) as refused,
    ):
        probe_cluster(client(tmp_path, url, 5))
    assert "not followed; check that" in str(refused.value)
    assert "later" not in str(refused.value)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize(("count", "known"), [(200, 200), (6_000, 0)])
def test_gates_that_never_end_are_none(tmp_path: Path, count: int, known: int) -> None:
    """A server that went on had each command refuse the trace: its header had more than 64 MiB."""
    gate = b'kubernetes_feature_enabled{name="Job%d",stage="BETA"} 1\n'
    gates = b"".join(gate % number for number in range(count))

    def answer(connection: socket.socket) -> None:
        body = b"{}" if asked.pop(0) != "metrics" else gates
        # Else the client may ask again on a connection that is just being closed, and so once more.
        head = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        connection.sendall(head + body)

    asked = ["version", "metrics", "kube-system"]
    with server(answer) as url:
        info = probe_cluster(client(tmp_path, url, 5))
    assert len(info.controller_gates) == known
    assert any("feature gates are unknown" in note for note in info.notes) == (known == 0)


def test_a_handshake_that_hangs_is_late_and_no_certificate(tmp_path: Path) -> None:
    """It took ten seconds, and the advice was --insecure-skip-tls-verify."""
    with (
        server(dripping(b"\x16\x03\x03\x40\x00" * 100)) as url,
        pytest.raises(ConnectionFailed, match=r"no answer within 0\.3 s|timed out") as failed,
    ):
        client(tmp_path, url.replace("http", "https"), 0.3).get("/version")
    assert not isinstance(failed.value, TlsFailed)


def test_an_answer_that_is_whole_is_read(tmp_path: Path) -> None:
    body = gzip.compress(orjson.dumps({"a": 1}))
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    with server(lambda connection: connection.sendall(head + body)) as url:
        assert client(tmp_path, url, 5).get("/version") == {"a": 1}


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0), ("0", 0.0), ("0.5", 0.5), ("86400", RETRY_AFTER_MAX_S),
        ("99999999999", RETRY_AFTER_MAX_S), ("1e300", RETRY_AFTER_MAX_S), ("inf", RETRY_AFTER_MAX_S),
        ("-1", None), ("-inf", None), ("nan", None), ("", None), (None, None), ("soon", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("9" * 400, RETRY_AFTER_MAX_S),
    ],
)  # fmt: skip
def test_a_wait_that_is_asked_for_has_an_end(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value) == seconds


def test_a_long_wait_reaches_the_watcher_bounded(tmp_path: Path) -> None:
    head = b"HTTP/1.1 429 X\r\nRetry-After: 99999999999\r\nContent-Length: 2\r\n\r\n{}"
    with (
        server(lambda connection: connection.sendall(head)) as url,
        pytest.raises(Throttled) as failed,
    ):
        client(tmp_path, url, 5).get("/version")
    assert failed.value.retry_after_s == bounded_http.RETRY_AFTER_MAX_S


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_a_webhook_that_drips_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tls: bool, certificate: Path
) -> None:
    monkeypatch.setattr(webhook, "_TIMEOUT_S", 0.3)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with (
        server(dripping(HEAD * 10), certificate if tls else None) as url,
        pytest.raises(NotSent, match="no answer within"),
    ):
        webhook.Webhook(f"{url}/secret").send(NEWS)


def test_a_webhook_may_say_what_it_likes() -> None:
    with server(lambda connection: connection.sendall(HEAD + b"\r\n" + b" " * 1000)) as url:
        webhook.Webhook(url).send(NEWS)


def test_a_store_that_drips_has_an_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Traces on web servers: each request ends, whatever comes of its answer."""
    monkeypatch.setattr(store, "_ANSWER_S", 0.3)
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))
    answer = HEAD + b"Content-Length: 500\r\n\r\n" + b" " * 500
    with server(dripping(answer)) as url:
        code, out, said = run("info", f"{url}/trace")
    assert (code, out, said.count("\n")) == (2, "", 1)


def test_a_list_without_end_is_not_held(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(store, "_ANSWER_BYTES_MAX", 1 << 20)
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path))

    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        for _ in range(8):
            connection.sendall(b"<a href='x'>x</a>" * (1 << 16))

    with server(endless) as url:
        code, out, said = run("info", f"{url}/night-*")
    assert (code, out, said.count("\n")) == (2, "", 1)
    assert "an answer of more than 1 MiB" in said


@pytest.mark.parametrize("url", ["http://[::1", "http://host:port/", "http://a:99999/"])
def test_a_url_that_is_none_is_one_sentence(url: str) -> None:
    with pytest.raises(UsageError, match="is no URL"):
        webhook.Webhook(url)


def test_a_url_that_is_none_is_not_quoted() -> None:
    """Its path, or a password in it, may be the secret that keeps others out."""
    for url in (
        "https://me:hunter2@host:port/",
        "http://[::1/hunter2",
        "http://host:99999/hunter2",
    ):
        with pytest.raises(UsageError) as refused:
            webhook.Webhook(url)
        assert "hunter2" not in str(refused.value)


#### Servers of our own ####


@pytest.fixture
def pages() -> Iterator[PageServer]:
    found = {"/metrics": lambda: (200, "text/plain", b"tracekit_rows_total 7\n")}
    serving = PageServer(found, address="127.0.0.1", port=0, option="--metrics")
    yield serving
    serving.close()


def ask(pages: PageServer, text: bytes = b"GET /metrics HTTP/1.1\r\n\r\n") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", pages.port), timeout=10)
    connection.sendall(text)
    return connection


def test_who_says_nothing_holds_no_server(pages: PageServer) -> None:
    """184 of them had a recorder without files: "cannot be written (Too many open files)"."""
    before = threading.active_count()
    silent = [ask(pages, b"GET /metrics HTTP/1.1\r\nX: ") for _ in range(60)]
    with ask(pages) as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.0 200 OK")
    assert threading.active_count() - before < 40
    # Those that came first were cut off for the others.
    assert silent[0].recv(100) == b""
    for connection in silent:
        connection.close()


def test_a_request_that_drips_is_cut_off(
    pages: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_serving, "_HEAD_S", 0.2)
    with ask(pages, b"GET /met") as connection:
        begin = time.monotonic()
        with suppress(OSError):
            for _ in range(50):
                connection.sendall(b"r")
                time.sleep(0.05)
        assert time.monotonic() - begin < 2


def test_who_goes_away_makes_no_traceback(
    pages: PageServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each was twenty lines on the recorder's stderr."""
    for _ in range(20):
        with ask(pages) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with ask(pages) as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.0 200 OK")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("address", "port"),
    [("127.0.0.1", 99999), ("127.0.0.1", -1), ("", 0), ("a" * 300, 0), ("1.2.3.4", 0)],
)
def test_an_address_that_is_none_is_a_sentence(address: str, port: int) -> None:
    """Some were faults of tracekit's own, and an empty one was every address of the machine."""
    with pytest.raises(UsageError, match="--metrics-port"):
        PageServer({}, address=address, port=port, option="--metrics")
