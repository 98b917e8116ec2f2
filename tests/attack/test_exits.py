"""A process that has read a trace ends as it was asked to, and is not aborted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack.forge import honest
from tracekit.trace.format.segments import live_segments

#: One process reads a file of a trace and ends, as often as it takes to see one of fifty aborted.
_CHILDREN = 400
_READS = """
import os, sys
import pyarrow as pa
from tracekit.trace.format.parquet import parquet_file
aborted = 0
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        break
    aborted += os.waitpid(child, 0)[1] != 0
else:
    print(aborted)
    os._exit(0)
file = parquet_file(pa.PythonFile(open(sys.argv[1], "rb"), mode="r"))
file.read_row_group(0, use_threads=False)
"""


@pytest.mark.full
def test_no_thread_of_arrows_holds_a_file_at_the_end(tmp_path: Path) -> None:
    """One of fifty was: "terminate called without an active exception"."""
    (segment,) = live_segments(honest(tmp_path / "trace"))
    done = subprocess.run(
        [sys.executable, "-c", _READS, str(segment.path), str(_CHILDREN)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "0\n"
