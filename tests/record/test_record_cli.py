"""The command itself: what it says, what it refuses, and how it ends."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer, Faults
from tests.record.harness import Row, write_kubeconfig
from tests.record.kills import ROOT, items_of, recorder
from tracekit.base.errors import TracekitError
from tracekit.cli.main import main
from tracekit.record.streams.sink import GapRow
from tracekit.trace.format import header, segments
from tracekit.trace.reading.reader import TraceReader


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    made.create("namespaces", name="ns")
    for number in range(5):
        made.create("jobs", status={"n": number})
        made.create("pods")
    return made


@pytest.fixture
def server(cluster: FakeCluster) -> Iterator[FakeServer]:
    made = FakeServer(cluster, bookmark_every_s=0.2)
    yield made
    made.close()


def _config(tmp_path: Path, server: FakeServer, **context: str) -> str:
    return write_kubeconfig(tmp_path / "config", server, **{"namespace": "ns", **context})


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def record(tmp_path: Path, server: FakeServer, *arguments: str) -> int:
    base = ("record", "-o", str(tmp_path / "trace"), "--kubeconfig", _config(tmp_path, server))
    return run(*base, "--duration", "0.6s", "--flush-interval", "100ms", *arguments)


def test_records_and_says_so(tmp_path: Path, server: FakeServer, capsys) -> None:
    assert record(tmp_path, server) == 0
    said = capsys.readouterr().err
    assert "Recording namespace ns of http://127.0.0.1" in said.splitlines()[0]
    assert re.search(r"Wrote .*trace: \d+ rows, .*0 gaps, .*the duration is over", said)
    reader = TraceReader(tmp_path / "trace")
    header = reader.header
    assert header.kubernetes_version == "v1.36.3"
    assert header.feature_gates == {"JobSuccessPolicy": True}
    assert header.scope["namespaces"] == ["ns"]
    assert header.sessions[0]["apiserver_feature_gates"] == {"JobSuccessPolicy": True, "Off": False}
    assert {s.stream for s in reader.streams()} == {
        *("jobs", "cronjobs", "pods", "events", "namespaces", "resourcequotas", "leases"),
    }
    assert reader.table(("name",), streams=["jobs"], types=["LIST"]).num_rows == 5
    assert len(list((tmp_path / "trace" / "log").iterdir())) == 1, "compacted at the end"


def test_secrets_and_configmaps_are_never_asked_for(tmp_path: Path, server: FakeServer) -> None:
    assert record(tmp_path, server, "-A") == 0
    asked = " ".join(server.requests).lower()
    assert "secrets" not in asked
    assert "configmaps" not in asked
    assert all(r.startswith("GET ") or "selfsubjectaccessreviews" in r for r in server.requests)


def test_selectors_and_scope_reach_the_server(tmp_path: Path, server: FakeServer, capsys) -> None:
    assert record(tmp_path, server, "-A", "-l", "team=a", "--pods", "job") == 0
    assert run("info", str(tmp_path / "trace")) == 0
    assert "all namespaces; selector team=a" in capsys.readouterr().out
    lists = [r for r in server.requests if "watch=true" in r]
    assert any("/jobs?" in r and "labelSelector=team%3Da&" in r for r in lists)
    assert any("/pods?" in r and "labelSelector=team%3Da%2Cjob-name" in r for r in lists)
    assert any("/leases?" in r and "metadata.name%3Dkube-controller-manager" in r for r in lists)
    assert not any("/events?" in r and "labelSelector" in r for r in lists)
    assert not any("/namespaces/ns/" in r for r in lists)


def test_several_namespaces_are_streams_of_their_own(
    tmp_path: Path, server: FakeServer, cluster: FakeCluster
) -> None:
    cluster.create("namespaces", name="other")
    cluster.create("jobs", namespace="other")
    cluster.create("jobs", namespace="third")
    assert record(tmp_path, server, "-n", "ns", "-n", "other") == 0
    seen = TraceReader(tmp_path / "trace").table(("namespace",), streams=["jobs"], types=["LIST"])
    assert sorted(seen["namespace"].to_pylist()) == ["ns"] * 5 + ["other"]
    cluster.create("jobs", namespace="other")
    cluster.create("jobs", namespace="ns")
    assert record(tmp_path, server, "-n", "ns", "-n", "other", "--append") == 0
    reader = TraceReader(tmp_path / "trace")
    assert reader.table(("name",), streams=["jobs"], types=["ADDED"]).num_rows == 2
    assert reader.table(("name",), streams=["jobs"], types=["LIST"]).num_rows == 6, "no relist"
    assert reader.gaps() == []


def test_append_goes_on_without_a_gap(
    tmp_path: Path, server: FakeServer, cluster: FakeCluster
) -> None:
    assert record(tmp_path, server) == 0
    uid = cluster.create("jobs")
    cluster.delete("jobs", "jobs-2")
    assert record(tmp_path, server, "--append") == 0
    reader = TraceReader(tmp_path / "trace")
    rows = reader.table(("type", "uid", "synthesized"), streams=["jobs"]).to_pylist()
    assert {"type": "ADDED", "uid": uid, "synthesized": False} in rows
    assert {"type": "DELETED", "uid": "jobs-2", "synthesized": False} in rows
    assert reader.gaps() == []
    assert len(reader.header.sessions) == 2


def test_append_after_compaction_has_gaps_and_synthesised_deletes(
    tmp_path: Path, server: FakeServer, cluster: FakeCluster
) -> None:
    assert record(tmp_path, server) == 0
    cluster.delete("jobs", "jobs-2")
    cluster.compact()
    assert record(tmp_path, server, "--append") == 0
    reader = TraceReader(tmp_path / "trace")
    gap = next(gap for gap in reader.gaps() if gap.stream == "jobs")
    assert gap.last_rv is not None
    assert gap.next_rv is not None
    assert gap.last_rv < gap.next_rv
    assert "410" in gap.reason
    rows = reader.table(("uid", "synthesized", "raw"), streams=["jobs"], types=["DELETED"])
    (deleted,) = rows.to_pylist()
    assert (deleted["uid"], deleted["synthesized"]) == ("jobs-2", True)
    assert json.loads(deleted["raw"])["status"] == {"n": 0}, "its last state"


def test_rotation_opens_every_trace_with_what_lives(
    tmp_path: Path, server: FakeServer, cluster: FakeCluster
) -> None:
    folder = tmp_path / "traces"
    stop = threading.Event()

    def churn() -> None:
        while not stop.wait(0.02):
            cluster.create("jobs")

    threading.Thread(target=churn, daemon=True).start()
    base = ("record", "-o", str(folder), "--kubeconfig", _config(tmp_path, server))
    code = run(*base, "--duration", "4s", "--rotate", "1.2s", "--flush-interval", "100ms")
    stop.set()
    assert code == 0
    traces = sorted(folder.iterdir())
    assert len(traces) >= 3
    seen: set[int] = set()
    for trace in traces:
        rows = TraceReader(trace).table(("seq", "type", "rv"), streams=["jobs"]).to_pylist()
        assert rows[0]["type"] == "LIST_BEGIN"
        assert rows[1]["type"] == "LIST"
        seen |= {row["rv"] for row in rows if row["type"] in {"LIST", "ADDED"}}
    first = min(seen)
    written = {c.rv for c in cluster.history["jobs"] if first <= c.rv <= max(seen)}
    assert written <= seen, "nothing falls between two traces"


def test_rotated_traces_are_continued_and_expire(tmp_path: Path, server: FakeServer) -> None:
    folder = tmp_path / "traces"
    base = ("record", "-o", str(folder), "--kubeconfig", _config(tmp_path, server), "--append")
    timing = ("--duration", "0.5s", "--rotate", "1h", "--keep", "7d")
    assert run(*base, *timing) == 0
    assert run(*base, *timing) == 0
    (trace,) = folder.iterdir()
    assert len(TraceReader(trace).header.sessions) == 2


def test_a_damaged_trace_does_not_stop_a_rotating_recorder(
    tmp_path: Path, server: FakeServer, capsys
) -> None:
    folder = tmp_path / "traces"
    base = ("record", "-o", str(folder), "--kubeconfig", _config(tmp_path, server), "--append")
    timing = ("--duration", "0.5s", "--rotate", "1h")
    assert run(*base, *timing) == 0
    (trace,) = folder.iterdir()
    (segment,) = (trace / "log").iterdir()
    segment.write_bytes(segment.read_bytes()[:-9])
    before = segment.read_bytes()
    assert run("record", "-o", str(trace), *base[3:], "--duration", "0.5s") == 2
    assert "is damaged" in _said(capsys)
    assert run(*base, *timing) == 0
    assert re.search(r"Not going on with it: .* is damaged", _said(capsys))
    assert len(list(folder.iterdir())) == 2
    assert segment.read_bytes() == before


def test_what_may_not_be_seen_is_said_and_written(
    tmp_path: Path, cluster: FakeCluster, capsys
) -> None:
    server = FakeServer(cluster, forbidden=frozenset({"leases", "namespaces", "resourcequotas"}))
    assert record(tmp_path, server) == 0
    server.close()
    said = capsys.readouterr().err
    assert "Not recorded: leases: list is forbidden" in said
    streams = TraceReader(tmp_path / "trace").header.streams
    assert streams["leases"]["recorded"] is False
    assert "forbidden" in streams["namespaces"]["reason"]
    assert streams["jobs"]["recorded"] is True


def test_a_dead_stream_makes_the_status_non_zero(
    tmp_path: Path, server: FakeServer, capsys
) -> None:
    config = _config(tmp_path, server)
    timer = threading.Timer(1.0, server.close)
    timer.start()
    code = run(
        *("record", "-o", str(tmp_path / "trace"), "--kubeconfig", config, "--duration", "3s")
    )
    assert code == 1
    assert "jobs was not being recorded at the end" in capsys.readouterr().err
    gaps = TraceReader(tmp_path / "trace").gaps()
    assert {gap.stream for gap in gaps} >= {"jobs", "pods"}
    assert all(gap.next_rv is None for gap in gaps)


def test_max_size_ends_it(tmp_path: Path, server: FakeServer, capsys) -> None:
    base = ("record", "-o", str(tmp_path / "trace"), "--kubeconfig", _config(tmp_path, server))
    assert run(*base, "--duration", "30s", "--max-size", "1kB", "--flush-interval", "50ms") == 0
    assert "the size is reached" in capsys.readouterr().err


def test_metrics_and_health(tmp_path: Path, server: FakeServer) -> None:
    process = recorder(
        tmp_path / "trace", _config(tmp_path, server), "--metrics-port", "0", "--duration", "60s"
    )
    assert process.stderr is not None
    try:
        lines = iter(process.stderr.readline, b"")
        port = next(re.search(rb":(\d+)$", line)[1] for line in lines if line.startswith(b"Metr"))
        where = f"http://127.0.0.1:{int(port)}"
        # All of them: a stream whose first list has not ended at the end is exit status 1.
        _until(
            lambda: set(re.findall(rb"stream_up{.*} (.*)", _get(f"{where}/metrics"))) == {b"1.0"}
        )
        assert _get(f"{where}/healthz") == b"ok\n"
        text = _get(f"{where}/metrics").decode()
        assert "tracekit_stream_observations_total" in text
        assert "tracekit_rows_total" in text
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310
        return answer.read()


def _has_rows(trace: Path) -> bool:
    try:
        return TraceReader(trace).rows > 0
    except TracekitError:  # not there yet
        return False


def _until(done, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_ctrl_c_ends_cleanly_and_the_trace_is_whole(tmp_path: Path, server: FakeServer) -> None:
    process = recorder(tmp_path / "trace", _config(tmp_path, server), "--flush-interval", "50ms")
    _until(lambda: _has_rows(tmp_path / "trace"))
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    types = {item.type for item in items_of(tmp_path / "trace") if isinstance(item, Row)}
    assert "LIST_END" in types
    assert not any(isinstance(item, GapRow) for item in items_of(tmp_path / "trace"))


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path, server: FakeServer) -> None:
    process = recorder(tmp_path / "trace", _config(tmp_path, server), "--flush-interval", "50ms")
    _until(lambda: _has_rows(tmp_path / "trace"))
    time.sleep(0.5)
    process.send_signal(signal.SIGSTOP)  # so that both wait for it, however fast it ends
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said.strip().endswith(b"aborted; all that was flushed is in the trace")


def test_a_recording_is_redacted_in_all_that_it_writes(
    tmp_path: Path, cluster: FakeCluster
) -> None:
    """Objects, and what the server says: in NOTE, ERROR and GAP rows, and in the header."""
    secret = "Hunter2Planted"  # noqa: S105
    cluster.create(
        "pods",
        spec={"containers": [{"name": "c", "env": [{"name": "X", "value": secret}]}]},
        status={"message": secret},
    )
    faults = Faults(3, budget=9, watch_faults=("error-410", "error-500"))
    faults.answer_faults, faults.answer_probability = ("http-500",), 0.1
    server = FakeServer(cluster, faults)
    stop = threading.Event()

    def churn() -> None:
        while not stop.wait(0.02):
            cluster.create("jobs")
            cluster.create("pods", status={"message": secret})
            cluster.create("events", message=secret)

    threading.Thread(target=churn, daemon=True).start()
    faulty = server._status
    server._status = lambda c, code, message, extra="": faulty(c, code, secret + message, extra)
    server.forbidden = frozenset({"leases"})
    assert record(tmp_path, server, "--redact", "all", "--duration", "4s") in {0, 1}
    stop.set()
    server.close()
    rows = TraceReader(tmp_path / "trace").table(("type", "raw", "gap_reason")).to_pylist()
    said = json.dumps(rows) + (tmp_path / "trace" / "trace.json").read_text()
    assert {"NOTE", "ERROR"} <= {row["type"] for row in rows}
    assert secret not in said
    assert "list is forbidden" in said
    assert run("redact", str(tmp_path / "trace"), "--check") == 0


def test_two_recorders_on_one_trace_are_refused(tmp_path: Path, server: FakeServer, capsys) -> None:
    process = recorder(tmp_path / "trace", _config(tmp_path, server), "--flush-interval", "50ms")
    try:
        _until(lambda: _has_rows(tmp_path / "trace"))
        assert record(tmp_path, server, "--append") == 2
        assert "another tracekit" in capsys.readouterr().err
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def test_a_full_disk_is_one_sentence_and_loses_nothing_flushed(
    tmp_path: Path, server: FakeServer, cluster: FakeCluster
) -> None:
    """A file size limit stands in for a full disk: both fail a write half way."""
    script = (
        "import errno, os, sys\n"
        "import tracekit.trace.format.plain as plain\n"
        "whole, calls = plain.put_in_place, []\n"
        "def full(temporary, final):\n"
        "    calls.append(final)\n"
        "    if len(calls) > 3: raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))\n"
        "    whole(temporary, final)\n"
        "plain.put_in_place = full\n"
        "from tracekit.cli.main import main; main()\n"
    )
    stop = threading.Event()

    def churn() -> None:
        while not stop.wait(0.01):
            cluster.create("jobs")

    threading.Thread(target=churn, daemon=True).start()
    base = ("record", "-o", str(tmp_path / "trace"), "--kubeconfig", _config(tmp_path, server))
    done = subprocess.run(
        [sys.executable, "-c", script, *base, "--flush-interval", "100ms", "--duration", "20s"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    stop.set()
    assert done.returncode == 2, done.stderr
    assert re.search(r"The disk of .* is full.*--append", done.stderr)
    assert "Traceback" not in done.stderr
    assert TraceReader(tmp_path / "trace").rows > 0
    assert record(tmp_path, server, "--append") == 0
    assert TraceReader(tmp_path / "trace").gaps() == []


class Quota:
    """A volume of so many bytes: whatever makes a file durable fails once more is there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.left = 10**9
        monkeypatch.setattr(header, "sync_file", self.sync)
        monkeypatch.setattr(segments, "sync_file", self.sync)

    def used(self) -> int:
        """Of what is there: a stream's thread puts one file in the place of another meanwhile."""
        size = 0
        for place, _, names in os.walk(self.folder):
            for name in names:
                with suppress(FileNotFoundError):
                    size += Path(place, name).lstat().st_size
        return size

    def fill(self) -> None:
        self.left = self.used()

    def sync(self, descriptor: int) -> None:
        if self.used() > self.left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)


