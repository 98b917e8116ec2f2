"""Audit logs as providers keep them: each made of a shipped log by the transformation shown here.

Field names: Cloud Logging's LogEntry and google.cloud.audit.AuditLog; CloudWatch Logs'
FilterLogEvents, subscription and Insights answers; Azure Monitor's resource logs and the tables
AKSAudit; `oc adm node-logs`; the log shippers of containers.
"""

from __future__ import annotations

import base64
import csv
import gzip
import html
import io
import json

import pytest
import yaml

from tests.unit.trace.importers.audit_logs import shipped
from tracekit.base.errors import TraceFormatError
from tracekit.judge.judged import Judge, resolve_era
from tracekit.trace.format.model import TraceHeader
from tracekit.trace.importers.audit.encoded import decoded
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

NAME = "v1.36.3-twins"
_RPC = {403: 7, 404: 5, 409: 10, 422: 3, 500: 13}


def entries():
    return [json.loads(line) for line in shipped(NAME)]


def gke(entry):
    """A LogEntry of cloudaudit.googleapis.com/activity."""
    ref = entry.get("objectRef") or {}
    group = ref.get("apiGroup", "core").removesuffix(".k8s.io") or "core"
    version = ref.get("apiVersion", "v1")
    parts = [group, version]
    if ref.get("namespace"):
        parts += ["namespaces", ref["namespace"]]
    if ref.get("resource") != "namespaces" or not ref.get("namespace"):
        parts += [p for p in (ref.get("resource"), ref.get("name"), ref.get("subresource")) if p]
    names = [p for p in (ref.get("resource"), ref.get("subresource")) if p]
    payload = {
        "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
        "serviceName": "k8s.io",
        "methodName": f"io.k8s.{group}.{version}.{'.'.join(names)}.{entry['verb']}",
        "resourceName": "/".join(parts),
        "authenticationInfo": {"principalEmail": entry["user"]["username"]},
        "requestMetadata": {"callerSuppliedUserAgent": entry.get("userAgent", "")},
    }
    for theirs, ours in (("request", "requestObject"), ("response", "responseObject")):
        if ours in entry:
            payload[theirs] = {"@type": "core.k8s.io/v1.Any", **entry[ours]}
    code = entry["responseStatus"]["code"]
    if code >= 400:
        payload["status"] = {"code": _RPC.get(code, 13)}
    return {
        "insertId": entry["auditID"],
        "logName": "projects/p/logs/cloudaudit.googleapis.com%2Factivity",
        "operation": {"id": entry["auditID"], "producer": "k8s.io", "first": True, "last": True},
        "protoPayload": payload,
        "resource": {"type": "k8s_cluster"},
        "timestamp": entry["stageTimestamp"],
    }


def compact(document):
    return json.dumps(document, separators=(",", ":"))


def csv_of(names, table, sign=","):
    text = io.StringIO()
    csv.writer(text, delimiter=sign).writerows([names, *table])
    return text.getvalue()


def otlp(body):
    """A line of the file exporter of OpenTelemetry's collector."""
    record = {"observedTimeUnixNano": "1", "body": body, "attributes": []}
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"logRecords": [record]}]}]}


def in_base64(document, *, packed=True):
    text = compact(document).encode()
    return base64.b64encode(gzip.compress(text) if packed else text).decode()


def bigquery(entry):
    """A row of the table that a sink of Cloud Logging fills."""
    payload = {k: v for k, v in entry["protoPayload"].items() if k not in ("@type", "status")}
    for name in ("request", "response"):
        body = payload.pop(name, None)
        payload[f"{name}Json"] = None if body is None else compact(body)
    status = entry["protoPayload"].get("status")
    at = entry["timestamp"].replace("T", " ").replace("Z", " UTC")
    rest = {k: v for k, v in entry.items() if k != "protoPayload"}
    return {**rest, "timestamp": at, "protopayload_auditlog": {**payload, "status": status}}


def as_texts(event):
    """An event as Simple Log Service keeps it: each field a text."""
    return {k: v if isinstance(v, str) else compact(v) for k, v in event.items()}


