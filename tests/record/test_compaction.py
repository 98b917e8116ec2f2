"""The process that compacts a recording: one at a time for each trace."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer
from tests.record.harness import SPECS, fast_policy, write_kubeconfig
from tracekit.record.credentials.kubeconfig import Connection
from tracekit.record.credentials.options import ConnectOptions
from tracekit.record.operation import compaction, recorder
from tracekit.record.operation.compaction import Compaction
from tracekit.record.operation.recorder import Limits, Recorder, Target
from tracekit.record.server.kinds import Plan, Scope
from tracekit.record.server.probe import ClusterInfo
from tracekit.record.server.transport import ApiClient
from tracekit.trace.format.segments import live_segments
from tracekit.trace.reading.files import SegmentFile
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.whole import compact_in_place


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def server(cluster: FakeCluster) -> Iterator[FakeServer]:
    made = FakeServer(cluster)
    yield made
    made.close()


def _recorder(tmp_path: Path, server: FakeServer, **limits: float) -> Recorder:
    kubeconfig = write_kubeconfig(tmp_path / "config", server)
    client = ApiClient(Connection(ConnectOptions(kubeconfig=kubeconfig)))
    rotating = "rotate_s" in limits
    return Recorder(
        client,
        Plan([SPECS["jobs"]]),
        ClusterInfo("v1.36.3"),
        Scope(),
        Target(path=tmp_path / "out", rotating=rotating),
        limits=Limits(flush_interval_s=0.01, **limits),
        policy=fast_policy(1),
    )


def _churn(cluster: FakeCluster, stop: threading.Event) -> None:
    while not stop.wait(0.01):
        cluster.create("jobs")


@pytest.mark.parametrize("limits", [{"duration_s": 1.5}, {"duration_s": 2.0, "rotate_s": 0.5}])
def test_never_two_on_one_trace(
    tmp_path: Path,
    cluster: FakeCluster,
    server: FakeServer,
    monkeypatch: pytest.MonkeyPatch,
    limits: dict[str, float],
) -> None:
    monkeypatch.setattr(compaction, "_EVERY_S", 0.05)
    started: list[Compaction] = []
    beside: list[Path] = []
    original = Compaction._start

    def start(self: Compaction, *arguments: str) -> None:
        beside.extend(
            other.trace
            for other in started
            if other.trace == self.trace and other._process is not None
            and other._process.poll() is None
        )  # fmt: skip
        started.append(self)
        original(self, *arguments)

    monkeypatch.setattr(Compaction, "_start", start)
    stop = threading.Event()
    threading.Thread(target=_churn, args=(cluster, stop), daemon=True).start()
    outcome = _recorder(tmp_path, server, **limits).run()
    stop.set()
    assert outcome.error is None
    assert beside == []
    traces = {one.trace for one in started}
    assert len(traces) == (
        1 if "rotate_s" not in limits else len(list((tmp_path / "out").iterdir()))
    )
    for trace in traces:
        files = [SegmentFile(segment) for segment in live_segments(trace)]
        assert len(files) == 1, "each trace is finished"
        assert not files[0].is_plain
        assert TraceReader(trace).rows == files[0].segment.rows


def test_a_compaction_that_hangs_keeps_no_recorder_from_ending(
    tmp_path: Path, cluster: FakeCluster, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_FINISH_S", 0.3)
    hanging: list[subprocess.Popen[bytes]] = []

    def start(self: Compaction, *_: str) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        hanging.append(self._process)

    monkeypatch.setattr(Compaction, "_start", start)
    stop = threading.Event()
    threading.Thread(target=_churn, args=(cluster, stop), daemon=True).start()
    outcome = _recorder(tmp_path, server, duration_s=0.5).run()
    stop.set()
    assert outcome.unmerged
    assert outcome.error is None
    assert [process.poll() for process in hanging] == [-9]
    assert TraceReader(outcome.trace).rows == outcome.rows
    compact_in_place(outcome.trace)  # its lock is free
    assert TraceReader(outcome.trace).rows == outcome.rows
