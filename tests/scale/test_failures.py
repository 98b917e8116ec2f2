"""What docs/scale.md says happens when … dies: each row that no other test here holds."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from tests.scale.test_many import HOURS
from tests.scale.test_many import folder as folder  # noqa: PLC0414 - a fixture
from tests.scale.test_processes import run
from tests.support.traces import ROOT
from tracekit.cli.replay_many import ReplayQuestion
from tracekit.crew.cluster import Cluster
from tracekit.errors import UsageError


@dataclass(frozen=True)
class Slow:
    """Takes its time."""

    def do(self, task: int) -> int:
        time.sleep(0.5)
        return task


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@contextmanager
def _scheduler(workers: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler of its own, with so many workers, as somebody runs them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    commands = [
        ["dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
        *[["dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]] * workers,
    ]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{command[0]}", *command[1:]],
            env=_environment(),
            stderr=subprocess.DEVNULL,
        )
        for command in commands
    ]
    try:
        _wait_for(port)
        yield address, running[0]
    finally:
        for process in running:
            process.kill()
            process.wait()


def _wait_for(port: int) -> None:
    for _ in range(1200):
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the scheduler did not begin")


def test_a_scheduler_that_dies_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.crew.cluster._ANSWERS_S", 120)  # of a busy machine
    with _scheduler(workers=1) as (address, process), Cluster(address, 1) as cluster:
        found = cluster.run(Slow(), range(50), lambda _: ())
        next(found)
        process.kill()
        with pytest.raises(UsageError, match=f"--scheduler {address}: it is gone") as caught:
            list(found)
    assert "--parts" in str(caught.value)


def test_a_scheduler_without_workers_is_one_sentence() -> None:
    with (
        _scheduler(workers=0) as (address, _),
        pytest.raises(UsageError, match=f"--scheduler {address}: it has no workers"),
    ):
        Cluster(address, 1)


def test_parts_that_cannot_be_kept_are_told_once_and_all_is_answered(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "file").touch()
    asked = ("replay", str(folder), "--diff", "--processes", "1", "-o", "json")
    expected = run(capsys, *asked)
    status, out, err = run(capsys, *asked, "--parts", str(tmp_path / "file"))
    assert (status, out) == (2, expected[1])
    assert err.count("cannot be written to") == err.count("tracekit: ") == 1


def test_a_command_that_is_killed_goes_on_with_what_is_missing(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", "/dev/null/nowhere")  # no verdicts are kept
    parts = tmp_path / "parts"
    asked = ("replay", str(folder), "--diff", "--processes", "1", "-o", "json")
    expected = run(capsys, *asked)
    command = [sys.executable, "-m", "tracekit", *asked, "--parts", str(parts)]
    process = subprocess.Popen(command, env=_environment(), stdout=subprocess.DEVNULL)
    while not list(parts.glob("replay/*.json")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = len(list(parts.glob("replay/*.json")))
    assert 0 < done < len(HOURS)
    judged: list[str] = []
    whole = ReplayQuestion.answer
    monkeypatch.setattr(
        ReplayQuestion, "answer", lambda self, word: judged.append(word) or whole(self, word)
    )
    assert run(capsys, *asked, "--parts", str(parts)) == expected
    assert len(judged) == len(HOURS) - done


def test_a_trace_that_vanishes_midway_is_named_and_the_rest_is_answered(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    mine = tmp_path / "traces"
    shutil.copytree(folder, mine)
    whole = ReplayQuestion.answer

    def answer(self: ReplayQuestion, word: str) -> dict[str, object]:
        if word.endswith(HOURS[1]):  # its stamp was taken, and its rows are not read yet
            shutil.rmtree(word, ignore_errors=True)
        return whole(self, word)

    monkeypatch.setattr(ReplayQuestion, "answer", answer)
    asked = ("replay", str(mine), "--diff", "--processes", "1", "-o", "json")
    status, out, err = run(capsys, *asked, "--parts", str(tmp_path / "parts"))
    assert status == 2
    assert err.count("tracekit: ") == 1
    assert HOURS[1] in err
    assert [("error" in found) for found in orjson.loads(out)["traces"]] == [False, True, False]
