"""A process that has read a trace ends as it was asked to, and is not aborted."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack.answers import run
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


#: A verb that waits, amid its writing, for who ends it.
_WAITS = """
import time
from {module} import {name} as _
import {module} as module
def wait(*_, **__):
    print("there", flush=True)
    while True:
        time.sleep(0.01)
module.{name} = wait
from tracekit.cli.main import main
main()
"""
_AMID = {
    "compact": ("tracekit.trace.writing.whole", "_compact", ("compact", "TRACE", "-o", "made")),
    "export": (
        "tracekit.cli.targets", "_put",
        ("export", "--format", "jsonl", "TRACE", "-o", "made"),
    ),
}  # fmt: skip


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("verb", _AMID)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_whoever_ends_it_nothing_half_made_is_left(
    tmp_path: Path, verb: str, number: signal.Signals
) -> None:
    """SIGTERM and SIGHUP left hidden folders and files beside the output, and in the cache."""
    trace = honest(tmp_path / "trace")
    module, name, words = _AMID[verb]
    place = tmp_path / "place"
    place.mkdir()
    words = tuple(str(trace) if word == "TRACE" else word for word in words)
    with subprocess.Popen(
        [sys.executable, "-c", _WAITS.format(module=module, name=name), *words],
        cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        assert list(place.iterdir())
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in said
    assert not list(place.iterdir())


def test_a_name_of_a_file_makes_no_line(tmp_path: Path) -> None:
    """What was written was said with the line feeds of its name."""
    trace = honest(tmp_path / "trace")
    code, _, said = run("report", str(trace), "-o", str(tmp_path / "a\n::error::b"))
    assert (code, said.count("\n")) == (0, 1), said
