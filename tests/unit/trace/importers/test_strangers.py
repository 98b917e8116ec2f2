"""What has to do with a source and is none: the sentence names what to do, and that works."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.unit.trace.importers.test_bundles import imported, jobs, listing, names, thing, zipped
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.run import ImportRequest, import_files

JOBS = [{**thing("Job", "shop", n), "spec": {}} for n in range(2)]
SNAKE = {
    "api_version": "batch/v1", "kind": "JobList", "metadata": {"resource_version": "9"},
    "items": [{"api_version": None, "kind": None, "spec": {"backoff_limit": 1}, "metadata": {
        "name": "a", "uid": "u", "resource_version": "5", "creation_timestamp": "x"}}],
}  # fmt: skip
LEGACY = '2026-11-21T05:42:41Z AUDIT: id="1" ip="::1" method="GET" user="a" uri="/api"\n'
#: What a file holds, and what is said of it.
SAID: dict[str, tuple[bytes | str, str]] = {
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4" + bytes(100), "is a 7z archive"),
    "RAR": (b"Rar!\x1a\x07\1\0" + bytes(100), "is a RAR archive"),
    "lz4": (b"\x04\x22\x4d\x18d@\xa7" + bytes(range(255)), "is compressed by lz4"),
    "Parquet": (b"PAR1" + bytes(100) + b"PAR1", "is a Parquet file"),
    "protobuf": (b"k8s\0\n\x0c\n\x02v1\x12\x06PodList" + bytes(range(200)), "Accept: application/json"),
    "gzip, twice": (gzip.compress(gzip.compress(b"{}")), "is compressed twice over"),
    "a log-in": ("<!DOCTYPE html>\n<html>{}</html>", "is a page of HTML"),
    "etcdctl": (json.dumps({"header": {}, "kvs": [{"key": "L3I=", "mod_revision": 5}]}), "etcdctl snapshot save"),
    "etcdctl, keys": (b"/registry/jobs/shop/a\nk8s\0\n\x0f\n\x08batch/v1\n", "etcdctl snapshot save"),
    "rubydebug": (
        '{\n       "message" => "{\\"kind\\":\\"Event\\",\\"auditID\\":\\"a\\"}",\n    "@version" => "1"\n}\n',
        "codec => json_lines",
    ),
    "metrics": ('# HELP kube_job_info x\nkube_job_info{job_name="a"} 1\n', "is metrics in Prometheus'"),
    "Prometheus": (
        json.dumps({"data": {"resultType": "vector", "result": [{"metric": {}}]}}, indent=1),
        "is an answer of Prometheus",
    ),
    "k9s": (
        "┌──── jobs(all)[1] ────┐\n│ NAMESPACE↑  NAME  AGE │\n│ shop        load  9m  │\n",
        "is a copy of a screen of k9s",
    ),
    "legacy audit": (LEGACY * 3, "--audit-log-format=json"),
    "SimKube": (b"\x82\xa7version\x02\xa6events\x91\x82\xa2ts\x01\xacapplied_objs\x90apiVersion", "SimKube"),
    "Python's client": (json.dumps(SNAKE), "sanitize_for_serialization"),
    "Python's print": (repr(JOBS[0]), "is what Python prints of objects"),
    "an empty list of Rancher": (
        json.dumps({"type": "collection", "resourceType": "batch.job", "data": [], "resource": "x"}),
        "is an empty list of Rancher's API",
    ),
}  # fmt: skip
#: Where programs put a list's objects.
BELOW: dict[str, tuple[Any, str]] = {
    "Ansible": ({"changed": False, "resources": JOBS}, ".resources[]"),
    "ConvertTo-Json": ({"value": JOBS, "Count": 2}, ".value[]"),
    "Rancher": ({"type": "collection", "data": JOBS}, ".data[]"),
    "answers": ([{"result": {"objects": [job]}} for job in JOBS], ".[].result.objects[]"),
}


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("kind", [None, "kubectl"])
def test_one_sentence_says_what_to_do(name: str, kind: str | None, tmp_path: Path) -> None:
    content, said = SAID[name]
    file = tmp_path / "source"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TraceFormatError) as refused:
        import_files(ImportRequest([str(file)], tmp_path / "trace", kind=kind))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("name", BELOW)
def test_objects_under_a_key_are_taken_out_by_what_is_said(name: str, tmp_path: Path) -> None:
    content, path = BELOW[name]
    file = tmp_path / "an answer's.json"
    file.write_text(json.dumps(content, indent=2))
    with pytest.raises(TraceFormatError) as refused:
        import_files(ImportRequest([str(file)], tmp_path / "trace"))
    command = re.search(r"`(jq [^`]*) > objects.jsonl`", str(refused.value))
    assert command is not None
    assert shlex.split(command[1]) == ["jq", "-c", path, str(file)]


def test_an_empty_array_is_not_said_to_be_cut_off(tmp_path: Path) -> None:
    files = {"b/jobs.json": json.dumps(jobs("shop")).encode(), "b/groups.json": b"[]\n"}
    (tmp_path / "b.zip").write_bytes(zipped(files))
    _, result = imported(tmp_path / "b.zip", tmp_path)
    assert not any("cut off" in remark for remark in result.remarks)


@pytest.mark.parametrize("sign", ["/", "\\"])
@pytest.mark.parametrize("layout", ["b/namespaces/{}/batch/jobs.json", "r/resources/ns/{}/batch_v1_jobs.json"])  # fmt: skip
def test_an_empty_list_is_of_the_namespace_of_its_folder(
    sign: str, layout: str, tmp_path: Path
) -> None:
    """Of must-gather and of Sonobuoy; older archives of PowerShell part folders as Windows does."""
    files = {"shop": jobs("shop"), "idle": listing("Job", [])}
    content = {
        layout.format(space).replace("/", sign): json.dumps(found).encode()
        for space, found in files.items()
    }
    (tmp_path / "b.zip").write_bytes(zipped(content))
    reader, _ = imported(tmp_path / "b.zip", tmp_path)
    assert names(reader) == ["jobs/shop/job-0", "jobs/shop/job-1"]
    (begin,) = reader.table(("raw",), types=["LIST_BEGIN"])["raw"].to_pylist()
    assert json.loads(begin)["scope"] == ["idle", "shop"]