def any_value(value):
    """A value as opentelemetry-proto's AnyValue in JSON."""
    if type(value) is dict:
        pairs = [{"key": key, "value": any_value(item)} for key, item in value.items()]
        return {"kvlistValue": {"values": pairs}}
    if type(value) is list:
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    kind = kinds.get(type(value))
    return {} if kind is None else {kind: str(value) if kind == "intValue" else value}


def wrapped(shape, found):
    """The text of a log of that shape."""
    texts = [compact(e) for e in found]
    event = [
        {"logStreamName": "kube-apiserver-audit-1f", "timestamp": 1, "message": t} for t in texts
    ]
    records = [
        {
            "category": "kube-audit",
            "properties": {"log": t, "stream": "stdout", "pod": "kube-apiserver-0"},
        }
        for t in texts
    ]
    tables = [
        {
            "AuditId": e["auditID"], "Level": e["level"], "Stage": e["stage"], "Verb": e["verb"],
            "RequestUri": e["requestURI"], "UserAgent": e.get("userAgent"),
            "User": compact(e["user"]), "ObjectRef": compact(e.get("objectRef") or {}),
            "ResponseStatus": compact(e["responseStatus"]),
            "RequestObject": compact(e.get("requestObject")),
            "ResponseObject": compact(e.get("responseObject")),
            "RequestReceivedTime": e["requestReceivedTimestamp"],
            "StageReceivedTime": e["stageTimestamp"],
        }
        for e in found
    ]  # fmt: skip
    return {
        "plain": lambda: "\n".join(texts),
        "webhook": lambda: "\n".join(
            compact({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": found[i : i + 50]})
            for i in range(0, len(found), 50)
        ),
        "gke": lambda: json.dumps([gke(e) for e in found], indent=2),
        "gke-lines": lambda: "\n".join(compact(gke(e)) for e in found),
        "eks-filter": lambda: json.dumps({"events": event, "searchedLogStreams": []}, indent=4),
        "eks-subscription": lambda: "\n".join(
            compact({"messageType": "DATA_MESSAGE", "logEvents": event[i : i + 100]})
            for i in range(0, len(event), 100)
        ),
        "eks-insights": lambda: compact(
            {"results": [[{"field": "@timestamp", "value": "t"}, {"field": "@message", "value": t}]
                         for t in texts]}
        ),
        "eks-export": lambda: "\n".join(f"2026-11-21T05:56:42.442Z {t}" for t in texts),
        "aks": lambda: "\n".join(map(compact, records)),
        "aks-blob": lambda: compact({"records": records}),
        "aks-table": lambda: "\n".join(map(compact, tables)),
        "openshift": lambda: "\n".join(f"ip-10-0-1-2.ec2.internal {t}" for t in texts),
        "fluent-bit": lambda: "\n".join(compact({"date": 1.0, "log": e}) for e in found),
        "fluent-bit-merged": lambda: "\n".join(
            compact({"date": 1.0, **e, "kubernetes": {"pod_name": "a"}}) for e in found
        ),
        "splunk-hec": lambda: "".join(
            compact({"time": 1, "sourcetype": "kube:audit", "event": e}) for e in found
        ),
        "splunk-raw": lambda: "\n".join(
            compact({"preview": False, "offset": i, "result": {"_raw": t, "_time": "x"}})
            for i, t in enumerate(texts)
        ),
        "elastic": lambda: "\n".join(
            compact({"_index": "logs", "_source": {"kubernetes": {"audit": e}}}) for e in found
        ),
        "elastic-text": lambda: json.dumps(
            {"hits": {"hits": [{"_source": {"message": t, "agent": {}}} for t in texts]}}, indent=2
        ),
        "datadog": lambda: compact(
            {"data": [{"id": "A", "attributes": {"service": "k", "attributes": e}} for e in found]}
        ),
        "loki": lambda: "\n".join(
            compact({"labels": {"job": "audit"}, "line": t, "timestamp": "x"}) for t in texts
        ),
        "loki-api": lambda: compact(
            {"data": {"result": [{"stream": {}, "values": [["1", t] for t in texts]}]}}
        ),
        "journald": lambda: "\n".join(
            compact({"MESSAGE": list(t.encode()) if i % 2 else t, "_PID": "1"})
            for i, t in enumerate(texts)
        ),
        "kubectl-logs-prefix": lambda: "\n".join(
            f"[pod/kube-apiserver-a/kube-apiserver] {t}" for t in texts
        ),
        "cri": lambda: "\n".join(
            f"2026-11-21T05:56:42.4Z stdout {'F' if last else 'P'} {part}"
            for t in texts
            for part, last in ((t[:100], False), (t[100:], True))
        ),
        "docker": lambda: "\n".join(
            compact({"log": part, "stream": "stdout", "time": "x"})
            for t in texts
            for part in (t[:100], t[100:] + "\n")
        ),
        "firehose": lambda: "".join(
            compact({"messageType": "DATA_MESSAGE", "logEvents": event[i : i + 100]})
            for i in range(0, len(event), 100)
        ),
        "insights-csv": lambda: csv_of(["@timestamp", "@message"], [["t", t] for t in texts]),
        "azure-diagnostics-csv": lambda: csv_of(
            ["TimeGenerated [UTC]", "Category", "log_s"], [["t", "kube-audit", t] for t in texts]
        ),
        "azure-table-csv": lambda: csv_of(
            list(tables[0]), [[v or "" for v in row.values()] for row in tables]
        ),
        "azure-query": lambda: compact(
            {"tables": [{"name": "PrimaryResult", "columns": [{"name": n} for n in tables[0]],
                         "rows": [list(row.values()) for row in tables]}]}
        ),
        "otlp": lambda: "\n".join(compact(otlp({"stringValue": t})) for t in texts),
        "otlp-values": lambda: "\n".join(compact(otlp(any_value(e))) for e in found),
        "vector": lambda: "\n".join(
            compact({"file": "a", "message": t, "source_type": "file", "timestamp": "x"})
            for t in texts
        ),
        "logcli": lambda: "\n".join(
            f'2026-11-21T05:56:42Z {{job="audit", filename="a"}} {t}' for t in texts
        ),
        "fluentd-file": lambda: "\n".join(f"2026-11-21T05:56:42+00:00\taudit\t{t}" for t in texts),
        "syslog": lambda: "\n".join(
            f"<134>1 2026-11-21T05:56:42Z master kube-apiserver 1 - - {t}" for t in texts
        ),
        "journalctl": lambda: "\n".join(
            f"2026-11-21T05:56:42+0000 host k3s[812]: {t}" for t in texts
        ),
        "gelf": lambda: "\n".join(
            compact({"version": "1.1", "short_message": "a", "full_message": t}) for t in texts
        ),
        "bigquery": lambda: json.dumps([bigquery(gke(e)) for e in found], indent=2),
        "pubsub": lambda: json.dumps(
            [{"ackId": "a", "message": {"data": in_base64(gke(e), packed=False)}} for e in found]
        ),
        "lambda": lambda: compact({"awslogs": {"data": in_base64({"logEvents": event})}}),
        "kinesis": lambda: compact(
            {"Records": [{"kinesis": {"data": in_base64({"logEvents": event[i : i + 50]})}}
                         for i in range(0, len(event), 50)]}
        ),
        "sls": lambda: "\n".join(compact({"__topic__": "", **as_texts(e)}) for e in found),
        "sls-bare": lambda: "\n".join(compact(as_texts(e)) for e in found),
        "kafka": lambda: "\n".join(
            compact({"topic": "a", "offset": i, "payload": t}) for i, t in enumerate(texts)
        ),
        "journal-export": lambda: "".join(f"_PID=1\nMESSAGE={t}\n\n" for t in texts),
        "array": lambda: compact(found),
        "array-by-lines": lambda: "[\n" + "\n,".join(texts) + "\n]",
        "pretty": lambda: "\n".join(json.dumps(e, indent=2) for e in found),
        "eks-text": lambda: "".join(
            f"EVENTS\t3{i}\t1795239761100\tkube-apiserver-audit-1f\t{t}\t1795239761057\n"
            for i, t in enumerate(texts)
        ),
        "eks-yaml": lambda: yaml.safe_dump({"events": event, "searchedLogStreams": []}),
        "aks-tsv": lambda: "".join(f"kube-audit\t{t}\tPrimaryResult\n" for t in texts),
        "semicolons": lambda: csv_of(["Time", "Line"], [["x", t] for t in texts], ";"),
        "tabs": lambda: csv_of(["Time", "Line"], [["x", t] for t in texts], "\t"),
        "splunk-xml": lambda: "".join(
            f"<result><field k='_raw'><v xml:space='preserve' trim='0'>{html.escape(t)}</v></field>"
            "</result>\n" for t in texts
        ),
        "journal-sse": lambda: "".join(f"data: {compact({'MESSAGE': t})}\n\n" for t in texts),
        "coloured": lambda: "\n".join(f"\x1b[1;39m{t.replace(':', chr(27) + '[0m:')}" for t in texts),
        "gke-yaml": lambda: "".join("---\n" + yaml.safe_dump(gke(e)) for e in found),
        "shipper": lambda: "\n".join(
            compact({"log": t + "\n", "stream": "stdout", "time": "x"}) for t in texts
        ),
    }[shape]()  # fmt: skip


SHAPES = {
    "webhook": "batch", "gke": "gke", "gke-lines": "gke", "eks-filter": "eks",
    "eks-subscription": "eks", "eks-insights": "eks", "eks-export": "cloudwatch", "aks": "aks",
    "aks-blob": "aks", "aks-table": "aks", "openshift": "openshift", "shipper": "container log",
    "fluent-bit": "container log", "fluent-bit-merged": "audit", "splunk-hec": "splunk",
    "splunk-raw": "splunk", "elastic": "elastic", "elastic-text": "elastic",
    "datadog": "datadog", "loki": "loki", "loki-api": "loki", "journald": "journald",
    "kubectl-logs-prefix": "container log", "cri": "container log", "docker": "container log",
    "firehose": "eks", "insights-csv": "eks", "azure-diagnostics-csv": "aks",
    "azure-table-csv": "aks", "azure-query": "aks", "array": "audit", "array-by-lines": "audit",
    "pretty": "audit", "gke-yaml": "gke", "eks-text": "log line", "eks-yaml": "eks",
    "aks-tsv": "aks", "semicolons": "audit", "tabs": "audit", "splunk-xml": "log line",
    "journal-sse": "journald", "coloured": "audit",
    "otlp": "otlp", "otlp-values": "otlp", "vector": "container log", "logcli": "log line",
    "fluentd-file": "log line", "syslog": "log line", "journalctl": "log line", "gelf": "audit",
    "bigquery": "gke", "pubsub": "gke", "lambda": "eks", "kinesis": "eks", "sls": "audit",
    "sls-bare": "audit", "kafka": "audit", "journal-export": "journald",
}  # fmt: skip


def imported(tmp_path, text, name="log", header=None):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()))
    results = import_files(
        ImportRequest([str(path)], tmp_path / f"{name}-trace", header or TraceHeader())
    )
    return TraceReader(tmp_path / f"{name}-trace"), results


