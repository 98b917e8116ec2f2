"""An S3 server on loopback: moto's, which speaks the real protocol, and traces put into it."""

from __future__ import annotations

import logging
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs


class Answer(NamedTuple):
    """One request that the server answered."""

    method: str
    path: str
    size_bytes: int


class S3:
    """The server, with a client of its own that the tested code does not share."""

    def __init__(self, endpoint: str, server: ThreadedMotoServer | None = None) -> None:
        self.endpoint = endpoint
        self._server = server
        self.requests = self.failed = 0
        self.client = fs.S3FileSystem(
            access_key="test",
            secret_key="test",  # noqa: S106 - the server takes any
            endpoint_override=endpoint,
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )

    def put(self, directory: Path, path: str) -> str:
        """Upload a directory as it is; the URL of it."""
        self.client.create_dir(path.partition("/")[0])
        for file in sorted(directory.rglob("*")):
            if file.is_file():
                target = f"{path}/{file.relative_to(directory)}"
                with self.client.open_output_stream(target, compression=None) as out:
                    out.write(file.read_bytes())
        return f"s3://{path}"

    def delete(self, path: str) -> None:
        self.client.delete_file(path)

    def names(self, path: str) -> list[str]:
        """What lies directly under a path."""
        return [info.path for info in self.client.get_file_info(fs.FileSelector(path))]

    @contextmanager
    def failing(self, every: int) -> Iterator[None]:
        """Refuse one request in so many, as a busy store does."""

        def busy(answer, environ, start_response):
            self.requests += 1
            if self.requests % every:
                return answer(environ, start_response)
            self.failed += 1
            return _refused(
                environ, start_response, "503 Slow Down", "SlowDown", "Reduce your rate."
            )

        with self._answering(busy):
            yield

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Let nobody write, as a policy without s3:PutObject does."""

        def strict(answer, environ, start_response):
            if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
                return answer(environ, start_response)
            return _refused(
                environ, start_response, "403 Forbidden", "AccessDenied", "Access Denied"
            )

        with self._answering(strict):
            yield

    @contextmanager
    def watched(self) -> Iterator[list[Answer]]:
        """What is asked of the server, and the bytes of each answer."""
        found: list[Answer] = []

        def noted(answer, environ, start_response):
            parts = list(answer(environ, start_response))
            path = environ["PATH_INFO"].lstrip("/")
            found.append(Answer(environ["REQUEST_METHOD"], path, sum(map(len, parts))))
            return parts

        with self._answering(noted):
            yield found

    @contextmanager
    def _answering(self, instead: Callable[..., list[bytes]]) -> Iterator[None]:
        """Let `instead` answer requests; it is given who else would, and what WSGI gives."""
        assert self._server is not None
        web = self._server._server
        answer = web.app
        web.app = partial(instead, answer)
        try:
            yield
        finally:
            web.app = answer

    def ask_for_credentials(self) -> None:
        """From now on no key that was not made on this server is let in."""
        self._post("reset-auth", b"0")

    def forget(self) -> None:
        self._post("reset-auth", b"inf")
        self._post("reset", b"")

    def _post(self, what: str, body: bytes) -> None:
        request = urllib.request.Request(
            f"http://{self.endpoint}/moto-api/{what}",
            data=body,
            headers={"Content-Type": "text/plain"},
            method="POST",
        )
        urllib.request.urlopen(request, timeout=10).close()  # noqa: S310


def _refused(environ, start_response, status: str, code: str, message: str) -> list[bytes]:
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start_response(status, [("Content-Type", "application/xml")])
    return [f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()]


@contextmanager
def s3_server() -> Iterator[S3]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3(f"{host}:{port}", server)
    finally:
        server.stop()


def set_environment(monkeypatch: pytest.MonkeyPatch, server: S3, cache: Path) -> None:
    """What a user sets: endpoint, credentials, and no others from wherever the tests run."""
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{server.endpoint}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "TRACEKIT_CACHE_DIR": str(cache),
    }.items():
        monkeypatch.setenv(name, value)
