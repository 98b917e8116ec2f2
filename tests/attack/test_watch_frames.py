"""API servers that are broken or hostile in the middle of a watch, and when first asked.

docs/record.md: nothing is lost silently, memory is bounded, no credential reaches a trace or a
message; docs/trust.md: what a server says makes no line of its own.
"""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import orjson
import pytest
from rich.console import Console

from tests.attack.test_servers import TOKEN, client, server
from tests.record.harness import SPECS, ListSink, Row, fast_policy
from tracekit.cli import record
from tracekit.record.credentials.withheld import Credentials
from tracekit.record.failures import BadFrame
from tracekit.record.operation.recorder import Ending, Outcome
from tracekit.record.server.probe import ClusterInfo, probe_cluster
from tracekit.record.streams.feed import TraceFeed
from tracekit.record.streams.frames import parse_frame
from tracekit.record.streams.sink import GapRow, RowQueue, Rows
from tracekit.record.streams.status import StreamStatus
from tracekit.record.streams.watcher import Watcher
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.writing.writer import TraceWriter

JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LIST = b'{"metadata":{"resourceVersion":"10"},"items":[]}'


def whole(body: bytes) -> bytes:
    return JSON + b"Content-Length: %d\r\n\r\n" % len(body) + body


def job(name: str, revision: str, **metadata: object) -> bytes:
    about = {"name": name, "uid": f"uid-{name}", "resourceVersion": revision, **metadata}
    return orjson.dumps({"kind": "Job", "apiVersion": "batch/v1", "metadata": about})


def chunks(*lines: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(line), line) for line in lines)


Watch = Callable[[socket.socket, int], None]


@contextmanager
def api(watch: Watch) -> Iterator[str]:
    """A server of one list, whose watches are answered so; they are counted from 1."""
    listener = socket.create_server(("127.0.0.1", 0))
    counted = iter(range(1, 1000))

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while asked := connection.recv(1 << 16):
                if b"watch=true" in asked:
                    watch(connection, next(counted))
                    return
                connection.sendall(whole(LIST))

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()


