"""The list/watch loop of one stream: an informer that writes evidence instead of a cache.

List (paged, or a streaming list), then watch from the list's revision; resume from the last
revision after anything that breaks; when the server no longer has that revision, list again, say
by a gap row what could not be seen, and tell deletes by comparison. Runs in a thread of its own.

Upstream: k8s.io/client-go/tools/cache/reflector.go
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from tracekit.base.coverage import scope_document
from tracekit.base.errors import ClusterError
from tracekit.base.json_text import json_text
from tracekit.base.numbers import whole_number
from tracekit.record.failures import (
    BadFrame,
    Gone,
    RequestFailed,
    StreamIdle,
    Unauthorized,
    Unsupported,
    failure,
)
from tracekit.record.server.backoff import Backoff
from tracekit.record.server.kinds import StreamSpec
from tracekit.record.server.transport import ApiClient, WatchResponse
from tracekit.record.streams.frames import Frame, parse_frame
from tracekit.record.streams.memory import StreamMemory
from tracekit.record.streams.pages import Turning, page_of
from tracekit.record.streams.positions import ResumePoint, is_older
from tracekit.record.streams.sink import GapRow, Outbox, Sink, SinkClosedError
from tracekit.record.streams.status import StreamState, StreamStatus
from tracekit.record.streams.watermark import Horizon
from tracekit.trace.format.model import STATE_TYPES

#: The same garbage at the same revision this often: the server cannot serve past it.
_BAD_FRAMES_MAX = 3
#: Of a line that is no watch event.
_SHOWN_CHARS = 80
#: Bookmarks come once a minute and a little later; a stream silent for longer may be half open.
_SILENCE_NS_MAX = 75 * 1_000_000_000


class Transform(Protocol):
    """Turns what is written (redaction)."""

    def row(self, stream: str, kind: str, body: Any, /) -> Any:
        """Give what a row of a type is to hold."""

    def words(self, text: str, /) -> str:
        """Give the reason of a gap."""

    def header(self, document: Mapping[str, Any], /) -> dict[str, Any]:
        """Give a part of a trace's header."""


@dataclass(slots=True, kw_only=True)
class WatchPolicy:
    """Timing and sizes of the loop."""

    page_limit: int = 500
    #: Ask for lists as streams first; a server that cannot is asked for pages.
    streaming_lists: bool = False
    #: Bookmarks come about every minute, so a longer silence means a half-open connection.
    idle_timeout_s: float = 90.0
    #: The server ends each watch after a time between these, as kubectl's and client-go's do.
    watch_timeout_s: tuple[int, int] = (300, 600)
    backoff: Callable[[], Backoff] = Backoff
    rng: random.Random = field(default_factory=random.Random)


class _RestartList(Exception):  # noqa: N818 (a signal to the loop, not an error)
    """A rotation happened while a list was under way: it must be whole in the new trace."""


