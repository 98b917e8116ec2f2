"""`tracekit import watch`: JSON lines of list and watch results become a trace.

One line is `{"recv": ns, "resource": plural, "type": T, "object": {…}}`. Lines are taken a block at
a time, so memory does not grow with the file; what a block's states are is found beside this
(`blocks.py`), what they mean in their order here. Nothing is dropped: a line that cannot be read is
kept as it is, a cut is marked by gap rows, and everything that looks wrong is counted and said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from tracekit.base.coverage import Scope, asked_in, scope_document
from tracekit.base.errors import TraceFormatError
from tracekit.base.json_text import json_text
from tracekit.trace.format.extract import number_of
from tracekit.trace.format.model import (
    RECEIVED_BEFORE_NS,
    STATE_TYPES,
    WATCH_LOG_TYPES,
    Gap,
    RowType,
)
from tracekit.trace.importers.blocks import BLOCK_BYTES, Block, parse_block
from tracekit.trace.importers.envelopes import (
    Frame,
    State,
    object_text,
    split_frame,
    typed_state,
)
from tracekit.trace.importers.relist import LiveObjects
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.source import BLANK, EMPTY, in_command
from tracekit.trace.importers.watchdog import Place, Seen, Watchdog, seen_of
from tracekit.trace.writing.writer import TraceWriter

_TYPES = {str(row_type): row_type for row_type in WATCH_LOG_TYPES}
#: A file whose first lines hold nothing that a watch log has is something else.
_PROBE_LINES = 1000
_PROBE_BYTES = 8 * 1024 * 1024

Mapped = Callable[[Callable[[bytes], bytes], Iterable[bytes]], Iterator[bytes]]


class Source(Protocol):
    """Where lines come from."""

    name: str
    #: The part of a line that a cut left.
    fragment: bytes
    #: Whether a source without a line is no error: it was another file once.
    may_be_empty: bool
    has_bytes: bool

    @property
    def problem(self) -> str | None:
        """How it ended too early, once it has ended."""

    def blocks(self, size: int, /) -> Iterator[bytes]:
        """All whole lines, some at a time."""


class WatchImporter:
    """Feeds the lines of several files, in their order, to one writer."""

    def __init__(
        self,
        open_writer: Callable[[], TraceWriter],
        result: ImportResult | None = None,
        mapped: Mapped = map,
        *,
        may_lack_times: bool = False,
    ) -> None:
        """`mapped` does what `map` does, maybe with the help of other processes.

        `may_lack_times`: whether a source of this kind may know of no time at all.
        """
        #: By stream, the namespaces that were listed before; None stands for all of them.
        self._looked: dict[str, set[str | None]] = {}
        self._open_writer = open_writer
        self._writer: TraceWriter | None = None
        self._watchdog = Watchdog()
        self._objects = LiveObjects()
        self.result = result or ImportResult()
        #: Streams that a cut interrupted -> why; the gap row is due when they come back.
        self._interrupted: dict[str, str] = {}
        self._mapped = mapped
        #: Whether the file that is read is known to be a watch log, and its lines before that.
        self._recognised = False
        self._held: list[tuple[bytes, str]] = []
        self._held_bytes = 0
        self._must_have_times = not may_lack_times
        self._has_states = False

    def run(self, sources: Sequence[Source]) -> ImportResult:
        """Import the sources; the writer is opened only when there is something to write.

        Raises:
            TraceFormatError: a file is something else, or nothing of it says when it was received.
        """
        for source in sources:
            self._file(source)
        if self._must_have_times and self._has_states and self._watchdog.last_ns is None:
            raise TraceFormatError(
                f"{sources[0].name} does not say when anything was received: some lines must have "
                "`recv`, the nanoseconds since 1970, of a year before 2116"
            )
        for stream, reason in self._watchdog.broken().items():
            self._interrupted.setdefault(stream, reason)
        for stream, reason in self._interrupted.items():
            self._gap(stream, reason, next_rv=None, until_ns=None)
        if self._writer is not None:
            self._writer.close(compact=True)
            self.result.note_written(self._writer.next_seq, self._writer.unread)
        self.result.problems.update(self._watchdog.problems)
        return self.result

    def abandon(self) -> None:
        """Give up: release the output without finishing it."""
        if self._writer is not None:
            self._writer.abandon()

    def _file(self, source: Source) -> None:
        self._recognised, self._held, self._held_bytes = False, [], 0
        before = 0
        for block in self._blocks(source):
            self._block(block, source, before)
            before += block.lines
        if not self._recognised and not (source.may_be_empty and not self._held):
            raise not_a_watch_log(source, self._held)
        if source.problem is not None:
            self._cut(source)

    def _blocks(self, source: Source) -> Iterator[Block]:
        taken: deque[bytes] = deque()

        def blocks() -> Iterator[bytes]:
            for block in source.blocks(BLOCK_BYTES):
                taken.append(block)
                yield block

        for parsed in self._mapped(parse_block, blocks()):
            yield Block(taken.popleft(), parsed)

    def _block(self, block: Block, source: Source, before: int) -> None:
        """Take the lines of a block in; so many were before it."""
        watchdog, objects, streams = self._watchdog, self._objects, self.result.streams
        if self._recognised and self._passes(block):
            self._states(block, 0, block.lines)
            return
        first = 0  # of the states that are looked at and not written yet
        seq = self._writer.next_seq if self._writer is not None else 0  # of line 0, were all states
        for at, seen in enumerate(block.seen):
            place = Place(source.name, before + at + 1)
            if seen is None or not self._recognised or seen.stream in self._interrupted:
                self._states(block, first, at)
                first = at + 1
                self._line(block.texts[at], source, place)
                seq = self._writer.next_seq - first if self._writer is not None else 0
                continue
            watchdog.look(seen, place)
            watchdog.seen(seen)
            if objects.follows(seen.stream):
                raw = object_text(block.texts[at])
                objects.seen(seen.stream, seen.type, seen.uid, seen.namespace, seq + at, raw)
            streams[seen.stream] += 1
        self._states(block, first, block.lines)

    def _passes(self, block: Block) -> bool:
        """Advance over a block of which there is nothing to say, as nearly all are."""
        runs = block.runs()
        if not runs:
            return False
        streams = [run.stream for run in runs]
        if any(s in self._interrupted or self._objects.follows(s) for s in streams):
            return False
        if not self._watchdog.passes(runs, *block.ends_ns):
            return False
        for run in runs:
            self.result.streams[run.stream] += run.rows
        return True

    def _states(self, block: Block, first: int, last: int) -> None:
        """Write the states in some lines, before which nothing else stands."""
        writer = self._out() if first < last else None
        while writer is not None and first < last:
            end = block.fitting(first, last, *writer.room())
            writer.append_states(*block.states(first, end))
            first = end

    def _line(self, line: bytes, source: Source, place: Place) -> None:
        """Take one line in, whatever it is."""
        found: State | Frame | str | None = typed_state(line)
        if found is None:
            if not line.strip():
                return
            found = read_line(line)
        if not isinstance(found, str):
            if not self._recognised:
                self._recognised = True
                self._unparsed(self._held)
                self._held = []
            self._row(found, place)
            return
        if self._recognised:
            self._unparsed([(line, found)])
            return
        self._held.append((line, found))
        self._held_bytes += len(line)
        if len(self._held) >= _PROBE_LINES or self._held_bytes > _PROBE_BYTES:
            raise not_a_watch_log(source, self._held)

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
            seen = Seen(stream, row_type, rv, meta.uid, meta.name, recv_ns, meta.namespace)
            self._before(seen, at, None)
            seq = self._out().append_typed(stream, row_type, recv_ns, raw, obj)
        else:
            envelope = found.envelope
            stream, row_type = envelope["resource"], _TYPES[envelope["type"]]
            seen = seen_of(stream, row_type, found.obj, receive_time(envelope))
            if row_type is RowType.LIST_BEGIN:
                found = self._with_scope(found)
            self._before(seen, at, self._scope_of(found))
            seq = self._out().append(stream, row_type, seen.recv_ns, found.raw, parsed=found.obj)
        self._has_states |= row_type in STATE_TYPES
        self._watchdog.seen(seen)
        self._objects.seen(stream, row_type, seen.uid, seen.namespace, seq, found.raw)
        self.result.streams[stream] += 1

    def _with_scope(self, found: Frame) -> Frame:
        """The bound of a list with what its line, or the user, says that it asked for.

        The trace keeps the object only.
        """
        said: dict[str, object] = {}
        if "scope" in found.envelope:
            said = {"scope": found.envelope["scope"]}
        elif self.result.scope is not None and asked_in(found.obj) is None:
            said = scope_document(self.result.scope)
        if not said:
            return found
        obj = {**found.obj, **said}
        return Frame(found.envelope, json_text(obj), obj)

    def _scope_of(self, found: Frame) -> Scope | None:
        """What a list says that it asked for; a recorder's names the namespace of a part."""
        return asked_in(found.obj) or self.result.scope

    def _before(self, seen: Seen, at: Place, scope: Scope | None) -> None:
        """Write what stands before a row: gaps, and objects that are gone."""
        stream, recv_ns = seen.stream, seen.recv_ns
        watchdog = self._watchdog
        watchdog.look(seen, at)
        again = watchdog.relisted
        if seen.type is RowType.LIST_BEGIN and not self._looks_again(stream, scope):
            again = None  # the first look at a part: nothing was lost before it
        reason = self._interrupted.pop(stream, None) or again
        if reason is not None:
            self._gap(stream, reason, next_rv=seen.rv, until_ns=recv_ns)
        if watchdog.relisted is not None:
            self._objects.begin_list(stream, self._out(), scope)
        if seen.type is RowType.LIST_END:
            writer = self._out()
            for raw in self._objects.end_list(stream):
                writer.append(stream, RowType.DELETED, recv_ns, raw, synthesized=True)
                self.result.synthesized += 1

    def _looks_again(self, stream: str, scope: Scope | None) -> bool:
        """Whether a list looks at what was looked at before; remembers that it does."""
        names: set[str | None] = {None}
        if scope is not None and scope.namespaces is not None:
            names = set(scope.namespaces)
        looked = self._looked.get(stream)
        if looked is None:
            self._looked[stream] = names
            return scope is None
        again = None in looked or None in names or not looked.isdisjoint(names)
        looked |= names
        return again and bool(names)

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

    def _cut(self, source: Source) -> None:
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
    return recv if type(recv) is int and 0 <= recv < RECEIVED_BEFORE_NS else None


def not_a_watch_log(source: Source, held: Sequence[tuple[bytes, str]]) -> TraceFormatError:
    """The sentence for a file that is something else."""
    if not held:
        if source.problem is not None:
            return TraceFormatError(f"{source.name} has no whole line to import: {source.problem}")
        return TraceFormatError(f"{source.name} {BLANK if source.has_bytes else EMPTY}")
    line, reason = held[0]
    if b'"audit.k8s.io/' in line[:4096]:
        file = in_command(source.name)
        reason = (
            "it is an audit log of an API server, which `tracekit import audit "
            f"{file} -o TRACE` reads"
        )
    elif b"\0" in line[:4096]:
        reason = "it is binary data"
    advice = ""
    each = {b"{": ".", b"[": "'.[]'"}.get(line.lstrip()[:1])
    if each is not None and reason.startswith("the line is not"):
        file = in_command(source.name)
        advice = f"; `jq -c {each} {file}` prints it so, if that is what it is"
    return TraceFormatError(
        f"{source.name} is not a watch log ({reason}): each line must be a JSON object with recv, "
        f"resource, type and object{advice}"
    )
