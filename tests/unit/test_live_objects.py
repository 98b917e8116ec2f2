"""The live objects of one stream, several of which are kept at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Thread

from tests.record.kills import ROOT
from tracekit.base.live_objects import KnownObjects

_STREAMS = 4
_OBJECTS = 40_000


def test_streams_pack_away_at_the_same_time() -> None:
    """They shared a compressor, which one thread at a time may use: the recorder crashed.

    In a process of its own, which a crash ends.
    """
    done = subprocess.run(
        [sys.executable, __file__], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def _body(stream: int, number: int) -> bytes:
    return b'{"stream":%d,"number":%d}' % (stream, number) * 20


def _fill(known: KnownObjects, stream: int) -> None:
    for number in range(_OBJECTS):
        known.put(str(number), str(number), _body(stream, number))


def _main() -> None:
    streams = [KnownObjects() for _ in range(_STREAMS)]
    threads = [Thread(target=_fill, args=(k, n)) for n, k in enumerate(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for stream, known in enumerate(streams):
        for number in range(_OBJECTS):
            assert known.body(str(number)) == _body(stream, number)


if __name__ == "__main__":
    _main()
