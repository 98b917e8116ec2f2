"""The list/watch loop, one situation at a time (the schedules mix them at random)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer, Faults
from tests.record.harness import SPECS, ListSink, Row, fast_policy, violations, write_kubeconfig
from tracekit.record.credentials.kubeconfig import Connection
from tracekit.record.credentials.options import ConnectOptions
from tracekit.record.redaction.redact import Redactor
from tracekit.record.server.transport import ApiClient
from tracekit.record.streams.sink import GapRow
from tracekit.record.streams.status import StreamState
from tracekit.record.streams.watcher import Transform, Watcher


class Running:
    """One watcher in a thread."""

    def __init__(
        self,
        tmp_path: Path,
        server: FakeServer,
        *,
        transform: Transform | None = None,
        **policy: object,
    ) -> None:
        self.path = tmp_path / "config"
        connection = Connection(ConnectOptions(kubeconfig=write_kubeconfig(self.path, server)))
        self.sink = ListSink()
        self.stop_event = threading.Event()
        self.watcher = Watcher(
            SPECS["jobs"],
            ApiClient(connection, request_timeout_s=5),
            self.sink,
            policy=fast_policy(1, **policy),
            stop=self.stop_event,
            transform=transform,
        )
        self.thread = threading.Thread(target=self.watcher.run, daemon=True)
        self.thread.start()

    def until(self, done, seconds: float = 15) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, self.watcher.status
            time.sleep(0.01)

    def live(self) -> None:
        self.until(lambda: self.watcher.status.state is StreamState.LIVE)

    def types(self) -> list[str]:
        return [i.type if isinstance(i, Row) else "GAP" for i in self.sink.items]

    def stop(self) -> None:
        self.stop_event.set()
        self.watcher.interrupt()
        self.thread.join(10)
        assert not self.thread.is_alive()


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    for number in range(7):
        made.create("jobs", status={"n": number})
    return made


@pytest.fixture
def server(cluster: FakeCluster) -> Iterator[FakeServer]:
    made = FakeServer(cluster)
    yield made
    made.close()


def test_pages_then_watch(tmp_path: Path, cluster: FakeCluster, server: FakeServer) -> None:
    running = Running(tmp_path, server)
    running.live()
    uid = cluster.create("jobs")
    cluster.modify("jobs", uid, status={"n": 1})
    cluster.delete("jobs", uid)
    running.until(lambda: running.types()[-1] == "DELETED")
    running.stop()
    assert running.types() == [
        "LIST_BEGIN",
        *["LIST"] * 7,
        "LIST_END",
        "ADDED",
        "MODIFIED",
        "DELETED",
    ]
    pages = [r for r in server.requests if "limit=3" in r]
    assert len(pages) == 3
    assert sum("continue=" in r for r in pages) == 2


def test_streaming_list(tmp_path: Path, cluster: FakeCluster) -> None:
    server = FakeServer(cluster, streaming_lists=True)
    running = Running(tmp_path, server, streaming_lists=True)
    running.live()
    cluster.create("jobs")
    running.until(lambda: "ADDED" in running.types())
    running.stop()
    server.close()
    assert running.types() == ["LIST_BEGIN", *["LIST"] * 7, "LIST_END", "ADDED"]
    assert len(server.requests) == 1, "one connection for both"


def test_a_server_without_streaming_lists_is_asked_for_pages(
    tmp_path: Path, server: FakeServer
) -> None:
    running = Running(tmp_path, server, streaming_lists=True)
    running.live()
    running.stop()
    assert running.types() == ["LIST_BEGIN", *["LIST"] * 7, "LIST_END"]


def test_idle_connections_are_replaced_without_a_gap(
    tmp_path: Path, cluster: FakeCluster, server: FakeServer
) -> None:
    running = Running(tmp_path, server, idle_timeout_s=0.2)
    running.until(lambda: running.watcher.status.reconnects >= 2)
    cluster.create("jobs")
    running.until(lambda: "ADDED" in running.types())
    running.stop()
    assert "GAP" not in running.types()
    assert violations(cluster, running.sink.items, "jobs") == []


def test_a_server_restored_from_a_backup_is_noticed(
    tmp_path: Path, cluster: FakeCluster, server: FakeServer
) -> None:
    running = Running(tmp_path, server, idle_timeout_s=0.2)
    running.live()
    cluster.rv -= 500
    running.until(lambda: "GAP" in running.types())
    running.stop()
    gap = next(item for item in running.sink.items if isinstance(item, GapRow))
    assert "went back to revision" in gap.reason


def test_expired_credentials_are_read_again(
    tmp_path: Path, cluster: FakeCluster, server: FakeServer
) -> None:
    running = Running(tmp_path, server)
    running.live()
    server.expire_token()
    server.drop_all()
    running.until(lambda: running.watcher.status.failures.get("Unauthorized", 0) >= 2)
    running.path.with_suffix(".token").write_text(server.token)
    running.live()
    cluster.create("jobs")
    running.until(lambda: "ADDED" in running.types())
    running.stop()
    assert "GAP" not in running.types()


def test_deletes_in_a_gap_are_synthesised_with_their_last_state(
    tmp_path: Path, cluster: FakeCluster, server: FakeServer
) -> None:
    running = Running(tmp_path, server)
    running.live()
    cluster.modify("jobs", "jobs-3", status={"n": 33})
    running.until(lambda: "MODIFIED" in running.types())
    server.expire_token()
    server.drop_all()
    running.until(lambda: running.watcher.status.state is StreamState.RETRYING)
    cluster.delete("jobs", "jobs-3")
    cluster.compact()
    running.path.with_suffix(".token").write_text(server.token)
    running.until(lambda: "GAP" in running.types())
    running.live()
    running.stop()
    (deleted,) = [i for i in running.sink.items if isinstance(i, Row) and i.type == "DELETED"]
    assert deleted.synthesized
    assert orjson.loads(deleted.raw)["status"] == {"n": 33}
    gap = next(i for i in running.sink.items if isinstance(i, GapRow))
    assert int(gap.last_rv or 0) < int(gap.next_rv or 0)
    assert gap.from_ns is not None
    assert gap.until_ns is not None
    assert gap.from_ns <= gap.until_ns


@pytest.mark.parametrize("fault", ["error-429", "error-503", "bare-429", "bare-503"])
def test_a_wish_to_wait_amid_a_watch_loses_nothing(
    tmp_path: Path, cluster: FakeCluster, fault: str
) -> None:
    """As an event of the watch, or in the midst of its bytes; that names years keeps nobody."""
    faults = Faults(1, budget=2, watch_faults=(fault,), answer_faults=(), watch_probability=1)
    server = FakeServer(cluster, faults)
    running = Running(tmp_path, server)
    running.live()
    for _ in range(12):
        cluster.create("jobs")
    running.until(lambda: running.types().count("ADDED") >= 12)
    running.stop()
    server.close()
    assert faults.fired
    assert "GAP" not in running.types()
    assert violations(cluster, running.sink.items, "jobs") == []


def test_garbage_that_never_ends_is_given_up_with_a_gap(
    tmp_path: Path, cluster: FakeCluster
) -> None:
    faults = Faults(1, budget=3, watch_faults=("garbage",), answer_faults=(), watch_probability=1)
    server = FakeServer(cluster, faults)
    running = Running(tmp_path, server)
    running.live()
    stop = threading.Event()

    def churn() -> None:
        while not stop.wait(0.01):
            cluster.create("jobs")

    threading.Thread(target=churn, daemon=True).start()
    running.until(lambda: running.watcher.status.failures.get("BadFrame", 0) >= 3)
    running.live()
    stop.set()
    running.stop()
    server.close()
    assert running.watcher.fatal is None


def test_rotation_in_the_middle_of_a_list_begins_it_again(
    tmp_path: Path, server: FakeServer
) -> None:
    running = Running(tmp_path, server)
    running.live()
    with running.watcher.lock:
        running.watcher.write_snapshot()
    assert running.types()[-9:] == ["LIST_BEGIN", *["LIST"] * 7, "LIST_END"]
    running.stop()
    watcher = running.watcher
    watcher._listing = True
    watcher.write_snapshot()
    assert watcher._restart_list


def test_a_line_nested_too_deep_does_not_end_the_stream(
    tmp_path: Path, cluster: FakeCluster, server: FakeServer
) -> None:
    """No parser here reads it; the stream goes on after it, with a gap, and is live again."""
    running = Running(tmp_path, server)
    running.live()
    uid = cluster.create("jobs")
    with cluster.changed:
        change = cluster.history["jobs"][-1]
        deep = change.body[:-1] + b',"x":' + b"[" * 5000 + b"]" * 5000 + b"}"
        cluster.history["jobs"][-1] = replace(change, body=deep)
    running.until(lambda: running.watcher.status.gaps == 1)
    running.live()
    later = cluster.create("jobs")
    running.until(lambda: any(later.encode() in getattr(i, "raw", b"") for i in running.sink.items))
    running.stop()
    assert running.watcher.fatal is None
    assert running.watcher.status.failures["BadFrame"] >= 3
    assert any(
        i.type == "LIST" and uid.encode() in i.raw for i in running.sink.items if isinstance(i, Row)
    )


def test_an_error_of_ours_is_tried_again_and_then_left_out(
    tmp_path: Path, cluster: FakeCluster, server: FakeServer
) -> None:
    class FailsOnce(Redactor):
        failed = False

        def row(self, stream: str, kind: str, body: Any) -> Any:
            if body.get("metadata", {}).get("name") == "bad" and not self.failed:
                self.failed = True
                raise KeyError("bad")
            return super().row(stream, kind, body)

    running = Running(tmp_path, server, transform=FailsOnce(b"k" * 16, frozenset({"env"})))
    running.live()
    uid = cluster.create("jobs", name="bad")
    running.until(lambda: any(uid.encode() in getattr(i, "raw", b"") for i in running.sink.items))
    running.stop()
    assert running.watcher.fatal is None
    assert "GAP" not in running.types()
    assert running.types().count("ADDED") == 1
