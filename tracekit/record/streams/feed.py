"""The writer thread: rows from the queue into the trace, made durable every flush interval.

The one owner of the `TraceWriter`. A rotation reaches it as a call in the queue, so that every row
before it is in the old trace and every row after it in the new one.
"""

from __future__ import annotations

import errno
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from tracekit.base.errors import ClusterError, TracekitError
from tracekit.base.numbers import whole_number
from tracekit.record.streams.sink import GapRow, Item, RowQueue, Rows
from tracekit.trace.format.model import Gap
from tracekit.trace.format.segments import all_segments
from tracekit.trace.writing.writer import TraceWriter

_FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})


class TraceFeed:
    """Writes a recording's rows; `run` is the body of the writer thread."""

    def __init__(
        self,
        queue: RowQueue,
        writer: TraceWriter,
        *,
        flush_interval_s: float,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue = queue
        self._writer = writer
        self._flush_interval_s = flush_interval_s
        self._clock_s = clock_s
        self._last_flush_s = clock_s()
        self._ending = threading.Event()
        #: Writers of traces that a rotation ended: flushed, their locks still held.
        self.retired: deque[TraceWriter] = deque()
        self.rows_written = 0
        self.flushes = 0
        self.flush_seconds = 0.0
        self.trace_bytes = 0

    @property
    def trace(self) -> Path:
        """The trace that is being written now."""
        return self._writer.path

    def run(self) -> None:
        """Write until `end`; a failure closes the queue, which ends the streams."""
        try:
            while True:
                ending = self._ending.is_set()
                self._write(self._queue.take(timeout_s=self._flush_interval_s))
                self._flush_if_due()
                if ending and self._queue.waiting == 0:
                    break
            self._flush()
        except BaseException as error:  # noqa: BLE001 (handed to the main thread, which raises it)
            self._queue.close(error)
        else:
            self._queue.close()
        self.retired.append(self._writer)

    def end(self) -> None:
        """Have `run` return once all rows that wait are written."""
        self._ending.set()

    def rotate(self, writer: TraceWriter) -> None:
        """Go on in another trace; called through the queue, so on the writer thread."""
        self._flush()
        self.retired.append(self._writer)
        self._writer = writer
        self.trace_bytes = 0

    def _write(self, items: list[Item]) -> None:
        for item in items:
            if isinstance(item, Rows):
                self._writer.append_plain(
                    item.stream,
                    item.types,
                    item.recv_ns,
                    item.raws,
                    synthesized=item.synthesized,
                )
                self.rows_written += len(item.raws)
            elif isinstance(item, GapRow):
                self._writer.gap(_gap(item), time.time_ns())
                self.rows_written += 1
            else:
                item()

    def _flush_if_due(self) -> None:
        if self._clock_s() - self._last_flush_s >= self._flush_interval_s:
            self._flush()

    def _flush(self) -> None:
        started_s = self._clock_s()
        if self._writer.flush() is not None:
            self.flushes += 1
            self.trace_bytes = trace_bytes(self._writer.path)
        self._last_flush_s = self._clock_s()
        self.flush_seconds += self._last_flush_s - started_s


def trace_bytes(trace: Path) -> int:
    """Bytes of all segments of a trace (those that compaction is about to delete too)."""
    total = 0
    for segment in all_segments(trace):
        try:
            total += segment.path.stat().st_size
        except FileNotFoundError:
            continue
    return total


def writing_failure(error: BaseException, trace: Path) -> TracekitError:
    """Put what stopped the writer into a sentence."""
    if isinstance(error, TracekitError):
        return error
    if isinstance(error, OSError) and error.errno in _FULL_DISK:
        return ClusterError(
            f"The disk of {trace} is full; all but the last moments are in the trace: free some "
            "space and go on with --append."
        )
    if isinstance(error, OSError):
        return ClusterError(
            f"{trace} cannot be written ({error.strerror or error}); mend that and go on with "
            "--append."
        )
    return ClusterError(f"Writing {trace} failed ({type(error).__name__}: {error}).")


def opening_failure(error: OSError, trace: Path) -> TracekitError:
    """Put what stops a recording from beginning into a sentence."""
    if error.errno in _FULL_DISK:
        return ClusterError(
            f"The disk of {trace} is full; free some space, or keep less (--rotate with --keep or "
            "--keep-size), and start again."
        )
    return ClusterError(
        f"{trace} cannot be written ({error.strerror or error}); mend that or choose another place."
    )


def _gap(gap: GapRow) -> Gap:
    return Gap(
        stream=gap.stream,
        reason=gap.reason,
        last_rv=whole_number(gap.last_rv),
        next_rv=whole_number(gap.next_rv),
        from_ns=gap.from_ns,
        until_ns=gap.until_ns,
    )
