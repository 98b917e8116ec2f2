"""What docs/scale.md says happens when … dies: each row that no other test here holds."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from tests.scale.conftest import HOURS
from tests.scale.executors import environment, scheduler
from tests.scale.test_processes import run
from tests.support.s3 import s3_server, set_environment
from tracekit.base.errors import UsageError
from tracekit.cli.replay_many import ReplayQuestion
from tracekit.judge.executors.cluster import Cluster


@dataclass(frozen=True)
class Slow:
    """Takes its time."""

    def do(self, task: int) -> int:
        time.sleep(0.5)
        return task


def test_a_scheduler_that_dies_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.judge.executors.cluster._ANSWERS_S", 120)  # of a busy machine
    with scheduler(workers=1) as (address, process), Cluster(address, 1) as cluster:
        found = cluster.run(Slow(), range(50), lambda _: ())
        next(found)
        process.kill()
        with pytest.raises(UsageError, match=f"--scheduler {address}: it is gone") as caught:
            list(found)
    assert "--parts" in str(caught.value)


def test_a_scheduler_without_workers_is_one_sentence() -> None:
    with (
        scheduler(workers=0) as (address, _),
        pytest.raises(UsageError, match=f"--scheduler {address}: it has no workers"),
    ):
        Cluster(address, 1)


@pytest.mark.usefixtures("cache")
def test_parts_that_cannot_be_kept_are_told_once_and_all_is_answered(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    asked = ("replay", str(folder), "--diff", "--processes", "1", "-o", "json")
    expected = run(capsys, *asked)
    status, out, err = run(capsys, *asked, "--parts", str(tmp_path / "file"))
    assert (status, out) == (2, expected[1])
    assert err.count("cannot be written to") == err.count("tracekit: ") == 1


@pytest.mark.full
def test_a_bucket_that_lets_nobody_write_is_told_once_and_all_is_answered(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with s3_server() as server:
        set_environment(monkeypatch, server, tmp_path / "cache")
        for hour in HOURS:
            server.put(folder / hour, f"lent/a/{hour}")
        capsys.readouterr()  # what the server says of itself
        fleet, parts = "s3://lent/a/*", ("--parts", "s3://lent/parts")
        query = "SELECT count(*) AS n FROM verdicts"
        with server.read_only():
            for asked in (
                ("sql", fleet, query, "-o", "csv"),
                ("replay", fleet, "--diff", "--processes", "1", "-o", "json"),
            ):
                expected = run(capsys, *asked)
                status, out, err = run(capsys, *asked, *parts)
                assert (status, out) == (2, expected[1])
                assert err.count("s3://lent/parts cannot be written to, access is refused") == 1
                assert err.count("\n") == 1
                assert "of somebody who may write there" in err


@pytest.mark.full
def test_a_command_that_is_killed_goes_on_with_what_is_missing(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    judged: list[str],
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", "/dev/null/nowhere")  # no verdicts are kept
    parts = tmp_path / "parts"
    asked = ("replay", str(folder), "--diff", "--processes", "1", "-o", "json")
    expected = run(capsys, *asked)
    command = [sys.executable, "-m", "tracekit", *asked, "--parts", str(parts)]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    while not list(parts.glob("replay/*.json")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = len(list(parts.glob("replay/*.json")))
    assert 0 < done < len(HOURS)
    judged.clear()
    assert run(capsys, *asked, "--parts", str(parts)) == expected
    assert len(judged) == len(HOURS) - done


def test_a_trace_that_vanishes_midway_is_named_and_the_rest_is_answered(
    mine: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