def _age(trace: Path, days: int) -> None:
    then_ns = time.time_ns() - days * 86400 * 10**9
    for path in [*trace.rglob("*"), trace]:
        os.utime(path, ns=(then_ns, then_ns))


def test_a_full_volume_is_freed_of_expired_traces_before_anything_is_written(
    tmp_path: Path, server: FakeServer, monkeypatch, capsys
) -> None:
    """The printed Deployment on a volume that has run full, as its container starts again."""
    folder = tmp_path / "traces"
    base = ("record", "-o", str(folder), "--kubeconfig", _config(tmp_path, server), "--append")
    timing = ("--duration", "0.4s", "--rotate", "1h", "--keep", "7d")
    assert run(*base, *timing) == 0
    (old,) = folder.iterdir()
    volume = Quota(folder, monkeypatch)
    volume.fill()
    assert run(*base, *timing) == 2, "nothing has expired"
    assert re.search(r"The disk of .* is full; free some space, or keep less", _said(capsys))
    assert list(folder.iterdir()) == [old], "nothing half made is left"
    assert run("record", "-o", str(folder), "--kubeconfig", base[4], *timing) == 2
    assert "is full" in _said(capsys)
    assert list(folder.iterdir()) == [old], "nothing half made is left"
    (old / ".lock").touch()  # as a recorder that was killed leaves it
    _age(old, days=8)
    assert run(*base, *timing) == 0, _said(capsys)
    assert not old.exists()


