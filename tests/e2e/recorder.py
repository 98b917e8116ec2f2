"""The product's own command line beside a control plane: `tracekit record` as a process, and the rest.

Used by the tests that do with a real cluster what a user does.
"""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.cluster import Cluster
from tracekit.base.errors import TracekitError
from tracekit.trace.reading.reader import TraceReader

#: A wall clock that is off from the start and is set once, for a process that asks Python for it.
_OTHER_CLOCK = """
import time
def _other(real, unit, began=time.monotonic()):
    def read():
        late = time.monotonic() - began > {after_s}
        return real() + unit({off_s} + ({step_s} if late else 0.0))
    return read
time.time_ns = _other(time.time_ns, lambda seconds: round(seconds * 1e9))
time.time = _other(time.time, float)
"""


def other_clock(off_s: float, *, step_s: float = 0.0, after_s: float = 0.0) -> str:
    """Python that puts the wall clock off by so much, and so long after the start by a step."""
    return _OTHER_CLOCK.format(off_s=off_s, step_s=step_s, after_s=after_s)


def command(*arguments: str, first: str = "") -> list[str]:
    """The argument vector of `tracekit ARGUMENTS`, with some Python that runs before it."""
    start = f"{first}\nfrom tracekit.cli.main import main; main()"
    return [sys.executable, "-X", "faulthandler", "-c", start, *arguments]


def tracekit(*arguments: str, status: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run a verb to its end and hold it to its exit status, if one; no traceback is right."""
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=90, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in ((0, 1) if status is None else (status,)), (
        done.stderr,
        done.stdout[-2000:],
    )
    return done


def until(done: Callable[[], bool], seconds_max: float = 60) -> None:
    """Wait for something that happens elsewhere."""
    deadline = time.monotonic() + seconds_max
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


class Recording:
    """A recorder process; its stderr is read so that tests can wait for what it says."""

    def __init__(
        self,
        cluster: Cluster,
        out: Path,
        *arguments: str,
        user: str = "recorder",
        server: str = "",
        clock: str = "",
    ) -> None:
        self.process = subprocess.Popen(
            command(
                *(
                    "record",
                    "-o",
                    str(out),
                    "--kubeconfig",
                    str(cluster.kubeconfig(user, server=server)),
                ),
                *arguments,
                first=clock,
            ),
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self.out = out
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.said.extend(self.process.stderr)

    def wait_live(self, streams: int) -> None:
        """Wait until all streams of this run have finished their list, or resumed."""
        before = self._lists()
        until(lambda: self.process.poll() is not None or self._lists() >= max(before, streams))
        assert self.process.poll() is None, self.said

    def _lists(self) -> int:
        try:
            return TraceReader(self.out).table(("stream",), types=["LIST_END"]).num_rows
        except TracekitError:  # not there yet
            return 0

    def kill(self) -> None:
        """End it with kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self, status: int = 0) -> str:
        """End it as Ctrl-C does and return all that it said."""
        self.process.send_signal(signal.SIGINT)
        try:
            ended = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # has it say where each of its threads is
            ended = self.process.wait(10)
        self._reader.join(10)
        assert ended == status, "".join(self.said)
        return "".join(self.said)
