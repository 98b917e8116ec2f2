"""Typing and merging of a recording's segments, in a process of its own.

The work is Python and takes longer than storing, so it must not share the recorder's interpreter.
`python -m tracekit.record.operation.compaction TRACE` does what there is to do and ends; it is run
anew when enough has come together. The recorder holds the trace's lock all the while, and the
process dies with it (where the kernel can do that): a compaction that is killed loses nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tracekit.base.children import python
from tracekit.trace.format.segments import live_segments
from tracekit.trace.writing.compact import FAN_IN, Compactor
from tracekit.trace.writing.whole import note_namespaces

#: Smaller than an importer's segments: the process must stay small beside a recorder.
SEGMENT_ROWS = 32_768
SEGMENT_RAW_BYTES = 32 * 1024 * 1024

_MODULE = "tracekit.record.operation.compaction"
_FINISH = "--finish"
_EVERY_S = 5.0
_RETRY_S = 60.0
_NICE = 5
_PR_SET_PDEATHSIG = 1


class Compaction:
    """Runs compactions of one trace; use it from one thread, whose end ends the process too."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace
        self._process: subprocess.Popen[bytes] | None = None
        self._not_before_s = 0.0
        self._finishing = False

    def tick(self) -> None:
        """Start a compaction if enough small segments have come together."""
        if not self.is_idle():
            return
        now_s = time.monotonic()
        if now_s >= self._not_before_s:
            self._not_before_s = now_s + _EVERY_S
            if len(live_segments(self.trace)) >= FAN_IN:
                self._start()

    def is_idle(self) -> bool:
        """Tell whether no compaction is running."""
        if self._process is None:
            return True
        status = self._process.poll()
        if status is None:
            return False
        self._process = None
        if status != 0:
            # No memory, full disk: it costs nothing but size; do not insist.
            self._not_before_s = time.monotonic() + _RETRY_S
        return True

    def is_finished(self) -> bool:
        """Merge everything, a little with each call; true once that is done."""
        if not self.is_idle():
            return False
        if not self._finishing:
            self._finishing = True
            self._start(_FINISH)
            return False
        return True

    def give_up(self) -> None:
        """End what is running; what it has merged stays merged."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _start(self, *arguments: str) -> None:
        self._process = python(
            _MODULE, str(os.getpid()), str(self.trace), *arguments, stderr=subprocess.DEVNULL
        )


def _die_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)


def main(arguments: list[str]) -> None:
    """Compact one trace until nothing is left to do."""
    _die_with(int(arguments[0]))
    os.nice(_NICE)
    trace = Path(arguments[1])
    compactor = Compactor(
        trace, rows_max=SEGMENT_ROWS, raw_bytes_max=SEGMENT_RAW_BYTES, narrow=True
    )
    while compactor.step():
        if os.getppid() != int(arguments[0]):
            return
    if _FINISH in arguments:
        Compactor(trace, narrow=True).finish()
        note_namespaces(trace)


if __name__ == "__main__":
    main(sys.argv[1:])
