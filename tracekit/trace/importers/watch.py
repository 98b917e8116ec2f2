"""`tracekit import watch`: JSON lines of list and watch results become a trace.

One line is `{"recv": ns, "resource": plural, "type": T, "object": {…}}`. Lines are taken one at a
time, so memory does not grow with the file. Nothing is dropped: a line that cannot be read is kept
as it is, a cut is marked by gap rows, and everything that looks wrong is counted and said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tracekit.errors import TraceFormatError
from tracekit.trace.format.extract import number_of
from tracekit.trace.format.model import WATCH_LOG_TYPES, Gap, RowType
from tracekit.trace.importers.envelopes import Frame, State, split_frame, typed_state
from tracekit.trace.importers.relist import LiveObjects
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.source import LineSource
from tracekit.trace.importers.watchdog import Place, Seen, Watchdog, seen_of
from tracekit.trace.writing.writer import TraceWriter

_TYPES = {str(row_type): row_type for row_type in WATCH_LOG_TYPES}
#: A file whose first lines hold nothing that a watch log has is something else.
_PROBE_LINES = 1000
_PROBE_BYTES = 8 * 1024 * 1024


class WatchImporter:
    """Feeds the lines of several files, in their order, to one writer."""

    def __init__(
        self, open_writer: Callable[[], TraceWriter], result: ImportResult | None = None
    ) -> None:
        self._open_writer = open_writer
        self._writer: TraceWriter | None = None
        self._watchdog = Watchdog()
        self._objects = LiveObjects()
        self.result = result or ImportResult()
        #: Streams that a cut interrupted -> why; the gap row is due when they come back.
        self._interrupted: dict[str, str] = {}

    def run(self, sources: Sequence[LineSource]) -> ImportResult:
        """Import the sources; the writer is opened only when there is something to write."""
        for source in sources:
            self._file(source)
        for stream, reason in self._watchdog.broken().items():
            self._interrupted.setdefault(stream, reason)
        for stream, reason in self._interrupted.items():
            self._gap(stream, reason, next_rv=None, until_ns=None)
        if self._writer is not None:
            self._writer.close(compact=True)
        self.result.rows = self._writer.next_seq if self._writer else 0
        self.result.problems.update(self._watchdog.problems)
        return self.result

    def abandon(self) -> None:
        """Give up: release the output without finishing it."""
        if self._writer is not None:
            self._writer.abandon()

    def _file(self, source: LineSource) -> None:
        held: list[tuple[bytes, str]] = []
        held_bytes = 0
        recognised = False
        for number, line in enumerate(source.lines(), 1):
            found: State | Frame | str | None = typed_state(line)
            if found is None:
                if not line.strip():
                    continue
                found = read_line(line)
            if isinstance(found, str):
                if recognised:
                    self._unparsed([(line, found)])
                    continue
                held.append((line, found))
                held_bytes += len(line)
                if len(held) >= _PROBE_LINES or held_bytes > _PROBE_BYTES:
                    raise not_a_watch_log(source, held)
                continue
            if not recognised:
                recognised = True
                self._unparsed(held)
            self._row(found, Place(source.name, number))
        if not recognised:
            raise not_a_watch_log(source, held)
        if source.problem is not None:
            self._cut(source)

    def _unparsed(self, lines: Iterable[tuple[bytes, str]]) -> None:
        for line, reason in lines:
            self._out().unparsed(line, None, reason)
            self.result.unparsed += 1

    def _out(self) -> TraceWriter:
        if self._writer is None:
            self._writer = self._open_writer()
        return self._writer

    def _row(self, found: State | Frame, at: Place) -> None:
        if isinstance(found, State):
            stream, row_type, recv_ns, raw, obj = found
            meta = obj.metadata
            rv = number_of(meta.resource_version)
            seen = Seen(stream, row_type, rv, meta.uid, meta.name, recv_ns)
            self._before(seen, at)
            seq = self._out().append_typed(stream, row_type, recv_ns, raw, obj)
        else:
            envelope = found.envelope
            stream, row_type = envelope["resource"], _TYPES[envelope["type"]]
            seen = seen_of(stream, row_type, found.obj, receive_time(envelope))
            self._before(seen, at)
            seq = self._out().append(stream, row_type, seen.recv_ns, found.raw, parsed=found.obj)
        self._watchdog.seen(seen)
        self._objects.seen(stream, row_type, seen.uid, seq)
        self.result.streams[stream] += 1

    def _before(self, seen: Seen, at: Place) -> None:
        """Write what stands before a row: gaps, and objects that are gone."""
        stream, recv_ns = seen.stream, seen.recv_ns
        watchdog = self._watchdog
        watchdog.look(seen, at)
        reason = self._interrupted.pop(stream, None) or watchdog.relisted
        if reason is not None:
            self._gap(stream, reason, next_rv=seen.rv, until_ns=recv_ns)
        if watchdog.relisted is not None:
            self._objects.begin_list(stream, self._out())
        if seen.type is RowType.LIST_END:
            writer = self._out()
            for raw in self._objects.end_list(stream, writer):
                writer.append(stream, RowType.DELETED, recv_ns, raw, synthesized=True)
                self.result.synthesized += 1

    def _gap(self, stream: str, reason: str, *, next_rv: int | None, until_ns: int | None) -> None:
        state = self._watchdog.state(stream)
        gap = Gap(
            stream,
            reason,
            last_rv=state.last_rv,
            next_rv=next_rv,
            from_ns=state.last_ns,
            until_ns=until_ns,
        )
        self._out().gap(gap)
        self.result.gaps += 1

    def _cut(self, source: LineSource) -> None:
        if source.fragment:
            self._unparsed([(source.fragment, "the file ends within this line")])
        self.result.problems[f"{source.name} is cut off: {source.problem}"] += 1
        for stream in self._watchdog.streams():
            self._interrupted.setdefault(stream, f"the input is cut off: {source.problem}")


def read_line(line: bytes) -> Frame | str:
    """The frame in a line of a watch log, or the reason why it holds none."""
    frame = split_frame(line)
    if isinstance(frame, str):
        return frame
    if not isinstance(frame.envelope.get("resource"), str):
        return "the line has no resource"
    row_type = frame.envelope.get("type")
    if not isinstance(row_type, str):
        return "the line has no type"
    if row_type not in _TYPES:
        return f"no watch has the type {row_type[:40]!r}"
    return frame


def receive_time(envelope: dict[str, Any]) -> int | None:
    """When the line was received; None if it does not say so in nanoseconds."""
    recv = envelope.get("recv")
    return recv if type(recv) is int and 0 <= recv < 2**63 else None


def not_a_watch_log(source: LineSource, held: Sequence[tuple[bytes, str]]) -> TraceFormatError:
    """The sentence for a file that is something else."""
    if not held:
        if source.problem is not None:
            return TraceFormatError(f"{source.name} has no whole line to import: {source.problem}")
        return TraceFormatError(f"{source.name} is empty: there is nothing to import")
    line, reason = held[0]
    if b'"audit.k8s.io/' in line[:4096]:
        reason = "it is an audit log of an API server: `tracekit import audit` reads it"
    elif b"\0" in line[:4096]:
        reason = "it is binary data"
    return TraceFormatError(
        f"{source.name} is not a watch log ({reason}): each line must be a JSON object with recv, "
        "resource, type and object"
    )