def test_a_volume_that_is_full_when_a_trace_is_rotated_is_one_sentence(
    tmp_path: Path, server: FakeServer, monkeypatch, capsys
) -> None:
    folder = tmp_path / "traces"
    volume = Quota(folder, monkeypatch)
    timer = threading.Timer(0.6, volume.fill)
    timer.start()
    base = ("record", "-o", str(folder), "--kubeconfig", _config(tmp_path, server))
    assert run(*base, "--duration", "30s", "--rotate", "900ms", "--keep", "7d") == 2
    assert "is full" in _said(capsys)


def _said(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


#### What a user can get wrong ####


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-n", "ns", "-A"], r"-n and -A exclude each other"),
        (["-n", "no-such"], r'no namespace "no-such"'),
        (["--context", "x"], r'context "x" does not exist: known contexts: fake'),
        (["--token", "wrong"], r"does not accept the credentials.*401"),
        (["--keep", "7d"], r"--keep .*--rotate"),
        (["--keep-size", "1GiB"], r"--keep-size .*--rotate"),
        (["--log-tail", "5"], r"--log-tail .* give --logs"),
        (["--logs", "some"], r"there is no 'some'; it is one of failed, all"),
        (["--logs", "all", "--log-tail", "0"], r"0 is not in the range"),
        (["--redact", "env,secrets"], r'"secrets" cannot be redacted; choose from env, args'),
        (["--redact", "env", "--append"], r"--redact with --append needs --key-file"),
        (["--redact", "env", "--key-file", "/no/such"], r"key file /no/such cannot be read"),
        (["--key-file", "x"], r"--key-file is the key of --redact"),
        (["--duration", "soon"], r"'soon' is no duration"),
        (["--max-size", "big"], r"'big' is no size"),
        (["--as-group", "g"], r"--as-group needs --as"),
        (
            ["--metrics-port", "1", "--metrics-address", "192.0.2.1"],
            r"choose another --metrics-port",
        ),
    ],
)
def test_refusals(tmp_path: Path, server: FakeServer, capsys, arguments, expected) -> None:
    assert record(tmp_path, server, *arguments) == 2
    said = capsys.readouterr().err
    assert re.search(expected, said), said
    assert "Traceback" not in said


