"""Last words: which logs are asked for, when, how much of them is kept, and what is a gap."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer, _chunk
from tests.record.harness import ListSink, write_kubeconfig
from tests.record.test_record_cli import run
from tracekit.record.container_logs.log_tail import Tail, TailReader
from tracekit.record.container_logs.logs import RESUMED, LastWords, LogMode, LogOptions
from tracekit.record.credentials.kubeconfig import Connection
from tracekit.record.credentials.options import ConnectOptions
from tracekit.record.redaction.redact import Redactor
from tracekit.record.server.transport import ApiClient
from tracekit.report.html.data import report_data
from tracekit.sql.session import Session
from tracekit.trace.reading.reader import TraceReader

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"


class LogServer(FakeServer):
    """Serves logs by (pod, container, previous): bytes, or a status code; `ends` ends followers."""

    def __init__(self, cluster: FakeCluster, **more: Any) -> None:
        self.logs: dict[tuple[str, str, bool], bytes | int] = {}
        self.asked: list[dict[str, str]] = []
        self.ends = threading.Event()
        self.failures: list[int] = []
        super().__init__(cluster, **more)

    def _answer(self, connection: Any, target: str, headers: dict[str, str], body: bytes) -> None:
        url = urlsplit(target)
        parts = url.path.strip("/").split("/")
        if parts[-1] != "log":
            return super()._answer(connection, target, headers, body)
        if headers.get("authorization") != f"Bearer {self.token}":
            return self._status(connection, 401, "Unauthorized")
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self.asked.append({"pod": parts[-2], **query})
        if self.failures:
            return self._status(connection, self.failures.pop(0), "busy", "Retry-After: 0\r\n")
        found = self.logs.get((parts[-2], query["container"], query.get("previous") == "true"), 404)
        if isinstance(found, int):
            return self._status(connection, found, f"no log of {parts[-2]}")
        connection.sendall(_HEAD)
        for start in range(0, len(found), 5000):
            _chunk(connection, found[start : start + 5000])
        if query.get("follow") == "true":
            self.ends.wait(20)
            _chunk(connection, b"the end\n")
        connection.sendall(b"0\r\n\r\n")
        return None


@pytest.fixture
def server() -> Iterator[LogServer]:
    made = LogServer(FakeCluster())
    yield made
    made.ends.set()
    made.close()


class Running:
    """A fetcher in its thread, and the pods that it is told of."""

    def __init__(
        self,
        tmp_path: Path,
        server: LogServer,
        mode: str = "failed",
        *,
        tail: int = 200,
        redactor: Redactor | None = None,
        known: frozenset[str] = frozenset(),
    ) -> None:
        config = write_kubeconfig(tmp_path / "config", server)
        self.sink = ListSink()
        self.words = LastWords(
            ApiClient(Connection(ConnectOptions(kubeconfig=config)), request_timeout_s=5),
            self.sink,
            options=LogOptions(LogMode(mode), tail, known),
            redact=None if redactor is None else redactor.row,
        )
        self.thread = threading.Thread(target=self.words.run, daemon=True)
        self.thread.start()

    def see(self, kind: str = "MODIFIED", **pod: Any) -> None:
        self.words.see(kind, orjson.dumps(make_pod(**pod)))

    def until(self, done: Any, seconds: float = 15) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, (self.rows(), self.words.status)
            time.sleep(0.005)

    def rows(self, count: int | None = None) -> list[dict[str, Any]]:
        if count is not None:
            self.until(lambda: len(self.sink.items) >= count)
        return [orjson.loads(row.raw) for row in self.sink.items]

    def end(self) -> list[dict[str, Any]]:
        self.words.finish(5)
        self.thread.join(5)
        return self.rows()


def ended(code: int, run_id: str | None = None, **more: Any) -> dict[str, Any]:
    state = {"exitCode": code, "reason": "Error" if code else "Completed", **more}
    return {"terminated": state if run_id is None else {**state, "containerID": run_id}}


def make_pod(
    name: str = "p",
    *,
    state: dict[str, Any] | None = None,
    last: dict[str, Any] | None = None,
    restarts: int = 0,
    leaving: bool = False,
    run_id: str | None = None,
    container: str = "main",
    init: bool = False,
    env: str = "",
) -> dict[str, Any]:
    status = {"name": container, "restartCount": restarts, "state": state or {}, "lastState": last}
    if run_id is not None:
        status["containerID"] = run_id
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "ns",
        "uid": f"u-{name}",
        "ownerReferences": [{"kind": "Job", "name": "j", "uid": "x", "controller": True}],
    }
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"containers": [{"name": container, "env": [{"name": "V", "value": env}]}]}
    field = "initContainerStatuses" if init else "containerStatuses"
    return {"metadata": metadata, "spec": spec, "status": {field: [status]}}


RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
WAITING = {"waiting": {"reason": "CrashLoopBackOff"}}


def test_the_log_of_a_failed_container_is_read_once(tmp_path: Path, server: LogServer) -> None:
    server.logs["p", "main", False] = b"2026-01-01T00:00:01Z it broke\n"
    running = Running(tmp_path, server, tail=7)
    running.see(state=RUNNING)
    for _ in range(3):
        running.see(state=ended(3))
    running.see("DELETED", state=ended(3))
    (row,) = running.end()
    assert row["kind"] == "ContainerLog"
    assert (row["metadata"]["namespace"], row["metadata"]["name"]) == ("ns", "p")
    assert row["metadata"]["ownerReferences"][0]["name"] == "j"
    assert (row["podUID"], row["container"], row["restart"]) == ("u-p", "main", 0)
    assert row["terminated"]["exitCode"] == 3
    assert row["text"] == "2026-01-01T00:00:01Z it broke\n"
    assert (row["lines"], row["truncated"], row["followed"]) == (1, False, False)
    assert server.asked == [
        {"pod": "p", "container": "main", "tailLines": "7", "timestamps": "true"}
    ]


def test_only_what_is_wanted(tmp_path: Path, server: LogServer) -> None:
    for name in ("good", "bad", "init"):
        server.logs[name, "main", False] = name.encode()
    found = {}
    for mode in ("failed", "all"):
        running = Running(tmp_path, server, mode)
        running.see("LIST", name="good", state=ended(0))
        running.see("LIST", name="bad", state=ended(1))
        running.see("LIST", name="init", state=ended(2), init=True)
        found[mode] = {(r["metadata"]["name"], r["init"]) for r in running.end()}
    assert found["failed"] == {("bad", False), ("init", True)}
    assert found["all"] == {("good", False), ("bad", False), ("init", True)}


def test_restarts_are_runs_of_their_own(tmp_path: Path, server: LogServer) -> None:
    """The log of the run before is there with `previous`, one that waits has no newer one."""
    server.logs["p", "main", False] = b"waits"
    server.logs["p", "main", True] = b"before"
    running = Running(tmp_path, server)
    running.see(state=RUNNING, run_id="b", last=ended(1, "a"), restarts=1)
    running.rows(1)
    running.see(state=WAITING, last=ended(2, "b"), restarts=1)
    rows = running.end()
    assert [(r["text"], r["restart"], r["terminated"]["exitCode"]) for r in rows] == [
        ("before", 0, 1),
        ("waits", 1, 2),
    ]
    assert [a.get("previous") for a in server.asked] == ["true", None]


def test_kubelets_without_container_ids(tmp_path: Path, server: LogServer) -> None:
    server.logs["p", "main", False] = b"now"
    server.logs["p", "main", True] = b"before"
    running = Running(tmp_path, server, "all")
    running.see(state=RUNNING, last=ended(1), restarts=1)
    running.rows(1)
    running.see(state=ended(0), last=ended(1), restarts=1)
    assert [(r["text"], r["restart"]) for r in running.end()] == [("before", 0), ("now", 1)]


def test_a_pod_that_is_deleted_is_followed(tmp_path: Path, server: LogServer) -> None:
    """Deleted at once, and gone before anybody could ask for a log."""
    server.logs["p", "main", False] = b"working\n"
    running = Running(tmp_path, server)
    running.see(state=RUNNING, leaving=True)
    running.until(lambda: server.asked)
    server.logs.clear()
    running.see(state=ended(137), leaving=True)
    running.see("DELETED", state=ended(137), leaving=True)
    server.ends.set()
    (row,) = running.rows(1)
    assert row["text"] == "working\nthe end\n"
    assert row["followed"] is True
    assert row["terminated"]["exitCode"] == 137
    assert len(running.end()) == 1
    assert [a.get("follow") for a in server.asked] == ["true"]


def test_a_follower_counts_too_when_nobody_saw_the_end(tmp_path: Path, server: LogServer) -> None:
    server.logs["p", "main", False] = b"working\n"
    running = Running(tmp_path, server)
    running.see(state=RUNNING, leaving=True)
    running.until(lambda: server.asked)
    running.see("DELETED", state=RUNNING, leaving=True)
    server.ends.set()
    (row,) = running.rows(1)
    assert (row["text"], row["terminated"]) == ("working\nthe end\n", None)
    running.end()


def test_a_followed_container_that_succeeds_is_not_wanted(
    tmp_path: Path, server: LogServer
) -> None:
    server.logs["p", "main", False] = b"working\n"
    running = Running(tmp_path, server)
    running.see(state=RUNNING, leaving=True)
    running.until(lambda: server.asked)
    running.see(state=ended(0), leaving=True)
    server.ends.set()
    running.see("DELETED", state=ended(0), leaving=True)
    assert running.end() == []
    assert running.words.status.gaps == 0


def test_what_could_not_be_had_is_a_gap(tmp_path: Path, server: LogServer) -> None:
    server.logs["refused", "main", False] = 400
    running = Running(tmp_path, server)
    running.see(name="gone", state=ended(1))
    running.see(name="refused", state=ended(1))
    running.see(name="never", state=RUNNING, leaving=True)
    running.until(lambda: any(a["pod"] == "never" for a in server.asked))
    running.until(lambda: running.words.pending == 0)
    running.see("DELETED", name="never", state=RUNNING, leaving=True)
    running.see("DELETED", name="at-once", state=RUNNING)
    running.see(name="old", state=RUNNING, run_id="c", last=ended(1, "b"), restarts=2)
    running.until(lambda: len(running.sink.items) >= 5)
    gaps = {row["metadata"]["name"]: row["gap"] for row in running.end()}
    assert gaps["gone"] == "the pod was gone"
    assert gaps["refused"] == "400 X: no log of refused"
    assert "gone before" in gaps["never"]
    assert "gone before" in gaps["at-once"]
    assert running.words.status.gaps == len(gaps) == 5
    assert all("text" not in row for row in running.rows())


def test_a_busy_server_is_asked_again(tmp_path: Path, server: LogServer) -> None:
    server.logs["p", "main", False] = b"at last"
    server.failures = [429, 500, 503]
    running = Running(tmp_path, server)
    running.see(state=ended(1))
    (row,) = running.rows(1)
    assert row["text"] == "at last"
    running.end()


def test_an_expired_token_is_renewed(tmp_path: Path, server: LogServer) -> None:
    server.logs["p", "main", False] = b"at last"
    running = Running(tmp_path, server)
    server.expire_token()
    (tmp_path / "config.token").write_text(server.token)
    running.see(state=ended(1))
    assert running.rows(1)[0]["text"] == "at last"
    running.end()


def test_the_end_of_the_recording_waits_and_then_says_what_is_missing(
    tmp_path: Path, server: LogServer
) -> None:
    server.failures = [500] * 99
    running = Running(tmp_path, server)
    running.see(state=ended(1))
    running.until(lambda: server.asked)
    running.words.finish(0.05)
    (row,) = running.rows()
    assert row["gap"]
    running.words.finish(0.05)
    assert len(running.rows()) == 1


def test_a_trace_that_is_gone_on_with_is_not_told_twice(tmp_path: Path, server: LogServer) -> None:
    server.logs["p", "main", False] = server.logs["q", "main", False] = b"x"
    running = Running(tmp_path, server, known=frozenset({"u-p/main/0"}))
    running.see(RESUMED, name="p", state=ended(1))
    running.see(RESUMED, name="q", state=ended(1))
    assert [row["metadata"]["name"] for row in running.end()] == ["q"]


def test_odd_pods_have_no_logs_and_end_nothing(tmp_path: Path, server: LogServer) -> None:
    server.logs["p", "main", False] = b"x"
    running = Running(tmp_path, server)
    for raw in (
        b"{}",
        b"[]",
        b'{"metadata":{"uid":"u","name":"x"},"status":{"containerStatuses":7}}',
    ):
        running.words.see("MODIFIED", raw)
    running.see(state=ended(1))
    assert len(running.end()) == 1


#### Bounds ####


class PartitionedJudge:
    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.closed = False

    def pieces(self) -> Iterator[bytes]:
        yield from self._pieces

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_the_last_bytes_are_kept_from_a_line_on(size: int) -> None:
    text = b"".join(b"line %03d\n" % number for number in range(100))
    reader = TailReader(bytes_max=30)
    reader.read(PartitionedJudge(*(text[at : at + size] for at in range(0, len(text), size))))
    assert reader.tail() == Tail("line 097\nline 098\nline 099\n", is_cut=True)
    assert reader.tail().lines == 3
    assert reader.tail().last(1) == Tail("line 099\n", is_cut=True)


def test_one_endless_line_is_kept_from_its_end() -> None:
    reader = TailReader(bytes_max=10)
    reader.read(PartitionedJudge(b"a" * 50 + b"END"))
    assert reader.tail() == Tail("a" * 7 + "END", is_cut=True)
    whole = TailReader(bytes_max=10)
    whole.read(PartitionedJudge(b"\xff no newline"[:10]))
    assert whole.tail() == Tail("\ufffd no newli", is_cut=False)
    assert (whole.tail().lines, Tail("", is_cut=False).lines) == (1, 0)


def test_a_log_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.record.container_logs.log_tail._READ_BYTES_MAX", 100)
    stream = PartitionedJudge(*[b"x" * 9 + b"\n"] * 1000)
    reader = TailReader(bytes_max=20)
    reader.read(stream)
    assert reader.tail().goes_on
    assert stream.closed


#### Redaction ####


def test_values_of_the_pod_and_known_shapes_are_taken_out(
    tmp_path: Path, server: LogServer
) -> None:
    secret = "Hunter2Planted"  # noqa: S105
    token = "ghp_" + "a" * 36
    server.logs["p", "main", False] = f"login {secret} {token} password=hunter2hunter2 ok".encode()
    redactor = Redactor(b"k" * 16, frozenset({"env", "messages"}))
    redactor.row("pods", "ADDED", make_pod(env=secret))
    running = Running(tmp_path, server, redactor=redactor)
    running.see(state=ended(1, message=secret))
    (row,) = running.rows(1)
    running.end()
    assert row["text"].startswith("login redacted-")
    assert row["text"].endswith(" ok")
    for word in (secret, token, "hunter2"):
        assert word not in orjson.dumps(row).decode()


def test_a_pod_that_is_known_from_hashes_only_is_looked_at_first(
    tmp_path: Path, server: LogServer
) -> None:
    """After --append: what the pod's variables hold is in no row of the trace."""
    secret = "Hunter2Planted"  # noqa: S105
    server.logs["p", "main", False] = f"login {secret}".encode()
    answer = server._answer

    def with_pod(connection: Any, target: str, headers: dict[str, str], body: bytes) -> None:
        if target.endswith("/pods/p"):
            server._json(connection, make_pod(env=secret))
        else:
            answer(connection, target, headers, body)

    server._answer = with_pod
    redactor = Redactor(b"k" * 16, frozenset({"env"}))
    running = Running(tmp_path, server, redactor=redactor)
    running.see(RESUMED, state=ended(1), env="redacted-" + "0" * 24)
    assert secret not in running.rows(1)[0]["text"]
    running.end()


