"""An API server in this process that lists, watches, and misbehaves on a seeded schedule.

`Faults` decides per request what goes wrong; without it the server behaves. Raw sockets, because
most of the faults are things that an HTTP library exists to prevent.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from urllib.parse import parse_qs, urlsplit

import orjson

from tests.record.fakecluster import GROUP_VERSIONS, FakeCluster

WATCH_FAULTS = (
    "cut-mid-line", "cut", "cut-mid-chunk", "bad-chunk-length", "stall", "error-410", "error-500", "error-504",
    "garbage", "truncated-json", "not-an-event", "duplicate", "reorder", "resend", "slow", "end",
    "compact", "expire-token", "restart", "bookmark", "error-429", "error-503", "bare-429", "bare-503",
)  # fmt: skip
ANSWER_FAULTS = (
    "http-410", "http-429", "http-500", "http-503", "http-403", "refuse", "expire-token", "compact", "cut-answer",
    "garbage-answer", "no-answer", "list-expired",
)  # fmt: skip


@dataclass
class Faults:
    """What goes wrong: at most `budget` faults, each drawn from the seed."""

    seed: int
    budget: int = 10
    watch_faults: tuple[str, ...] = WATCH_FAULTS
    answer_faults: tuple[str, ...] = ANSWER_FAULTS
    answer_probability: float = 0.3
    watch_probability: float = 0.85
    done: list[str] = field(default_factory=list)
    #: Watch faults that were reached, not only drawn.
    fired: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self._lock = threading.Lock()

    def draw(self, kinds: tuple[str, ...], probability: float) -> str | None:
        with self._lock:
            if self.budget <= 0 or not kinds or self.rng.random() > probability:
                return None
            self.budget -= 1
            fault = self.rng.choice(kinds)
            self.done.append(fault)
            return fault

    def below(self, limit: int) -> int:
        with self._lock:
            return self.rng.randrange(limit)


class _GoneError(Exception):
    """The connection is to be dropped now."""


class FakeServer:
    """Serves a `FakeCluster` on a random loopback port."""

    def __init__(
        self,
        cluster: FakeCluster,
        faults: Faults | None = None,
        *,
        streaming_lists: bool = False,
        stall_s: float = 1.0,
        git_version: str = "v1.36.3",
        forbidden: frozenset[str] = frozenset(),
        unavailable: frozenset[str] = frozenset(),
        bookmark_every_s: float = 60.0,
        clock_s: Callable[[], float] | None = None,
    ) -> None:
        self.cluster = cluster
        #: What its answers have for their Date; None: they have none.
        self.clock_s = clock_s
        self.faults = faults or Faults(0, budget=0)
        self.streaming_lists = streaming_lists
        self.stall_s = stall_s
        self.git_version = git_version
        #: Resources that are answered with 403.
        self.forbidden = forbidden
        #: Resources of which every list and watch is answered with 503.
        self.unavailable = unavailable
        self.bookmark_every_s = bookmark_every_s
        self.token = "token-0"  # noqa: S105
        self.requests: list[str] = []
        #: Resources of which a request was answered 503, being unavailable.
        self.refused: set[str] = set()
        self.headers: list[dict[str, str]] = []
        self.hits = 0
        self._stop = threading.Event()
        self._epoch = 0
        self._connections: set[socket.socket] = set()
        self._listener = self._listen(0)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _listen(self, port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
        return listener

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._stop.set()
        self._listener.close()
        self.drop_all()
        with self.cluster.changed:
            self.cluster.changed.notify_all()

    def drop_all(self) -> None:
        """Break every connection, as a restart does."""
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def restart(self, down_s: float) -> None:
        self._epoch += 1
        self._listener.close()
        self.drop_all()
        time.sleep(down_s)
        for _ in range(100):
            if self._stop.is_set():
                return
            try:
                self._listener = self._listen(self.port)
                break
            except OSError:
                time.sleep(0.01)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        listener = self._listener
        while not self._stop.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        self._connections.add(connection)
        try:
            stream = connection.makefile("rb")
            while not self._stop.is_set():
                if stream.peek(1)[:1] == _TLS_HANDSHAKE:
                    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\nHTTP here, not HTTPS\n")
                    return
                request = stream.readline().decode("latin-1")
                if not request:
                    return
                headers = {}
                while (line := stream.readline().decode("latin-1").strip()) != "":
                    name, _, value = line.partition(":")
                    headers[name.lower()] = value.strip()
                body = stream.read(int(headers.get("content-length", 0)))
                method, target, _ = request.split()
                self.requests.append(f"{method} {target}")
                self.headers.append(headers)
                self._answer(connection, target, headers, body)
        except (OSError, _GoneError):
            pass
        finally:
            self._connections.discard(connection)
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    #### Answers ####

    def _json(
        self, connection: socket.socket, body: object, status: str = "200 OK", extra: str = ""
    ) -> None:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        if self.clock_s is not None:
            extra += f"Date: {formatdate(int(self.clock_s()), usegmt=True)}\r\n"
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(data)}\r\n\r\n"
        connection.sendall(head.encode() + data)

    def _status(self, connection: socket.socket, code: int, message: str, extra: str = "") -> None:
        body = {"kind": "Status", "status": "Failure", "message": message, "code": code}
        self._json(connection, body, f"{code} X", extra)

    def _answer(
        self,
        connection: socket.socket,
        target: str,
        headers: dict[str, str],
        body: bytes,
    ) -> None:
        self.hits += 1
        url = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if headers.get("authorization") != f"Bearer {self.token}":
            return self._status(connection, 401, "Unauthorized")
        parts = url.path.strip("/").split("/")
        resource = parts[-1]
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts[:-1] else None
        if url.path == "/version":
            return self._json(connection, {"gitVersion": self.git_version})
        if url.path == "/metrics":
            text = b'# HELP x\nkubernetes_feature_enabled{name="JobSuccessPolicy",stage="BETA"} 1\nkubernetes_feature_enabled{name="Off",stage="ALPHA"} 0\nother 1\n'
            return self._json(connection, text)
        if url.path == "/apis/batch/v1":
            return self._json(connection, {"resources": [{"name": "jobs"}, {"name": "cronjobs"}]})
        if resource == "selfsubjectaccessreviews":
            asked = orjson.loads(body)["spec"]["resourceAttributes"]
            return self._json(
                connection, {"status": {"allowed": asked["resource"] not in self.forbidden}}
            )
        if "namespaces" in self.forbidden and "namespaces" in parts and parts[-1] == namespace:
            return self._status(connection, 403, "namespaces is forbidden")
        if len(parts) == 4 and parts[2] == "namespaces":
            found = [
                o
                for o in self.cluster.objects["namespaces"].values()
                if o["metadata"]["name"] == parts[3]
            ]
            if not found:
                return self._status(connection, 404, "not found")
            return self._json(connection, found[0])
        if resource not in GROUP_VERSIONS:
            return self._status(connection, 404, "the server could not find the requested resource")
        if resource in self.forbidden:
            return self._status(connection, 403, f"{resource} is forbidden")
        if resource in self.unavailable and query.get("limit") != "1":
            self.refused.add(resource)
            return self._status(connection, 503, f"{resource} are not served", "Retry-After: 0\r\n")
        if resource == "events" and body:
            return self._create_event(connection, str(namespace), orjson.loads(body), query)
        if query.get("limit") == "1" and "continue" not in query:
            return self._list(connection, resource, namespace, query)
        self._faulty(connection, resource, namespace, query)
        return None

    def _create_event(
        self, connection: socket.socket, namespace: str, event: dict, query: dict[str, str]
    ) -> None:
        name = event["metadata"]["name"]
        there = self.cluster.objects["events"].values()
        if any(o["metadata"]["name"] == name for o in there):
            return self._status(connection, 409, f'events "{name}" already exists')
        if event["involvedObject"]["namespace"] != namespace:
            return self._status(connection, 422, "involvedObject.namespace: does not match")
        fault = self.faults.draw(("http-500", "http-429", "refuse"), self.faults.answer_probability)
        if fault == "refuse":
            raise _GoneError
        if fault is not None:
            return self._status(connection, int(fault[-3:]), fault)
        if "dryRun" not in query:
            fields = {k: v for k, v in event.items() if k not in {"metadata", "kind", "apiVersion"}}
            self.cluster.create("events", name=name, namespace=namespace, **fields)
        return self._json(connection, event, "201 Created")

    def _faulty(
        self, connection: socket.socket, resource: str, namespace: str | None, query: dict[str, str]
    ) -> None:
        fault = self.faults.draw(self.faults.answer_faults, self.faults.answer_probability)
        if fault == "http-429":
            return self._status(connection, 429, "too many requests", "Retry-After: 0\r\n")
        if fault == "http-503":
            return self._status(connection, 503, "starting", "Retry-After: 0\r\n")
        if fault in {"http-410", "list-expired", "http-500", "http-403"}:
            if fault == "list-expired" and "watch" in query:
                fault = "http-500"
            code = {"http-410": 410, "list-expired": 410, "http-500": 500, "http-403": 403}[fault]
            return self._status(connection, code, fault)
        if fault in {"refuse", "no-answer"}:
            raise _GoneError
        if fault == "expire-token":
            self.expire_token()
            return self._status(connection, 401, "Unauthorized")
        if fault == "compact":
            self.cluster.compact()
        if fault == "garbage-answer":
            return self._json(connection, b"\x00\xffnot json at all\n")
        if "watch" in query:
            return self._watch(connection, resource, namespace, query)
        return self._list(connection, resource, namespace, query, cut=fault == "cut-answer")

    def expire_token(self) -> None:
        self.token = f"token-{int(self.token.rpartition('-')[2]) + 1}"

    def _list(
        self,
        connection: socket.socket,
        resource: str,
        namespace: str | None,
        query: dict[str, str],
        *,
        cut: bool = False,
    ) -> None:
        start, rv = 0, None
        if "continue" in query:
            start, rv = map(int, query["continue"].split("."))
            if rv < self.cluster.compacted_rv:
                return self._status(connection, 410, "The provided continue parameter is too old")
        now_rv, items = self.cluster.listed(resource, namespace)
        if rv is not None and now_rv != rv:
            # A page of an older snapshot: rebuild it from the history.
            items = self._snapshot(resource, namespace, rv)
        rv = rv or now_rv
        if "fieldSelector" in query:
            name = query["fieldSelector"].partition("=")[2]
            items = [item for item in items if item["metadata"]["name"] == name]
        limit = int(query.get("limit", 10**9))
        metadata = {"resourceVersion": str(rv)}
        if start + limit < len(items):
            metadata["continue"] = f"{start + limit}.{rv}"
        body = orjson.dumps(
            {"kind": "List", "metadata": metadata, "items": items[start : start + limit]}
        )
        if cut:
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            connection.sendall(head + body[: len(body) // 2])
            raise _GoneError
        return self._json(connection, body)

    def _snapshot(self, resource: str, namespace: str | None, rv: int) -> list[dict]:
        live: dict[str, dict] = {}
        with self.cluster.changed:
            for change in self.cluster.history[resource]:
                if change.rv > rv or (namespace is not None and change.namespace != namespace):
                    continue
                live.pop(change.uid, None) if change.type == "DELETED" else live.update(
                    {change.uid: orjson.loads(change.body)}
                )
        return [
            {k: v for k, v in obj.items() if k not in {"kind", "apiVersion"}}
            for obj in live.values()
        ]

    #### Watch ####

    def _watch(
        self, connection: socket.socket, resource: str, namespace: str | None, query: dict[str, str]
    ) -> None:
        initial = query.get("sendInitialEvents") == "true"
        if initial and not self.streaming_lists:
            return self._status(connection, 422, "sendInitialEvents is forbidden for watch")
        rv = int(query.get("resourceVersion") or 0)
        if not initial and rv < self.cluster.compacted_rv:
            if self.faults.below(2):
                return self._status(connection, 410, "too old resource version")
            connection.sendall(_HEAD)
            _chunk(connection, _error(410, "too old resource version"))
            connection.sendall(b"0\r\n\r\n")
            return None
        connection.sendall(_HEAD)
        if initial:
            if self.faults.draw(("no-progress",), 0.2):
                _chunk(
                    connection,
                    _error(500, "the required storage feature RequestWatchProgress is disabled"),
                )
                raise _GoneError
            rv = self._initial_events(connection, resource, namespace)
        _WatchSession(self, connection, resource, namespace, rv).run()
        return None

    def _initial_events(
        self, connection: socket.socket, resource: str, namespace: str | None
    ) -> int:
        with self.cluster.changed:
            rv = self.cluster.rv
            objects = [
                orjson.dumps(obj)
                for obj in self.cluster.objects[resource].values()
                if namespace is None or obj["metadata"].get("namespace") == namespace
            ]
        cut_at = self.faults.below(3 * len(objects) + 3) if self.faults.budget > 0 else -1
        for number, body in enumerate(objects):
            if number == cut_at:
                raise _GoneError
            _chunk(connection, b'{"type":"ADDED","object":%s}\n' % body)
        _chunk(connection, _bookmark(resource, rv, {"k8s.io/initial-events-end": "true"}))
        return rv


class _WatchSession:
    """One watch connection: frames, and the faults that were drawn for it."""

    def __init__(
        self,
        server: FakeServer,
        connection: socket.socket,
        resource: str,
        namespace: str | None,
        rv: int,
    ) -> None:
        self.server, self.connection, self.resource = server, connection, resource
        self.namespace, self.rv, self.first_rv = namespace, rv, rv
        self.fault = server.faults.draw(server.faults.watch_faults, server.faults.watch_probability)
        self.countdown = server.faults.below(6)
        self.last_sent = time.monotonic()

    def run(self) -> None:
        cluster, epoch = self.server.cluster, self.server._epoch
        while not self.server._stop.is_set() and epoch == self.server._epoch:
            with cluster.changed:
                changes = cluster.after(self.resource, self.rv, self.namespace)
                if not changes:
                    cluster.changed.wait(0.05)
                    changes = cluster.after(self.resource, self.rv, self.namespace)
            if changes:
                self.last_sent = time.monotonic()
            elif time.monotonic() - self.last_sent > self.server.bookmark_every_s:
                self.last_sent = time.monotonic()
                _chunk(self.connection, _bookmark(self.resource, max(self.rv, 1), {}))
            pending = [change.frame() for change in changes]
            while pending:
                if self.fault is not None and self.countdown <= 0:
                    fault, self.fault = self.fault, None
                    if self._misbehave(fault, pending, changes):
                        return
                    continue
                self.countdown -= 1
                _chunk(self.connection, pending.pop(0))
            if changes:
                self.rv = changes[-1].rv
        raise _GoneError

    def _misbehave(self, fault: str, pending: list[bytes], changes: list) -> bool:
        """Do the fault before the next pending frame; True ends the connection."""
        server, connection = self.server, self.connection
        frame = pending[0]
        server.faults.fired.append(fault)
        if fault in {"cut-mid-line", "cut-mid-chunk", "cut"}:
            at = 0 if fault == "cut" else 1 + server.faults.below(len(frame) - 1)
            if fault == "cut-mid-line":
                _chunk(connection, frame[:at])
                connection.sendall(b"0\r\n\r\n")
            elif at:
                connection.sendall(b"%x\r\n" % len(frame) + frame[:at])
            raise _GoneError
        if fault == "bad-chunk-length":
            connection.sendall(b"zz\r\n" + frame)
            raise _GoneError
        if fault == "stall":
            server._stop.wait(server.stall_s)
            raise _GoneError
        if fault.startswith("error-"):
            _chunk(connection, _error(int(fault[6:]), fault))
            connection.sendall(b"0\r\n\r\n")
            return True
        if fault.startswith("bare-"):  # a proxy's word in the midst of the server's
            answer = b"HTTP/1.1 %s Wait\r\nRetry-After: 99999999\r\n\r\n" % fault[5:].encode()
            _chunk(connection, answer)
            return True
        if fault in {"garbage", "truncated-json", "not-an-event"}:
            junk = {
                "garbage": b"\xff\xfe<html>\n",
                "truncated-json": frame[: len(frame) // 2] + b"\n",
                "not-an-event": b'{"a":1}\n',
            }
            _chunk(connection, junk[fault])
        elif fault == "duplicate":
            _chunk(connection, frame)
            _chunk(connection, frame)
            pending.pop(0)
        elif fault == "reorder" and len(pending) > 1:
            # In one write: a server that reorders and then loses one half is not one to defend against.
            _chunk(connection, pending[1] + frame)
            del pending[:2]
        elif fault == "resend":
            for change in server.cluster.after(self.resource, self.first_rv, self.namespace)[:4]:
                if change.rv < changes[-1].rv:
                    _chunk(connection, change.frame())
        elif fault == "slow":
            pending.pop(0)
            data = b"%x\r\n" % len(frame) + frame + b"\r\n"
            for start in range(0, len(data), 1 + len(data) // 7):
                connection.sendall(data[start : start + 1 + len(data) // 7])
                time.sleep(0.002)
        elif fault == "end":
            connection.sendall(b"0\r\n\r\n")
            return True
        elif fault == "compact":
            server.cluster.compact()
            raise _GoneError
        elif fault == "expire-token":
            server.expire_token()
            raise _GoneError
        elif fault == "restart":
            threading.Thread(target=server.restart, args=(0.02,), daemon=True).start()
        elif fault == "bookmark":
            sent = (
                changes[len(changes) - len(pending) - 1].rv
                if len(pending) < len(changes)
                else self.rv
            )
            _chunk(connection, _bookmark(self.resource, max(sent, self.first_rv), {}))
        return False


_TLS_HANDSHAKE = b"\x16"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def _chunk(connection: socket.socket, data: bytes) -> None:
    connection.sendall(b"%x\r\n" % len(data) + data + b"\r\n")


def _error(code: int, message: str) -> bytes:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": code,
        "details": {"retryAfterSeconds": 99_999_999},
    }
    return orjson.dumps({"type": "ERROR", "object": status}) + b"\n"


def _bookmark(resource: str, rv: int, annotations: dict[str, str]) -> bytes:
    group_version, kind = GROUP_VERSIONS[resource]
    metadata = {"resourceVersion": str(rv), "creationTimestamp": None} | (
        {"annotations": annotations} if annotations else {}
    )
    return (
        orjson.dumps(
            {
                "type": "BOOKMARK",
                "object": {"kind": kind, "apiVersion": group_version, "metadata": metadata},
            }
        )
        + b"\n"
    )