class Running:
    """A watcher in a thread, until the block ends."""

    def __init__(self, tmp_path: Path, url: str, idle_timeout_s: float = 5) -> None:
        self.sink = ListSink()
        self.stop = threading.Event()
        self.watcher = Watcher(
            SPECS["jobs"],
            client(tmp_path, url, 5),
            self.sink,
            policy=fast_policy(1, idle_timeout_s=idle_timeout_s),
            stop=self.stop,
        )
        self.thread = threading.Thread(target=self.watcher.run, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.watcher.interrupt()
        self.thread.join(10)

    def until(self, done: Callable[[], object]) -> None:
        deadline_s = time.monotonic() + 10
        while not done():
            assert time.monotonic() < deadline_s, (self.watcher.status, self.sink.items)
            time.sleep(0.01)

    def rows(self, *types: str) -> list[bytes]:
        return [i.raw for i in self.sink.items if isinstance(i, Row) and i.type in types]


def lines_once(*lines: bytes) -> Watch:
    """The lines in the first watch; the ones after it are silent."""

    def watch(connection: socket.socket, number: int) -> None:
        connection.sendall(JSON + b"Transfer-Encoding: chunked\r\n\r\n")
        if number == 1:
            connection.sendall(chunks(*lines))
        time.sleep(5)

    return watch


@pytest.mark.parametrize("before", range(50, 82, 3))
def test_a_line_is_not_quoted_to_the_middle_of_a_credential(tmp_path: Path, before: int) -> None:
    """Of a half nobody knows what it is half of, so it passed every cleaning."""
    line = b'{"type":"' + b"X" * before + TOKEN.encode() + b'"}\n'
    with api(lines_once(line)) as url, Running(tmp_path, url) as running:
        running.until(lambda: running.rows("NOTE"))
    said = running.rows("NOTE")[0].decode() + str(running.watcher.status.last_failure)
    assert "not a watch event" in said
    assert TOKEN[:6] not in said
    assert TOKEN[-6:] not in said


def test_the_start_of_a_text_is_cleaned_whole() -> None:
    credentials = Credentials()
    credentials.learn([TOKEN])
    escaped = "".join(f"\\u{ord(c):04x}" for c in TOKEN)
    assert credentials.clean_start(f"ab{TOKEN}cd{TOKEN}", 4) == "ab[credential]"
    assert credentials.clean_start(f"ab{escaped}cd", 40) == "ab[credential]"
    assert credentials.clean_start(f"{TOKEN}cd{TOKEN}", len(TOKEN) + 1) == "[credential]c"
    assert credentials.clean_start("abcdef", 3) == "abc"
    assert Credentials().clean_start("abcdef", 3) == "abc"


@pytest.mark.parametrize(
    "form", ['{{"type":"ADDED","object":{}}}', '{{"object":{},"type":"ADDED"}}']
)
def test_a_frame_of_tiny_values_is_none(form: str) -> None:
    """30 MB of `[],` in one line took the recorder 1.4 GiB."""
    values = "[]," * 2_000_001 + "0"
    body = f'{{"metadata":{{"name":"a","uid":"u","resourceVersion":"3"}},"x":[{values}]}}'
    with pytest.raises(BadFrame, match="more than 2,000,000 values"):
        parse_frame(form.format(body).encode())


def test_an_error_frame_of_megabytes_is_none() -> None:
    """20 MB of message took 2.3 GiB to be cleaned."""
    error = {"code": 500, "message": "m" * (1 << 20)}
    with pytest.raises(BadFrame, match="too large"):
        parse_frame(orjson.dumps({"type": "ERROR", "object": error}))


def test_the_recorders_token_stays_out_of_objects(tmp_path: Path) -> None:
    """It may be an argument of the recorder's own pod."""
    frame = b'{"type":"ADDED","object":%b}\n' % job("a", "11", annotations={TOKEN: f"x {TOKEN} y"})
    with api(lines_once(frame)) as url, Running(tmp_path, url) as running:
        running.until(lambda: running.rows("ADDED"))
    told = orjson.loads(running.rows("ADDED")[0])["metadata"]["annotations"]
    assert told == {"[credential]": "x [credential] y"}


def test_a_watch_that_is_not_answered_is_a_gap_at_the_end(tmp_path: Path) -> None:
    """The thread waits for the answer's head, 90 s long; the recording ended without a word."""
    asked = threading.Event()

    def watch(connection: socket.socket, number: int) -> None:
        if number == 1:
            connection.sendall(JSON + b"Transfer-Encoding: chunked\r\n\r\n")
            frame = b'{"type":"ADDED","object":%b}\n' % job("a", "11")
            connection.sendall(chunks(frame) + b"0\r\n\r\n")
        else:
            asked.set()
            time.sleep(2)

    with api(watch) as url, Running(tmp_path, url, idle_timeout_s=2) as running:
        assert asked.wait(10)
        running.stop.set()
        running.watcher.give_up()
        gaps = [item for item in running.sink.items if isinstance(item, GapRow)]
        assert [(gap.last_rv, gap.next_rv, gap.until_ns) for gap in gaps] == [("11", None, None)]
        assert "no answer" in gaps[0].reason
        running.thread.join(10)
    assert sum(isinstance(item, GapRow) for item in running.sink.items) == 1  # and not twice


def test_a_watch_that_lasts_to_the_end_is_no_gap(tmp_path: Path) -> None:
    frame = b'{"type":"ADDED","object":%b}\n' % job("a", "11")
    with api(lines_once(frame)) as url, Running(tmp_path, url) as running:
        running.until(lambda: running.rows("ADDED"))
    assert not any(isinstance(item, GapRow) for item in running.sink.items)


@pytest.mark.parametrize("revision", ["²", "9" * 5000, "", "-1", str(2**64)])
def test_a_gap_at_a_revision_that_is_none_does_not_end_the_writer(
    tmp_path: Path, revision: str
) -> None:
    queue = RowQueue()
    writer = TraceWriter(tmp_path / "t", TraceHeader(kubernetes_version=None), plain=True)
    feed = TraceFeed(queue, writer, flush_interval_s=0.01)
    queue.gap(
        GapRow(
            stream="jobs", last_rv=revision, next_rv=None, from_ns=1, until_ns=2, reason="410 Gone"
        )
    )
    queue.rows(Rows("jobs", 3, ["ADDED"], [job("a", "11")]))
    feed.end()
    feed.run()
    writer.abandon()
    assert queue.failure is None
    assert feed.rows_written == 2


def started(tmp_path: Path, version: bytes, metrics: bytes = b"") -> ClusterInfo:
    """What is learnt of a cluster that answers so."""

    def answer(connection: socket.socket) -> None:
        # The first request was read by the one who calls this.
        for body in (version, metrics, b'{"metadata":{"uid":"%b"}}' % TOKEN.encode()):
            connection.sendall(whole(body))
            connection.recv(1 << 16)

    with server(answer) as url:
        return probe_cluster(client(tmp_path, url, 5))


@pytest.mark.parametrize(
    "version",
    ["v1." + "9" * 5000, f"v1.36.3{TOKEN}", "v1.36.3\x1b[2J", "", "v1.36.3\nv1.20.0", 5, None],
)
def test_a_version_that_is_none_is_unknown(tmp_path: Path, version: object) -> None:
    """A number of 5,000 digits was a crash; a token in it went into the trace's header."""
    info = probe_cluster_of(tmp_path, version)
    assert (info.version, info.minor, info.cluster_uid) == (None, 0, None)


def probe_cluster_of(tmp_path: Path, version: object) -> ClusterInfo:
    return started(tmp_path, orjson.dumps({"gitVersion": version}))


def test_a_version_is_taken_as_distributions_write_it(tmp_path: Path) -> None:
    for version in ("v1.36.3", "v1.29.6-gke.1254000", "v1.30.2+k3s1", "v1.28.9-eks-036c24b"):
        assert probe_cluster_of(tmp_path, version).version == version


def test_gates_that_are_no_names_are_passed_over(tmp_path: Path) -> None:
    """A byte that is no UTF-8 in a name was a crash."""
    line = b'kubernetes_feature_enabled{name="%b",stage=""} 1\n'
    metrics = b"".join(line % name for name in (b"JobA\xff\x1b[2J", b"JobSuccessPolicy"))
    info = started(tmp_path, b'{"gitVersion":"v1.36.3"}', metrics)
    assert info.feature_gates == {"JobSuccessPolicy": True}


def test_what_a_server_said_last_makes_no_line_of_its_own() -> None:
    status = StreamStatus("jobs", unseen_at_end="500 X\ntracekit: all is well\x1b[2J")
    outcome = Outcome(Ending.DURATION, [status], 1, Path("t"), 1)
    said = io.StringIO()
    assert record._report(outcome, Console(file=said)) == 1
    assert said.getvalue().count("\n") == 2
    assert "\\ntracekit: all is well\\x1b[2J" in said.getvalue()
