"""Files in the formats of other tools, made here: which are read, what of them, and what is said of the rest.

Each is of two Jobs, a pod, a CronJob or two Events of one of the Jobs, as the tool writes them.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.trace.importers.audit_logs import entry
from tests.unit.trace.importers.test_bundles import jobs, listing, tarred, text, thing
from tracekit.base.errors import TraceFormatError
from tracekit.trace.importers.report import ImportResult
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.reader import TraceReader

JOBS = [thing("Job", "shop", number) for number in range(2)]
POD, CRON = thing("Pod", "shop", 0), thing("CronJob", "shop", 0)
AUDIT = [
    entry("create", "jobs", f"job-{n}", at_s=n, response=obj, code=201, audit_id=f"a-{n}")
    for n, obj in enumerate(JOBS)
]
MARKS = "==== {} logs for container c of pod shop/pod-0 ===="


def event(number: int) -> dict[str, Any]:
    meta = {**thing("Event", "shop", number)["metadata"], "name": f"job-0.{number}"}
    about = {"kind": "Job", "namespace": "shop", "name": "job-0", "uid": "Job-shop-0"}
    return {
        "kind": "Event", "apiVersion": "v1", "metadata": meta, "involvedObject": about,
        "reason": "SuccessfulCreate", "message": "Created pod: job-0-x", "type": "Normal",
        "source": {"component": "job-controller"}, "count": 1, "eventTime": None,
        "firstTimestamp": "2026-03-01T10:00:00Z", "lastTimestamp": "2026-03-01T10:00:00Z",
    }  # fmt: skip


def bare(obj: dict[str, Any]) -> dict[str, Any]:
    """An object without its kind, as typed clients and lists have it."""
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}


EVENTS = [event(1), event(2)]


def line(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))


def lines(documents: list[Any]) -> str:
    return "\n".join(map(line, documents)) + "\n"


def logged(payload: dict[str, Any]) -> dict[str, Any]:
    """An entry of Cloud Logging's log `events`."""
    return {"insertId": "x", "jsonPayload": payload, "logName": "projects/p/logs/events",
            "resource": {"type": "k8s_cluster"}, "timestamp": "2026-03-01T10:00:00Z"}  # fmt: skip


def elastic() -> dict[str, Any]:
    """A document of Metricbeat's metricset kubernetes.event."""
    meta = {"name": "job-0.1", "namespace": "shop", "uid": "Event-shop-1",
            "resource_version": "101", "timestamp": {"created": "2026-03-01T10:00:00Z"}}  # fmt: skip
    about = {"kind": "Job", "name": "job-0", "uid": "Job-shop-0", "api_version": "batch/v1"}
    found = {
        "metadata": meta, "involved_object": about, "reason": "SuccessfulCreate", "count": 1,
        "message": "Created pod: job-0-x", "type": "Normal",
        "timestamp": {"first_occurrence": "2026-03-01T10:00:00Z"},
    }  # fmt: skip
    return {"@timestamp": "2026-03-01T10:00:00Z", "kubernetes": {"event": found}}


def flat() -> dict[str, Any]:
    """A record of k8s_events as ClickHouse or Loki give it back."""
    said = {"k8s.event.uid": "Event-shop-1", "k8s.event.name": "job-0.1",
            "k8s.event.reason": "SuccessfulCreate", "k8s.namespace.name": "shop"}  # fmt: skip
    about = {"k8s.object.kind": "Job", "k8s.object.name": "job-0", "k8s.object.uid": "Job-shop-0"}
    return {"timestamp": "2026-03-01T10:00:00Z", "severity_text": "Normal",
            "body": "Created pod: job-0-x", "attributes": said, "resource": about}  # fmt: skip


def datadog() -> str:
    out = io.StringIO()
    table = [["Date", "Host", "Service", "Content"]]
    csv.writer(out).writerows([*table, *(["x", "h", "kube-apiserver", line(a)] for a in AUDIT)])
    return out.getvalue()