class Watcher:
    """One stream of a recording."""

    def __init__(
        self,
        spec: StreamSpec,
        client: ApiClient,
        sink: Sink,
        *,
        policy: WatchPolicy,
        stop: threading.Event,
        resume: ResumePoint | None = None,
        transform: Transform | None = None,
        horizon: Horizon | None = None,
        observer: Callable[[str, bytes], None] | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.spec = spec
        self.status = StreamStatus(spec.name)
        #: Set when the thread ended because it must, not because it was told to.
        self.fatal: Exception | None = None
        #: Held while rows of one chunk are written: who holds it sees a whole number of frames.
        self.lock = threading.Lock()
        self._client = client
        self._outbox = Outbox(sink, spec.resource)
        self._policy = policy
        self._stop = stop
        self._transform = transform
        self._clock_ns = clock_ns
        self._horizon = horizon or Horizon()
        #: Told of every state of an object, as it came.
        self._observer = observer
        self._began_ns = clock_ns()
        self._backoff = policy.backoff()
        self._streaming_lists = policy.streaming_lists
        self._memory = StreamMemory(keeps_bodies=spec.keeps_bodies)
        self._position: str | None = None
        #: Last revision, if there was one, and time before the position was lost, and why; None
        #: when nothing was.
        self._lost: tuple[str | None, int | None, str] | None = None
        self._response: WatchResponse | None = None
        self._listing = False
        self._restart_list = False
        self._bad_frames = 0
        #: Whether a watch was open when the recording was to end, or is now.
        self._connected = False
        #: Held by who says what was not seen at the end: this thread, or who gave up on it.
        self._ending = threading.Lock()
        if resume is not None:
            self._position = resume.resource_version
            self.status.last_byte_ns = resume.seen_ns
            self._memory.resume(resume)

    #### Life ####

    def run(self) -> None:
        """Watch until told to stop; never raises, `fatal` has what ended it."""
        try:
            while not self._stop.is_set():
                self._step()
        except SinkClosedError:
            pass
        except Exception as error:  # noqa: BLE001 (a dead thread must be seen, whatever killed it)
            self.fatal = error
            reason = self._client.connection.credentials.clean(str(error))
            self.status.failed("Fatal", reason or type(error).__name__, self._clock_ns())
        self._finish()

    def is_up(self, now_ns: int) -> bool:
        """Tell whether the stream is being watched, and not silent for too long."""
        status = self.status
        if self.fatal is not None or status.state is not StreamState.LIVE:
            return False
        return now_ns - max(status.last_byte_ns or 0, status.connected_ns or 0) <= _SILENCE_NS_MAX

    def behind_ns(self, now_ns: int) -> int:
        """Tell for how long, at most, the server has had what is not here yet."""
        position = whole_number(self._position)
        found = 0 if position is None else self._horizon.behind_ns(position, now_ns)
        if position is None or not self.is_up(now_ns):
            found = max(found, now_ns - (self.status.last_byte_ns or self._began_ns))
        return found

    def interrupt(self) -> None:
        """Make a blocking read return, so that `run` sees that it should stop."""
        response = self._response
        if response is not None:
            response.close()

    def _step(self) -> None:
        """One list or one watch, and what its failing asks for."""
        generation = self._client.connection.generation
        try:
            if self._position is None:
                self._list()
            if self._position is not None and not self._stop.is_set():
                self._watch(self._position)
            self._backoff.reset()
        except _RestartList:
            return
        except SinkClosedError:
            raise
        except RequestFailed as error:
            self._answer(error, generation)
        except RecursionError:
            self._answer(BadFrame("an object is nested deeper than any of the API"), generation)
        except Exception as error:  # noqa: BLE001 (nothing that is sent may end a stream for good)
            self._answer(BadFrame(f"{type(error).__name__}: {error}"), generation)

    def _answer(self, error: RequestFailed, generation: int) -> None:
        """Do what a failure asks for."""
        # A server, or what stands before it, may send back what it was sent.
        if isinstance(error, BadFrame) and error.line:
            error.reason = f"{error.reason}: {self._quoted(error.line)}"
        error.reason = self._client.connection.credentials.clean(error.reason)
        if isinstance(error, Gone):
            # The list that must follow is made at once: every moment widens the gap.
            at_once = self._position is not None
            self._lose_position(f"410 Gone: {error.reason}")
            self._failed(error, at_once=at_once)
        elif isinstance(error, BadFrame):
            self._bad_frames += 1
            if self._bad_frames >= _BAD_FRAMES_MAX:
                self._lose_position(f"the server cannot be read past this point: {error.reason}")
            self._failed(error)
        elif isinstance(error, StreamIdle):
            # Probably half open, perhaps only quiet: connect anew at once, nothing is lost.
            self._note(error)
            self.status.reconnects += 1
            self._check_went_back()
        elif isinstance(error, Unauthorized):
            self._failed(error, reload_generation=generation)
        else:
            self._failed(error)

    def _quoted(self, line: bytes) -> str:
        text = line.decode("utf-8", "replace")
        shown = self._client.connection.credentials.clean_start(text, _SHOWN_CHARS)
        return f"{shown!r}{'…' if len(text) > _SHOWN_CHARS else ''}"

    def give_up(self) -> None:
        """Say what this stream did not see, in the place of its thread, which does not end.

        A server that takes a request and says nothing holds it; no row of it will come any more.
        """
        if not self._ending.acquire(blocking=False):
            return  # it has come to its end after all
        waits = "did not end in time" if self._connected else "no answer"
        self.status.failed("Stuck", self.status.last_failure or waits, self._clock_ns())
        self._say_unseen()

    def _finish(self) -> None:
        """Say what this stream could not see at the end of the recording."""
        if not self._ending.acquire(blocking=False):
            return  # somebody gave up on this thread, and said it
        self._say_unseen()

    def _say_unseen(self) -> None:
        unlisted = self._position is None
        is_down = self.status.down_since_ns is not None or not self._connected
        if is_down or self._lost is not None or unlisted:
            self.status.unseen_at_end = self._why_unseen()
            if self._lost is None and not unlisted:
                reason = f"not connected at the end: {self.status.unseen_at_end}"
                self._lost = (self._position, self.status.last_byte_ns, reason)
            elif self._lost is None:
                reason = f"not listed at the end: {self.status.unseen_at_end}"
                self._lost = (None, self._began_ns, reason)
            try:
                self._close_gap(None)
            except SinkClosedError:
                return
        if unlisted and self.status.down_since_ns is not None:
            self.status.state = StreamState.RETRYING  # also in the midst of one more try
        if self.fatal is None and self.status.state is not StreamState.RETRYING:
            self.status.state = StreamState.STOPPED

    def _why_unseen(self) -> str:
        """What kept the stream from being watched at the end: a failure, or what was under way."""
        if self.status.down_since_ns is not None and self.status.last_failure is not None:
            return self.status.last_failure
        if self._position is not None:
            return "the watch was to be opened anew"
        if self._lost is not None:
            return f"{self._lost[2]}, and the list that follows had not ended"
        return "its first list had not ended"

    #### Failures ####

    def _failed(
        self,
        error: RequestFailed,
        *,
        reload_generation: int | None = None,
        at_once: bool = False,
    ) -> None:
        if self._stop.is_set():
            return
        self.status.failed(type(error).__name__, error.reason, self._clock_ns())
        if self._position is None and self._lost is None:
            self._lost = (None, self._began_ns, f"its first list failed: {error.reason}")
        self._note(error)
        if reload_generation is not None:
            try:
                self._client.reload_credentials(reload_generation)
            except ClusterError as reload_error:
                self.status.last_failure = str(reload_error)
        if not at_once:
            self._stop.wait(self._backoff.next_delay_s(error.retry_after_s))

    def _note(self, error: RequestFailed) -> None:
        if not self._stop.is_set():
            body = {"error": f"{type(error).__name__}: {error.reason}"}
            with self.lock:
                self._write_own("NOTE", body, self._clock_ns())

    def _lose_position(self, reason: str) -> None:
        self._bad_frames = 0
        if self._position is not None:
            self._lost = (self._position, self.status.last_byte_ns, reason)
            self._position = None

    def _check_went_back(self) -> None:
        """Notice a server that was restored from a backup: it is silent until it has caught up.

        A watch from a revision that is still to come gets no bookmark, no event and no error.
        """
        try:
            page = page_of(self._client.get(self.spec.path, {**self.spec.params(), "limit": "1"}))
        except RequestFailed:
            return  # the watch that follows will tell
        revision = page.revision
        if revision and self._position is not None and is_older(revision, self._position):
            self._horizon.forget()
            self._lose_position(f"the server went back to revision {revision}")

    def _close_gap(self, next_rv: str | None) -> None:
        if self._lost is None:
            return
        last_rv, from_ns, reason = self._lost
        if self._transform is not None:
            reason = self._transform.words(reason)
        self._lost = None
        self.status.gaps += 1
        self._outbox.send_gap(
            GapRow(
                stream=self.spec.resource,
                last_rv=last_rv,
                next_rv=next_rv,
                from_ns=from_ns,
                until_ns=None if next_rv is None else self._clock_ns(),
                reason=reason if self.spec.part is None else f"{reason} [{self.spec.part}]",
            )
        )

    #### List ####

    def _list(self) -> None:
        self.status.state = StreamState.LISTING
        self.status.relists += 1
        self._listing = True
        try:
            if self._streaming_lists:
                # Whatever stops a streaming list, the next list is by pages: a server may refuse,
                # or lack what it needs of its etcd, or never come to the closing bookmark.
                self._streaming_lists = False
                try:
                    self._list_by_stream()
                except Unsupported:
                    pass
                else:
                    self._streaming_lists = True
                    return
            self._list_by_pages()
        finally:
            self._listing = False

    def _list_by_pages(self) -> None:
        params = {**self.spec.params(), "limit": str(self._policy.page_limit)}
        revision: str | None = None
        seen: set[str] = set()
        turning = Turning()
        while not self._stop.is_set():
            try:
                page = page_of(self._client.get(self.spec.path, params))
            except Gone as error:
                # The continue token has expired: nothing is lost, the list starts again.
                raise failure(500, f"the list took too long: {error.reason}") from error
            recv_ns = self._clock_ns()
            self.status.last_byte_ns = recv_ns
            with self.lock:
                self._check_restart()
                if revision is None:
                    revision = page.revision
                    if not revision:
                        raise failure(500, "the list has no resourceVersion")
                    self._write_bound("LIST_BEGIN", revision, recv_ns)
                for item in page.items:
                    seen.add(item.uid)
                    raw = self._write("LIST", item.raw, recv_ns)
                    self._memory.keep_state(item.uid, item.revision, raw)
                self._outbox.send()
                token = turning.after(page)
                if not token:
                    self._end_list(revision, seen)
                    return
            params["continue"] = token

    def _list_by_stream(self) -> None:
        """List by a watch that opens with all that lives; the same connection goes on as watch."""
        params = self._watch_params()
        params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        seen: set[str] = set()
        began = False
        listed = False
        for lines in self._open(params):
            recv_ns = self._arrived(lines)
            with self.lock, self._outbox:
                self._check_restart()
                for line in lines:
                    frame = parse_frame(line)
                    if listed:
                        self._take(frame, recv_ns)
                        continue
                    if not began:
                        began = True
                        _check_begins(frame)
                        self._write_bound("LIST_BEGIN", None, recv_ns)
                    if frame.ends_initial_events:
                        listed = True
                        self._end_list(frame.resource_version, seen)
                        self._listing = False
                        self.status.live()
                        self._backoff.reset()
                    elif frame.type == "ADDED":
                        seen.add(frame.uid)
                        raw = self._write("LIST", frame.raw, recv_ns)
                        self._memory.keep_state(frame.uid, frame.resource_version, raw)
                    else:
                        self._take(frame, recv_ns)
                        seen.add(frame.uid)
            self._saw(recv_ns)
        if not listed and not self._stop.is_set():
            raise failure(500, "the streaming list ended early")

    def _end_list(self, revision: str, seen: set[str]) -> None:
        recv_ns = self._clock_ns()
        self._write_bound("LIST_END", revision, recv_ns)
        self._close_gap(revision)
        known = self._memory.known
        for uid in known.uids():
            if uid not in seen:
                body = known.body(uid)
                known.drop(uid)
                if self.spec.keeps_bodies:
                    self.status.synthesized_deletes += 1
                    self._outbox.send_one("DELETED", body, recv_ns, synthesized=True)
                    if self._observer is not None:
                        self._observer("DELETED", body)
        self._position = revision
        self._memory.met(revision)
        self._saw(recv_ns)

    def _write_bound(self, kind: str, revision: str | None, recv_ns: int) -> None:
        body: dict[str, Any] = {"resourceVersion": revision}
        if self.spec.part is not None:
            body["namespace"] = self.spec.part
        if kind == "LIST_BEGIN":
            body |= scope_document(self.spec.scope)
        self._write_own(kind, body, recv_ns)

    #### Watch ####

    def _watch_params(self) -> dict[str, str]:
        shortest_s, longest_s = self._policy.watch_timeout_s
        return {
            **self.spec.params(),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._policy.rng.randint(shortest_s, longest_s)),
        }

    def _watch(self, position: str) -> None:
        params = {**self._watch_params(), "resourceVersion": position}
        for lines in self._open(params):
            recv_ns = self._arrived(lines)
            with self.lock, self._outbox:
                take = self._take
                for line in lines:
                    take(parse_frame(line), recv_ns)
            self._saw(recv_ns)
        self.status.reconnects += 1

    def _saw(self, recv_ns: int) -> None:
        """Tell the others how far the server has got."""
        revision = whole_number(self._position)
        if revision is not None:
            self._horizon.saw(revision, recv_ns)

    def _open(self, params: dict[str, str]) -> Iterator[list[bytes]]:
        """Open a watch and yield its lines; `interrupt` ends it."""
        response = self._client.watch(
            self.spec.path, params, idle_timeout_s=self._policy.idle_timeout_s
        )
        self._response = response
        self.status.connected_ns = self._clock_ns()
        try:
            if self._stop.is_set():
                response.close()
                return
            self._connected = True
            if "sendInitialEvents" not in params:
                self.status.live()
            yield from response.chunks()
        finally:
            self._response = None
            self._connected = self._connected and self._stop.is_set()

    def _arrived(self, lines: list[bytes]) -> int:
        recv_ns = self._clock_ns()
        self.status.last_byte_ns = recv_ns
        self.status.received_bytes += sum(map(len, lines))
        return recv_ns

    def _take(self, frame: Frame, recv_ns: int) -> None:
        """Write one frame and move on past it; what a recorder spends its time on."""
        if frame.type == "ERROR":
            raw = self._client.connection.credentials.cleaned_bytes(frame.raw)
            self._write("ERROR", raw, recv_ns)
            raise failure(frame.code or 500, frame.message)
        if frame.type != "BOOKMARK" and self._memory.is_news(frame):
            self.status.observations += 1
            self._memory.keep_news(frame, self._write(frame.type, frame.raw, recv_ns))
            if self._position is not None:
                self._position = frame.resource_version
        else:
            self._take_slowly(frame, recv_ns)
        self._bad_frames = 0
        if self._backoff.is_raised:
            self._backoff.reset()

    def _take_slowly(self, frame: Frame, recv_ns: int) -> None:
        """Write a bookmark, or a frame that may be a repeat or out of order."""
        revision = frame.resource_version
        older = is_older(revision, self._position)
        if frame.type == "BOOKMARK":
            self.status.bookmarks += 1
            self._write("BOOKMARK", frame.raw, recv_ns)
            self._memory.met(revision)
        elif self._memory.is_repeat(frame):
            self.status.repeats += 1
        else:
            if older:
                self.status.out_of_order += 1
            self.status.observations += 1
            self._memory.keep(frame, self._write(frame.type, frame.raw, recv_ns))
        if not older and self._position is not None:
            self._position = revision

    #### Rows ####

    def _write(self, kind: str, raw: bytes, recv_ns: int) -> bytes:
        """Put an object with what goes to the sink next; returns the text that is written."""
        raw = seen = self._client.connection.credentials.out_of_object(raw)
        if self._transform is not None:
            raw = json_text(self._transform.row(self.spec.resource, kind, orjson.loads(raw)))
        self._outbox.add(kind, raw, recv_ns)
        if self._observer is not None and kind in STATE_TYPES:
            self._observer(kind, seen)
        return raw

    def _write_own(self, kind: str, body: Mapping[str, Any], recv_ns: int) -> None:
        """Send a row that is the recorder's own on its way."""
        if self._transform is not None:
            body = self._transform.row(self.spec.resource, kind, dict(body))
        self._outbox.send_one(kind, orjson.dumps(body), recv_ns)

    #### Rotation ####

    def _check_restart(self) -> None:
        if self._restart_list:
            self._restart_list = False
            raise _RestartList

    def write_snapshot(self) -> None:
        """Open a new trace with what lives now, as a list; the caller holds `lock`."""
        if self._position is None or self._listing:
            self._restart_list = self._listing
            return
        now_ns = self._clock_ns()
        self._write_bound("LIST_BEGIN", self._position, now_ns)
        if self.spec.keeps_bodies:
            known = self._memory.known
            for uid in known.uids():
                self._outbox.send_one("LIST", known.body(uid), now_ns)
        self._write_bound("LIST_END", self._position, now_ns)


def _check_begins(frame: Frame) -> None:
    """Take an error in place of a streaming list as the server's way to say that it cannot."""
    if frame.type == "ERROR":
        raise Unsupported(frame.message)
