"""How far a trace is behind the server, and which stream is: in words, and in metrics."""

from __future__ import annotations

import time
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from rich.console import Console

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer
from tests.record.harness import write_kubeconfig
from tracekit.cli.record_status import StatusDisplay
from tracekit.record.credentials.kubeconfig import Connection
from tracekit.record.credentials.options import ConnectOptions
from tracekit.record.operation.metrics import RecorderCollector
from tracekit.record.operation.recorder import Limits, Recorder, Target
from tracekit.record.server.kinds import Plan, Scope, StreamSpec
from tracekit.record.server.probe import ClusterInfo
from tracekit.record.server.transport import ApiClient
from tracekit.record.streams.status import StreamState
from tracekit.record.streams.watcher import WatchPolicy
from tracekit.record.streams.watermark import Horizon

S = 10**9


def test_the_distance_is_since_the_first_moment_beyond() -> None:
    horizon = Horizon()
    assert horizon.behind_ns(5, 100 * S) == 0
    for revision, at_s in ((10, 1), (20, 2), (15, 3), (30, 4)):
        horizon.saw(revision, at_s * S)
    assert [horizon.behind_ns(revision, 9 * S) // S for revision in (9, 10, 19, 20, 29, 30)] == [
        *(8, 7, 7, 5, 5, 0),
    ]
    horizon.forget()
    assert horizon.behind_ns(1, 9 * S) == 0


def test_moments_that_are_close_together_are_one_and_the_oldest_are_forgotten() -> None:
    horizon = Horizon()
    for number in range(1_000_000 // 100):
        horizon.saw(number, number * S // 100)
    assert len(horizon._moments) <= 10_000 // 25
    assert horizon.behind_ns(9_998, 100 * S) == S // 100


def _recorder(tmp_path: Path, server: FakeServer) -> Recorder:
    config = write_kubeconfig(tmp_path / "config", server)
    specs = [
        StreamSpec(resource="jobs", group_version="batch/v1", kind="Job"),
        StreamSpec(resource="pods", group_version="v1", kind="Pod"),
        StreamSpec(resource="events", group_version="v1", kind="Event", keeps_bodies=False),
    ]
    return Recorder(
        ApiClient(Connection(ConnectOptions(kubeconfig=config))),
        Plan(specs),
        ClusterInfo("v1.36.3"),
        Scope(),
        Target(path=tmp_path / "out"),
        limits=Limits(),
        policy=WatchPolicy(),
    )


def test_what_has_ended_is_neither_behind_nor_down(tmp_path: Path) -> None:
    """While the files of a recording that went well were merged, it said "not up: jobs, pods"."""
    server = FakeServer(FakeCluster())
    recorder = _recorder(tmp_path, server)
    for watcher in recorder.watchers:
        watcher.status.state = StreamState.STOPPED
        watcher.status.last_byte_ns = time.time_ns() - 60 * S
    console = Console(file=(tmp_path / "said").open("w"), width=200)
    StatusDisplay(recorder, console, clock_s=iter((0.0, 60.0)).__next__).tick()
    console.file.close()
    said = (tmp_path / "said").read_text()
    assert "merging" in said
    assert "not up" not in said
    assert "lag" not in said
    server.close()


def test_a_stream_that_is_held_back_is_seen_by_what_the_others_show(tmp_path: Path) -> None:
    """Pods are silent, jobs come: 69 s later the trace is up to 69 s behind, and it is pods."""
    server = FakeServer(FakeCluster())
    recorder = _recorder(tmp_path, server)
    jobs, pods, events = recorder.watchers
    now_ns = time.time_ns()
    for watcher, position, heard_s in ((jobs, "900", 0), (pods, "500", 69), (events, "7", 3)):
        watcher._position = position
        watcher.status.state = StreamState.LIVE
        watcher.status.last_byte_ns = now_ns - heard_s * S
    jobs._saw(now_ns - 69 * S)
    assert [w.behind_ns(now_ns) / S for w in (jobs, pods, events)] == [0, 69, 0]
    assert recorder.lag_s(now_ns) == (69, "pods")
    assert [w.is_up(now_ns) for w in (jobs, pods, events)] == [True, True, True]
    later_ns = now_ns + 7 * S
    assert not pods.is_up(later_ns)
    assert (jobs.is_up(later_ns), events.is_up(later_ns)) == (True, True)
    console = Console(file=(tmp_path / "said").open("w"), width=200)
    StatusDisplay(recorder, console, clock_s=iter((0.0, 60.0)).__next__).tick()
    console.file.close()
    said = (tmp_path / "said").read_text()
    assert "lag 69." in said
    assert "s (pods)" in said
    registry = CollectorRegistry()
    registry.register(RecorderCollector(recorder))
    text = generate_latest(registry).decode()
    assert 'tracekit_stream_behind_seconds{stream="pods"} 69.' in text
    assert "tracekit_lag_seconds 69." in text
    assert 'tracekit_stream_up{stream="pods"} 1.0' in text
    pods._position = "900"  # a bookmark says that nothing happened
    assert recorder.lag_s(now_ns)[0] == 0
    server.close()


def test_a_stream_that_is_not_watched_is_not_up_and_falls_behind(tmp_path: Path) -> None:
    server = FakeServer(FakeCluster())
    recorder = _recorder(tmp_path, server)
    jobs = recorder.watchers[0]
    now_ns = time.time_ns()
    assert not jobs.is_up(now_ns), "it has not begun"
    jobs._position, jobs.status.last_byte_ns = "5", now_ns - 4 * S
    for state in set(StreamState) - {StreamState.LIVE}:
        jobs.status.state = state
        assert not jobs.is_up(now_ns)
        assert jobs.behind_ns(now_ns) == 4 * S
    jobs.status.state = StreamState.LIVE
    assert jobs.is_up(now_ns)
    jobs.status.last_byte_ns, jobs.status.connected_ns = now_ns - 80 * S, now_ns - 60 * S
    assert jobs.is_up(now_ns), "a watch that was answered just now may be quiet"
    jobs.fatal = KeyError()
    assert not jobs.is_up(now_ns)
    server.close()