def in_cells(name: str, found: list[dict[str, Any]]) -> str:
    """A table of what a log store found, with a row that is none of it."""
    out = io.StringIO()
    table = [["Time", name], *(["x", line(obj)] for obj in found), ["x", "another {line}"]]
    csv.writer(out).writerows(table)
    return out.getvalue()


def status(reason: str, code: int) -> dict[str, Any]:
    """What an API server answers to who may not."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "jobs.batch is forbidden", "reason": reason, "code": code}  # fmt: skip


def velero() -> bytes:
    """Each object twice: by its resource, and by the preferred version of it."""
    files = {"metadata/version": b"1.1.0"}
    for resource, obj in (("jobs.batch", JOBS[0]), ("pods", POD)):
        for part in ("", "v1-preferredversion/"):
            name = obj["metadata"]["name"]
            files[f"resources/{resource}/{part}namespaces/shop/{name}.json"] = text(obj)
    return tarred(files, "w:gz")


def audit_logs() -> bytes:
    """`oc adm must-gather -- /usr/bin/gather_audit_logs`."""
    top = "mg/audit_logs/kube-apiserver"
    return tarred(
        {
            f"{top}.audit_logs_listing": b"master-0 audit.log\n",
            f"{top}/master-0-audit-2026-03-01T10-00-00.000.log.gz": gzip.compress(lines(AUDIT[:1]).encode()),
            f"{top}/master-0-audit.log.gz": gzip.compress(lines(AUDIT[1:]).encode()),
            "mg/audit_logs/openshift-apiserver/x-audit.log.gz": gzip.compress(b""),
            "mg/event-filter.html": b'<html><script>x={"kind":"Event"}</script></html>',
        },
        "w",
    )  # fmt: skip


def crashd() -> bytes:
    """kubecapture of crash-diagnostics."""
    top = "kubecapture/{}/shop/{}-202603011000.0000.json"
    return tarred(
        {
            top.format("batch_v1", "jobs"): text(jobs("shop")),
            top.format("core_v1", "pods"): text(listing("Pod", [POD])),
            "kubecapture/core_v1/shop/pod-0/c.log": b"a line\n",
        },
        "w:gz",
    )


PODS = (
    b"NAMESPACE   NAME    READY   STATUS      RESTARTS   AGE   IP         NODE\n"
    b"shop        pod-0   0/1     Completed   0          3m    10.0.0.1   n1\n"
)


def gkectl() -> bytes:
    """A snapshot of gkectl: files named after their commands."""
    top = "snap/kubectlCommands/kubectl_"
    return tarred(
        {
            f"{top}get_jobs_-o_yaml_--all-namespaces": yaml.safe_dump(listing("Job", JOBS, "List")).encode(),
            f"{top}get_pods_-o_wide_--all-namespaces": PODS,
            f"{top}describe_nodes": b"Name:      n1\nLabels:    a=b\n",
        },
        "w",
    )  # fmt: skip


def rancher() -> bytes:
    """Rancher's log collector: tables alone."""
    nodes = b"NAME   STATUS   ROLES   AGE   VERSION\nn1     Ready    <none>  3d    v1.33.1+rke2r1\n"
    files = {
        "n/rke2/kubectl/pods": PODS,
        "n/rke2/kubectl/nodes": nodes,
        "n/systeminfo/ps": b"PID\n",
    }
    return tarred(files, "w:gz")


def dump() -> str:
    """`kubectl cluster-info dump` as one stream, logs of containers among it."""
    parts = [listing("Node", []), jobs("shop"), listing("Pod", [POD])]
    shown = [json.dumps(part, indent=4) for part in parts]
    return "\n".join([*shown, MARKS.format("START"), "a {log} line", MARKS.format("END"), ""])


def before_posix() -> bytes:
    """A tar archive whose heads have a checksum and no magic."""
    content = tarred({"jobs.json": text(jobs("shop"))}, "w")
    head = bytearray(content[:512])
    head[257:] = bytes(255)
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + content[512:]


