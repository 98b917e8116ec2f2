"""Events as programs that ship them write them, and what stands alone: looks, and how far they reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.watchlog import job, pod
from tracekit.base.coverage import Scope
from tracekit.trace.importers.run import ImportRequest, import_files
from tracekit.trace.reading.coverage import coverage_of
from tracekit.trace.reading.reader import TraceReader


def event(number: int, **more: Any) -> dict[str, Any]:
    meta = {"name": f"load.{number}", "namespace": "shop", "uid": f"e-{number}", "resourceVersion": str(number),
            "creationTimestamp": f"2026-03-01T10:00:0{number}Z"}  # fmt: skip
    involved = {
        "kind": "Job",
        "namespace": "shop",
        "name": "load",
        "uid": "u-1",
        "labels": {"a": "b"},
    }
    return {"metadata": meta, "reason": "SuccessfulCreate", "message": "Created pod: load-x",
            "type": "Normal", "count": 1, "involvedObject": involved, **more}  # fmt: skip


def routed(verb: str, of: dict[str, Any]) -> dict[str, Any]:
    return {"verb": verb, "event": of, **({"old_event": event(1)} if verb == "UPDATED" else {})}


def observed(of: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2026-03-01T10:00:05Z", "attributes": {"event_type": "ADDED"}, "body": of}


SHIPPED = {
    "kubernetes-event-exporter": [json.dumps(event(n)) for n in (1, 2)],
    "eventrouter": [json.dumps(routed("ADDED", event(n))) for n in (1, 2)],
    "eventrouter's klog": [
        f"I0301 10:00:0{n}.000001       1 glogsink.go:42] {json.dumps(routed('ADDED', event(n)))}"
        for n in (1, 2)
    ],
    "OpenTelemetry": [json.dumps(observed(event(n))) for n in (1, 2)],
}


def imported(lines: list[str], tmp_path: Path) -> tuple[Any, TraceReader]:
    path = tmp_path / "lines"
    path.write_text("\n".join(lines) + "\n")
    (result,) = import_files(ImportRequest([str(path)], tmp_path / "trace"))
    return result, TraceReader(tmp_path / "trace")


@pytest.mark.parametrize("lines", SHIPPED.values(), ids=SHIPPED.keys())
def test_shipped_events_are_events(lines: list[str], tmp_path: Path) -> None:
    result, reader = imported(lines, tmp_path)
    assert result.shapes == {"shipped Event": 2}
    columns = ("type", "uid", "reason", "involved_name", "job", "kind")
    rows = [r for r in reader.table(columns, streams=["events"]).to_pylist() if r["uid"]]
    assert [(r["uid"], r["reason"], r["job"], r["kind"]) for r in rows] == [
        ("e-1", "SuccessfulCreate", "load", "Event"),
        ("e-2", "SuccessfulCreate", "load", "Event"),
    ]


def test_an_update_that_eventrouter_tells_is_one(tmp_path: Path) -> None:
    again = event(1, count=2)
    again["metadata"]["resourceVersion"] = "9"
    lines = [json.dumps(routed("ADDED", event(1))), json.dumps(routed("UPDATED", again))]
    _, reader = imported(lines, tmp_path)
    rows = reader.table(("type", "count"), streams=["events"]).to_pylist()
    assert [(r["type"], r["count"]) for r in rows] == [("LIST", 1), ("MODIFIED", 2)]


def test_an_events_summary_without_uids_is_none(tmp_path: Path) -> None:
    from tracekit.base.errors import TraceFormatError  # noqa: PLC0415 - one use

    bare = {**event(1), "metadata": {"name": "load.1"}}
    with pytest.raises(TraceFormatError):
        imported([json.dumps(bare)], tmp_path)


#### Objects that stand alone ####


def alone(make: Any, version: str, kind: str, name: str, number: int) -> str:
    obj = make(name)
    meta = {**obj["metadata"], "uid": f"u-{name}", "resourceVersion": str(number)}
    return json.dumps({"apiVersion": version, "kind": kind, **obj, "metadata": meta})


def test_objects_that_stand_alone_are_one_look_and_no_watch(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "a.json").write_text(alone(job, "batch/v1", "Job", "a", 5))
    (folder / "b.json").write_text(alone(job, "batch/v1", "Job", "b", 6))
    (folder / "c.json").write_text(alone(job, "batch/v1", "Job", "a", 7))  # of a later moment
    import_files(ImportRequest([str(folder)], tmp_path / "trace"))
    spans = [s for s in coverage_of(TraceReader(tmp_path / "trace")).spans if s.stream == "jobs"]
    assert [s.is_look for s in spans] == [True]
    assert [s.scope for s in spans] == [Scope(frozenset({"ns"}))]


def test_states_one_after_the_other_are_a_watch(tmp_path: Path) -> None:
    lines = [alone(job, "batch/v1", "Job", "a", 5), alone(job, "batch/v1", "Job", "a", 6)]
    _, reader = imported(lines, tmp_path)
    types = [r["type"] for r in reader.table(("type",), streams=["jobs"]).to_pylist()]
    assert types == ["LIST", "MODIFIED"]


def test_a_kubelets_pods_are_those_of_its_node(tmp_path: Path) -> None:
    items = []
    for name in ("a", "b"):
        obj = json.loads(alone(pod, "v1", "Pod", name, 5))
        obj["metadata"]["annotations"] = {"kubernetes.io/config.seen": "2026-03-01T10:00:00Z"}
        items.append(obj)
    text = json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
    _, reader = imported([text], tmp_path)
    (span,) = (s for s in coverage_of(reader).spans if s.stream == "pods")
    assert not span.scope.covers("ns")