def test_strict_redaction_keeps_no_word_of_it(tmp_path: Path, server: LogServer) -> None:
    server.logs["p", "main", False] = b"Hello"
    running = Running(tmp_path, server, redactor=Redactor(b"k" * 16, frozenset({"strict"})))
    running.see(state=ended(1))
    (row,) = running.rows(1)
    running.end()
    assert row["text"].startswith("redacted-")
    assert (row["container"], row["podUID"], row["terminated"]["exitCode"]) == ("main", "u-p", 1)


#### The command ####


def _recorded(tmp_path: Path, server: LogServer) -> Path:
    """Record a trace with one log and one gap."""
    cluster = server.cluster
    cluster.create("namespaces", name="ns")
    job = cluster.create("jobs", name="j", spec={"template": {"spec": {"containers": []}}})
    for name in ("p", "gone"):
        pod = make_pod(name, state=ended(1))
        owners = [{**pod["metadata"]["ownerReferences"][0], "uid": job}]
        with cluster.changed:
            uid = cluster.create("pods", name=name, status=pod["status"])
            cluster.objects["pods"][uid]["metadata"]["ownerReferences"] = owners
    server.logs["p", "main", False] = b"2026-01-01T00:00:01.5Z it broke\n"
    base = ("record", "-o", str(tmp_path / "trace"), "--flush-interval", "50ms", "--kubeconfig")
    config = write_kubeconfig(tmp_path / "config", server, namespace="ns")
    assert run(*base, config, "--duration", "1s", "--logs", "failed", "--log-tail", "5") == 0
    return tmp_path / "trace"


