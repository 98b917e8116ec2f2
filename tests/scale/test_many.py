"""Replays of many traces: each is a task, in a bucket or not, and what is done is not done again."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.scale.test_processes import run
from tests.support.s3 import S3, s3_server, set_environment
from tests.support.traces import TRACES, import_log
from tracekit.cli import replay_many
from tracekit.crew.cluster import Cluster

#: Where a recorder that rotates would have put them.
HOURS = ("20261101T000000Z", "20261101T010000Z", "20261101T020000Z")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three traces of one cluster; the last one is of other rows."""
    found = tmp_path_factory.mktemp("many")
    for hour, name in zip(HOURS, ("v1.25.4-twins", "v1.25.4-twins", "v1.32.2-twins"), strict=True):
        import_log(TRACES / name / "watch.jsonl.zst", found / hour, name)
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[S3]:
    with s3_server() as running:
        yield running


def test_a_folder_is_judged_trace_by_trace_and_only_what_is_new_again(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    mine = tmp_path / "traces"
    shutil.copytree(folder, mine)
    parts = tmp_path / "parts"
    words = ("replay", str(mine), "--diff", "--processes", "1", "--parts", str(parts), "-o", "json")
    first = run(capsys, *words)
    assert first[0] == 0
    documents = orjson.loads(first[1])["traces"]
    assert [Path(document["trace"]).name for document in documents] == list(HOURS)
    assert documents[0]["summary"] == documents[1]["summary"] != documents[2]["summary"]
    judged: list[str] = []
    whole = replay_many.ReplayTraces._judged
    monkeypatch.setattr(
        replay_many.ReplayTraces,
        "_judged",
        lambda self, word: judged.append(Path(word).name) or whole(self, word),
    )
    assert run(capsys, *words) == first
    assert judged == []
    next((parts / "replay").iterdir()).unlink()
    os.utime(mine / HOURS[0] / "trace.json")  # as after a change
    assert run(capsys, *words) == first
    assert HOURS[0] in judged
    assert len(judged) <= 2


def test_a_trace_that_vanished_is_named_and_the_rest_is_answered(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    gone = tmp_path / "gone"
    words = (str(folder / HOURS[0]), str(gone), str(folder / HOURS[2]))
    status, out, err = run(capsys, "replay", *words, "--diff", "--processes", "1", "-o", "jsonl")
    assert status == 2
    first, lost, last = map(orjson.loads, out.splitlines())
    assert "summary" in first
    assert "summary" in last
    assert lost["error"] in err
    assert err.count("tracekit: ") == 1
    assert str(gone) in err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--job", "a/b"], "several traces are judged with --diff"),
        (["-o", "junit"], "several traces are printed with -o table, json, jsonl"),
        (["--controller", "jobs"], "'jobs' is no controller"),
    ],
)
def test_what_several_traces_cannot_be_asked(
    more: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "replay", str(folder), "--diff", *more)
    assert (status, out) == (2, "")
    assert said in err


class _Killer(threading.Thread):
    """Kills one of the workers as soon as they are at work."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster
        self.killed = 0

    def run(self) -> None:
        workers = self._cluster._client.run(os.getpid)
        self.killed = next(iter(workers.values()))
        os.kill(self.killed, signal.SIGKILL)


def test_a_bucket_under_dask_with_a_worker_killed_and_a_store_that_fails(
    server: S3,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same bytes as one process gives that reads the same bucket undisturbed."""
    set_environment(monkeypatch, server, tmp_path / "cache")
    for hour in HOURS:
        server.put(folder / hour, f"fleet/cluster-a/{hour}")
    asked = ("replay", "s3://fleet/*/*", "--diff", "-o", "json")
    expected = run(capsys, *asked, "--processes", "1")
    assert expected[0] == 0

    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "workers"))
    with Cluster("local", 2) as cluster:  # its workers, and who follows them, have these settings
        monkeypatch.setattr("tracekit.crew.cluster.Cluster", lambda *_: _Held(cluster))
        with server.failing(every=20):
            killer = _Killer(cluster)
            killer.start()
            found = run(capsys, *asked, "--scheduler", "tcp://held", "--parts", "s3://fleet/parts")
            killer.join()
        assert killer.killed
        assert found == expected
        assert server.failed > 0
        server.delete(next(iter(server.names("fleet/parts/replay"))))
        found = run(capsys, *asked, "--scheduler", "tcp://held", "--parts", "s3://fleet/parts")
        assert found == expected


class _Held:
    """A cluster that is not this command's to close."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __enter__(self) -> Cluster:
        return self._cluster

    def __exit__(self, *_: object) -> None:
        pass