def test_output_exists(tmp_path: Path, server: FakeServer, capsys) -> None:
    (tmp_path / "trace").mkdir()
    assert record(tmp_path, server) == 2
    assert "exists; choose another name" in capsys.readouterr().err
    assert record(tmp_path, server, "--append") == 2
    assert "is no trace" in capsys.readouterr().err


def test_output_of_another_scope_or_cluster(
    tmp_path: Path, server: FakeServer, cluster: FakeCluster, capsys
) -> None:
    cluster.create("namespaces", name="kube-system")
    assert record(tmp_path, server) == 0
    assert record(tmp_path, server, "-A", "--append") == 2
    assert "another scope" in capsys.readouterr().err


def test_refused_connection(tmp_path: Path, server: FakeServer, capsys) -> None:
    config = _config(tmp_path, server)
    server.close()
    assert run("record", "-o", str(tmp_path / "t"), "--kubeconfig", config) == 2
    assert re.search(r"cannot be reached.*refused", capsys.readouterr().err, re.IGNORECASE)


def test_tls_against_a_server_that_speaks_none(tmp_path: Path, server: FakeServer, capsys) -> None:
    config = Path(_config(tmp_path, server))
    config.write_text(config.read_text().replace("http://", "https://"))
    assert run("record", "-o", str(tmp_path / "t"), "--kubeconfig", str(config)) == 2
    assert re.search(r"TLS connection .* failed.*certificate-authority", capsys.readouterr().err)


