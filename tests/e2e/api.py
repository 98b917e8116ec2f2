"""A thin client of the Kubernetes API: JSON in, JSON out, one pool of connections per user.

Deliberately not the `kubernetes` package: the machinery that produces evidence must not share code
with what it is evidence for, and raw objects must stay untouched.
"""

import http.client
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

RawObject = dict[str, Any]

# A refused connection was never a request, so any method may try again; what broke midway may
# have been done, so only what can be done twice.
PATIENCE = urllib3.Retry(
    total=None,
    connect=60,
    read=3,
    status=0,
    redirect=0,
    other=0,
    allowed_methods={"GET", "PATCH"},
    backoff_factor=0.1,
    backoff_max=0.5,
)


class ApiError(Exception):
    """The API server answered with an error status."""

    def __init__(self, status: int, body: bytes, what: str) -> None:
        """Keep the status and the server's own words."""
        super().__init__(f"{what}: {status} {body[:400].decode(errors='replace')}")
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """One user of the token file."""

    user: str
    token: str
    groups: tuple[str, ...] = ()


class Api:
    """Talks to one API server as one user; safe to share between threads."""

    def __init__(
        self,
        server: str,
        token: str,
        *,
        ca_file: str,
        agent: str,
        pool_size: int = 8,
        patient: bool = False,
    ) -> None:
        """Prepare connections; a patient client waits while the server is restarted."""
        self._pool = urllib3.PoolManager(
            maxsize=pool_size,
            ca_certs=ca_file,
            retries=False,
            timeout=urllib3.Timeout(connect=5, read=30),
        )
        self._server = server
        self._retries = PATIENCE if patient else False
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": agent, "Accept": JSON}

    def get(self, path: str, query: Mapping[str, str] | None = None) -> RawObject:
        """Return the object or list at `path`."""
        return self._call("GET", path, query=query)

    def get_text(self, path: str) -> str:
        """Return what is at `path` as text (health checks, metrics)."""
        return self._request("GET", path).data.decode()

    def create(self, path: str, body: RawObject) -> RawObject:
        """POST `body` to the collection or subresource at `path`."""
        return self._call("POST", path, body=body)

    def patch(
        self, path: str, body: RawObject | list[RawObject], *, kind: str = MERGE_PATCH
    ) -> RawObject:
        """PATCH the object at `path`."""
        return self._call("PATCH", path, body=body, content_type=kind)

    def delete(self, path: str, options: RawObject | None = None) -> RawObject:
        """DELETE the object at `path` with DeleteOptions."""
        return self._call("DELETE", path, body=options)

    @contextmanager
    def stream(
        self, path: str, query: Mapping[str, str], *, silence_seconds_max: float
    ) -> Iterator[Iterator[bytes]]:
        """Yield an iterator of the lines of a watch; it ends when the server ends the stream."""
        response = self._pool.request(
            "GET",
            self._url(path, query),
            headers=self._headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=5, read=silence_seconds_max),
        )
        try:
            if response.status != http.client.OK:
                raise ApiError(response.status, response.read(), f"watch {path}")
            yield _lines(response)
        finally:
            response.close()

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        return f"{self._server}{path}" + (f"?{urlencode(query)}" if query else "")

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: RawObject | list[RawObject] | None = None,
        content_type: str = JSON,
    ) -> RawObject:
        response = self._request(method, path, query=query, body=body, content_type=content_type)
        answer: RawObject = orjson.loads(response.data)
        return answer

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: RawObject | list[RawObject] | None = None,
        content_type: str = JSON,
    ) -> urllib3.BaseHTTPResponse:
        headers = self._headers if body is None else {**self._headers, "Content-Type": content_type}
        response = self._pool.request(
            method,
            self._url(path, query),
            headers=headers,
            body=None if body is None else orjson.dumps(body),
            retries=self._retries,
        )
        if response.status >= http.client.BAD_REQUEST:
            raise ApiError(response.status, response.data, f"{method} {path}")
        return response


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for chunk in response.stream(amt=None, decode_content=True):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    # a rest without a newline is a line cut off by the end of the stream: never an object


def namespaced(resource: str, namespace: str, name: str = "", sub: str = "") -> str:
    """Return the path of a namespaced resource: `pods`, or `batch/v1/jobs` with its group."""
    *group, plural = resource.split("/")
    root = "/apis/" + "/".join(group) if group else "/api/v1"
    return "/".join(filter(None, (f"{root}/namespaces/{namespace}/{plural}", name, sub)))
