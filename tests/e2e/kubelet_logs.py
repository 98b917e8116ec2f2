"""The stand-in kubelet's log endpoint: what the API server asks a node for, over TLS.

`GET /containerLogs/NAMESPACE/POD/CONTAINER` with `tailLines`, `timestamps`, `previous` and `follow`, as
a kubelet answers it. What a container says is given to it line by line; a follower gets what
comes until the container ends. Logs of a pod that is gone are gone.
"""

import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.e2e import keys

FOLLOW_SECONDS_MAX = 120.0


@dataclass
class _Run:
    """What one run of a container said."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    ended: bool = False


class ContainerLogs:
    """Serves the logs of one node's containers on loopback; `port` is where."""

    def __init__(self, folder: Path) -> None:
        self._changed = threading.Condition()
        self._runs: dict[tuple[str, str, str], list[_Run]] = {}
        keys.make_keys(folder)
        logs = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                logs._answer(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / keys.CERTIFICATE, folder / keys.CERTIFICATE_KEY)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # What containers do

    def start(self, namespace: str, pod: str, container: str) -> None:
        """Begin a run."""
        with self._changed:
            self._runs.setdefault((namespace, pod, container), []).append(_Run())

    def say(self, namespace: str, pod: str, container: str, *lines: str) -> None:
        """Write lines to the log of the present run."""
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        with self._changed:
            runs = self._runs.get((namespace, pod, container))
            if runs:
                runs[-1].lines += [(stamp, line) for line in lines]
                self._changed.notify_all()

    def end(self, namespace: str, pod: str, container: str) -> None:
        """End the present run."""
        with self._changed:
            for run in self._runs.get((namespace, pod, container), ()):
                run.ended = True
            self._changed.notify_all()

    def forget(self, namespace: str, pod: str) -> None:
        """Remove a pod with its logs."""
        with self._changed:
            for key in [key for key in self._runs if key[:2] == (namespace, pod)]:
                for run in self._runs.pop(key):
                    run.ended = True
            self._changed.notify_all()

    # Answers

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        url = urlsplit(request.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        parts = url.path.strip("/").split("/")
        if len(parts) != 4 or parts[0] != "containerLogs":
            self._refuse(request, 404, "not found")
            return
        with self._changed:
            runs = self._runs.get((parts[1], parts[2], parts[3]), [])
        wanted = runs[-2:-1] if query.get("previous") == "true" else runs[-1:]
        if not wanted:
            why = f"container {parts[3]} of pod {parts[2]} is waiting to start or was terminated"
            self._refuse(request, 400, why)
            return
        request.send_response(200)
        request.send_header("Content-Type", "text/plain")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        for text in self._lines(wanted[0], query):
            data = text.encode()
            request.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        request.wfile.write(b"0\r\n\r\n")

    def _lines(self, run: _Run, query: dict[str, str]) -> Iterator[str]:
        stamps = query.get("timestamps") == "true"
        at = max(0, len(run.lines) - int(query.get("tailLines", len(run.lines))))
        while True:
            with self._changed:
                if at >= len(run.lines) and not run.ended and query.get("follow") == "true":
                    self._changed.wait(FOLLOW_SECONDS_MAX)
                new, over = run.lines[at:], run.ended or query.get("follow") != "true"
                at += len(new)
            for stamp, line in new:
                yield f"{stamp} {line}\n" if stamps else f"{line}\n"
            if over and at >= len(run.lines):
                return

    def _refuse(self, request: BaseHTTPRequestHandler, code: int, why: str) -> None:
        request.send_response(code)
        request.send_header("Content-Length", str(len(why)))
        request.end_headers()
        request.wfile.write(why.encode())
