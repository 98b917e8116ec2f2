"""The raw list + watch stream of what a Job's life leaves behind, as JSON lines.

One thread a resource lists, then watches from the list's resourceVersion. Every line carries the
receive time; objects are written as they came. A stream that breaks is noted and resumed from the
last resourceVersion; one that expired (410) is listed again. It runs as a process of its own, so
that receive times do not wait for the interpreter lock of the process that makes the load.
"""

import argparse
import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import urllib3
import zstandard

from tests.e2e.api import Api, ApiError

SILENCE_SECONDS_MAX = 120.0  # a server that knows bookmarks sends one a minute
LEVEL = 10
GONE = 410

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stream:
    """One resource to list and watch."""

    resource: str
    path: str


def streams(api: Api) -> list[Stream]:
    """Return the streams that this server has: cronjobs moved to batch/v1 in 1.21."""
    served = {found["name"] for found in api.get("/apis/batch/v1")["resources"]}
    cron_version = "v1" if "cronjobs" in served else "v1beta1"
    return [
        Stream("jobs", "/apis/batch/v1/jobs"),
        Stream("cronjobs", f"/apis/batch/{cron_version}/cronjobs"),
        Stream("pods", "/api/v1/pods"),
        Stream("events", "/api/v1/events"),
        Stream("namespaces", "/api/v1/namespaces"),
        Stream("resourcequotas", "/api/v1/resourcequotas"),
        Stream("leases", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"),
    ]


class WatchLog:
    """Writes the streams of one server to one file until closed."""

    def __init__(self, api: Api, out: BinaryIO) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._closed = False
        self._broken: set[str] = set()  # each thread adds and discards its own resource only
        self._listed = threading.Semaphore(0)
        self._out = zstandard.ZstdCompressor(level=LEVEL).stream_writer(out, closefd=False)

    def start(self) -> None:
        """Start watching and return when every stream has been listed once."""
        wanted = streams(self._api)
        for stream in wanted:
            threading.Thread(target=self._follow, args=(stream,), daemon=True).start()
        for _ in wanted:
            self._listed.acquire()

    def close(self) -> None:
        """End the file; what arrives later is dropped."""
        with self._lock:
            self._closed = True
            self._out.close()  # type: ignore[no-untyped-call]

    def _write(self, resource: str, kind: str, recorded: Any, received_ns: int) -> None:
        line = {"recv": received_ns, "resource": resource, "type": kind, "object": recorded}
        with self._lock:
            if not self._closed:
                self._out.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def _follow(self, stream: Stream) -> None:
        version = ""
        listed_once = False
        while not self._closed:
            try:
                if not version:
                    version = self._list(stream)
                    if not listed_once:
                        listed_once = True
                        self._listed.release()
                version = self._watch(stream, version)
            except (ApiError, urllib3.exceptions.HTTPError, OSError) as error:
                self._note(stream, error)
                if isinstance(error, ApiError) and error.status == GONE:
                    version = ""
                time.sleep(0.5)

    def _note(self, stream: Stream, error: Exception) -> None:
        """Write that a stream broke, once until it works again."""
        if stream.resource not in self._broken:
            self._broken.add(stream.resource)
            self._write(stream.resource, "NOTE", {"error": str(error)}, time.time_ns())

    def _list(self, stream: Stream) -> str:
        answer = self._api.get(stream.path)
        received_ns = time.time_ns()
        version = str(answer["metadata"]["resourceVersion"])
        bounds = {"resourceVersion": version}
        self._write(stream.resource, "LIST_BEGIN", bounds, received_ns)
        for item in answer["items"]:
            self._write(stream.resource, "LIST", item, received_ns)
        self._write(stream.resource, "LIST_END", bounds, received_ns)
        return version

    def _watch(self, stream: Stream, version: str) -> str:
        """Write one watch to its end; return where the next one starts, "" for a new list."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "3600",
        }
        followed = self._api.stream(stream.path, query, silence_seconds_max=SILENCE_SECONDS_MAX)
        try:
            with followed as lines:
                self._broken.discard(stream.resource)
                for line in lines:
                    received_ns = time.time_ns()
                    frame = orjson.loads(line)
                    self._write(stream.resource, frame["type"], frame["object"], received_ns)
                    if frame["type"] == "ERROR":
                        return "" if frame["object"].get("code") == GONE else version
                    version = frame["object"]["metadata"]["resourceVersion"]
        except (urllib3.exceptions.HTTPError, OSError) as error:
            # here, not in the caller, because only here `version` is known
            if not isinstance(error, urllib3.exceptions.ReadTimeoutError):
                self._note(stream, error)
            time.sleep(0.2)
        return version


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the streams of the server in a kubeconfig to a file until SIGTERM."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    config = json.loads(options.kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    token = config["users"][0]["user"]["token"]
    ca_file = cluster["certificate-authority"]
    api = Api(cluster["server"], token, ca_file=ca_file, agent="watchlog", pool_size=8)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with options.out.open("wb") as out:
        watching = WatchLog(api, out)
        watching.start()
        options.out.with_suffix(".ready").touch()
        ended.wait()
        watching.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
