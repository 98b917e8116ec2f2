"""`record -o s3://…`: what is recorded goes to the bucket, and nothing is lost while it is away."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer
from tests.record.harness import write_kubeconfig
from tests.record.test_record_cli import run
from tests.support.s3 import S3, s3_server, set_environment
from tests.support.traces import TRACES, import_log
from tracekit.record.operation import uploading
from tracekit.record.operation.uploading import Uploader, spool_of
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.whole import compact_in_place

HOURS = ("20261101T000000Z", "20261101T010000Z")
URL = "s3://fleet/a"


@pytest.fixture(scope="module")
def server() -> Iterator[S3]:
    with s3_server() as running:
        yield running


@pytest.fixture
def s3(server: S3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[S3]:
    set_environment(monkeypatch, server, tmp_path / "cache")
    server.client.create_dir("fleet")
    yield server
    server.forget()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spool")
    for hour in HOURS:
        import_log(TRACES / "v1.25.4-twins" / "watch.jsonl.zst", folder / hour, "v1.25.4-twins")
    return folder


def rows(trace: str | Path) -> list[int]:
    return TraceReader(trace).table(("seq",))["seq"].to_pylist()


def test_ended_traces_leave_this_machine_once_the_bucket_has_them(
    s3: S3, recorded: Path, tmp_path: Path
) -> None:
    spool, said = tmp_path / "spool", list[str]()
    shutil.copytree(recorded, spool)
    expected = rows(recorded / HOURS[0])
    uploader = Uploader(spool, URL, said.append)
    uploader.upload()
    assert [path.name for path in spool.iterdir()] == [HOURS[1]]
    assert [rows(f"{URL}/{hour}") for hour in HOURS] == [expected, expected]
    puts = len(s3.names(f"fleet/a/{HOURS[1]}/log"))
    uploader.upload()
    assert len(s3.names(f"fleet/a/{HOURS[1]}/log")) == puts
    assert said == []


def test_what_is_merged_here_is_merged_there(s3: S3, recorded: Path, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    shutil.copytree(recorded / HOURS[1], spool / HOURS[1])
    expected = rows(spool / HOURS[1])
    uploader = Uploader(spool, URL, print)
    uploader.upload()
    compact_in_place(spool / HOURS[1])
    local = {path.name for path in (spool / HOURS[1] / "log").iterdir()}
    uploader.upload()
    assert {Path(name).name for name in s3.names(f"fleet/a/{HOURS[1]}/log")} == local
    assert rows(f"{URL}/{HOURS[1]}") == expected


def test_a_store_that_is_away_costs_nothing(s3: S3, recorded: Path, tmp_path: Path) -> None:
    spool, said = tmp_path / "spool", list[str]()
    shutil.copytree(recorded, spool)
    uploader = Uploader(spool, URL, said.append)
    with s3.failing(every=1):
        uploader._try()
        uploader._try()
    assert len(said) == 1
    assert said[0].startswith(f"Not uploading for now: {URL} cannot be")
    assert {path.name for path in spool.iterdir()} == set(HOURS)
    uploader._try()
    assert said[1:] == [f"Uploading to {URL} again."]
    assert rows(f"{URL}/{HOURS[0]}") == rows(recorded / HOURS[0])


def test_no_rights_are_one_sentence(s3: S3, recorded: Path) -> None:
    said: list[str] = []
    s3.ask_for_credentials()
    Uploader(recorded, URL, said.append)._try()
    assert len(said) == 1
    assert "access is refused" in said[0]
    assert {path.name for path in recorded.iterdir()} == set(HOURS)


@pytest.mark.usefixtures("s3")
def test_a_recording_ends_in_the_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(uploading, "EVERY_S", 0.1)
    cluster = FakeCluster()
    cluster.create("namespaces", name="ns")
    for _ in range(4):
        cluster.create("jobs")
    server = FakeServer(cluster, bookmark_every_s=0.2)
    config = write_kubeconfig(tmp_path / "config", server, namespace="ns")
    words = ("record", "-o", URL, "--kubeconfig", config, "--flush-interval", "100ms")
    try:
        assert run(*words, "--duration", "0.6s", "--rotate", "1h") == 0
        assert run(*words, "--duration", "0.6s") == 2
        assert run(*words, "--duration", "0.6s", "--rotate", "1h", "--keep", "1d") == 2
    finally:
        server.close()
    err = capsys.readouterr().err
    assert "takes traces that are ended; give --rotate too" in err
    assert "lifecycle rules" in err
    (local,) = spool_of(URL).iterdir()
    assert rows(f"{URL}/{local.name}") == rows(local)
    names = TraceReader(f"{URL}/{local.name}").table(("name",), streams=["jobs"])["name"]
    assert len(names) - names.null_count == 4