def rows(reader):
    columns = ("stream", "type", "rv", "uid", "actor", "verb", "derived_from", "code", "name")
    return sorted(map(str, reader.table(columns).to_pylist()))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return imported(tmp_path_factory.mktemp("plain"), wrapped("plain", entries()))[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_wrapped_log_is_the_same_trace(tmp_path, plain, shape):
    reader, results = imported(tmp_path, wrapped(shape, entries()))
    assert results[0].kind == "audit"
    assert set(results[0].shapes) == {SHAPES[shape]}
    if SHAPES[shape] != "gke":
        assert rows(reader) == rows(plain)
        return
    # Cloud Logging has one time, of the answer: bounds are wider, and codes are of another table.
    told = [r for r in reader.table(("rv", "uid", "type", "derived_from")).to_pylist() if r["rv"]]
    seen = [r for r in plain.table(("rv", "uid", "type", "derived_from")).to_pylist() if r["rv"]]
    exact = lambda found: {  # noqa: E731
        (r["rv"], r["uid"], r["type"]) for r in found if r["derived_from"] is None
    }
    assert exact(told) == exact(seen)
    assert len(told) == len(seen)
    report = Judge(reader, resolve_era(reader, None, None)).report()
    assert report.divergences == []


def test_too_large_a_body_of_aks_is_a_write_that_was_not_seen(tmp_path):
    found = entries()
    skipped = 0
    for entry in found:
        ref = entry.get("objectRef") or {}
        of_pods = (ref.get("resource"), ref.get("subresource")) == ("pods", "status")
        if of_pods and entry["responseStatus"]["code"] == 200 and skipped < 5:
            entry["requestObject"] = entry["responseObject"] = "skipped-too-big-size-object"
            skipped += 1
    reader, results = imported(tmp_path, wrapped("aks", found))
    assert results[0].gaps >= 1
    calls = reader.table(("reason",), types=["CALL"]).to_pylist()
    assert sum(c["reason"].startswith("logged without its answer") for c in calls) >= skipped


def test_a_must_gather_is_a_directory_with_other_logs_in_it(tmp_path, plain):
    lines = wrapped("plain", entries()).splitlines()
    place = tmp_path / "audit_logs" / "kube-apiserver"
    place.mkdir(parents=True)
    for number, part in enumerate((lines[:700], lines[600:])):
        name = f"master-{number}-audit.log.gz"
        (place / name).write_bytes(gzip.compress("\n".join(part).encode() + b"\n"))
    (tmp_path / "audit_logs" / "version.txt").write_text("4.16\n")
    results = import_files(ImportRequest([str(tmp_path / "audit_logs")], tmp_path / "trace"))
    assert rows(TraceReader(tmp_path / "trace")) == rows(plain)
    assert results[0].calls["logged twice, left out"] > 0


def test_impersonation_names_who_acted(tmp_path):
    found = entries()
    for entry in found:
        if entry["user"]["username"] == "admin":
            entry["user"] = {"username": "system:serviceaccount:cattle-system:rancher"}
            entry["impersonatedUser"] = {"username": "u-alice"}
    reader, _ = imported(tmp_path, wrapped("plain", found))
    assert "u-alice" in {r["actor"] for r in reader.table(("actor",)).to_pylist()}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stage": "RequestReceived"}, "no answer: their stages are 1 RequestReceived"),
        ({"objectRef": {"resource": "nodes", "name": "a"}}, "none is about the API group batch"),
        ({"verb": "get", "responseObject": None}, "no write to a Job: take the log of a time"),
        ({"responseObject": None}, "no answer that shows one"),
    ],
)
def test_what_a_log_cannot_tell_is_said_as_it_is(tmp_path, change, said):
    entry = next(e for e in entries() if (e.get("objectRef") or {}).get("resource") == "jobs")
    with pytest.raises(TraceFormatError, match=said):
        imported(tmp_path, compact({**entry, **change}))


