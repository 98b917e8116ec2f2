"""Redaction: what is secret goes, what a replay decides by stays."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest

from tests.record.test_record_cli import run
from tracekit.base.errors import UsageError
from tracekit.record.redaction.redact import (
    FIELDS,
    STRICT,
    Redactor,
    parse_fields,
    read_key,
    redacted_fields,
)
from tracekit.record.redaction.secrets import PREFIX, scrubbed, suspicions
from tracekit.trace.format.model import Call, Gap, Origin, TraceHeader
from tracekit.trace.format.schema import NAMES
from tracekit.trace.reading.reader import TraceReader
from tracekit.trace.writing.writer import TraceWriter

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
    assert container["command"][1].startswith("--token=redacted-"), "a secret by its look"


def test_keys_matter_and_hashing_twice_does_not() -> None:
    one, two = Redactor(KEY, ALL), Redactor(KEY[::-1], ALL)
    assert one.hashed("x") != two.hashed("x")
    assert one.hashed("x") == Redactor(KEY, ALL).hashed("x")
    assert one.hashed("x") != one.hashed("y")
    assert one.hashed(one.hashed("x")) == one.hashed("x")
    assert one.hashed("") == ""
    assert one.hashed("redacted-hunter2") != "redacted-hunter2", "only what looks like ours"


@pytest.mark.parametrize(
    "body", [{}, {"metadata": None}, {"spec": []}, {"spec": {"containers": [1]}}]
)
def test_odd_objects_pass(body: dict) -> None:
    assert Redactor(KEY, ALL)("pods", body) == body


def test_fields_and_keys_are_checked(tmp_path: Path) -> None:
    assert parse_fields("env, args") == {"env", "args"}
    assert parse_fields("all") == set(FIELDS)
    assert parse_fields("strict") == {"strict"}
    for text in ("", "secrets", "env,x"):
        with pytest.raises(UsageError, match="cannot be redacted"):
            parse_fields(text)
    assert len(read_key(None)) == 32
    assert read_key(None) != read_key(None)
    short = tmp_path / "key"
    short.write_bytes(b"short")
    with pytest.raises(UsageError, match="shorter than 16 bytes"):
        read_key(short)


SHAPES = [
    ("AKIAIOSFODNN7EXAMPLE", "AWS access key"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE+a/b=\n-----END RSA PRIVATE KEY-----", "private key"),
    ("postgres://user:pw123@db/x", "password in a URL"),
    ("ghp_" + "a" * 36, "GitHub token"),
    ("glpat-" + "a" * 20, "GitLab token"),
    ("AIza" + "a" * 35, "Google API key"),
    ("sk-proj-" + "a" * 20, "secret key of an API"),
    ("Authorization: Bearer abcdef123456789", "credential of a header"),
    ("eyJhbGciOiJub25l.eyJpc3MiOiJwbGFu.c2lnbmF0dXJl", "JSON web token"),
    ("--api-key=abcdef123456", "named like a secret"),
    ("password: redacted-hunter2", "named like a secret"),
]


@pytest.mark.parametrize(("value", "why"), SHAPES)
def test_suspicions(value: str, why: str) -> None:
    ((path, found),) = suspicions({"spec": {"containers": [{"args": [value]}]}})
    assert path == "spec.containers[].args[]"
    assert why in found


@pytest.mark.parametrize(("value", "why"), SHAPES)
def test_what_is_suspicious_is_what_is_taken_out_of_texts(value: str, why: str) -> None:
    del why
    redactor = Redactor(KEY, frozenset({"env"}))
    text = f"before {value} after"
    clean = scrubbed(text, redactor.hashed)
    assert clean != text
    assert clean.startswith("before ")
    assert list(suspicions({"x": clean})) == []
    assert scrubbed(clean, redactor.hashed) == clean
    pod = {"metadata": {"name": "p", "labels": {"l": value}}, "spec": {"hostname": value}}
    assert list(suspicions(redactor("pods", pod))) == []


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"metadata": {"annotations": {"AKIAIOSFODNN7EXAMPLE": ""}}}, "AKIAIOSFODNN7EXAMPLE"),
        ({"managedFields": [{"fieldsV1": {"f:ghp_" + "a" * 36: {}}}]}, "f:ghp_"),
        ({"volumeAttributes": {"password": "x"}}, "volumeAttributes.password"),
        ({"env": [{"name": "API_TOKEN", "value": "redacted-x"}]}, "name=API_TOKEN"),
        ({"httpHeaders": [{"name": "Cookie", "value": "x"}]}, "name=Cookie"),
    ],
)
def test_names_are_looked_at_and_look_alikes_of_hashes(body: dict, path: str) -> None:
    found = list(suspicions(body))
    assert found
    assert path in found[0][0]


def test_names_of_secrets_are_no_secrets() -> None:
    body = {"secretName": "db", "secretKeyRef": {"name": "db", "key": "password"}}
    body |= {"serviceAccountToken": {"path": "token"}, "automountServiceAccountToken": False}
    assert list(suspicions(body)) == []


def test_redacted_objects_are_not_suspicious() -> None:
    assert list(suspicions(JOB))
    assert list(suspicions(Redactor(KEY, ALL)("jobs", JOB))) == []


S = "Hunter2Planted"

#: A secret wherever a user, a kubelet or a server can leave one.
EVERYWHERE_POD = {
    "metadata": {
        "name": "p",
        "annotations": {
            "team.example/note": f"{S}-a",
            "kubernetes.io/change-cause": f"{S}-b",
            "made-up.k8s.io/x": f"{S}-c",
            "batch.kubernetes.io/job-tracking": f"{S}-d",
            "batch.kubernetes.io/job-completion-index": "3",
            f"https://u:{S}@x/y": "",
        },
        "managedFields": [
            {
                "manager": "kubectl",
                "operation": "Update",
                "time": "2026-01-01T00:00:00Z",
                "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{S}": {}}}},
            }
        ],
    },
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "main",
                "image": f"https://u:{S}@registry.example/app:1",
                "command": [f"{S}-e"],
                "args": [f"--x={S}-f"],
                "env": [{"name": "V", "value": f"redacted-{S}"}],
                "livenessProbe": {
                    "httpGet": {
                        "path": f"/{S}-g",
                        "host": f"{S}-h",
                        "port": 1,
                        "httpHeaders": [{"name": "X", "value": f"{S}-i"}],
                    }
                },
                "startupProbe": {"grpc": {"port": 1, "service": f"{S}-j"}},
                "readinessProbe": {"tcpSocket": {"port": 1, "host": f"{S}-k"}},
                "lifecycle": {"postStart": {"httpGet": {"path": f"{S}-l"}}},
            }
        ],
        "volumes": [
            {"name": "a", "csi": {"driver": "d", "volumeAttributes": {"k": f"{S}-m"}}},
            {"name": "b", "flexVolume": {"driver": "d", "options": {"k": f"{S}-n"}}},
            {"name": "c", "gitRepo": {"repository": f"https://u:{S}@git.example/x"}},
            {"name": "d", "nfs": {"server": f"nfs://u:{S}@x", "path": "/"}},
            {
                "name": "e",
                "ephemeral": {
                    "volumeClaimTemplate": {"metadata": {"annotations": {"a": f"{S}-t"}}}
                },
            },
        ],
    },
    "status": {
        "message": f"{S}-o",
        "conditions": [{"type": "Ready", "status": "False", "message": f"{S}-p"}],
        "containerStatuses": [
            {"name": "main", "state": {"waiting": {"reason": "X", "message": f"{S}-q"}}},
            {"name": "x", "lastState": {"terminated": {"exitCode": 1, "message": f"{S}-r"}}},
        ],
        "initContainerStatuses": [{"name": "i", "state": {"terminated": {"message": f"{S}-s"}}}],
    },
}


def _event(reason: str, message: str, component: str) -> dict:
    about = {"kind": "Job", "name": "j", "namespace": "ns", "uid": "u0"}
    return {
        "metadata": {"name": f"e-{reason}"},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "source": {"component": component},
    }


EVENTS = (
    _event("Unhealthy", f"Liveness probe failed: {S}", "kubelet"),
    _event("SuccessfulCreate", "Created pod: three-q4z9b", "job-controller"),
    _event("FailedCreate", f'Error creating: Pod "j-x" is invalid: "{S}-m"', "job-controller"),
)


#: What an audit log has of a request that was refused.
REFUSED = {
    "kind": "Status",
    "code": 422,
    "message": f'Job "j" is invalid: value "{S}-u"',
    "details": {"causes": [{"message": f"{S}-v", "field": f"spec[{S}]"}]},
}
PATCH = [
    {"op": "add", "path": "/spec/template/spec/containers/0/env/0/value", "value": f"{S}-w"},
    {"op": "add", "path": "/metadata/annotations", "value": {"a": [f"{S}-x"]}},
]


def _trace(path: Path) -> Path:
    header = TraceHeader(
        controller_flags=(f"--kubeconfig=https://u:{S}@x",),
        scope={"namespaces": None, "selector": f"password={S}"},
    )
    with TraceWriter(path, header) as writer:
        rows = [("jobs", JOB), ("pods", POD), ("pods", EVERYWHERE_POD)]
        for number, (stream, body) in enumerate([*rows, *(("events", one) for one in EVENTS)]):
            meta = {"uid": f"u{number}", "namespace": "ns", "resourceVersion": str(number + 1)}
            full = {**body, "metadata": {**body["metadata"], **meta}}
            writer.append(stream, "ADDED", 10 + number, orjson.dumps(full))
        writer.gap(Gap("pods", f"410 Gone: {S} is too old", 2, 9, 11, 12), 12)
        writer.unparsed(f"password={S}".encode(), 13, f"not JSON: password={S}", stream="pods")
        note = {"error": f"BadFrame: not a watch event: {S}"}
        writer.append("pods", "NOTE", 14, orjson.dumps(note))
        said = {"kind": "Status", "code": 500, "reason": "Bad", "message": S, "details": {"x": S}}
        writer.append("pods", "ERROR", 15, orjson.dumps(said))
        entry = {"verb": "create", "responseStatus": {"code": 403, "message": S}}
        entry |= {"requestObject": EVERYWHERE_POD, "annotations": {"x": S}}
        entry |= {"requestURI": f"/api/v1/pods?labelSelector={S}", "responseObject": REFUSED}
        about = Origin(actor="ann@example", verb="create", not_before_ns=3)
        writer.call(
            Call("pods", 16, orjson.dumps(entry), about, name="p", code=403, message=f"no {S}")
        )
        patch = {"verb": "patch", "responseStatus": REFUSED, "requestObject": PATCH}
        writer.call(Call("jobs", 17, orjson.dumps(patch), Origin(verb="patch"), name="j", code=422))
        event = {"verb": "create", "requestObject": {"kind": "Event", **EVENTS[0]}}
        writer.call(Call("events", 18, orjson.dumps(event), Origin(verb="create"), code=403))
    return path


def _texts(trace: Path) -> str:
    """Everything that a trace says."""
    rows = TraceReader(trace).table(NAMES).to_pylist()
    return (trace / "trace.json").read_text() + json.dumps(rows, default=str)


def test_planted_secrets_are_gone_whereever_they_were(tmp_path: Path, capsys) -> None:
    trace = _trace(tmp_path / "in")
    key = tmp_path / "key"
    key.write_bytes(KEY)
    assert _texts(trace).count(S) > 30
    for name, arguments in (("out", ()), ("strict", ("--strict",))):
        out = tmp_path / name
        assert run("redact", str(trace), "-o", str(out), "--key-file", str(key), *arguments) == 0
        text = _texts(out)
        assert S not in text, text[text.index(S) - 200 :][:400]
        assert run("redact", str(out), "--check") == 0, capsys.readouterr().out
        assert "Created pod: three-q4z9b" in text, "the controllers' own words stay"
        assert "410 Gone: redacted-" in text
        assert "BadFrame: redacted-" in text
        assert "Error creating: " in text


def test_recordings_are_redacted_alike_and_a_quoted_value_is_known_again() -> None:
    redactor = Redactor(KEY, ALL)
    attributes = redactor("pods", EVERYWHERE_POD)["spec"]["volumes"][0]["csi"]["volumeAttributes"]
    failed = redactor("events", EVENTS[2])["message"]
    assert failed == f'Error creating: Pod "j-x" is invalid: "{attributes["k"]}"'
    assert redactor("events", EVENTS[1])["message"] == EVENTS[1]["message"]
    assert redactor("events", EVENTS[0])["message"].startswith(PREFIX)


def test_strict_keeps_what_a_replay_needs_and_nothing_else() -> None:
    redacted = Redactor(KEY, frozenset({STRICT}))(
        "pods",
        {
            "metadata": {
                "name": "p",
                "labels": {"app": "shop", "job-name": "j"},
                "annotations": {"batch.kubernetes.io/job-completion-index": "3", "a": "b"},
                "finalizers": ["batch.kubernetes.io/job-tracking", "my.example/f"],
            },
            "spec": {
                "restartPolicy": "Never",
                "nodeName": "node-7",
                "nodeSelector": {"zone": "x"},
                "containers": [{"name": "main", "image": "shop:1", "env": [{"name": "N"}]}],
            },
            "status": {"phase": "Failed", "podIP": "10.0.0.1", "reason": "Evicted"},
        },
    )
    text = json.dumps(redacted)
    for word in ("shop", "app", "my.example", "node-7", "zone", "10.0.0.1", '"N"', '"a"', '"b"'):
        assert word not in text.replace("apps", ""), word
    assert redacted["metadata"]["labels"]["job-name"] == "j"
    assert redacted["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "3"
    assert redacted["metadata"]["finalizers"][0] == "batch.kubernetes.io/job-tracking"
    assert redacted["spec"]["restartPolicy"] == "Never"
    assert redacted["spec"]["containers"][0]["name"] == "main"
    assert (redacted["status"]["phase"], redacted["status"]["reason"]) == ("Failed", "Evicted")


def test_strict_selectors_still_select() -> None:
    redactor = Redactor(KEY, frozenset({STRICT}))
    selector = {"matchLabels": {"app": "x"}, "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["a", "b"]}]}  # fmt: skip
    job = redactor("jobs", {"metadata": {}, "spec": {"selector": selector}})
    pod = redactor("pods", {"metadata": {"labels": {"app": "x", "tier": "a"}}})
    labels, found = pod["metadata"]["labels"], job["spec"]["selector"]
    assert found["matchLabels"].items() <= labels.items()
    (expression,) = found["matchExpressions"]
    assert labels[expression["key"]] == expression["values"][0]
    assert expression["operator"] == "In"


def test_a_trace_is_copied_row_by_row(tmp_path: Path, capsys) -> None:
    trace, out = _trace(tmp_path / "in"), tmp_path / "out"
    (tmp_path / "key").write_bytes(KEY)
    assert run("redact", str(trace), "--check") == 1
    said = capsys.readouterr().out
    assert "named like a secret" in said
    assert "pods reason" not in said
    assert run("redact", str(trace), "-o", str(out), "--key-file", str(tmp_path / "key")) == 0
    assert run("redact", str(out), "--check") == 0
    columns = ("seq", "stream", "type", "recv_ns", "rv", "uid", "gap_last_rv", "gap_next_rv")
    columns = (*columns, "actor", "verb", "code", "not_before_ns", "derived_from")
    before, after = TraceReader(trace), TraceReader(out)
    assert before.table(columns).to_pylist() == after.table(columns).to_pylist()
    assert after.header.sessions[-1]["redacted"] == sorted(FIELDS)


def test_refusals(tmp_path: Path, capsys) -> None:
    trace = _trace(tmp_path / "in")
    assert run("redact", str(trace)) == 2
    assert "Name the redacted copy with -o" in capsys.readouterr().err
    assert run("redact", str(trace), "-o", str(trace)) == 2
    assert "exists: choose another name" in capsys.readouterr().err
    assert run("redact", str(tmp_path / "none"), "-o", str(tmp_path / "o")) == 2
    assert run("redact", str(trace), "-o", str(tmp_path / "o"), "--fields", "labels") == 2


@pytest.mark.parametrize("mode", [(), ("--strict",)])
@pytest.mark.parametrize("name", ["v1.36.3-all", "v1.28.15-all"])
def test_a_redacted_trace_replays_with_the_same_verdicts(
    tmp_path: Path, capsys, name: str, mode: tuple[str, ...]
) -> None:
    log = Path(__file__).resolve().parents[2] / "traces" / name / "watch.jsonl.zst"
    trace, out = tmp_path / "in", tmp_path / "out"
    version = ("--kubernetes-version", name.rpartition("-")[0])
    assert run("import", "watch", str(log), "-o", str(trace), *version) == 0
    assert run("redact", str(trace), "-o", str(out), *mode) == 0
    verdicts = []
    for one in (trace, out):
        capsys.readouterr()
        run("replay", str(one), "--diff", "-o", "json")
        verdicts.append(json.loads(capsys.readouterr().out))
    assert verdicts[0] == verdicts[1]
    assert verdicts[0]["observations"] > 100


def test_a_copy_says_what_is_hashed_in_all_of_it() -> None:
    raw, some, whole = {"source": "record"}, ["env"], list(FIELDS)
    for sessions, fields in (
        ((), set()),
        ((raw,), set()),
        (({**raw, "redacted": some},), {"env"}),
        (({**raw, "redacted": some}, {**raw, "redacted": whole}), {"env"}),
        (({**raw, "redacted": whole}, raw), set()),
        ((raw, {"source": "redact", "redacted": whole}), set(FIELDS)),
        ((raw, {"source": "redact", "redacted": whole}, {**raw, "redacted": some}), {"env"}),
        (({**raw, "redacted": 5},), set()),
    ):
        assert redacted_fields(TraceHeader(sessions=sessions)) == fields


def test_strict_keeps_no_label_of_a_selector() -> None:
    strict, mild = (Redactor(KEY, parse_fields(word)) for word in (STRICT, "all"))
    asked = {"resourceVersion": "1", "selector": "team=payments"}
    lease = {"resourceVersion": "1", "selector": "metadata.name=kube-controller-manager"}
    assert "payments" not in str(strict.row("jobs", "LIST_BEGIN", asked))
    assert "payments" not in str(strict.header({"selector": "team=payments"}))
    assert strict.row("leases", "LIST_BEGIN", lease) == lease
    assert mild.row("jobs", "LIST_BEGIN", asked) == asked
