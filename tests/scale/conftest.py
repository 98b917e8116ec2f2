from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.s3 import S3, s3_server
from tests.support.traces import TRACES, import_log
from tracekit.cli.replay_many import ReplayQuestion
from tracekit.judge.executors.cluster import Cluster
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.whole import compact_in_place

#: Where a recorder that rotates would have put them.
HOURS = ("20261101T000000Z", "20261101T010000Z", "20261101T020000Z")


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    """Two Dask workers on this machine, for all tests."""
    with Cluster("local", 2) as running:
        yield running


@pytest.fixture(scope="session")
def server() -> Iterator[S3]:
    with s3_server() as running:
        yield running


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three traces of one cluster; the second one is narrow, the last one of other rows."""
    found = tmp_path_factory.mktemp("many")
    for hour, name in zip(HOURS, ("v1.25.4-twins", "v1.25.4-twins", "v1.32.2-twins"), strict=True):
        import_log(TRACES / name / "watch.jsonl.zst", found / hour, name)
    compact_in_place(found / HOURS[1])  # the same rows as the first, in narrow segments
    assert all(file.is_narrow for file in TraceReader(found / HOURS[1]).snapshot.files)
    return found


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, with nothing in it."""
    monkeypatch.setenv("TRACEKIT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def mine(folder: Path, tmp_path: Path, cache: Path) -> Path:
    """The three traces, for a test that changes them."""
    del cache
    return Path(shutil.copytree(folder, tmp_path / "traces"))


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the traces that this process is asked to judge from now on."""
    found: list[str] = []
    whole = ReplayQuestion.answer
    monkeypatch.setattr(
        ReplayQuestion,
        "answer",
        lambda self, word: found.append(Path(word).name) or whole(self, word),
    )
    return found