Made = Callable[[], "str | bytes"]
BOTH = ["jobs/job-0", "jobs/job-1"]
SHIPPED = ["events/job-0.1", "events/job-0.2"]
#: What is read: the kind, and the objects that are kept.
READ: dict[str, tuple[Made, str, list[str]]] = {
    "Velero's backup": (velero, "kubectl", ["jobs/job-0", "pods/pod-0"]),
    "crashd's kubecapture": (crashd, "kubectl", [*BOTH, "pods/pod-0"]),
    "gkectl's snapshot": (gkectl, "kubectl", BOTH),
    "Rancher's log collector": (rancher, "kubectl-text", ["pods/pod-0"]),
    "gather_audit_logs": (audit_logs, "audit", BOTH),
    "cluster-info dump, one stream": (dump, "kubectl", [*BOTH, "pods/pod-0"]),
    "GKE's Events, JSON": (lambda: json.dumps([logged(e) for e in EVENTS], indent=2), "kubectl", SHIPPED),
    "GKE's Events, YAML": (
        lambda: "---\n".join(yaml.safe_dump(logged(e)) for e in EVENTS), "kubectl", SHIPPED
    ),
    "Metricbeat's Events": (
        lambda: json.dumps({"hits": {"hits": [{"_source": elastic()}]}}), "kubectl", SHIPPED[:1]
    ),
    "k8s_events, flat": (lambda: lines([flat()]), "kubectl", SHIPPED[:1]),
    "Fluent Bit's Events": (
        lambda: lines([{"date": 1.0, **bare(e)} for e in EVENTS]), "kubectl", SHIPPED
    ),
    "an exporter's Events in Elasticsearch": (
        lambda: json.dumps({"hits": {"hits": [{"_source": bare(e)} for e in EVENTS]}}),
        "kubectl", SHIPPED,
    ),
    "an exporter's log, shipped": (
        lambda: lines([{"log": line(bare(e)) + "\n", "kubernetes": {}} for e in EVENTS]),
        "kubectl", SHIPPED,
    ),
    "an exporter's log, of Loki": (
        lambda: lines([{"labels": {}, "line": line(bare(e)), "timestamp": "x"} for e in EVENTS]),
        "kubectl", SHIPPED,
    ),
    "an exporter's log, of CRI": (
        lambda: "".join(f"2026-03-01T10:00:00.1Z stdout F {line(bare(e))}\n" for e in EVENTS),
        "kubectl", SHIPPED,
    ),
    "an exporter's log, of CloudWatch": (
        lambda: json.dumps({"events": [{"message": line(bare(e)), "timestamp": 1} for e in EVENTS]}, indent=4),
        "kubectl", SHIPPED,
    ),
    "an exporter's log, of Azure Monitor": (
        lambda: lines([{"records": [{"properties": {"log": line(bare(e))}}]} for e in EVENTS]),
        "kubectl", SHIPPED,
    ),
    "audit events, pretty, in an issue": (
        lambda: "Look:\n```json\n" + "\n".join(json.dumps(a, indent=2) for a in AUDIT) + "\n```\n",
        "audit", BOTH,
    ),
    "a tar of the time before POSIX": (before_posix, "kubectl", BOTH),
    "kubectl events -o json": (
        lambda: json.dumps(
            {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": [*map(bare, EVENTS)]}
        ),
        "kubectl", SHIPPED,
    ),
    "kubectl get --raw": (
        lambda: line({"kind": "JobList", "apiVersion": "batch/v1", "items": [*map(bare, JOBS)]}),
        "kubectl", BOTH,
    ),
    "kubectl get -o jsonpath={.items}": (lambda: line(JOBS), "kubectl", BOTH),
    "kubectl get -o jsonpath={.items[*]}": (lambda: " ".join(map(line, JOBS)), "kubectl", BOTH),
    "kubectl get -w -o yaml": (lambda: "---\n".join(map(yaml.safe_dump, JOBS)), "kubectl", BOTH),
    "jq .items[]": (lambda: "\n".join(json.dumps(j, indent=2) for j in JOBS), "kubectl", BOTH),
    "an object of a dashboard": (lambda: yaml.safe_dump(CRON), "kubectl", ["cronjobs/cronjob-0"]),
    "Datadog's CSV": (datadog, "audit", BOTH),
    "Events in Datadog's CSV": (lambda: in_cells("Content", EVENTS), "kubectl", SHIPPED),
    "Events in Grafana's CSV": (lambda: in_cells("Line", [*map(bare, EVENTS)]), "kubectl", SHIPPED),
    "Logstash": (lambda: lines([{"@version": "1", "message": line(a)} for a in AUDIT]), "audit", BOTH),
    "Logstash, parsed": (lambda: lines([{"@version": "1", **a} for a in AUDIT]), "audit", BOTH),
}  # fmt: skip
#: What holds no object or Event of the API as a server stores it.
REFUSED: dict[str, Made] = {
    "popeye": lambda: json.dumps({"popeye": {"sanitizers": [{"issues": {"shop/job-0": []}}]}}),
    "k9s": lambda: "NAMESPACE,NAME,COMPLETIONS,DURATION,AGE\nshop,job-0,1/1,5s,3m\n",
    "Argo CD's export": lambda: yaml.safe_dump_all(
        [
            {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"uid": "u"}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
        ]
    ),
    "kubectl get -o custom-columns": lambda: "NAME    FAILED\njob-0   2\njob-1   <none>\n",
    "kubectl get -o jsonpath of names": lambda: "job-0 job-1",
    "kubectl get -o name": lambda: "job.batch/job-0\njob.batch/job-1\n",
    "kube-state-metrics": lambda: (
        '# TYPE kube_job_status_failed gauge\nkube_job_status_failed{job_name="job-0"} 2\n'
    ),
    "Alloy's Events": lambda: 'name=job-0 kind=Job eventRV=301 reason=SuccessfulCreate msg="x"\n',
    "Datadog's events, CSV": lambda: "Date,Message\nx,Created pod: job-0-x\n",
    "Elastic's events, CSV": lambda: (
        "@timestamp,kubernetes.event.reason,kubernetes.event.metadata.uid\nx,Created,Event-shop-1\n"
    ),
    "a refused request, JSON": lambda: line(status("Forbidden", 403)),
    "a refused request, YAML": lambda: yaml.safe_dump(status("Unauthorized", 401)),
    "a watch that has expired": lambda: line({"type": "ERROR", "object": status("Expired", 410)}),
    "2>&1, forbidden": lambda: "Error from server (Forbidden): jobs.batch is forbidden\n",
    "2>&1, nothing there": lambda: "No resources found in shop namespace.\n",
    "2>&1, no connection": lambda: (
        "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host?\n"
    ),
    "crictl pods": lambda: json.dumps(
        {"items": [{"id": "a", "metadata": {"name": "pod-0", "uid": "Pod-shop-0"}, "state": "x"}]}
    ),
    "CloudTrail": lambda: line({"Records": [{"eventSource": "eks.amazonaws.com", "eventID": "x"}]}),
    "Azure's KubeEvents": lambda: "ObjectKind,Namespace,Name,Reason\nJob,shop,job-0,Created\n",
    "Falco's alerts": lambda: line({"rule": "r", "output_fields": {"ka.verb": "create"}}),
    "AdmissionReviews": lambda: line(
        {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": {"object": JOBS[0]},
        }
    ),
}


def imported(made: Made, place: Path) -> tuple[ImportResult, TraceReader]:
    content = made()
    source = place / "source"
    source.write_bytes(content if isinstance(content, bytes) else content.encode())
    (result,) = import_files(ImportRequest([str(source)], place / "trace"))
    return result, TraceReader(place / "trace")


@pytest.mark.parametrize("name", READ)
def test_it_is_read_with_each_object(name: str, tmp_path: Path) -> None:
    made, kind, wanted = READ[name]
    result, reader = imported(made, tmp_path)
    assert result.kind == kind
    rows = reader.table(("stream", "name", "uid", "type", "job")).to_pylist()
    rows = [row for row in rows if row["type"] not in ("LIST_BEGIN", "LIST_END", "GAP")]
    assert sorted(f"{row['stream']}/{row['name']}" for row in rows) == wanted
    if wanted[0].startswith("events"):
        assert {row["job"] for row in rows} == {"job-0"}
        assert [row["uid"] for row in rows] == [f"Event-shop-{n + 1}" for n in range(len(rows))]


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_what_to_do(name: str, tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError) as refused:
        imported(REFUSED[name], tmp_path)
    said = str(refused.value)
    assert "`kubectl get cronjobs,jobs,pods,events -A -o json` prints" in said
    assert "manifests" not in said


def test_jobs_beside_events_in_an_answer_are_not_lost(tmp_path: Path) -> None:
    """A list of objects is none of shipped Events: all are taken out, or none."""
    with pytest.raises(TraceFormatError, match=r"jq -c '\.data\[\]'"):
        imported(lambda: json.dumps({"type": "collection", "data": [*JOBS, *EVENTS]}), tmp_path)


def test_an_event_within_an_object_of_the_api_is_none(tmp_path: Path) -> None:
    """An annotation, a ConfigMap, an admission request: what holds one there tells nothing."""
    notes = {"event": line(bare(EVENTS[0]))}
    obj = {**JOBS[0], "metadata": {**JOBS[0]["metadata"], "annotations": notes}, "event": EVENTS[1]}
    result, reader = imported(lambda: line(obj), tmp_path)
    assert result.shapes == {"object": 1}
    assert {s.stream for s in reader.streams()} == {"jobs"}


def test_what_a_request_was_answered_is_said_in_the_words_of_the_api(tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError) as refused:
        imported(lambda: line(status("Forbidden", 403)), tmp_path)
    assert "answered in place of objects (Status: Forbidden, 403)" in str(refused.value)


def test_a_refusal_beside_objects_is_counted_and_one_in_a_bundle_named(tmp_path: Path) -> None:
    result, _ = imported(lambda: lines([status("Forbidden", 403), *JOBS]), tmp_path)
    (said,) = result.problems
    assert (
        said == "answers of the API server in place of objects (Status: Forbidden, 403), left out"
    )
    files = {
        "b/jobs.json": text(jobs("shop")),
        "b/pods.json": line(status("Forbidden", 403)).encode(),
    }
    place = tmp_path / "bundle"
    place.mkdir()
    result, _ = imported(lambda: tarred(files, "w"), place)
    (remark,) = result.remarks
    assert "an API server answered in place of objects (Status: Forbidden, 403)" in remark
    assert remark.endswith("/b/pods.json")


def test_a_reason_that_is_none_of_the_api_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match=r"\(Status: Failure, 403\)"):
        imported(lambda: line(status("\x1b[31mgo there", 403)), tmp_path)


def test_rows_without_an_event_are_counted(tmp_path: Path) -> None:
    result, _ = imported(lambda: in_cells("Content", EVENTS), tmp_path)
    (said,) = result.problems.items()
    assert said == (f"rows of {tmp_path / 'source'} without an Event, left out", 1)


def test_a_row_that_cannot_be_read_ends_no_table(tmp_path: Path) -> None:
    """The csv module raises at a carriage return amid a line."""
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    head, first, *rest = in_cells("Content", EVENTS).splitlines(keepends=True)
    whole, _ = imported(lambda: "".join((head, first, *rest)), tmp_path / "whole")
    result, _ = imported(lambda: "".join((head, first, "a\rb,c\n", *rest)), tmp_path / "broken")
    assert result.rows == whole.rows
    assert result.problems.total() == whole.problems.total() + 1
