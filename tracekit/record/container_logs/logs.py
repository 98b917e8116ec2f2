"""Last words: the logs of containers that ended, fetched before their pod is gone.

Sees every state of every pod, decides which containers' logs are wanted, and has threads fetch them
(`log_tail.py`). A pod that is being deleted may be gone right after its containers end, so the logs
of its running containers are followed from then on. Each container that ended gets one row in the
stream `logs`: the text, or why it could not be had.

One thread (`run`) takes pods and decides; `_settle` is the whole decision for one container.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import orjson
from msgspec import Struct

from tracekit.base.errors import ClusterError
from tracekit.record.container_logs.log_tail import Tail, TailReader
from tracekit.record.failures import (
    ConnectionFailed,
    Forbidden,
    NotFound,
    RequestFailed,
    Unauthorized,
    Unsupported,
)
from tracekit.record.server.transport import ApiClient, LogResponse
from tracekit.record.streams.sink import Rows, Sink, SinkClosedError
from tracekit.record.streams.status import StreamState, StreamStatus

STREAM = "logs"
KIND = "ContainerLog"
API_VERSION = "tracekit/v1"
#: In place of a row's type: a pod of the trace that is gone on with.
RESUMED = "RESUMED"

_FETCHERS = 4
#: A pod that is deleted waits for its containers, mostly seconds; each needs a thread meanwhile.
_FOLLOWERS = 32
_WAITING_MAX = 2000
_TRIES = 5
_FIRST_RETRY_S = 0.2
_IDLE_S = 20.0
#: How long a follower waits for words: as long as a grace period may be.
_FOLLOW_IDLE_S = 600.0
_NS = 1_000_000_000
_TELLING = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


class LogMode(StrEnum):
    """Whose last words are wanted."""

    FAILED = "failed"
    ALL = "all"


class LogOptions(Struct, frozen=True):
    """What of logs is recorded."""

    mode: LogMode
    tail_lines: int = 200
    #: Runs whose logs the trace has already.
    known: frozenset[str] = frozenset()


class Key(NamedTuple):
    """One run of one container."""

    pod_uid: str
    container: str
    #: The run's container id; where a kubelet gives none, how often it had been restarted.
    run: str

    @property
    def uid(self) -> str:
        """A name that no other run has."""
        return f"{self.pod_uid}/{self.container}/{self.run}"


@dataclass(slots=True)
class _Pod:
    """What is known of a pod that lives."""

    namespace: str
    name: str
    uid: str
    owners: list[Any]
    #: It is known from a trace only: redacted, if that is asked for.
    is_resumed: bool = False
    #: By container: the run that `log` gives now, and the one that it gives with `previous`.
    latest: dict[str, tuple[Key | None, Key | None]] = field(default_factory=dict)


@dataclass(slots=True)
class _Run:
    """One run of one container, until its row is written."""

    key: Key
    pod: _Pod
    is_init: bool
    restart: int
    #: Its `terminated` state; None while it runs, or when nobody saw it end.
    ended: dict[str, Any] | None = None
    is_gone: bool = False
    #: What was read while the container ran; complete once `is_busy` is over.
    follower: TailReader | None = None
    #: A thread follows or fetches its log, and comes back to it.
    is_busy: bool = False
    is_written: bool = False


class LastWords:
    """Fetches logs; `see` is called by the stream of pods, `run` is a thread's body."""

    def __init__(
        self,
        client: ApiClient,
        sink: Sink,
        *,
        options: LogOptions,
        redact: Callable[[str, str, Any], Any] | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.status = StreamStatus(STREAM)
        self._client = client
        self._sink = sink
        self._mode = options.mode
        self._tail_lines = options.tail_lines
        self._redact = redact
        self._clock_ns = clock_ns
        self._states: queue.SimpleQueue[tuple[str, bytes] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._pods: dict[str, _Pod] = {}
        self._runs: dict[Key, _Run] = {}
        #: Runs whose row is written, of pods that live; with --append those of the trace too.
        self._done: dict[str, set[str]] = {}
        for uid in options.known:
            self._done.setdefault(uid.partition("/")[0], set()).add(uid)
        self._fetchers = ThreadPoolExecutor(_FETCHERS, thread_name_prefix="log")
        self._followers = ThreadPoolExecutor(_FOLLOWERS, thread_name_prefix="log-follow")
        self._waiting = 0
        self._following = 0
        self._open: set[LogResponse] = set()
        self._drained = threading.Event()
        self._stopped = threading.Event()

    #### Pods ####

    def see(self, kind: str, raw: bytes) -> None:
        """Take a pod's state as it came; returns at once."""
        self._states.put((kind, raw))

    def run(self) -> None:
        """Decide for one pod after the other until `finish`."""
        self.status.live()
        while True:
            state = self._states.get()
            if state is None:
                break
            try:
                self._take(*state)
            except SinkClosedError:
                break
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                # A pod that is not built as pods are: it has no logs that could be asked for.
                self.status.failed("BadPod", f"{type(error).__name__}: {error}", self._clock_ns())
                self.status.live()
        self.status.state = StreamState.STOPPED
        self._drained.set()

    @property
    def pending(self) -> int:
        """How many rows are still to come for what has ended."""
        return self._waiting

    def finish(self, timeout_s: float) -> None:
        """Fetch what is still wanted, for so long; what is left becomes gaps."""
        self._states.put(None)
        deadline_s = time.monotonic() + timeout_s
        self._drained.wait(timeout_s)
        while self._waiting and time.monotonic() < deadline_s:
            time.sleep(0.02)
        self._stopped.set()
        with self._lock:
            still_open = list(self._open)
            left = [run for run in self._runs.values() if run.ended is not None]
        for response in still_open:
            response.close()
        for pool in (self._fetchers, self._followers):
            pool.shutdown(wait=True, cancel_futures=True)
        for run in left:
            self._write_gap(run, "the recording ended before it was fetched")

    def _take(self, kind: str, raw: bytes) -> None:
        body = orjson.loads(raw)
        meta, status = body["metadata"], body.get("status") or {}
        uid = meta["uid"]
        with self._lock:
            pod = self._pods.get(uid)
            if pod is None:
                owners = meta.get("ownerReferences") or []
                pod = _Pod(meta.get("namespace") or "", meta["name"], uid, owners)
                self._pods[uid] = pod
            pod.is_resumed = kind == RESUMED
            is_leaving = "deletionTimestamp" in meta or kind == "DELETED"
            for field_name in _TELLING:
                for one in status.get(field_name) or ():
                    is_init = field_name == "initContainerStatuses"
                    self._note(pod, one, is_init=is_init, is_leaving=is_leaving)
            runs = [run for run in self._runs.values() if run.pod is pod]
            if kind == "DELETED":
                del self._pods[uid]
                self._done.pop(uid, None)
                for run in runs:
                    run.is_gone = True
        for run in runs:
            self._settle(run)

    def _note(self, pod: _Pod, status: dict[str, Any], *, is_init: bool, is_leaving: bool) -> None:
        """Note what a container's status says of its runs."""
        name, count = status["name"], int(status.get("restartCount") or 0)
        state, last = status.get("state") or {}, status.get("lastState") or {}
        terminated, before = state.get("terminated"), last.get("terminated")
        now_key = earlier_key = None
        if terminated or state.get("running"):
            own_id = (terminated or {}).get("containerID") or status.get("containerID")
            now_key = Key(pod.uid, name, own_id or str(count))
        if before:
            earlier_key = Key(pod.uid, name, before.get("containerID") or str(max(0, count - 1)))
        # A container that waits to be restarted: `log` still gives the run that ended.
        waits = now_key is None
        pod.latest[name] = (earlier_key, None) if waits else (now_key, earlier_key)
        if before and earlier_key is not None:
            self._ended(pod, earlier_key, before, is_init, count if waits else count - 1)
        if terminated and now_key is not None:
            self._ended(pod, now_key, terminated, is_init, count)
        elif is_leaving and now_key is not None and not self._is_done(now_key):
            self._runs.setdefault(now_key, _Run(now_key, pod, is_init, count))

    def _ended(
        self, pod: _Pod, key: Key, terminated: dict[str, Any], is_init: bool, restart: int
    ) -> None:
        if self._is_done(key):
            return
        run = self._runs.get(key)
        if run is None:
            if not self._is_wanted(terminated):
                return
            run = self._runs[key] = _Run(key, pod, is_init, restart)
        run.ended = terminated

    def _is_wanted(self, terminated: dict[str, Any] | None) -> bool:
        """Tell by a run's end; one that nobody saw end may have failed."""
        if self._mode is LogMode.ALL or terminated is None:
            return True
        return terminated.get("exitCode") != 0

    #### Deciding ####

    def _settle(self, run: _Run) -> None:
        """Do what is next for a run: follow, fetch, write, give up, or wait."""
        with self._lock:
            if run.is_busy or run.is_written:
                return
            over = run.ended is not None or run.is_gone
            if over and not self._is_wanted(run.ended):
                self._forget(run)
                return
            follower = run.follower
            follows = not over and follower is None and self._following < _FOLLOWERS
            fetches = follower is None and run.ended is not None and self._waiting < _WAITING_MAX
            run.is_busy = follows or fetches
            self._following += follows
        if follows:
            self._submit(self._followers, self._follow, run)
        elif fetches:
            self._submit(self._fetchers, self._fetch, run)
        elif follower is not None and over:
            self._write_tail(run, follower.tail(), followed=True)
        elif run.ended is not None:
            self._write_gap(run, f"more than {_WAITING_MAX} logs were waiting")
        elif run.is_gone:
            self._write_gap(run, "the pod was gone before its container was seen to end")

    def _submit(self, pool: ThreadPoolExecutor, work: Callable[[_Run], None], run: _Run) -> None:
        with self._lock:
            self._waiting += 1

        def guarded() -> None:
            try:
                if not self._stopped.is_set():
                    work(run)
            except SinkClosedError:
                pass
            finally:
                with self._lock:
                    self._waiting -= 1

        try:
            pool.submit(guarded)
        except RuntimeError:  # it is shut down: `finish` writes the gap
            with self._lock:
                self._waiting -= 1

    #### Fetching ####

    def _fetch(self, run: _Run) -> None:
        """Get the log of a run that ended; tries again while the server may still have it."""
        delay_s = _FIRST_RETRY_S
        for _ in range(_TRIES):
            generation = self._client.connection.generation
            previous = self._place(run)
            if previous is None:
                self._write_gap(run, "the container had restarted again before it was read")
                return
            try:
                self._learn(run.pod)
                tail = self._read(run, TailReader(), previous=previous, follow=False)
            except (NotFound, Forbidden, Unsupported) as error:
                reason = "the pod was gone" if isinstance(error, NotFound) else error.reason
                self._write_gap(run, reason)
                return
            except RequestFailed as error:
                reason = error.reason
                self._failed(error, generation)
                if self._stopped.wait(delay_s):
                    break
                delay_s *= 2
                continue
            if self._place(run) == previous:
                self._write_tail(run, tail, followed=False)
                return
            reason = "the container restarted while it was read"
        self._write_gap(run, reason)

    def _place(self, run: _Run) -> bool | None:
        """Tell whether a run's log is that of the previous container; None when it is neither."""
        with self._lock:
            now_key, earlier_key = run.pod.latest[run.key.container]
        if run.key == now_key:
            return False
        return True if run.key == earlier_key else None

    def _follow(self, run: _Run) -> None:
        """Read the log of a container whose pod is being deleted, until it ends."""
        reader = TailReader()
        is_whole = False
        try:
            self._learn(run.pod)
            self._read(run, reader, previous=False, follow=True)
            is_whole = True
        except RequestFailed as error:
            # What was read so far counts if nothing more can be had.
            self._failed(error, self._client.connection.generation)
        with self._lock:
            self._following -= 1
            run.is_busy = False
            if is_whole or reader.tail().text:
                run.follower = reader
            over = run.ended is not None or run.is_gone
        if over:
            self._settle(run)

    def _read(self, run: _Run, reader: TailReader, *, previous: bool, follow: bool) -> Tail:
        params = {
            "container": run.key.container,
            "tailLines": str(self._tail_lines),
            "timestamps": "true",
        }
        if previous:
            params["previous"] = "true"
        if follow:
            params["follow"] = "true"
        path = f"/api/v1/namespaces/{run.pod.namespace}/pods/{run.pod.name}/log"
        idle_timeout_s = _FOLLOW_IDLE_S if follow else _IDLE_S
        response = self._client.log(path, params, idle_timeout_s=idle_timeout_s)
        with self._lock:
            self._open.add(response)
        try:
            if self._stopped.is_set():
                response.close()
            reader.read(response)
        finally:
            with self._lock:
                self._open.discard(response)
        if self._stopped.is_set():
            raise ConnectionFailed("the recording ended before it was read")
        return reader.tail()

    def _learn(self, pod: _Pod) -> None:
        """Have redaction meet the values of a pod that the trace has as hashes only."""
        if pod.is_resumed and self._redact is not None:
            found = self._client.get(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}")
            self._redact("pods", "ADDED", found)
            pod.is_resumed = False

    def _failed(self, error: RequestFailed, generation: int) -> None:
        kind = type(error).__name__
        self.status.failures[kind] = self.status.failures.get(kind, 0) + 1
        self.status.last_failure = error.reason
        if isinstance(error, Unauthorized):
            try:
                self._client.reload_credentials(generation)
            except ClusterError as reload_error:
                self.status.last_failure = str(reload_error)

    #### Rows ####

    def _write_tail(self, run: _Run, tail: Tail, *, followed: bool) -> None:
        tail = tail.last(self._tail_lines)
        self.status.received_bytes += len(tail.text)
        said = {
            "text": tail.text,
            "lines": tail.lines,
            "truncated": tail.is_cut or tail.goes_on,
            "followed": followed,
        }
        self._write(run, said)

    def _write_gap(self, run: _Run, reason: str) -> None:
        self._write(run, {"gap": self._client.connection.credentials.clean(reason)})

    def _write(self, run: _Run, said: dict[str, Any]) -> None:
        """Write the one row of a run."""
        with self._lock:
            if run.is_written:
                return
            self._forget(run)
            self.status.observations += 1
            self.status.gaps += "gap" in said
        body: Any = {
            "kind": KIND,
            "apiVersion": API_VERSION,
            "metadata": {
                "name": run.pod.name,
                "namespace": run.pod.namespace,
                "uid": run.key.uid,
                "ownerReferences": run.pod.owners,
            },
            "podUID": run.key.pod_uid,
            "container": run.key.container,
            "init": run.is_init,
            "restart": run.restart,
            "terminated": run.ended,
            **said,
        }
        if self._redact is not None:
            body = self._redact(STREAM, "ADDED", body)
        now_ns = self._clock_ns()
        self.status.last_byte_ns = now_ns
        raw = self._client.connection.credentials.out_of_object(orjson.dumps(body))
        self._sink.rows(Rows(STREAM, now_ns, ["ADDED"], [raw]))

    def _forget(self, run: _Run) -> None:
        """Be done with a run; the caller holds the lock."""
        run.is_written = True
        self._runs.pop(run.key, None)
        if run.pod.uid in self._pods:
            self._done.setdefault(run.pod.uid, set()).add(run.key.uid)

    def _is_done(self, key: Key) -> bool:
        return key.uid in self._done.get(key.pod_uid, ())
