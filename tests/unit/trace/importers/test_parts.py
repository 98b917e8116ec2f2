"""Files in a folder of which nothing can be made stop nothing; a file that somebody named does."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from tests.unit.trace.importers.audit_logs import entry
from tests.unit.trace.importers.test_bundles import jobs
from tests.unit.trace.importers.test_fuzz import compact
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

MANIFEST = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "m"}, "spec": {}}
READS = b"".join(compact(entry("get", "leases", f"l{n}", code=200)) + b"\n" for n in range(3))
CRONJOB = compact(
    entry("create", "jobs", "j", response=jobs("shop")["items"][0] | {"kind": "Job"}, code=201)
)
POLL = compact({"captured_at": "x", "api_path": "/apis/batch/v1/jobs", "response_code": 500})
TABLE = b"NAME   DESIRED   CURRENT   READY   AGE\nweb    1         1         1       5m\n"
HINTED = b"# How to\n\nNAME   READY   STATUS   RESTARTS   AGE\n\nMore prose.\n"
POLICY = yaml.safe_dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": []}).encode()
RULE = b'Log:\n  {"kind": "Event", "auditID": null, "stage": "ResponseComplete", "verb": "get"}\n'

#: What a folder has beside what is read of it, by its name.
USELESS = {
    "audit-policy.yaml": POLICY,
    "reads.log": READS,
    "rule.yaml": RULE,
    "polls.json": POLL,
    "etcd.db": b"\0" * 16 + b"\xed\xda\x0c\xed" + b"\0" * 9000,
    "state.db": b"SQLite format 3\0" + b"\0" * 9000,
    "README.md": HINTED,
    "replicasets.txt": TABLE,
}


def rows(trace: Path) -> int:
    return TraceReader(trace).table(("type",), types=["LIST"]).num_rows


@pytest.mark.parametrize("name", USELESS)
def test_a_file_of_no_use_stops_no_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "jobs.json").write_bytes(compact(jobs("shop")))
    (folder / name).write_bytes(USELESS[name])
    results = import_files(ImportRequest([str(folder)], tmp_path / "trace"))
    assert rows(tmp_path / "trace") == 2
    said = [*results[0].remarks, *results[0].problems]
    assert any(name in sentence for sentence in said), said


@pytest.mark.parametrize("name", ["reads.log", "rule.yaml", "polls.json", "etcd.db", "state.db"])
def test_one_that_is_named_is_refused(name: str, tmp_path: Path) -> None:
    paths = [tmp_path / "jobs.json", tmp_path / name]
    paths[0].write_bytes(compact(jobs("shop")))
    paths[1].write_bytes(USELESS[name])
    with pytest.raises(TraceFormatError) as refused:
        import_files(ImportRequest([*map(str, paths)], tmp_path / "trace"))
    assert "\n" not in str(refused.value)


def test_manifests_beside_a_log_are_left_out_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "audit.log").write_bytes(CRONJOB)
    (folder / "rule.yaml").write_bytes(RULE)
    (folder / "job.json").write_text(json.dumps(MANIFEST))
    (folder / "README.md").write_bytes(HINTED)
    (result,) = import_files(ImportRequest([str(folder)], tmp_path / "trace"))
    assert (result.kind, result.rows) == ("audit", 1)
    assert any("job.json has manifests only" in remark for remark in result.remarks)
    assert any("rule.yaml looks like" in problem for problem in result.problems)


def test_what_stood_back_for_what_is_of_no_use_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "job.json").write_text(json.dumps(MANIFEST))
    (folder / "pods.txt").write_text(
        "NAME   READY   STATUS    RESTARTS   AGE\na-1    1/1     Running   0          5m\n"
    )
    (result,) = import_files(ImportRequest([str(folder)], tmp_path / "trace"))
    assert (result.kind, result.rows) == ("kubectl-text", 1)
    assert any("job.json has manifests only" in remark for remark in result.remarks)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (json.dumps(MANIFEST).encode(), "manifests only"),
        (RULE, "looks like a source of the kind audit"),
        (POLICY, "none of the kinds"),
        (b"", "is empty"),
    ],
    ids=["a manifest", "no log", "a policy", "nothing"],
)
def test_of_standard_input_is_said_what_was_in_it(
    content: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read once; what was looked at is asked again what it is."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(TraceFormatError, match=said):
        import_files(ImportRequest(["-"], tmp_path / "trace"))


def test_of_nothing_but_such_files_the_first_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("rule.yaml", "polls.json"):
        (folder / name).write_bytes(USELESS[name])
    with pytest.raises(TraceFormatError, match=r"polls\.json"):
        import_files(ImportRequest([str(folder)], tmp_path / "trace"))