def test_a_recording_with_logs(tmp_path: Path, server: LogServer, capsys) -> None:
    recorded = _recorded(tmp_path, server)
    assert "Logs of 2 containers that ended; 1 could not be had" in capsys.readouterr().err
    reader = TraceReader(recorded)
    about = reader.header.streams["logs"]
    assert about == {"recorded": True, "mode": "failed", "tail_lines": 5}
    rows = reader.table(("name", "job", "type"), streams=["logs"]).to_pylist()
    assert sorted(r["name"] for r in rows) == ["gone", "p"]
    assert {r["job"] for r in rows} == {"j"}
    query = "SELECT pod, container, exit_code, text, lines, gap FROM logs ORDER BY pod"
    assert run("sql", str(recorded), query, "-o", "csv") == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "gone,main,1,,,the pod was gone",
        "p,main,1,2026-01-01T00:00:01.5Z it broke\\n,1,",
    ]
    capsys.readouterr()
    assert run("explain", str(recorded), "ns/j") == 0
    told = capsys.readouterr().out
    assert "container main of p ended with exit code 1 (Error)" in told
    assert "      2026-01-01T00:00:01.5Z it broke" in told
    assert "its log could not be had: the pod was gone" in told
    (job,) = report_data(Session([recorded]))["jobs"]
    assert [one[1:] for one in sorted(job["logs"], key=lambda one: one[1])] == [
        ["gone", "main", 0, 1, "Error", "its log could not be had: the pod was gone"],
        ["p", "main", 0, 1, "Error", "2026-01-01T00:00:01.5Z it broke"],
    ]
    assert run("report", str(recorded), "-o", str(tmp_path / "page.html")) == 0
    assert "it broke" in (tmp_path / "page.html").read_text()
    assert run("replay", str(recorded), "--diff", "--kubernetes-version", "v1.36.3") == 0
    config = str(recorded.parent / "config")
    base = ("record", "-o", str(recorded), "--kubeconfig", config, "--append", "--duration", "1s")
    assert run(*base, "--logs", "failed") == 0
    assert TraceReader(recorded).table(("seq",), streams=["logs"]).num_rows == 2, "known already"


def test_logs_that_may_not_be_read_are_not_asked_for(
    tmp_path: Path, server: LogServer, capsys
) -> None:
    server.cluster.create("namespaces", name="ns")
    server.cluster.create("pods", name="p", status=make_pod(state=ended(1))["status"])
    answer = server._answer

    def no_logs(connection: Any, target: str, headers: dict[str, str], body: bytes) -> None:
        if target.endswith("selfsubjectaccessreviews"):
            asked = orjson.loads(body)["spec"]["resourceAttributes"]
            allowed = asked.get("subresource") != "log"
            server._json(connection, {"status": {"allowed": allowed}})
        else:
            answer(connection, target, headers, body)

    server._answer = no_logs
    config = write_kubeconfig(tmp_path / "config", server, namespace="ns")
    base = ("record", "-o", str(tmp_path / "trace"), "--kubeconfig", config)
    assert run(*base, "--duration", "500ms", "--logs", "all") == 0
    assert "Not recorded: logs: get of pods/log is forbidden in ns" in capsys.readouterr().err
    assert server.asked == []
    assert TraceReader(tmp_path / "trace").header.streams["logs"]["recorded"] is False