def test_jobs_forbidden(tmp_path: Path, cluster: FakeCluster, capsys) -> None:
    server = FakeServer(cluster, forbidden=frozenset({"jobs"}))
    assert record(tmp_path, server) == 2
    server.close()
    assert "may not list and watch jobs" in capsys.readouterr().err
    assert not (tmp_path / "trace").exists()


def test_no_api_server_at_all(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run("record", "-o", str(tmp_path / "t")) == 2
    assert "No cluster is configured" in capsys.readouterr().err


def test_unwritable_output(tmp_path: Path, server: FakeServer, capsys) -> None:
    (tmp_path / "file").write_text("")
    config = _config(tmp_path, server)
    assert run("record", "-o", str(tmp_path / "file" / "t"), "--kubeconfig", config) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("rotating", [False, True])
def test_a_trace_that_is_not_redacted_is_not_gone_on_with_as_one_that_is(
    tmp_path: Path, server: FakeServer, capsys, rotating: bool
) -> None:
    """What it holds would stand beside the hashes, and open the next trace of a rotation."""
    key = tmp_path / "key"
    key.write_text("0123456789abcdef0123")
    more = ("--rotate", "1h") if rotating else ()
    assert record(tmp_path, server, "--duration", "1s", "--append", *more) == 0
    redacted = ("--redact", "all", "--key-file", str(key), "--append", "--duration", "1s")
    capsys.readouterr()
    assert record(tmp_path, server, *redacted, *more) == (0 if rotating else 2)
    assert "has rows in which not all of that is hashed" in capsys.readouterr().err
    assert len(list((tmp_path / "trace").glob("*/trace.json"))) == (2 if rotating else 0)
