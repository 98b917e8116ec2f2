"""`tracekit watch` as a process beside a recorder, for as long as that runs."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tracekit.base.children import python

_PATIENCE_S = 60.0


@contextmanager
def watching(trace: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Judge a trace that is there already, in a process of its own.

    `say` gets each line that it tells, from a thread; all have come when the recorder has ended and
    what it wrote last is judged. Ctrl-C is for the recorder, which has the last row to write.
    """
    beside = ("--beside", str(os.getpid()))
    process = python("tracekit", "watch", str(trace), *beside, stdout=subprocess.PIPE, text=True)
    reader = threading.Thread(target=_read, args=(process, say), daemon=True)
    reader.start()
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join()


def _read(process: subprocess.Popen[str], say: Callable[[str], None]) -> None:
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    for line in process.stdout:
        say(line.rstrip("\n"))
