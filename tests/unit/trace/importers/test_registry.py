"""Each row of the table of kinds in docs/rescue.md: its command, on a file of that kind."""

from __future__ import annotations

import base64
import gzip
import hashlib
import shlex
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tests.support.watchlog import REPOSITORY, job
from tests.unit.trace.importers.test_fuzz import (
    audit_lines,
    compact,
    objects,
    scheduler_lines,
    watch_lines,
)
from tests.unit.trace.importers.test_kcm_log import TEXT
from tests.unit.trace.importers.test_kubectl_text import DESCRIBED
from tracekit.cli.main import main
from tracekit.trace.importers.kinds import KINDS
from tracekit.trace.reading.reader import TraceReader

STORES = REPOSITORY / "tests" / "data" / "etcd"
AT = "2026-11-26T13:42:45Z"
AT_NS = 1_795_700_565 * 10**9


def lines(path: Path, texts: list[bytes]) -> None:
    path.write_bytes(b"\n".join(texts) + b"\n")


def unpacked(path: Path, name: str) -> None:
    packed = zstandard.ZstdDecompressor().stream_reader((STORES / name).read_bytes())
    path.write_bytes(packed.read())


def delta(path: Path) -> None:
    obj = {"apiVersion": "batch/v1", "kind": "Job", **job("a")}
    pair = {
        "key": base64.b64encode(b"/registry/jobs/ns/a").decode(),
        "mod_revision": 7,
        "create_revision": 7,
        "value": base64.b64encode(compact(obj)).decode(),
    }
    text = compact([{"etcdEvent": {"kv": pair}, "time": AT}])
    path.write_bytes(text + hashlib.sha256(text).digest())


def polls(path: Path) -> None:
    body = {"kind": "JobList", "apiVersion": "batch/v1", "items": [job("a")], "metadata": {}}
    api = "/apis/batch/v1/namespaces/ns/jobs"
    record = {"captured_at": AT, "api_path": api, "response_code": 200, "response_body": body}
    path.write_bytes(compact(record))


def bundle(path: Path) -> None:
    folder = path.parent / "must-gather" / "namespaces" / "ns" / "batch"
    folder.mkdir(parents=True)
    (folder / "jobs.json").write_bytes(
        compact({"apiVersion": "batch/v1", "kind": "JobList", "items": [objects()[0]]})
    )
    with tarfile.open(path, "w:gz") as archive:
        archive.add(path.parent / "must-gather", "must-gather")


def manager_log(path: Path) -> None:
    path.write_text(TEXT)
    recorded = [
        compact({"recv": at, "resource": "jobs", "type": "ADDED", "object": obj})
        for at, obj in zip((AT_NS - 10**11, AT_NS + 10**11), objects()[::2], strict=False)
    ]
    lines(path.parent / "RECORD", recorded)


FILES: dict[str, Callable[[Path], None]] = {
    "watch": lambda path: path.write_bytes(gzip.compress(b"\n".join(watch_lines()))) and None,
    "audit": lambda path: lines(path, audit_lines()),
    "etcd": lambda path: unpacked(path, "v1.36.3-etcd-3.6.16-snapshot.zst"),
    "kine": lambda path: unpacked(path, "v1.36.3-kine-0.17.5-state.zst"),
    "etcd-delta": delta,
    "kshrk": polls,
    "sched-recorder": lambda path: lines(path, scheduler_lines()),
    "kubectl": bundle,
    "kcm-log": manager_log,
    "kubectl-text": lambda path: path.write_text(DESCRIBED) and None,
}


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_the_command_in_the_table_reads_such_a_file(
    kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(kind.example)
    FILES[kind.name](tmp_path / words[-1])
    with pytest.raises(SystemExit) as end:
        main([*words, "-o", "TRACE"])
    said = capsys.readouterr().err
    assert end.value.code == 0, said
    assert f"recognised as {kind.name}" in said
    reader = TraceReader(tmp_path / "TRACE")
    assert {"jobs", "pods"} & {stream.stream for stream in reader.streams()}


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_each_kind_says_what_is_kept_and_what_is_not(kind) -> None:
    assert kind.about
    assert kind.kept
    assert kind.lacks
