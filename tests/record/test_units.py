"""Durations, sizes, back-off, positions: the small parts."""

from __future__ import annotations

import random
from pathlib import Path

import click
import pytest

from tracekit.base.live_objects import KnownObjects
from tracekit.cli.units import DURATION, SIZE, format_bytes
from tracekit.record.operation.rotation import delete_expired
from tracekit.record.server.backoff import Backoff
from tracekit.record.streams.positions import RecentFrames, is_older
from tracekit.record.streams.sink import GapRow, RowQueue, Rows, SinkClosedError
from tracekit.trace.stores.rotated import new_trace_path, rotated_traces
from tracekit.trace.writing.lock import LOCK_NAME, TraceLock


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("7d", 604800), ("200ms", 0.2)],
)
def test_durations(text: str, seconds: float) -> None:
    assert DURATION.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "0s", "-1s", "1y", "m", "1m x", "one"])
def test_no_durations(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write it like"):
        DURATION.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1000", 1000), ("1kB", 1000), ("1KiB", 1024), ("512MiB", 512 << 20), ("1.5GiB", 3 << 29)],
)
def test_sizes(text: str, size: int) -> None:
    assert SIZE.convert(text, None, None) == size
    assert format_bytes(1536) == "1.5 KiB"


@pytest.mark.parametrize("text", ["", "0", "-1", "1XB", "big"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write it like"):
        SIZE.convert(text, None, None)


def test_backoff_grows_to_its_cap_and_respects_the_server() -> None:
    backoff = Backoff(first_s=1, most_s=8, jitter=1, rng=random.Random(1))
    delays = [backoff.next_delay_s() for _ in range(6)]
    for delay, base in zip(delays, (1, 2, 4, 8, 8, 8), strict=True):
        assert base <= delay <= 2 * base
    backoff.reset()
    assert backoff.next_delay_s() <= 2
    assert 5 <= backoff.next_delay_s(5) <= 10
    assert backoff.is_raised


def test_known_objects_give_back_what_was_put() -> None:
    known = KnownObjects()
    for number in range(30):
        known.put(f"u{number}", str(number), b"x" * (1 << 20) + b"%d" % number)
    known.put("u3", "99", b"new")
    known.drop("u4")
    assert len(known) == 29
    assert "u4" not in known
    assert known.body("u3") == b"new"
    assert all(known.body(f"u{n}") == b"x" * (1 << 20) + b"%d" % n for n in range(5, 30))
    assert known.revision("u3") == "99"
    assert known.revision("u4") is None


def test_positions() -> None:
    assert is_older("9", "10")
    assert not is_older("10", "9")
    assert not is_older("a", "10")
    assert not is_older("1", None)
    recent = RecentFrames()
    assert not recent.is_repeat("ADDED", "u", "1")
    assert recent.is_repeat("ADDED", "u", "1")
    recent.deleted("u", "5")
    assert recent.is_deleted_later("u", "4")
    assert not recent.is_deleted_later("u", "6")


def test_the_queue_keeps_order_and_refuses_after_its_end() -> None:
    queue = RowQueue()
    rows = [Rows("pods", n, ["ADDED"], [b"{}"]) for n in range(5)]
    for row in rows[:3]:
        queue.rows(row)
    gap = GapRow(stream="pods", last_rv="1", next_rv=None, from_ns=None, until_ns=None, reason="x")
    queue.gap(gap)
    assert queue.take(1) == [*rows[:3], gap]
    assert queue.take(0.01) == []
    queue.close(OSError("full"))
    with pytest.raises(SinkClosedError):
        queue.rows(rows[4])
    assert isinstance(queue.failure, OSError)


def test_only_expired_traces_of_ours_are_deleted(tmp_path: Path) -> None:
    now_ns = 10**18
    paths = []
    for number in range(3):
        path = new_trace_path(tmp_path, now_ns + number)
        (path / "log").mkdir(parents=True)
        (path / "trace.json").write_text("{}")
        paths.append(path)
    assert len(set(paths)) == 3
    (tmp_path / "20200101T000000Z").mkdir()  # no trace
    (tmp_path / "notes").mkdir()
    assert rotated_traces(tmp_path) == sorted(paths)
    later_ns = max(e.stat().st_mtime_ns for p in paths for e in p.rglob("*")) + 100
    deleted = delete_expired(tmp_path, keep_ns=10, now_ns=later_ns, current=paths[2])
    assert sorted(deleted) == sorted(paths[:2])
    assert paths[2].exists()
    assert (tmp_path / "20200101T000000Z").exists()
    assert (tmp_path / "notes").exists()


def _rotated(folder: Path, count: int, size: int) -> list[Path]:
    paths = []
    for number in range(count):
        path = new_trace_path(folder, (10**9 + number) * 10**9)
        (path / "log").mkdir(parents=True)
        (path / "trace.json").write_text("{}")
        (path / "log" / "1").write_bytes(b"x" * size)
        paths.append(path)
    return paths


def test_the_oldest_go_when_they_are_too_much_together(tmp_path: Path) -> None:
    paths = _rotated(tmp_path, 4, 1000)

    def left(keep_bytes: int, current: Path | None = None) -> list[Path]:
        delete_expired(tmp_path, keep_ns=None, keep_bytes=keep_bytes, now_ns=0, current=current)
        return rotated_traces(tmp_path)

    # The folders of a trace count too, as they do on the disk.
    total = sum(e.stat().st_size for path in paths for e in path.rglob("*"))
    assert left(total) == paths
    assert left(total - 1) == paths[1:]
    assert left(1, current=paths[1]) == [paths[1], paths[3]]
    assert left(1) == [paths[3]], "the last is what a recorder goes on with"


def test_what_a_killed_recorder_left_expires_and_what_is_written_does_not(tmp_path: Path) -> None:
    """The file of a lock outlives a `kill -9`; the lock does not."""
    killed, written, _ = _rotated(tmp_path, 3, 10)
    (killed / LOCK_NAME).touch()
    with TraceLock(written):
        now_ns = max(e.stat().st_mtime_ns for e in tmp_path.rglob("*")) + 100
        gone = delete_expired(tmp_path, keep_ns=10, now_ns=now_ns, current=None)
        assert killed in gone
        assert rotated_traces(tmp_path) == [written]