def test_an_audit_event_is_no_event_of_a_cluster(tmp_path):
    entry = next(e for e in entries() if (e.get("objectRef") or {}).get("resource") == "jobs")
    reader, results = imported(tmp_path, yaml.safe_dump(entry))
    assert results[0].kind == "audit"
    assert [s.stream for s in reader.streams()] == ["jobs"]
    with pytest.raises(TraceFormatError, match="is no kubectl source but audit"):
        import_files(ImportRequest([str(tmp_path / "log")], tmp_path / "other", kind="kubectl"))


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(gzip.compress(b'{"auditID": "' + b"a" * 10_000_000 + b'"}')).decode(),
        base64.b64encode(gzip.compress(b'{"auditID": "a"}'))[:-8].decode(),
        "H4sI" + "A" * 400,
        "eyJ!",
    ],
    ids=["bomb", "cut", "damaged", "no base64"],
)
def test_what_is_no_encoded_log_is_left_as_it_is(tmp_path, text):
    """Beside an entry it is a line without one; memory is that of the bytes it came in."""
    assert decoded(text) is None
    log = wrapped("plain", entries()) + "\n" + compact({"awslogs": {"data": text}}) + "\n"
    _, results = imported(tmp_path, log)
    (said,) = [n for what, n in results[0].problems.items() if "without an audit entry" in what]
    assert said == 1
