"""Redaction: what is secret goes, what a replay decides by stays."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest

from tests.record.test_record_cli import run
from tracekit.errors import UsageError
from tracekit.record.redact import FIELDS, PREFIX, Redactor, parse_fields, read_key, suspicions
from tracekit.trace.model import Gap
from tracekit.trace.reader import TraceReader
from tracekit.trace.writer import TraceWriter

KEY = b"0123456789abcdef"
ALL = frozenset(FIELDS)

CONTAINER = {
    "name": "main",
    "image": "registry.example/app:1",
    "command": ["run", "--token=hunter2hunter2"],
    "args": ["--verbose"],
    "env": [
        {"name": "PASSWORD", "value": "hunter2hunter2"},
        {"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ],
    "livenessProbe": {"exec": {"command": ["check", "secret-word"]}},
    "lifecycle": {"preStop": {"exec": {"command": ["stop", "secret-word"]}}},
}
POD_SPEC = {"containers": [CONTAINER], "initContainers": [CONTAINER], "restartPolicy": "Never"}
TEMPLATE = {"metadata": {"annotations": {"team.example/note": "private"}}, "spec": POD_SPEC}
JOB = {
    "metadata": {
        "name": "j",
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "{everything}",
            "batch.kubernetes.io/job-tracking": "",
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:00:00Z",
            "note": "private",
        },
    },
    "spec": {"completions": 3, "template": TEMPLATE},
}
POD = {"metadata": {"name": "p", "annotations": {"team.example/note": "private"}}, "spec": POD_SPEC}
CRONJOB = {"metadata": {"name": "c"}, "spec": {"jobTemplate": {"spec": JOB["spec"]}}}


def test_equal_values_stay_equal_across_kinds() -> None:
    redactor = Redactor(KEY, ALL)
    job, pod, cron = redactor("jobs", JOB), redactor("pods", POD), redactor("cronjobs", CRONJOB)
    template = job["spec"]["template"]
    assert template["spec"] == pod["spec"]
    assert template["metadata"]["annotations"] == pod["metadata"]["annotations"]
    assert cron["spec"]["jobTemplate"]["spec"] == job["spec"]


def test_nothing_secret_is_left_and_nothing_else_is_touched() -> None:
    redacted = Redactor(KEY, ALL)("jobs", JOB)
    text = json.dumps(redacted)
    for word in ("hunter2", "private", "everything", "secret-word", "--verbose"):
        assert word not in text
    container = redacted["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == CONTAINER["image"]
    assert container["env"][1] == CONTAINER["env"][1]
    assert container["env"][0]["name"] == "PASSWORD"
    assert redacted["spec"]["completions"] == 3
    machine = redacted["metadata"]["annotations"]
    assert machine["batch.kubernetes.io/job-tracking"] == ""
    assert machine["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2026-01-01T00:00:00Z"


def test_the_original_is_not_changed() -> None:
    before = json.dumps(JOB)
    Redactor(KEY, ALL)("jobs", JOB)
    assert json.dumps(JOB) == before


def test_only_the_chosen_fields() -> None:
    redacted = Redactor(KEY, frozenset({"env"}))("jobs", JOB)
    container = redacted["spec"]["template"]["spec"]["containers"][0]
    assert container["env"][0]["value"].startswith(PREFIX)
    assert container["args"] == ["--verbose"]
    assert redacted["metadata"] == JOB["metadata"]


def test_keys_matter_and_hashing_twice_does_not() -> None:
    one, two = Redactor(KEY, ALL), Redactor(KEY[::-1], ALL)
    assert one.hashed("x") != two.hashed("x")
    assert one.hashed("x") == Redactor(KEY, ALL).hashed("x")
    assert one.hashed("x") != one.hashed("y")
    assert one.hashed(one.hashed("x")) == one.hashed("x")
    assert one.hashed("") == ""


@pytest.mark.parametrize(
    "body", [{}, {"metadata": None}, {"spec": []}, {"spec": {"containers": [1]}}]
)
def test_odd_objects_pass(body: dict) -> None:
    assert Redactor(KEY, ALL)("pods", body) == body


def test_fields_and_keys_are_checked(tmp_path: Path) -> None:
    assert parse_fields("env, args") == {"env", "args"}
    for text in ("", "secrets", "env,x"):
        with pytest.raises(UsageError, match="cannot be redacted"):
            parse_fields(text)
    assert len(read_key(None)) == 32
    assert read_key(None) != read_key(None)
    short = tmp_path / "key"
    short.write_bytes(b"short")
    with pytest.raises(UsageError, match="shorter than 16 bytes"):
        read_key(short)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("AKIAIOSFODNN7EXAMPLE", "AWS access key"),
        ("-----BEGIN RSA PRIVATE KEY-----", "private key"),
        ("postgres://user:pw123@db/x", "password in a URL"),
        ("ghp_" + "a" * 36, "GitHub token"),
        ("--api-key=abcdef123456", "named like a secret"),
    ],
)
def test_suspicions(value: str, why: str) -> None:
    ((path, found),) = suspicions({"spec": {"containers": [{"args": [value]}]}})
    assert path == "spec.containers[].args[]"
    assert why in found


def test_redacted_objects_are_not_suspicious() -> None:
    assert list(suspicions(JOB))
    assert list(suspicions(Redactor(KEY, ALL)("jobs", JOB))) == []


def _trace(path: Path) -> Path:
    with TraceWriter(path) as writer:
        for number, body in enumerate((JOB, POD)):
            meta = {"uid": f"u{number}", "namespace": "ns", "resourceVersion": str(number + 1)}
            full = {**body, "metadata": {**body["metadata"], **meta}}
            stream = ("jobs", "pods")[number]
            writer.append(stream, "ADDED", 10 + number, orjson.dumps(full))
        writer.gap(Gap("pods", "410", 2, 9, 11, 12), 12)
        writer.unparsed(b"password=hunter2hunter2", 13, "not JSON", stream="pods")
    return path


def test_a_trace_is_copied_row_by_row(tmp_path: Path, capsys) -> None:
    trace, out = _trace(tmp_path / "in"), tmp_path / "out"
    (tmp_path / "key").write_bytes(KEY)
    assert run("redact", str(trace), "--check") == 1
    said = capsys.readouterr().out
    assert "jobs spec.template.spec.containers[][name=PASSWORD].value" not in said
    assert "named like a secret" in said
    assert run("redact", str(trace), "-o", str(out), "--key-file", str(tmp_path / "key")) == 0
    assert run("redact", str(out), "--check") == 0
    columns = ("seq", "stream", "type", "recv_ns", "rv", "uid", "gap_last_rv", "gap_next_rv")
    before, after = TraceReader(trace), TraceReader(out)
    assert before.table(columns).to_pylist() == after.table(columns).to_pylist()
    assert not any("hunter2" in (r or "") for r in after.table(("raw",))["raw"].to_pylist())
    assert after.header.sessions[-1]["redacted"] == ["annotations", "args", "env"]


def test_refusals(tmp_path: Path, capsys) -> None:
    trace = _trace(tmp_path / "in")
    assert run("redact", str(trace)) == 2
    assert "Name the redacted copy with -o" in capsys.readouterr().err
    assert run("redact", str(trace), "-o", str(trace)) == 2
    assert "exists; choose another name" in capsys.readouterr().err
    assert run("redact", str(tmp_path / "none"), "-o", str(tmp_path / "o")) == 2
    assert run("redact", str(trace), "-o", str(tmp_path / "o"), "--fields", "labels") == 2


@pytest.mark.parametrize("name", ["v1.36.3-restart", "v1.28.15-all"])
def test_a_redacted_trace_replays_with_the_same_verdicts(tmp_path: Path, capsys, name: str) -> None:
    log = Path(__file__).resolve().parents[2] / "traces" / name / "watch.jsonl.zst"
    trace, out = tmp_path / "in", tmp_path / "out"
    version = ("--kubernetes-version", name.rpartition("-")[0])
    assert run("import", "watch", str(log), "-o", str(trace), *version) == 0
    assert run("redact", str(trace), "-o", str(out)) == 0
    verdicts = []
    for one in (trace, out):
        capsys.readouterr()
        run("replay", str(one), "--diff", "-o", "json")
        verdicts.append(json.loads(capsys.readouterr().out))
    assert verdicts[0] == verdicts[1]
    assert verdicts[0]["observations"] > 100
