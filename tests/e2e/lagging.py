"""A relay between the controller manager and the API server that can show it the past.

Every request of the controller manager goes through it unchanged, but for two things that happen to
caches in real clusters and cannot be had on demand on one machine: the watch of a resource can be
held back (what the server sends is kept and delivered later, in order), and the next lists of a
resource can be answered as of an older revision, as by an API server whose watch cache lags. What
is answered then is the API server's own answer for that revision, out of etcd's history.
"""

import asyncio
import ssl
import threading
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlencode

from tests.e2e import keys
from tests.e2e.processes import free_ports

#: What the informers of the controllers read; metadata-only readers (the garbage collector) pass.
PATHS = {"pods": "/api/v1/pods", "jobs": "/apis/batch/v1/jobs"}
_END = b"\r\n\r\n"
_REFUSED = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_CHUNK_BYTES = 1 << 16


class LaggingView:
    """A TLS relay on a port of its own, in a thread of its own."""

    def __init__(self, *, server: str, folder: Path) -> None:
        """`server` is the API server's URL, `folder` the cluster's, for its certificate."""
        keys.make_keys(folder)
        certificate = folder / keys.CERTIFICATE
        self._to_port = int(server.rpartition(":")[2])
        (self._port,) = free_ports(1)
        self._serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._serving.load_cert_chain(certificate, folder / keys.CERTIFICATE_KEY)
        self._asking = ssl.create_default_context(cafile=str(certificate))
        self._loop = asyncio.new_event_loop()
        self._open = {resource: asyncio.Event() for resource in PATHS}
        self._as_of: dict[str, str] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where the controller manager must connect to."""
        return f"https://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        """Start, with everything passing."""
        self._thread.start()
        for event in self._open.values():
            self._loop.call_soon_threadsafe(event.set)
        self._run(asyncio.start_server(self._relay, "127.0.0.1", self._port, ssl=self._serving))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, with every connection."""
        self._run(_end_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def hold(self, resource: str) -> None:
        """Keep back what watches of the resource bring from now on."""
        self._loop.call_soon_threadsafe(self._open[resource].clear)

    def release(self, resource: str) -> None:
        """Deliver what was kept back, and list the present again."""
        self._as_of.pop(resource, None)
        self._loop.call_soon_threadsafe(self._open[resource].set)

    def list_as_of(self, resource: str, revision: str) -> None:
        """Answer lists of the resource as they were at `revision`, until it is released."""
        self._as_of[resource] = revision

    def _run(self, work: object) -> None:
        done: Future[object] = asyncio.run_coroutine_threadsafe(work, self._loop)  # type: ignore[arg-type]
        done.result(10)

    # One connection

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: asyncio.StreamWriter | None = None
        try:
            head = await reader.readuntil(_END)
            head, held = self._rewritten(head)
            if held in self._as_of and b"sendInitialEvents=true" in head:
                writer.write(_REFUSED)  # a streamed list cannot be of the past: it is listed again
                return
            answer, upstream = await asyncio.open_connection(
                "127.0.0.1", self._to_port, ssl=self._asking
            )
            upstream.write(head)
            sending = asyncio.create_task(_pump(reader, upstream))
            try:
                writer.write(await answer.readuntil(_END))
                await _pump(answer, writer, self._open[held] if held else None)
            finally:
                sending.cancel()
        except (OSError, EOFError, asyncio.IncompleteReadError):
            pass  # either side went away
        finally:
            for side in (writer, upstream):
                if side is not None:
                    side.close()

    def _rewritten(self, head: bytes) -> tuple[bytes, str | None]:
        """The request as it is sent on, and the resource whose watch it opens."""
        first, *fields = head.removesuffix(_END).decode("latin-1").split("\r\n")
        method, target, protocol = first.split(" ")
        path, _, query = target.partition("?")
        resource = next((name for name, known in PATHS.items() if path == known), None)
        if any("PartialObjectMetadata" in field for field in fields) or method != "GET":
            resource = None
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        watches = asked.get("watch") in ("true", "1")
        if resource in self._as_of and not watches:
            asked |= {
                "resourceVersion": self._as_of[resource],
                "resourceVersionMatch": "Exact",
            }
            target = f"{path}?{urlencode(asked)}"
        # one request a connection: the relay need not know where an answer ends
        fields = [field for field in fields if not field.lower().startswith("connection:")]
        lines = [f"{method} {target} {protocol}", *fields, "Connection: close"]
        return "\r\n".join(lines).encode("latin-1") + _END, resource if watches else None


async def _end_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _pump(
    source: asyncio.StreamReader,
    target: asyncio.StreamWriter,
    passing: asyncio.Event | None = None,
) -> None:
    """Pass bytes on until the source ends, while they may pass."""
    while chunk := await source.read(_CHUNK_BYTES):
        if passing is not None:
            await passing.wait()
        target.write(chunk)
        await target.drain()
