"""`tracekit watch` as a process beside a recorder, for as long as that runs."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PATIENCE_S = 60.0


@contextmanager
def watching(trace: Path) -> Iterator[None]:
    """Judge a trace that is there already, in a process of its own; its news go to stdout."""
    process = subprocess.Popen([sys.executable, "-m", "tracekit", "watch", str(trace)])  # noqa: S603
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
