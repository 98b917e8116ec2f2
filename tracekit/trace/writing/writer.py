"""Writing a trace: rows in order of arrival, durable at every flush.

Used by the importers (one flush per full segment) and by a live recorder (one every second). A
flush writes one segment of its own; `compact.py` merges small ones later. Nothing that was flushed
can be lost by a kill or a power cut, and what was not flushed is at most a temporary file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import orjson
import pyarrow.compute as pc
from msgspec.structs import replace

from tracekit import __version__
from tracekit.base.errors import TraceFormatError
from tracekit.base.json_text import json_text
from tracekit.trace.format.api_fields import Typed
from tracekit.trace.format.derived import DERIVATION
from tracekit.trace.format.extract import Row, extract
from tracekit.trace.format.header import read_header, require_text, write_header
from tracekit.trace.format.limits import (
    KEPT_OF_TOO_LARGE,
    NESTING_MAX,
    ROW_BYTES_MAX,
    TOO_DEEP,
    TOO_LARGE,
    is_nested_deeper,
)
from tracekit.trace.format.manifest import Manifest, read_manifest, write_manifest
from tracekit.trace.format.model import (
    HEADER_NAME,
    LOG_DIR,
    RECEIVED_BEFORE_NS,
    STATE_TYPES,
    Call,
    Gap,
    Origin,
    RowType,
    TraceHeader,
)
from tracekit.trace.format.opening import require_folder
from tracekit.trace.format.plain import (
    PLAIN_RAW_BYTES,
    PLAIN_ROWS,
    PlainBuffer,
    write_plain_segment,
)
from tracekit.trace.format.rows import RowBuffer, States
from tracekit.trace.format.segments import (
    SEGMENT_RAW_BYTES,
    SEGMENT_ROWS,
    Segment,
    live_segments,
    remove_temporaries,
    write_segment,
)
from tracekit.trace.format.typed import decoded
from tracekit.trace.reading.files import SegmentFile
from tracekit.trace.writing.beside import Beside
from tracekit.trace.writing.compact import Compactor
from tracekit.trace.writing.lock import TraceLock
from tracekit.trace.writing.tail import stream_positions
from tracekit.trace.writing.whole import note_namespaces

#: zstd levels: a flush of the recorder must be quick, what stays on disk must be small.
FLUSH_LEVEL = 3
FULL_LEVEL = 9


class TraceWriter:
    """The one writer of a trace.

    `session` describes this run of the writer (`source` and what else is worth knowing); it is
    stored in the header with the position of its first row. `plain` leaves the typed columns to
    compaction (see `plain.py`), for a recorder that must keep up.
    """

    def __init__(
        self,
        path: Path,
        header: TraceHeader | None = None,
        *,
        session: Mapping[str, Any] | None = None,
        append: bool = False,
        segment_rows: int = SEGMENT_ROWS,
        segment_raw_bytes: int = SEGMENT_RAW_BYTES,
        level: int = FULL_LEVEL,
        plain: bool = False,
    ) -> None:
        self.path = path
        self._segment_rows = min(segment_rows, PLAIN_ROWS) if plain else segment_rows
        self._segment_raw_bytes = (
            min(segment_raw_bytes, PLAIN_RAW_BYTES) if plain else segment_raw_bytes
        )
        self._level = level
        self._plain = plain
        self._buffer: RowBuffer | PlainBuffer = PlainBuffer() if plain else RowBuffer()
        self._compactor = Compactor(
            path, rows_max=segment_rows, raw_bytes_max=segment_raw_bytes, level=level
        )
        self._beside = Beside()
        self._last_ns: int | None = None
        #: Objects that were handed over as such and are kept as text, by why they cannot be read.
        self.unread: Counter[str] = Counter()
        require_text(path)
        exists = (path / HEADER_NAME).exists()
        if path.exists() and not (append and exists) and (not path.is_dir() or any(path.iterdir())):
            raise TraceFormatError(
                f"{path} exists and is not a trace: choose another place for the output"
                if not exists
                else f"{path} exists: choose another name, or say that it is to be replaced or "
                "appended to"
            )
        path.mkdir(parents=True, exist_ok=True)
        self._lock = TraceLock(path)
        try:
            require_folder(path / LOG_DIR)
            (path / LOG_DIR).mkdir(exist_ok=True)
            remove_temporaries(path)
            self._start(header, session or {}, exists=exists)
        except BaseException:
            self._lock.release()
            raise

    def _start(
        self, header: TraceHeader | None, session: Mapping[str, Any], *, exists: bool
    ) -> None:
        segments = live_segments(self.path)
        old = read_header(self.path) if exists else None
        sealed_from = old.sealed_from if old is not None else None
        known = (
            read_manifest(self.path, sealed=sealed_from is not None) if old is not None else None
        ) or Manifest()
        # Rows that were lost at the end are not given to others: they stay known as lost.
        self._next_seq = max(segments[-1].last + 1 if segments else 0, known.rows)
        self._stream_next = stream_positions(segments) if segments else {}
        self._identity = known.trace or self._identity_of(segments)
        if sealed_from is None:
            sealed_from = self._next_seq
        base = header or old or TraceHeader()
        earlier = old.sessions if old is not None else ()
        this = {"source": "unknown", **session, "first_seq": self._next_seq}
        self.header = replace(
            base,
            sessions=(*earlier, this),
            tracekit_version=__version__,
            sealed_from=sealed_from,
        )
        # The manifest first: a header that tells of checksums promises it.
        write_manifest(self.path, Manifest(self._next_seq, self._identity))
        write_header(self.path, self.header)

    @staticmethod
    def _identity_of(segments: Sequence[Segment]) -> str | None:
        return next((found for s in segments if (found := SegmentFile(s).identity)), None)

    @property
    def next_seq(self) -> int:
        """Position that the next row will have."""
        return self._next_seq

    @property
    def pending_rows(self) -> int:
        """Rows that a crash would lose now."""
        return self._buffer.rows

    def append(
        self,
        stream: str | None,
        row_type: RowType | str,
        recv_ns: int | None,
        obj: bytes | Mapping[str, Any],
        *,
        parsed: Any = None,
        synthesized: bool = False,
        origin: Origin | None = None,
    ) -> int:
        """Add one row and return its position.

        `obj` is best given as the bytes received, which are kept as they are; `parsed` saves
        parsing them again; `origin` says how the row is known when no watch told it. An object
        that cannot be parsed becomes an UNPARSED row.
        """
        if not self._plain and parsed is None and type(obj) is bytes:
            found = decoded(stream, obj) if row_type in STATE_TYPES else None
            if found is not None:
                return self.append_typed(
                    stream,
                    RowType(row_type),
                    recv_ns,
                    obj,
                    found,
                    synthesized=synthesized,
                    origin=origin,
                )
        raw, parsed = _raw_and_parsed(obj, parsed)
        if len(raw) > ROW_BYTES_MAX:
            return self._unread(raw[:KEPT_OF_TOO_LARGE], recv_ns, TOO_LARGE, stream)
        if type(parsed) is not dict:
            return self._unread(raw, recv_ns, "it is not a JSON object", stream)
        if is_nested_deeper(raw, NESTING_MAX):
            return self._unread(raw, recv_ns, TOO_DEEP, stream)
        if type(row_type) is not RowType:
            row_type = RowType(row_type)
        row = self._row(stream, row_type, recv_ns, synthesized=synthesized)
        row["raw"] = raw
        if origin is not None:
            row.update(_origin(origin))
        extract(stream, row_type, parsed, row)
        return self._add(row, len(raw))

    def append_typed(
        self,
        stream: str | None,
        row_type: RowType,
        recv_ns: int | None,
        raw: bytes,
        obj: Typed,
        *,
        synthesized: bool = False,
        origin: Origin | None = None,
    ) -> int:
        """Add one row of a state whose object `decoded` made of `raw`; return its position."""
        buffer = self._buffer
        if type(buffer) is not RowBuffer:
            raise TypeError("the trace was opened as plain")
        if len(raw) > ROW_BYTES_MAX:
            return self._unread(raw[:KEPT_OF_TOO_LARGE], recv_ns, TOO_LARGE, stream)
        if is_nested_deeper(raw, NESTING_MAX):
            return self._unread(raw, recv_ns, TOO_DEEP, stream)
        position, recv_ns = self._placed(stream, recv_ns)
        row = (self._next_seq, position, row_type.value, recv_ns, synthesized, raw, obj)
        buffer.append_typed(stream, row, len(raw), origin)
        return self._added()

    def room(self) -> tuple[int, int]:
        """How many rows the open segment still takes, and how much raw text."""
        buffer = self._buffer
        return self._segment_rows - buffer.rows, self._segment_raw_bytes - buffer.raw_bytes

    def append_states(self, parts: Sequence[States], last_ns: int) -> None:
        """Add states that are in columns already, no more than there is `room` for.

        `last_ns` is the time of the last of them.
        """
        buffer = self._buffer
        if type(buffer) is not RowBuffer:
            raise TypeError("the trace was opened as plain")
        self._last_ns = last_ns
        for stream, batch, places, raw_bytes in parts:
            position = self._stream_next.get(stream, 0)
            self._stream_next[stream] = position + batch.num_rows
            buffer.append_states(batch, pc.add(places, self._next_seq), position, raw_bytes)
        self._next_seq += sum(part.batch.num_rows for part in parts)
        self._flush_if_full()

    def append_plain(
        self,
        stream: str,
        row_types: Sequence[str],
        recv_ns: int,
        raws: Sequence[bytes],
        *,
        synthesized: bool = False,
    ) -> None:
        """Add rows that came in together to a plain trace.

        The caller knows that each of `raws` is a JSON object in UTF-8.
        """
        buffer = self._buffer
        if type(buffer) is not PlainBuffer:
            raise TypeError("the trace was not opened as plain")
        self._last_ns = recv_ns
        position = self._stream_next.get(stream, 0)
        self._stream_next[stream] = position + len(raws)
        buffer.append_objects(
            self._next_seq,
            position,
            stream,
            row_types,
            recv_ns,
            synthesized=synthesized,
            raws=raws,
        )
        self._next_seq += len(raws)
        if buffer.rows >= self._segment_rows or buffer.raw_bytes >= self._segment_raw_bytes:
            self.flush()

    def _unread(self, raw: bytes, recv_ns: int | None, reason: str, stream: str | None) -> int:
        self.unread[reason] += 1
        return self.unparsed(raw, recv_ns, reason, stream=stream)

    def unparsed(
        self, line: bytes, recv_ns: int | None, reason: str, *, stream: str | None = None
    ) -> int:
        """Keep something that could not be read, whole."""
        row = self._row(stream, RowType.UNPARSED, recv_ns)
        row["reason"] = reason
        try:
            row["raw"] = line.decode()
        except UnicodeDecodeError:
            row["raw_bytes"] = line
        return self._add(row, len(line))

    def gap(self, gap: Gap, recv_ns: int | None = None) -> int:
        """Say that a stream was not seen for a time."""
        row = self._row(gap.stream, RowType.GAP, gap.until_ns if recv_ns is None else recv_ns)
        row["gap_last_rv"] = gap.last_rv
        row["gap_next_rv"] = gap.next_rv
        row["gap_from_ns"] = gap.from_ns
        row["gap_until_ns"] = gap.until_ns
        row["gap_reason"] = gap.reason
        return self._add(row, 0)

    def call(self, call: Call) -> int:
        """Keep a request that made no state that is known."""
        row = self._row(call.stream, RowType.CALL, call.recv_ns)
        row.update(_origin(call.origin))
        row["raw"] = call.raw
        for name in ("namespace", "name", "uid", "job", "cronjob", "code", "reason", "message"):
            row[name] = getattr(call, name)
        return self._add(row, len(call.raw))

    def _row(
        self,
        stream: str | None,
        row_type: RowType,
        recv_ns: int | None,
        *,
        synthesized: bool = False,
    ) -> Row:
        position, recv_ns = self._placed(stream, recv_ns)
        row: Row = {"seq": self._next_seq, "stream": stream, "type": row_type.value}
        row["recv_ns"] = recv_ns
        row["synthesized"] = synthesized
        if position is not None:
            row["stream_pos"] = position
        return row

    def _placed(self, stream: str | None, recv_ns: int | None) -> tuple[int | None, int | None]:
        """The position of the next row in its stream, and its time.

        A row that has none, or none that a clock shows, came when the last row did.
        """
        if recv_ns is None or not 0 <= recv_ns < RECEIVED_BEFORE_NS:
            recv_ns = self._last_ns
        else:
            self._last_ns = recv_ns
        if stream is None:
            return None, recv_ns
        position = self._stream_next.get(stream, 0)
        self._stream_next[stream] = position + 1
        return position, recv_ns

    def _add(self, row: Row, raw_bytes: int) -> int:
        self._buffer.append(row, raw_bytes)
        return self._added()

    def _added(self) -> int:
        """Count the row that is in the buffer now; its position."""
        seq = self._next_seq
        self._next_seq = seq + 1
        self._flush_if_full()
        return seq

    def _flush_if_full(self) -> None:
        buffer = self._buffer
        if buffer.rows >= self._segment_rows or buffer.raw_bytes >= self._segment_raw_bytes:
            self._beside.begin(self._taken(self._level))

    def flush(self, *, level: int = FLUSH_LEVEL) -> Segment | None:
        """Make all rows so far durable; the segment of the last, None if all of them were."""
        write = self._taken(level) if self._buffer.rows else None
        self._beside.wait()
        return None if write is None else write()

    def _taken(self, level: int) -> Callable[[], Segment]:
        """Take the rows out of the buffer: what is to be done for them to be durable.

        It is called once, and after what was taken before is durable.
        """
        held = [self._buffer.take()]
        last = self._next_seq - 1
        first = last - held[0].num_rows + 1

        def write() -> Segment:
            identity = self._identity
            if self._plain:
                segment = write_plain_segment(
                    self.path, held.pop(), first=first, last=last, identity=identity
                )
            else:
                segment = write_segment(
                    # Held by no variable: `write_segment` frees it as soon as it can.
                    self.path,
                    held.pop(),
                    first=first,
                    last=last,
                    level=level,
                    identity=identity,
                    derivation=DERIVATION,
                )
            self._identity = identity or SegmentFile(segment).identity
            write_manifest(self.path, Manifest(last + 1, self._identity))
            return segment

        return write

    def compact(self) -> bool:
        """Merge some small segments of the flushes so far; whether there was something to merge.

        A live recorder calls it now and then, in whatever thread: it touches only files that are
        complete, and `append` and `flush` only make new ones.
        """
        return self._compactor.step()

    def close(self, *, compact: bool = False) -> None:
        """Flush what is left, merge small segments if asked to, and give the trace free."""
        try:
            self.flush(level=self._level)
            if compact:
                self._compactor.finish()
                note_namespaces(self.path)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Give the trace free without flushing what is left."""
        self._beside.end()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _origin(origin: Origin) -> Row:
    """The columns that say how a row is known."""
    return {name: getattr(origin, name) for name in Origin.__struct_fields__}


def _raw_and_parsed(obj: bytes | Mapping[str, Any], parsed: Any) -> tuple[bytes, Any]:
    if isinstance(obj, bytes):
        if parsed is None:
            try:
                parsed = orjson.loads(obj)
            except orjson.JSONDecodeError:
                return obj, None
        return obj, parsed
    try:
        return orjson.dumps(obj), obj
    except TypeError:
        return _raw_and_parsed(json_text(obj), None)
