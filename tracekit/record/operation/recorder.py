"""One recording from start to end: stream threads, the writer thread, rotation, and the limits.

`run` blocks until the recording is over (time, size, a signal, or nothing left that works) and
returns how it went; it prints nothing, what a user sees comes from `events` and `snapshot`.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from tracekit.base.errors import TracekitError
from tracekit.base.stopping import StopRequest
from tracekit.record.container_logs.logs import RESUMED, LastWords, LogOptions
from tracekit.record.container_logs.logs import STREAM as LOG_STREAM
from tracekit.record.failures import RequestFailed
from tracekit.record.operation.compaction import Compaction
from tracekit.record.operation.rotation import delete_expired
from tracekit.record.server.clock_notes import EVERY_S, ClockNotes, Reading, read_clocks
from tracekit.record.server.kinds import Plan, Scope
from tracekit.record.server.probe import ClusterInfo
from tracekit.record.server.transport import ApiClient
from tracekit.record.streams.feed import TraceFeed, opening_failure, trace_bytes, writing_failure
from tracekit.record.streams.positions import ResumePoint
from tracekit.record.streams.sink import RowQueue, Rows, SinkClosedError
from tracekit.record.streams.status import StreamStatus
from tracekit.record.streams.watcher import Transform, Watcher, WatchPolicy
from tracekit.record.streams.watermark import Horizon
from tracekit.trace.format.model import CLOCKS, RowType, TraceHeader
from tracekit.trace.stores.rotated import new_trace_path
from tracekit.trace.writing.writer import TraceWriter

_NS = 1_000_000_000
_TICK_S = 0.2
_JOIN_S = 5.0
_FINISH_POLL_S = 0.02
#: Merging at the end may take so long; a pod that ends is killed after 30 s.
_FINISH_S = 20.0
_EXPIRE_EVERY_S = 60.0


class Ending(StrEnum):
    """Why a recording ended."""

    INTERRUPTED = "interrupted"
    DURATION = "duration"
    MAX_SIZE = "max-size"
    FAILED = "failed"


class Limits(Struct, frozen=True, kw_only=True):
    """When to flush, to rotate and to end; None means never."""

    flush_interval_s: float = 1.0
    duration_s: float | None = None
    max_bytes: int | None = None
    rotate_s: float | None = None
    #: Retention of rotated traces, by age and by their size together.
    keep_s: float | None = None
    keep_bytes: int | None = None
    #: A stream that is down for longer than this is called dead.
    dead_after_s: float = 120.0


class Target(Struct, frozen=True, kw_only=True):
    """Where the rows go: a trace, or with rotation a folder of traces."""

    path: Path
    #: The trace to go on with; None begins a new one.
    append_to: Path | None = None
    rotating: bool = False


@dataclass(slots=True)
class Outcome:
    """How a recording went."""

    ending: Ending
    streams: list[StreamStatus]
    rows: int
    trace: Path
    trace_bytes: int
    #: Logs of containers, and how many of them could not be had; None when none were wanted.
    logs: tuple[int, int] | None = None
    #: Whether merging what the recording left took too long and was given up.
    unmerged: bool = False
    error: TracekitError | None = None


def expire(folder: Path, limits: Limits, *, current: Path | None = None) -> None:
    """Delete the rotated traces that are past their retention.

    Done before anything else is written, too: they may be what fills the disk.
    """
    if limits.keep_s is not None or limits.keep_bytes is not None:
        delete_expired(
            folder,
            keep_ns=None if limits.keep_s is None else int(limits.keep_s * _NS),
            keep_bytes=limits.keep_bytes,
            now_ns=time.time_ns(),
            current=current,
        )


class Recorder:
    """A recording; make it, then `run` it once."""

    def __init__(
        self,
        client: ApiClient,
        plan: Plan,
        cluster: ClusterInfo,
        scope: Scope,
        target: Target,
        *,
        limits: Limits,
        policy: WatchPolicy,
        resume: dict[str, ResumePoint] | None = None,
        transform: Transform | None = None,
        session: dict[str, Any] | None = None,
        logs: LogOptions | None = None,
        clocks: Callable[[], Reading] = read_clocks,
    ) -> None:
        """`clocks` are those of this process, by which rows are received."""
        self._client = client
        self._plan = plan
        self._cluster = cluster
        self._scope = scope
        self._target = target
        self._limits = limits
        self._session = session or {}
        self._transform = transform
        self._log_options = logs
        #: Of this one the streams know; `_asked` is what a signal handler may set.
        self._stop = threading.Event()
        self._asked = StopRequest()
        self._ending = Ending.INTERRUPTED
        self.queue = RowQueue()
        self.feed = TraceFeed(
            self.queue, self._open_first(), flush_interval_s=limits.flush_interval_s
        )
        self.clock_notes = client.clock_notes = ClockNotes(self._note_clock, clocks)
        self.logs: LastWords | None = None
        if logs is not None:
            redact = None if transform is None else transform.row
            self.logs = LastWords(client, self.queue, options=logs, redact=redact)
        # Events may live in an etcd of their own, whose revisions are no measure for the others.
        horizons = {True: Horizon(), False: Horizon()}
        self.watchers = [
            Watcher(
                spec,
                client,
                self.queue,
                policy=policy,
                stop=self._stop,
                resume=(resume or {}).get(spec.name),
                transform=transform,
                horizon=horizons[spec.resource == "events"],
                clock_ns=lambda: clocks().wall_ns,
                observer=self.logs.see
                if self.logs is not None and spec.resource == "pods"
                else None,
            )
            for spec in plan.specs
        ]
        for spec in plan.specs:
            point = (resume or {}).get(spec.name)
            if self.logs is not None and spec.resource == "pods" and point is not None:
                for _, body in point.objects.values():
                    self.logs.see(RESUMED, body)
        self._compaction = Compaction(self.feed.trace)
        #: What is being merged of traces that are ended; what is left at the end was given up.
        self._finishing: list[tuple[Compaction, TraceWriter]] = []

    def _ask_time(self) -> None:
        """Ask for an answer now and then: the streams' own come minutes apart."""
        wanted = self.clock_notes.wanted
        while True:
            wanted.wait(EVERY_S)
            if self._stop.is_set():
                return
            wanted.clear()
            with contextlib.suppress(RequestFailed, TracekitError):
                self._client.get("/version")

    def _note_clock(self, recv_ns: int, text: bytes) -> None:
        with contextlib.suppress(SinkClosedError):  # the streams see it, and end
            self.queue.rows(Rows(CLOCKS, recv_ns, [RowType.NOTE], [text]))

    #### Traces ####

    def _open_first(self) -> TraceWriter:
        target = self._target
        if target.append_to is not None:
            return self._open(target.append_to, append=True)
        if target.rotating:
            return self._open(new_trace_path(target.path, time.time_ns()))
        return self._open(target.path)

    def _open(self, path: Path, *, append: bool = False) -> TraceWriter:
        is_new = not path.exists()
        header = None if append else self._header()
        try:
            return TraceWriter(
                path, header, session=self._this_session(), append=append, plain=True
            )
        except OSError as error:
            if is_new:
                shutil.rmtree(path, ignore_errors=True)
            raise opening_failure(error, path) from error

    def _header(self) -> TraceHeader:
        scope: dict[str, Any] = {
            "namespaces": list(self._scope.namespaces) or None,
            "selector": self._scope.selector,
        }
        if self._scope.pods_of_jobs_only:
            scope["pods"] = "job"
        if self._cluster.cluster_uid is not None:
            scope["cluster_uid"] = self._cluster.cluster_uid
        streams: dict[str, Any] = {
            spec.name: {"recorded": True, "group_version": spec.group_version}
            for spec in self._plan.specs
        }
        if self._log_options is not None:
            about = self._log_options
            streams[LOG_STREAM] = {
                "recorded": True,
                "mode": about.mode.value,
                "tail_lines": about.tail_lines,
            }
        for name, reason in self._plan.unseen.items():
            streams[name] = self._written({"recorded": False, "reason": reason})
        return TraceHeader(
            kubernetes_version=self._cluster.version,
            feature_gates=self._cluster.controller_gates,
            scope=scope,
            streams=streams,
        )

    def _this_session(self) -> dict[str, Any]:
        said = {"unseen": dict(self._plan.unseen), "notes": list(self._cluster.notes)}
        return {
            "source": "record",
            "started_ns": time.time_ns(),
            **self._written(said),
            "apiserver_feature_gates": self._cluster.feature_gates,
            **self._session,
        }

    def _written(self, said: dict[str, Any]) -> dict[str, Any]:
        """Give what is to stand in the header of what servers said."""
        return said if self._transform is None else self._transform.header(said)

    def _rotate(self) -> None:
        """Begin a new trace: every stream at once, each with a list of what lives now."""
        writer = self._open(new_trace_path(self._target.path, time.time_ns()))
        with contextlib.ExitStack() as stack:
            for watcher in self.watchers:
                stack.enter_context(watcher.lock)
            self.queue.call(lambda: self.feed.rotate(writer))
            self.clock_notes.begin()
            for watcher in self.watchers:
                watcher.write_snapshot()

    #### Running ####

    def stop(self, ending: Ending = Ending.INTERRUPTED) -> None:
        """End the recording soon; may be called from a signal handler."""
        self._ending = ending
        self._asked.set()

    def run(self, on_tick: Callable[[], None] = lambda: None) -> Outcome:
        """Record until something ends it; `on_tick` is called a few times a second."""
        writing = threading.Thread(target=self.feed.run, name="writer", daemon=True)
        reading = [
            threading.Thread(target=watcher.run, name=watcher.spec.name, daemon=True)
            for watcher in self.watchers
        ]
        if self.logs is not None:
            threading.Thread(target=self.logs.run, name="logs", daemon=True).start()
        writing.start()
        for thread in reading:
            thread.start()
        threading.Thread(target=self._ask_time, name="clock", daemon=True).start()
        try:
            self._supervise(on_tick)
        finally:
            self._stop.set()
            self.clock_notes.wanted.set()
            self._join(reading)
            if self.logs is not None:
                self.logs.finish(_JOIN_S)
            self.feed.end()
            writing.join()
            self._finish(on_tick)
        return self._outcome()

    def _upkeep(self) -> None:
        """Keep the traces' segments few; give traces free that a rotation ended."""
        while self.feed.retired:
            writer = self.feed.retired.popleft()
            current = self._compaction.trace == writer.path
            compaction = self._compaction if current else Compaction(writer.path)
            self._finishing.append((compaction, writer))
        if self._compaction.trace != self.feed.trace:
            self._compaction = Compaction(self.feed.trace)
        # Never two on one trace: what is being finished is not compacted beside that.
        if all(compaction is not self._compaction for compaction, _ in self._finishing):
            self._compaction.tick()
        for pair in list(self._finishing):
            compaction, writer = pair
            if compaction.is_finished():
                writer.abandon()  # it was flushed when it was retired
                self._finishing.remove(pair)

    def _finish(self, on_tick: Callable[[], None]) -> None:
        """Merge what the recording leaves, for a while; with a full disk or the like, leave it."""
        if self.queue.failure is not None:
            for writer in (*self.feed.retired, *(writer for _, writer in self._finishing)):
                writer.abandon()
            return
        self._upkeep()
        deadline_s = time.monotonic() + _FINISH_S
        while self._finishing and time.monotonic() < deadline_s:
            time.sleep(_FINISH_POLL_S)
            self._upkeep()
            on_tick()
        for compaction, writer in self._finishing:
            compaction.give_up()
            writer.abandon()
        self.feed.trace_bytes = trace_bytes(self.feed.trace)

    def _supervise(self, on_tick: Callable[[], None]) -> None:
        started_s = rotated_s = expired_s = time.monotonic()
        limits = self._limits
        while not self._asked.wait(_TICK_S):
            now_s = time.monotonic()
            self.clock_notes.tick()
            if self._nothing_works():
                self.stop(Ending.FAILED)
            elif limits.duration_s is not None and now_s - started_s >= limits.duration_s:
                self.stop(Ending.DURATION)
            elif self._rotation_is_due(now_s - rotated_s):
                rotated_s = now_s
                self._expire()
                try:
                    self._rotate()
                except TracekitError as error:
                    self.queue.close(error)
            elif now_s - expired_s >= _EXPIRE_EVERY_S:
                expired_s = now_s
                self._expire()
            elif not self._target.rotating and self._is_full():
                self.stop(Ending.MAX_SIZE)
            self._upkeep()
            on_tick()

    def _nothing_works(self) -> bool:
        return self.queue.failure is not None or all(w.fatal is not None for w in self.watchers)

    def _is_full(self) -> bool:
        most = self._limits.max_bytes
        return most is not None and self.feed.trace_bytes >= most

    def _rotation_is_due(self, age_s: float) -> bool:
        if not self._target.rotating:
            return False
        rotate_s = self._limits.rotate_s
        return (rotate_s is not None and age_s >= rotate_s) or self._is_full()

    def _expire(self) -> None:
        if self._target.rotating:
            expire(self._target.path, self._limits, current=self.feed.trace)

    def _join(self, reading: list[threading.Thread]) -> None:
        """Wait for the streams; a read that blocks is interrupted until it returns."""
        deadline_s = time.monotonic() + _JOIN_S
        for thread in reading:
            while thread.is_alive() and time.monotonic() < deadline_s:
                for watcher in self.watchers:
                    watcher.interrupt()
                thread.join(0.05)
        for watcher, thread in zip(self.watchers, reading, strict=True):
            if thread.is_alive():
                watcher.give_up()

    #### Looking at it ####

    def dead_streams(self) -> list[str]:
        """Name the streams that have been down for too long."""
        now_ns = time.time_ns()
        dead_after_ns = int(self._limits.dead_after_s * _NS)
        return [
            w.spec.name
            for w in self.watchers
            if w.fatal is not None or w.status.is_dead(now_ns, dead_after_ns)
        ]

    def lag_s(self, now_ns: int) -> tuple[float, str]:
        """Measure how far, at most, the trace is behind the server, and what is: a stream's name.

        The name is empty where it is the writer that is behind.
        """
        streams = [(w.behind_ns(now_ns) / _NS, w.spec.name) for w in self.watchers]
        return max([(self.queue.lag_s(now_ns), ""), *streams], key=lambda one: one[0])

    def is_healthy(self) -> bool:
        """Tell whether every stream lives and the writer writes."""
        return self.queue.failure is None and not self.dead_streams()

    def _outcome(self) -> Outcome:
        error = None
        if self.queue.failure is not None:
            error = writing_failure(self.queue.failure, self.feed.trace)
        return Outcome(
            ending=self._ending,
            streams=[w.status for w in self.watchers],
            rows=self.feed.rows_written,
            trace=self.feed.trace,
            trace_bytes=self.feed.trace_bytes,
            logs=None
            if self.logs is None
            else (self.logs.status.observations, self.logs.status.gaps),
            unmerged=bool(self._finishing),
            error=error,
        )
