"""What a recorder notes of its own clock, and what a trace of it tells then."""

from __future__ import annotations

import json
import threading
import time
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer
from tests.record.harness import SPECS, write_kubeconfig
from tracekit.base.kube.timestamps import NS_PER_S as S
from tracekit.judge.clocks import timed_of
from tracekit.record.credentials.kubeconfig import Connection
from tracekit.record.credentials.options import ConnectOptions
from tracekit.record.operation.recorder import Ending, Limits, Recorder, Target
from tracekit.record.server.clock_notes import ClockNotes, Reading
from tracekit.record.server.kinds import Plan, Scope
from tracekit.record.server.probe import ClusterInfo
from tracekit.record.server.transport import ApiClient
from tracekit.record.streams.watcher import WatchPolicy
from tracekit.trace.format.model import CLOCKS
from tracekit.trace.reading.reader import TraceReader

BEGIN_NS = 1_800_000_000 * S
DATE = formatdate(1_800_000_000, usegmt=True)


class Clocks:
    """A wall clock and a monotonic one, of which the first can be set."""

    def __init__(self) -> None:
        self.passed_ns = 0
        self.off_ns = 0

    def __call__(self) -> Reading:
        return Reading(BEGIN_NS + self.passed_ns + self.off_ns, 77 * S + self.passed_ns)


def noted(clocks: Clocks) -> tuple[ClockNotes, list[dict[str, int]]]:
    found: list[dict[str, int]] = []
    return ClockNotes(lambda at, text: found.append({"at": at, **json.loads(text)}), clocks), found


def test_an_answer_is_noted_with_its_date_once_a_minute() -> None:
    clocks = Clocks()
    notes, found = noted(clocks)
    for second in range(0, 130, 10):
        clocks.passed_ns = second * S
        notes.answered(clocks(), DATE)
    assert [note["monotonic_ns"] // S - 77 for note in found] == [0, 60, 120]
    assert {note["date_ns"] for note in found} == {BEGIN_NS}
    assert [note["sent_ns"] for note in found] == [note["at"] for note in found]


@pytest.mark.parametrize(
    "date",
    [
        *(None, "", "yesterday", "Mon, 99 Foo 2026 99:99:99 GMT"),
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ],
)
def test_an_answer_without_a_date_is_not_noted(date: str | None) -> None:
    clocks = Clocks()
    notes, found = noted(clocks)
    notes.answered(clocks(), date)
    assert found == []


@pytest.mark.parametrize("zone", ["", " -0000"])
def test_a_date_without_a_zone_is_in_utc(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 9110, 5.6.7; it was taken for local time: clocks were hours apart that were not."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        clocks = Clocks()
        notes, found = noted(clocks)
        notes.answered(clocks(), DATE.removesuffix(" GMT") + zone)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [note["date_ns"] for note in found] == [BEGIN_NS]


@pytest.mark.parametrize("by_ns", [-60 * S, -S // 5, S // 5, 3 * S])
def test_a_clock_that_is_set_is_noted_and_the_next_answer_too(by_ns: int) -> None:
    clocks = Clocks()
    notes, found = noted(clocks)
    notes.answered(clocks(), DATE)
    clocks.passed_ns = S
    notes.tick()
    sent = clocks()
    clocks.passed_ns, clocks.off_ns = 2 * S, by_ns
    notes.answered(sent, DATE)  # when it was sent is by the clock as it was
    assert [note.get("step_ns") for note in found] == [None, by_ns]
    assert found[1]["before_ns"] == BEGIN_NS + S
    assert notes.wanted.is_set()
    notes.answered(clocks(), DATE)
    assert len(found) == 3


def test_a_clock_that_drifts_or_stands_is_not_told_as_set() -> None:
    clocks = Clocks()
    notes, found = noted(clocks)
    for second in range(1000):
        clocks.passed_ns, clocks.off_ns = second * S // 5, second * S // 5000
        notes.tick()
    assert found == []


def recorder(server: FakeServer, tmp_path: Path, clocks: Clocks) -> Recorder:
    config = write_kubeconfig(tmp_path / "config", server)
    return Recorder(
        ApiClient(Connection(ConnectOptions(kubeconfig=config))),
        Plan([SPECS["jobs"], SPECS["pods"]]),
        ClusterInfo("v1.36.3"),
        Scope(),
        Target(path=tmp_path / "out"),
        limits=Limits(),
        policy=WatchPolicy(),
        clocks=clocks,
    )


class RealClocks(Clocks):
    """Clocks that go on, of which the first can be set."""

    def __call__(self) -> Reading:
        return Reading(time.time_ns() + self.off_ns, time.monotonic_ns())


def until(true: object, seconds: float = 5.0) -> None:
    end_s = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end_s, "it does not come"
        time.sleep(0.01)


def test_a_recorder_under_a_clock_that_is_set_has_two_epochs_by_the_dates(tmp_path: Path) -> None:
    """Its clock is 40 s ahead, and is set ahead by 3 s more: less than rows alone tell."""
    clocks = RealClocks()
    clocks.off_ns = 40 * S
    cluster = FakeCluster()
    cluster.create("pods")
    server = FakeServer(cluster, clock_s=time.time)
    recording = recorder(server, tmp_path, clocks)
    thread = threading.Thread(target=recording.run)
    thread.start()
    until(lambda: recording.feed.rows_written >= 6)
    clocks.off_ns += 3 * S
    asked = server.hits
    until(lambda: server.hits > asked)
    cluster.create("pods")
    before = recording.feed.rows_written
    until(lambda: recording.feed.rows_written > before)
    time.sleep(0.3)  # a tick: both clocks are read
    recording.stop(Ending.INTERRUPTED)
    thread.join()
    server.close()
    reader = TraceReader(tmp_path / "out")
    assert {s.stream for s in reader.streams()} == {"jobs", "pods", CLOCKS}
    times = timed_of(reader)
    first, second = times.clock.epochs
    for epoch, off_s, dated in zip((first, second), (40, 43), times.dated, strict=True):
        assert dated is not None
        assert dated.least_ns <= off_s * S <= dated.most_ns
        assert dated.most_ns - dated.least_ns <= 1.2 * S
        assert abs(epoch.ahead_ns - off_s * S) <= S
        assert epoch.evidence == "the API server's times and Dates"
